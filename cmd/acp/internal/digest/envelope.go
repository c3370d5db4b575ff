package digest

import "github.com/goacp/acp/internal/wire"

// envelope is what a frame has at its top. Its values alias the frame.
type envelope struct {
	method  string
	id      []byte // nil if there is none
	params  []byte
	result  []byte
	failure []byte // the error
}

// read reports whether data is a request, a notification or an answer. It is as
// lenient as people are: members of the right kind in the right place do.
func (e *envelope) read(data []byte) bool {
	ok := members(data, func(key []byte, d *wire.Decoder) {
		switch string(key) {
		case "method":
			if d.Peek() == '"' {
				e.method = d.Str()
				return
			}
			d.Skip()
		case "id":
			e.id = d.Raw()
		case "params":
			e.params = d.Raw()
		case "result":
			e.result = d.Raw()
		case "error":
			e.failure = d.Raw()
		default:
			d.Skip()
		}
	})
	return ok && (e.method != "" || e.id != nil && (e.result != nil || e.failure != nil))
}

// members calls f for every member of an object, to read its value. It reports
// whether data is a valid object.
func members(data []byte, f func(key []byte, d *wire.Decoder)) bool {
	var d wire.Decoder
	d.Reset(data, false)
	if d.Peek() != '{' {
		return false
	}
	for key, ok := d.FirstKey(); ok; key, ok = d.NextKey() {
		f(key, &d)
	}
	return d.Finish() == nil
}

// find returns the value at a path of names, or nil.
func find(data []byte, path ...string) []byte {
	for _, name := range path {
		var next []byte
		if !members(data, func(key []byte, d *wire.Decoder) {
			if next == nil && string(key) == name {
				next = d.Raw()
				return
			}
			d.Skip()
		}) {
			return nil
		}
		data = next
	}
	return data
}

// text returns a JSON string, or "".
func text(data []byte) string {
	if len(data) == 0 || data[0] != '"' {
		return ""
	}
	var d wire.Decoder
	d.Reset(data, false)
	return d.Str()
}

// member returns the string at a path, or "".
func member(data []byte, path ...string) string { return text(find(data, path...)) }

// elements calls f for the elements of an array until it returns false.
func elements(data []byte, f func(v []byte) bool) {
	var d wire.Decoder
	d.Reset(data, false)
	if d.Peek() != '[' {
		return
	}
	for ok := d.FirstElem(); ok; ok = d.NextElem() {
		if !f(d.Raw()) {
			return
		}
	}
}
