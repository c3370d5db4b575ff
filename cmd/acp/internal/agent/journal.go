package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// A journal is a file of JSON lines. Lines are only ever appended, so a crash can leave
// one unfinished line at most, the last. The first line is a header; each of the others
// is an update of version 2 of the protocol with its time:
//
//	{"acpSession":1,"id":"sess_…","cwd":"/home/me","created":"2006-01-02T15:04:05Z"}
//	{"at":"2006-01-02T15:04:06.789Z","update":{"sessionUpdate":"user_message",…}}
//
// Format 2 has other lines between these, from which the conversation with a model is
// built again: messages, what a tool was about to do, what the model knows of a file, and
// what came of the tool.
//
//	{"at":"…","message":{"role":"assistant","parts":[…]}}
//	{"at":"…","intent":{"id":"call_1","path":"/home/me/a.go","before":"…","after":"…"}}
//	{"at":"…","served":{"path":"/home/me/a.go","sum":"…","of":80,"seen":[{"from":1,"n":80}]}}
//	{"at":"…","result":{"type":"result","id":"call_1","parts":[…]}}
//	{"at":"…","usage":{"model":"anthropic/claude-sonnet-5","input":812,"output":93}}
//	{"at":"…","compacted":{"messages":[…]}}
//	{"at":"…","mended":{"from":3,"messages":[…]}}
//
// The last but one replaces all messages before it, the last one those from an index on, which a provider did not take.

// The versions of the format, in the header. Journals of the first one are read, and
// continued, as they are.
const (
	journalVersion = 2
	firstVersion   = 1
)

// Bounds of a journal. Longer lines are skipped when it is read. What does not fit is
// not kept, and the user is informed.
const (
	maxLine    = 64 << 20
	maxJournal = 256 << 20
)

var errFull = errors.New("it has reached its greatest size")

// header is the first line of a journal.
type header struct {
	Version int           `json:"acpSession"`
	ID      acp.SessionID `json:"id"`
	Cwd     string        `json:"cwd"`
	Roots   []string      `json:"roots,omitempty"`
	Created time.Time     `json:"created"`
	From    acp.SessionID `json:"from,omitempty"` // the session it was forked from
}

func (h *header) line() ([]byte, error) {
	data, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}

// parseHeader parses the first line.
func parseHeader(line []byte) (*header, error) {
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, errors.New("the first line is no header")
	}
	switch {
	case h.Version > journalVersion:
		return nil, fmt.Errorf("it was written by a newer version of the program (format %d)", h.Version)
	case h.Version < firstVersion || h.ID == "":
		return nil, errors.New("the first line is no header")
	}
	return &h, nil
}

// appendEntry appends the line of an update to dst.
func appendEntry(dst []byte, at time.Time, u acp.SessionUpdate) ([]byte, error) {
	dst = append(dst, `{"at":"`...)
	dst = at.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
	dst = append(dst, `","update":`...)
	start := len(dst)
	dst, err := u.AppendJSON(dst)
	if err != nil {
		return dst, err
	}
	if bytes.IndexByte(dst[start:], '\n') >= 0 { // kept as it came from a client
		var compact bytes.Buffer
		if err := json.Compact(&compact, dst[start:]); err != nil {
			return dst, err
		}
		dst = append(dst[:start], compact.Bytes()...)
	}
	return append(dst, "}\n"...), nil
}

// contents is what can be read of a journal.
type contents struct {
	header *header
	whole  int64 // how many bytes the finished lines take
	bad    int   // finished lines that could not be read, the header aside
}

// An entry is what a line of a journal holds: one of these.
type entry struct {
	update    acp.SessionUpdate
	message   *model.Message
	intent    *intent
	result    *model.ToolResult
	used      *used
	compacted *compacted
	served    *served.State
	mended    *mended

	line []byte // with its break; valid until the next entry is read
}

// readJournal calls each with every update of a journal, in order; see readEntries.
func readJournal(r io.Reader, each func(acp.SessionUpdate) error) (*contents, error) {
	return readEntries(r, func(e entry) error {
		if e.update == nil || each == nil {
			return nil
		}
		return each(e.update)
	})
}

// readEntries calls each with every entry of a journal, in order. It ignores what follows
// the last line break, which was not finished, and counts lines that cannot be read. It
// fails if the header is not valid, if reading fails, or if each does.
func readEntries(r io.Reader, each func(entry) error) (*contents, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	c := new(contents)
	for {
		line, n, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		c.whole += n
		if c.header == nil {
			if c.header, err = parseHeader(line); err != nil {
				return nil, err
			}
			continue
		}
		e, ok := parseEntry(line)
		if !ok {
			c.bad++
			continue
		}
		if each != nil {
			if err := each(e); err != nil {
				return c, err
			}
		}
	}
	if c.header == nil {
		return nil, errors.New("it is empty")
	}
	return c, nil
}

