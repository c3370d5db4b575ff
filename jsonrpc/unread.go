package jsonrpc

import (
	"encoding/json"
	"fmt"

	"github.com/goacp/acp/internal/wire"
)

// An unread is what is known of a message that is not decoded, because it is too
// large or nested too deeply.
type unread struct {
	method    string
	hasMethod bool
	id        []byte // its text; nil if there is none that can be read
	response  bool   // it is a response
}

// tooLarge deals with a frame that was skipped: the beginning that was kept
// may say whom to tell.
func (r *reader) tooLarge(big *FrameTooLargeError) {
	c, d := r.c, &r.d
	c.seen.oversize.Add(1)
	var u unread
	d.Reset(big.Prefix, false)
	if d.Peek() == '{' {
		for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
			switch string(k) {
			case "method":
				u.method = d.Str()
				u.hasMethod = d.SyntaxErr() == nil
			case "id":
				if raw := d.Raw(); d.SyntaxErr() == nil {
					u.id = raw
				}
			case "result", "error":
				u.response = true
				d.Skip()
			default:
				d.Skip()
			}
		}
	}
	c.event("frame too large", Event{Kind: EventFrameTooLarge, Method: u.method, Code: CodeInvalidRequest, Size: big.Size})
	// The beginning of the frame is the reader's.
	r.settleUnread(&u, "message too large", big.Limit, &FrameTooLargeError{Limit: big.Limit, Size: big.Size})
}

// tooDeep deals with an object that is nested too deeply to be decoded. It reports
// whether it is JSON.
func (r *reader) tooDeep(f Frame) bool {
	var u unread
	badID := false
	if !r.d.Outline(func(key string, value []byte) {
		switch key {
		case "method":
			if u.hasMethod = value[0] == '"'; u.hasMethod {
				var d wire.Decoder
				d.Reset(value, false)
				u.method = d.Str()
			}
		case "id":
			if c := value[0]; c == '"' || c == 'n' || c == '-' || c-'0' < 10 {
				u.id = value
			} else {
				badID = true
			}
		case "result", "error":
			u.response = true
		}
	}) {
		return false
	}
	if !u.hasMethod && !u.response && u.id == nil || u.hasMethod && badID {
		r.refuse(f, ErrInvalidRequest)
		return true
	}
	u.response = !u.hasMethod // also one that has neither result nor error
	c := r.c
	c.seen.deep.Add(1)
	c.event("message nested too deeply", Event{Kind: EventTooDeep, Method: u.method, Code: CodeInvalidRequest, Size: int64(len(f.Data))})
	r.settleUnread(&u, "message nested too deeply", wire.MaxDepth, ErrTooDeep)
	return true
}

// settleUnread answers a request that is not decoded, and fails the call a
// response belongs to. Nothing else is answered.
func (r *reader) settleUnread(u *unread, reason string, limit int, err error) {
	c := r.c
	switch {
	case u.id == nil:
	case u.hasMethod:
		data := wire.AppendInt([]byte(`{"limit":`), int64(limit))
		c.answer(r.idOf(u.id), &Error{
			Code:    CodeInvalidRequest,
			Message: "Invalid request: " + reason,
			Data:    json.RawMessage(append(data, '}')),
		})
	case u.response:
		if cl, _, _ := r.lookup(u.id); cl != nil {
			cl.reply = fmt.Errorf("jsonrpc: response to %s: %w", cl.method, err)
			r.stageCall(cl, 0)
		}
	}
}
