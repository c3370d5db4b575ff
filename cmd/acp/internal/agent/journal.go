package agent

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// The journal of a session has, beside what is known of it, each update of version 2 of the protocol that is kept, and that
// from which the conversation with a model is built again: messages, what a tool was about to do, what the model knows of a
// file, what came of the tool, what an answer has used. Of the other kinds "compacted" replaces all messages before it, and
// "mended" those from an index on, which a provider did not take.

// An entry is what a record holds: one of these.
type entry struct {
	update    acp.SessionUpdate
	message   *model.Message
	intent    *intent
	result    *model.ToolResult
	used      *used
	compacted *compacted
	served    *served.State
	mended    *mended
}

// parseEntry parses a record. It reports false if that is of no kind that an entry can be, or is damaged.
func parseEntry(d journal.Draft) (e entry, ok bool) {
	var to any
	switch d.Kind {
	case journal.KindUpdate:
		u, err := acpv2.UnmarshalSessionUpdate(d.Data)
		_, unknown := u.(*acpv2.UnknownSessionUpdate)
		return entry{update: u}, err == nil && u != nil && !unknown
	case journal.KindMessage:
		to = &e.message
	case journal.KindIntent:
		to = &e.intent
	case journal.KindResult:
		to = &e.result
	case journal.KindUsage:
		to = &e.used
	case journal.KindCompacted:
		to = &e.compacted
	case journal.KindServed:
		to = &e.served
	case journal.KindMended:
		to = &e.mended
	}
	if to == nil || json.Unmarshal(d.Data, to) != nil || string(d.Data) == "null" {
		return entry{}, false
	}
	if m := e.mended; m != nil && (m.From < 0 || slices.Contains(m.Messages, nil)) {
		return entry{}, false
	}
	if c := e.compacted; c != nil && (len(c.Messages) == 0 || slices.Contains(c.Messages, nil)) {
		return entry{}, false
	}
	return e, true
}

// updateDraft returns the record of an update.
func updateDraft(u acp.SessionUpdate) (journal.Draft, error) {
	data, err := u.AppendJSON(nil)
	return journal.Draft{Kind: journal.KindUpdate, Data: data}, err
}

// recordDraft returns the record of anything else. Escapes that only HTML needs are left out, so that what is opaque stays
// as it is.
func recordDraft(kind journal.Kind, value any) (journal.Draft, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return journal.Draft{Kind: kind, Data: bytes.TrimSuffix(b.Bytes(), []byte{'\n'})}, err
}

// maxJoined bounds the text that joined makes one chunk of, in bytes.
const maxJoined = 1 << 20

// joined returns a function that joins the pieces of a message before
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
