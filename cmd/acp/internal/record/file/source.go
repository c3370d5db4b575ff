package file

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp/trace"
)

// A source reads records, as a [trace.Reader] does.
type source interface {
	// Next returns the next record, valid until the next call. The error is io.EOF at the end. After a
	// *trace.CutError the next call continues behind the line that could not be read.
	Next() (*trace.Record, error)
	Header() trace.Header // of the part of the last record
	Part() int            // the number of that part, from 1
	Line() int64          // of the last record, from 1
	Offset() int64        // of the end of that line, in bytes
}

// expected says what is read here, for those who come with something else.
const expected = "a recording of acp tap, JSON-RPC messages with one in each line, or the events of a conductor, " +
	"each perhaps compressed with gzip"

// recognizeIn bounds how much of the beginning tells what follows.
const recognizeIn = 64 << 10

// recognize returns what reads in, by how it begins. It waits for the beginning only.
func recognize(in *bufio.Reader) (source, error) {
	if _, err := in.Peek(1); err == io.EOF {
		return nil, fmt.Errorf("%w: it is empty; expected %s", trace.ErrNotTrace, expected)
	} else if err != nil {
		return nil, err
	}
	head, _ := in.Peek(min(in.Buffered(), recognizeIn)) // has been read
	head = bytes.TrimLeft(bytes.TrimPrefix(head, bom), " \t\r\n")
	line, _, _ := bytes.Cut(head, []byte("\n"))
	switch form := formOf(line); {
	case form.trace:
		return trace.NewReader(in)
	case form.event:
		return newEvents(in), nil
	case form.message:
		return newFrames(in), nil
	}
	return nil, fmt.Errorf("%w: it begins with %q; expected %s", trace.ErrNotTrace, shorten(line), expected)
}

// shorten returns the beginning of a line, for an error.
func shorten(line []byte) string {
	const most = 40
	line = bytes.TrimSpace(line)
	if len(line) <= most {
		return string(line)
	}
	return strings.ToValidUTF8(string(line[:most]), "") + "…"
}

var bom = []byte("\ufeff")

// A form is what a line is. Of a line that was cut off, as much counts as is there.
type form struct {
	trace   bool // the header of a recording
	event   bool // of a conductor
	message bool // of JSON-RPC, perhaps with its direction
}

func formOf(line []byte) form {
	if bytes.HasPrefix(line, []byte(`{"acpTrace"`)) {
		return form{trace: true}
	}
	if _, frame, ok := cutArrow(line); ok {
		f := formOf(frame)
		return form{message: f.message}
	}
	names, kind := membersOf(line)
	has := func(name string) bool { return slices.Contains(names, name) }
	switch {
	case has("acpTrace"):
		return form{trace: true}
	case has("jsonrpc"):
		return form{message: true}
	case slices.Contains(eventTypes, kind) && has("ts") && (has("from") || has("protocol")):
		return form{event: true}
	case slices.ContainsFunc(directionNames, has) && slices.ContainsFunc(frameNames, has):
		return form{message: true}
	}
	return form{}
}

// membersOf returns the names of the members of an object, which may be cut off, and its type.
func membersOf(line []byte) (names []string, kind string) {
	d := json.NewDecoder(bytes.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, ""
	}
	for len(names) < 64 {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return names, kind
		}
		names = append(names, name)
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return names, kind
		}
		if name == "type" {
			_ = json.Unmarshal(v, &kind)
		}
	}
	return names, kind
}

// A lines reads lines of at most trace.MaxLine bytes.
type lines struct {
	in     *bufio.Reader
	buf    []byte
	line   int64 // of the last one, from 1
	begin  int64 // its offset
	offset int64 // of what follows it
	err    error // of what follows it
}

// next returns the next line that is not blank, without the spaces around it, valid until the next call,
// and its whole size: that of a longer one is more than what there is.
func (l *lines) next() (text []byte, size int64, err error) {
	for l.err == nil {
		l.buf, l.begin = l.buf[:0], l.offset
		size = 0
		for more := true; more; {
			var part []byte
			part, err = l.in.ReadSlice('\n')
			size += int64(len(part))
			l.buf = append(l.buf, part[:min(len(part), trace.MaxLine-len(l.buf))]...)
			if more = err == bufio.ErrBufferFull; !more {
				l.err = err
			}
		}
		l.offset += size
		l.line++
		text = bytes.TrimSpace(bytes.TrimPrefix(l.buf, bom))
		if size <= int64(len(l.buf)) {
			size = int64(len(text))
		}
		if len(text) > 0 {
			return text, size, nil
		}
	}
	return nil, 0, l.err
}

// cut reports the last line as one that cannot be read.
func (l *lines) cut(reason string) error {
	return &trace.CutError{Line: l.line, Offset: l.begin, Reason: reason}
}

func (l *lines) Line() int64          { return l.line }
func (l *lines) Offset() int64        { return l.offset }
func (l *lines) Part() int            { return 1 }
func (l *lines) Header() trace.Header { return trace.Header{Version: trace.Version} }

// timeOf returns a time as programs write it, in RFC 3339.
func timeOf(text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, err == nil
}
