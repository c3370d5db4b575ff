package tracecmd

import "github.com/goacp/acp/internal/wire"

// A frame is what is known of a JSON text that passed. Its bytes alias it.
type frame struct {
	method  string
	id      []byte // nil if there is none
	session string // that it names
	update  string // kind of a session/update
	params  []byte
	content []byte // the update
	result  []byte
	failure []byte // the error
}

func (f *frame) request() bool      { return f.method != "" && f.id != nil }
func (f *frame) notification() bool { return f.method != "" && f.id == nil }
func (f *frame) answer() bool {
	return f.method == "" && f.id != nil && (f.result != nil || f.failure != nil)
}

// A frameReader reads frames one after another; the strings that all of them repeat are kept once.
type frameReader struct {
	d  wire.Decoder
	in wire.Interner
}

// read reads data. What is no JSON-RPC has neither method nor id.
func (r *frameReader) read(data []byte) (f frame) {
	d := &r.d
	d.In = &r.in
	d.Reset(data, false)
	if d.Peek() != '{' {
		return frame{}
	}
	for key, ok := d.FirstKey(); ok; key, ok = d.NextKey() {
		switch string(key) {
		case "method":
			if d.Peek() == '"' {
				f.method = d.ID()
			} else {
				d.Skip()
			}
		case "id":
			f.id = d.Raw()
		case "params":
			f.params = d.Raw()
		case "result":
			f.result = d.Raw()
		case "error":
			f.failure = d.Raw()
		default:
			d.Skip()
		}
	}
	if d.Finish() != nil {
		return frame{}
	}
	r.readParams(&f)
	return f
}

// readParams reads what parameters say of a session.
func (r *frameReader) readParams(f *frame) {
	d := &r.d
	d.Reset(f.params, false)
	if len(f.params) == 0 || d.Peek() != '{' {
		return
	}
	for key, ok := d.FirstKey(); ok; key, ok = d.NextKey() {
		switch {
		case string(key) == "sessionId" && d.Peek() == '"':
			f.session = d.ID()
		case string(key) == "update" && f.method == "session/update":
			f.content = d.Raw()
		default:
			d.Skip()
		}
	}
	if f.content != nil {
		d.Reset(f.content, false)
		if d.Peek() == '{' {
			f.update = d.Member("sessionUpdate")
		}
	}
}

// find returns the value at a path of members, or nil.
func find(data []byte, path ...string) []byte {
	for _, name := range path {
		var d wire.Decoder
		d.Reset(data, false)
		data = nil
		if d.Peek() != '{' {
			return nil
		}
		for key, ok := d.FirstKey(); ok; key, ok = d.NextKey() {
			if string(key) == name {
				data = d.Raw()
			} else {
				d.Skip()
			}
		}
		if data == nil || d.Finish() != nil {
			return nil
		}
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

// A pending is a request that was not answered yet.
type pending struct {
	frame frame // without what aliases the data
	rec   int64 // number of its line
	at    int64 // time in ns
}

// maxPending is how many requests of each side are waited for; beyond it the oldest is forgotten.
const maxPending = 4096

// pendings are the requests of one side.
type pendings struct {
	byID  map[string]pending
	order []string
}

// put notes a request and reports whether another one was forgotten for it.
func (p *pendings) put(id []byte, q pending) (forgot bool) {
	if p.byID == nil {
		p.byID = map[string]pending{}
	}
	key := string(id)
	if len(key) > 1024 {
		return true
	}
	if _, ok := p.byID[key]; ok {
		p.byID[key] = q
		return true
	}
	for len(p.byID) >= maxPending && len(p.order) > 0 {
		delete(p.byID, p.order[0])
		p.order = p.order[1:]
		forgot = true
	}
	if len(p.order) >= 2*maxPending { // most of them were answered
		kept := p.order[:0:0]
		for _, old := range p.order {
			if _, ok := p.byID[old]; ok {
				kept = append(kept, old)
			}
		}
		p.order = kept
	}
	p.byID[key] = q
	p.order = append(p.order, key)
	return forgot
}

// take returns the request that an answer is to.
func (p *pendings) take(id []byte) (pending, bool) {
	q, ok := p.byID[string(id)]
	if ok {
		delete(p.byID, string(id))
	}
	return q, ok
}