// readLine returns a line with its break, and its length. A line that is too long is
// nil. An unfinished line is [io.EOF].
func readLine(in *bufio.Reader) (line []byte, n int64, err error) {
	for {
		piece, err := in.ReadSlice('\n')
		n += int64(len(piece))
		if n <= maxLine {
			line = append(line, piece...)
		} else {
			line = nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return line, n, err
	}
}

// parseEntry parses a line.
func parseEntry(line []byte) (entry, bool) {
	var l struct {
		Update    json.RawMessage   `json:"update"`
		Message   *model.Message    `json:"message"`
		Intent    *intent           `json:"intent"`
		Result    *model.ToolResult `json:"result"`
		Used      *used             `json:"usage"`
		Compacted *compacted        `json:"compacted"`
		Served    *served.State     `json:"served"`
		Mended    *mended           `json:"mended"`
	}
	if json.Unmarshal(line, &l) != nil {
		return entry{}, false
	}
	e := entry{
		message: l.Message, intent: l.Intent, result: l.Result, used: l.Used, compacted: l.Compacted, served: l.Served, mended: l.Mended, line: line,
	}
	if e.mended != nil && (e.mended.From < 0 || slices.Contains(e.mended.Messages, nil)) {
		return entry{}, false
	}
	if e.compacted != nil && (len(e.compacted.Messages) == 0 || slices.Contains(e.compacted.Messages, nil)) {
		return entry{}, false
	}
	if len(l.Update) == 0 {
		return e, l.Message != nil || l.Intent != nil || l.Result != nil || l.Used != nil || l.Compacted != nil || l.Served != nil || l.Mended != nil
	}
	u, err := acpv2.UnmarshalSessionUpdate(l.Update)
	if err != nil || u == nil {
		return entry{}, false
	}
	if _, unknown := u.(*acpv2.UnknownSessionUpdate); unknown {
		return entry{}, false
	}
	e.update = u
	return e, true
}

// appendRecord appends the line of anything but an update to dst. Escapes that
// only HTML needs are left out, so that what is opaque stays as it is.
func appendRecord(dst []byte, at time.Time, name string, value any) ([]byte, error) {
	dst = append(dst, `{"at":"`...)
	dst = at.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
	dst = append(dst, `","`+name+`":`...)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return dst, err
	}
	dst = append(dst, bytes.TrimSuffix(b.Bytes(), []byte{'\n'})...)
	return append(dst, "}\n"...), nil
}

// maxJoined bounds the text that joined makes one chunk of, in bytes.
const maxJoined = 1 << 20

// joined returns a function for [readJournal] that joins the pieces of a message before
// it sends them, and one that sends what is left.
func joined(send func(acp.SessionUpdate) error) (each func(acp.SessionUpdate) error, flush func() error) {
	var (
		text    strings.Builder
		pending acp.SessionUpdate
		id      acp.MessageID
		thought bool
	)
	flush = func() error {
		if pending == nil {
			return nil
		}
		block := acp.Text(text.String())
		var u acp.SessionUpdate = &acp.AgentMessageChunk{MessageID: id, Content: block}
		if thought {
			u = &acp.AgentThoughtChunk{MessageID: id, Content: block}
		}
		pending = nil
		text.Reset()
		return send(u)
	}
	each = func(u acp.SessionUpdate) error {
		var chunk *acpv2.ContentChunk
		isThought := false
		switch u := u.(type) {
		case *acp.AgentMessageChunk:
			chunk = (*acpv2.ContentChunk)(u)
		case *acp.AgentThoughtChunk:
			chunk, isThought = (*acpv2.ContentChunk)(u), true
		}
		piece, ok := plainText(chunk)
		if pending != nil && (!ok || chunk.MessageID != id || isThought != thought || text.Len() > maxJoined) {
			if err := flush(); err != nil {
				return err
			}
		}
		if !ok {
			return send(u)
		}
		pending, id, thought = u, chunk.MessageID, isThought
		text.WriteString(piece)
		return nil
	}
	return each, flush
}

// plainText returns the text of a piece that is nothing but text.
func plainText(c *acpv2.ContentChunk) (string, bool) {
	if c == nil || len(c.Meta) > 0 || len(c.Unknown) > 0 {
		return "", false
	}
	t, ok := c.Content.(*acp.TextContent)
	if !ok || t.Annotations != nil || len(t.Meta) > 0 || len(t.Unknown) > 0 {
		return "", false
	}
	return t.Text, true
}
