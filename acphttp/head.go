package acphttp

import (
	"bytes"

	"github.com/goacp/acp/internal/wire"
)

// head is what a transport has to know of a message to send it the right way.
type head struct {
	method  string
	id      string // the id as JSON text; "" without one
	object  bool   // it is a JSON object
	batch   bool   // it is a JSON array
	session string // params.sessionId, if that is a string
	opened  string // result.sessionId, if that is a string
	cancels string // params.requestId of $/cancel_request, as JSON text
	outcome bool   // it has a result or an error
	failed  bool   // it has an error
}

func (h *head) isRequest() bool  { return h.method != "" && h.id != "" }
func (h *head) isResponse() bool { return h.method == "" && h.id != "" && h.outcome }

// peeker reads the heads of messages. It is not safe for concurrent use.
type peeker struct {
	d  wire.Decoder
	in wire.Interner

	last  []byte // how the last notification of a session began, up to its id
	known head   // of that
}

// idMember is what every message with an id contains.
var idMember = []byte(`"id"`)

// glance is peek for messages of this side's own engine, which are well formed. It
// recognizes notifications that begin like the last one, as nearly all do, without
// reading them to the end.
func (p *peeker) glance(text []byte) head {
	if n := len(p.last); n > 0 && bytes.HasPrefix(text, p.last) && !bytes.Contains(text[n:], idMember) {
		return p.known
	}
	h, _ := p.peek(text)
	if h.id == "" && h.method != "" && h.session != "" && !h.outcome {
		// The session's id comes first in the params of every generated type.
		const between = `","params":{"sessionId":"`
		end := len(`{"jsonrpc":"2.0","method":"`) + len(h.method) + len(between) + len(h.session) + 1
		if end < len(text) && string(text[end-len(h.session)-1:end]) == h.session+`"` &&
			bytes.HasSuffix(text[:end-len(h.session)-1], []byte(between)) {
			p.last, p.known = append(p.last[:0], text[:end]...), h
		}
	}
	return h
}

// peek reads what there is to know of a message. It reports whether the text is
// JSON. Of a message that is nested too deeply to be decoded, method and id are
// known.
func (p *peeker) peek(text []byte) (h head, ok bool) {
	d := &p.d
	d.In = &p.in
	d.Reset(text, false)
	switch d.Peek() {
	case '{':
		h.object = true
		for k, more := d.FirstKey(); more; k, more = d.NextKey() {
			p.member(&h, k)
		}
	case '[':
		h.batch = true
		d.Skip()
	default:
		d.Skip()
	}
	_ = d.Finish() // keeps what is wrong
	if d.SyntaxErr() == nil {
		return h, true
	}
	if !d.TooDeep() {
		return h, false
	}
	ok = d.Outline(func(key string, value []byte) {
		switch key {
		case "method", "id":
			var inner wire.Decoder
			inner.Reset(value, false)
			p.plain(&inner, &h, key)
		case "result", "error":
			h.outcome, h.failed = true, key == "error"
		}
	})
	return h, ok
}

// plain reads a member that is not an object.
func (p *peeker) plain(d *wire.Decoder, h *head, key string) {
	switch {
	case key == "method" && d.Peek() == '"':
		h.method = d.ID()
	case key == "id" && d.Peek() != 'n':
		h.id = string(d.Raw())
	default:
		d.Skip()
	}
}

func (p *peeker) member(h *head, key []byte) {
	d := &p.d
	switch string(key) {
	case "method", "id":
		p.plain(d, h, string(key))
	case "params":
		if d.Peek() != '{' {
			d.Skip()
			return
		}
		for k, more := d.FirstKey(); more; k, more = d.NextKey() {
			switch {
			case string(k) == "sessionId" && d.Peek() == '"':
				h.session = d.ID()
			case string(k) == "requestId" && h.method == methodCancelRequest:
				h.cancels = string(d.Raw())
			default:
				d.Skip()
			}
		}
	case "result":
		h.outcome = true
		if d.Peek() != '{' {
			d.Skip()
			return
		}
		for k, more := d.FirstKey(); more; k, more = d.NextKey() {
			if string(k) == "sessionId" && d.Peek() == '"' {
				h.opened = d.ID()
			} else {
				d.Skip()
			}
		}
	case "error":
		h.outcome, h.failed = true, true
		d.Skip()
	default:
		d.Skip()
	}
}
