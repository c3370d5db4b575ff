// Package frame reads frames of JSON-RPC as far as all who tell of them look into them: what they
// call or answer, and the session they are about. It is as lenient as people are: members of the right
// kind in the right place do. Who decides what may pass has to be stricter.
package frame

import "github.com/goacp/acp/internal/wire"

// An Envelope is what a frame says of itself. Its slices alias the frame, its strings do not. Of
// members that are there twice the last one counts at the top of a frame, and the first one within.
// The zero value is of a frame that is no JSON-RPC.
type Envelope struct {
	Method string // "" if it calls nothing
	ID     []byte // as it is spelled, nil if there is none; any kind of value
	Params []byte
	Result []byte
	Error  []byte

	Session string // that the parameters name
	Update  []byte // that a session/update brings
	Kind    string // of that update
}

// Request reports whether it calls, and wants an answer.
func (e *Envelope) Request() bool { return e.Method != "" && e.ID != nil }

// Notification reports whether it calls, and wants none.
func (e *Envelope) Notification() bool { return e.Method != "" && e.ID == nil }

// Answer reports whether it answers.
func (e *Envelope) Answer() bool {
	return e.Method == "" && e.ID != nil && (e.Result != nil || e.Error != nil)
}

// A Reader reads frames one after another; short strings that many of them repeat are kept once, up to
// 32 of them. The zero value is ready for use. It is used by one goroutine at a time.
type Reader struct {
	d  wire.Decoder
	in wire.Interner
}

// Read reads a frame. The envelope of what is no valid JSON object is zero.
func (r *Reader) Read(frame []byte) (e Envelope) {
	d := &r.d
	d.In = &r.in
	d.Reset(frame, false)
	if d.Peek() == '{' {
		r.members(&e)
	}
	d.Reset(nil, false) // the frame is not kept
	return e
}

// members reads what is at the top of a frame.
func (r *Reader) members(e *Envelope) {
	d := &r.d
	for key, ok := d.FirstKey(); ok; key, ok = d.NextKey() {
		switch string(key) {
		case "method":
			if d.Peek() == '"' {
				e.Method = d.ID()
			} else {
				d.Skip()
			}
		case "id":
			e.ID = d.Raw()
		case "params":
			e.Params = d.Raw()
		case "result":
			e.Result = d.Raw()
		case "error":
			e.Error = d.Raw()
		default:
			d.Skip()
		}
	}
	if d.Finish() != nil {
		*e = Envelope{}
		return
	}
	r.params(e)
}

// params reads what parameters say of a session.
func (r *Reader) params(e *Envelope) {
	d := &r.d
	d.Reset(e.Params, false)
	if d.Peek() != '{' {
		return
	}
	named := false
	for key, ok := d.FirstKey(); ok; key, ok = d.NextKey() {
		switch {
		case !named && string(key) == "sessionId":
			named = true
			if d.Peek() == '"' {
				e.Session = d.ID()
			} else {
				d.Skip()
			}
		case e.Update == nil && string(key) == "update" && e.Method == "session/update":
			e.Update = d.Raw()
		default:
			d.Skip()
		}
	}
	if d.Reset(e.Update, false); d.Peek() == '{' {
		e.Kind = d.Member("sessionUpdate")
	}
}

// Find returns the value at a path of members in a part of a frame that was read, or nil.
func Find(data []byte, path ...string) []byte {
	var d wire.Decoder
	for _, name := range path {
		d.Reset(data, false)
		data = nil
		if d.Peek() != '{' {
			return nil
		}
		for key, ok := d.FirstKey(); ok; key, ok = d.NextKey() {
			if string(key) == name {
				data = d.Raw()
				break
			}
			d.Skip()
		}
	}
	return data
}

// Text returns what a JSON string says, or "" of other values and of nothing.
func Text(data []byte) string {
	if len(data) == 0 || data[0] != '"' {
		return ""
	}
	var d wire.Decoder
	d.Reset(data, false)
	return d.Str()
}

// Member returns the string at a path of members, or "": see [Find].
func Member(data []byte, path ...string) string { return Text(Find(data, path...)) }
