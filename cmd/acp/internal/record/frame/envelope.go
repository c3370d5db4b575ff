// Package frame reads frames of JSON-RPC as far as those need that show traffic to people: which
// method a frame calls or which request it answers, and the session it is about. It is lenient, as
// people are: members of the right type in the right place suffice. Code that decides what may pass
// must be stricter.
package frame

import "github.com/goacp/acp/internal/wire"

// An Envelope describes a frame. Its slices alias the frame, its strings do not. Of members that
// occur twice the last one counts at the top of a frame, and the first one further down. The zero
// value describes a frame that is not JSON-RPC.
type Envelope struct {
	Method string // "" if it calls nothing
	ID     []byte // as it is spelled, nil if there is none; any JSON value
	Params []byte
	Result []byte
	Error  []byte

	Session string // that the parameters name
	Update  []byte // of a session/update
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

// A Reader reads frames one after another. It keeps up to 32 short strings that many frames repeat.
// The zero value is ready for use. It is for one goroutine at a time.
type Reader struct {
	d  wire.Decoder
	in wire.Interner
}

// Read reads a frame. The envelope of anything that is not a JSON object is zero.
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

// members reads the members at the top of a frame.
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

// params reads what the parameters say of a session.
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

// Text returns the text of a JSON string, or "" for anything else.
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
