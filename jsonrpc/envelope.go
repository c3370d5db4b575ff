package jsonrpc

import (
	"bytes"
	"errors"
	"reflect"

	"github.com/goacp/acp/internal/wire"
)

// envelope is what is known of the object at hand. It is filled in one pass;
// params and result are decoded on the way when what has to be known for that
// came before them, and otherwise at the end.
type envelope struct {
	has, bad members // which members are there, and which are unfit
	twice    bool    // one of them came twice

	id     []byte // its text
	method string
	routes *routes // of the method

	params     int // where they start
	paramsEnd  int
	paramsFor  *route // what they were decoded for
	paramsVal  any
	text       []byte           // the params' text, if it is still as it came
	missing    *wire.FieldError // what is wrong with params or a result taken as {}
	result     int
	error      int
	noResult   bool  // result is null
	noError    bool  // error is null
	call       *call // the call whose result was decoded
	callResult any
	entry      *entry // the request, once registered
}

type members uint8

const (
	memberVersion members = 1 << iota
	memberID
	memberMethod
	memberParams
	memberResult
	memberError

	// responseOnly is what a response may have and other messages do not have,
	// or a request in addition to its method.
	responseShape = memberID | memberResult | memberError
)

// parse classifies a frame and deals with it (S5–S9).
func (r *reader) parse(f Frame, e *envelope) {
	d := &r.d
	switch d.Peek() {
	case '{':
		if r.members(f, e); d.SyntaxErr() == nil {
			_ = d.Finish()
		}
		if d.SyntaxErr() != nil {
			r.syntaxError(f, e)
			return
		}
		r.object(f, e)
		return
	case '[':
		d.Skip()
		if _ = d.Finish(); d.SyntaxErr() != nil && !(d.TooDeep() && d.Outline(nil)) {
			r.refuse(f, ErrParse)
			return
		}
		r.refuse(f, &Error{Code: CodeInvalidRequest, Message: "Invalid request: JSON-RPC batches are not supported"})
		return
	}
	// A value of another type is answered if it is one (S7). Text that is not
	// JSON is an error of the peer where frames have a boundary of their own;
	// on a line it is more likely a log message.
	v := d.Raw()
	if _ = d.Finish(); d.SyntaxErr() == nil {
		e := *ErrInvalidRequest
		if len(v) <= 256 {
			e.Data = append(e.Data, v...)
		}
		r.refuse(f, &e)
		return
	}
	if !f.Line {
		r.refuse(f, ErrParse)
		return
	}
	r.c.seen.noise.Add(1)
	r.c.diagnose(Event{Kind: EventNoise, Size: int64(len(f.Data)), Data: beginning(f)})
}

// beginning returns what an event holds of a frame that is not a message.
func beginning(f Frame) []byte { return f.Data[:min(len(f.Data), 1<<10)] }

// refuse answers a frame that is not a message. Such answers carry no id, not
// even one that could be read (S8).
func (r *reader) refuse(f Frame, e *Error) {
	r.c.seen.invalid.Add(1)
	r.c.event("invalid frame", Event{Kind: EventInvalidFrame, Code: e.Code, Size: int64(len(f.Data)), Data: beginning(f)})
	r.c.answer(nullID(), e)
}

// syntaxError gives up a frame that turned out not to be JSON, or not to be JSON
// that can be decoded.
func (r *reader) syntaxError(f Frame, e *envelope) {
	if e.call != nil && e.callResult != nil {
		// What was decoded so far is not part of the answer that the call may yet get.
		reflect.ValueOf(e.callResult).Elem().SetZero()
	}
	e.call, e.callResult = nil, nil
	if r.d.TooDeep() && r.tooDeep(f) {
		return
	}
	r.refuse(f, ErrParse)
}

// members scans the object.
func (r *reader) members(f Frame, e *envelope) {
	d := &r.d
	var k []byte
	var ok bool
	if r.opens(f, e) {
		r.paramsMember(f, e)
		k, ok = d.NextKey()
	} else {
		k, ok = d.FirstKey()
	}
	for ; ok; k, ok = d.NextKey() {
		var m members
		switch string(k) {
		case "jsonrpc":
			m = memberVersion
		case "id":
			m = memberID
		case "method":
			m = memberMethod
		case "params":
			m = memberParams
		case "result":
			m = memberResult
		case "error":
			m = memberError
		default:
			d.Skip() // S13
			continue
		}
		if e.has&m != 0 {
			e.twice = true
			d.Skip()
			continue
		}
		e.has |= m
		switch m {
		case memberVersion:
			if d.Peek() != '"' {
				e.bad |= m
				d.Skip()
			} else if string(d.Bytes()) != "2.0" {
				e.bad |= m
			}
		case memberID:
			switch c := d.Peek(); {
			case c == '"', c == '-', c == 'n', c-'0' < 10:
				e.id = d.Raw()
			default:
				e.bad |= m
				d.Skip()
			}
		case memberMethod:
			if d.Peek() != '"' {
				e.bad |= m
				d.Skip()
				break
			}
			name := d.Bytes()
			if e.routes = r.find(name); e.routes != nil {
				e.method = e.routes.name
			} else {
				e.method = string(name)
			}
		case memberParams:
			r.remember(f, e)
			r.paramsMember(f, e)
		case memberResult:
			e.noResult = d.Peek() == 'n'
			r.resultMember(e)
		case memberError:
			e.error, e.noError = d.Pos(), d.Peek() == 'n'
			d.Skip()
		}
	}
}

// opens moves to the params of a frame that begins like the last notification.
func (r *reader) opens(f Frame, e *envelope) bool {
	o := &r.opening
	if o.routes == nil || !bytes.HasPrefix(f.Data, o.text) || o.mux != r.c.mux.Load() {
		return false
	}
	e.has, e.routes, e.method = memberVersion|memberMethod|memberParams, o.routes, o.routes.name
	r.d.Enter(len(o.text))
	return true
}

// remember keeps how a notification began whose params are next.
func (r *reader) remember(f Frame, e *envelope) {
	n := r.d.Pos()
	if e.has != memberVersion|memberMethod|memberParams || e.bad != 0 || e.twice ||
		e.routes == nil || e.routes.note == nil || n > openingMax || r.d.Replaced() > 0 {
		return
	}
	r.opening = opening{append(r.opening.text[:0], f.Data[:n]...), e.routes, r.lastMux}
}

// find is Mux.find with a memory of one name: most messages have the same
// method as the one before.
func (r *reader) find(name []byte) *routes {
	mux := r.c.mux.Load()
	if l := r.last; l != nil && mux == r.lastMux && string(name) == l.name {
		return l
	}
	l := mux.find(name)
	r.last, r.lastMux = l, mux
	return l
}

// paramsMember decodes the params on the way if the method is known, and the id
// has been seen or the method is a notification's.
func (r *reader) paramsMember(f Frame, e *envelope) {
	d := &r.d
	e.params = d.Pos()
	if e.routes != nil && !e.twice && e.has&(memberResult|memberError) == 0 {
		if rt := e.routes.request; e.has&memberID != 0 && rt != nil {
			r.decodeParams(rt, e)
		} else if rt := e.routes.note; e.has&memberID == 0 && rt != nil && rt.direct != nil {
			e.params = d.At()
		} else if e.has&memberID == 0 && rt != nil && !f.Owned {
			r.decodeParams(rt, e)
		}
	}
	if e.paramsFor == nil {
		d.Skip()
	}
	e.paramsEnd = d.Pos()
	if !f.Owned && e.paramsEnd-e.params <= keepTextMax && d.SyntaxErr() == nil {
		e.text = f.Data[e.params:e.paramsEnd]
	}
}

// decodeParams decodes the params at the cursor; null ones as {} (S14), except
// for handlers of raw params.
func (r *reader) decodeParams(rt *route, e *envelope) {
	d := &r.d
	e.paramsFor = rt
	if d.Peek() == 'n' && d.Null() {
		e.paramsVal = r.noParams(rt, e)
		return
	}
	e.paramsVal = rt.decode(d)
}

func (r *reader) noParams(rt *route, e *envelope) any {
	e.text = nil
	if rt.none != nil {
		return rt.none()
	}
	r.nil.Reset(emptyText, false)
	v := rt.decode(&r.nil)
	e.missing = within("params", r.nil.FieldErr())
	return v
}

var emptyText = []byte("{}")

// within completes the path of something that was taken as {}.
func within(name string, fe *wire.FieldError) *wire.FieldError {
	if fe == nil {
		return nil
	}
	if fe.Path != "" {
		name += "." + fe.Path
	}
	return &wire.FieldError{Path: name, Reason: fe.Reason}
}

// resultMember decodes the result on the way if the call is known.
func (r *reader) resultMember(e *envelope) {
	d := &r.d
	e.result = d.Pos()
	if e.has&memberID != 0 && e.id != nil && !e.twice && e.has&(memberMethod|memberError) == 0 {
		if cl, result, _ := r.lookup(e.id); cl != nil {
			e.call, e.callResult = cl, result
			r.decodeResult(result, e)
			return
		}
	}
	d.Skip()
}

// decodeResult decodes the result at the cursor. A null one is a success, and
// an empty object to typed callers (S23, S33).
func (r *reader) decodeResult(v any, e *envelope) {
	d := &r.d
	if v == nil {
		d.Skip()
		return
	}
	if at := d.At(); d.Peek() == 'n' && d.Null() {
		if r.nil.Reset(emptyText, false); wire.Decode(v, &r.nil) {
			e.missing = within("result", r.nil.FieldErr())
			return
		}
		d.Seek(at)
	}
	decodeValue(d, v)
}

// idOf returns the id that was read.
func (r *reader) idOf(text []byte) ID {
	var d wire.Decoder
	d.Reset(text, false)
	var id ID
	id.decodeJSON(&d)
	return id
}

// object deals with a well-formed object.
func (r *reader) object(f Frame, e *envelope) {
	c := r.c
	if e.has&memberMethod == 0 {
		if e.has&responseShape != 0 {
			r.response(f, e)
			return
		}
		r.refuse(f, ErrInvalidRequest)
		return
	}
	if e.twice || e.has&memberVersion == 0 || e.bad != 0 {
		r.refuse(f, ErrInvalidRequest)
		return
	}
	mux := c.mux.Load()
	if e.has&memberID == 0 {
		if e.method == cancelMethod {
			r.cancellation(e)
			return
		}
		rt := e.routes.route(mux, true)
		if rt != nil && rt.direct != nil && r.direct(f, rt, e) {
			return
		}
		if rt == nil {
			c.diagnose(Event{Kind: EventUnknownNotification, Method: e.method})
			return
		}
		if fe := r.paramsOf(f, rt, e); fe != nil {
			c.event("malformed notification", Event{
				Kind: EventMalformedNotification, Method: e.method, Code: CodeInvalidParams, Path: fe.Path, Reason: fe.Reason,
			})
			return
		}
		r.notification(f, rt, e)
		return
	}
	id := r.idOf(e.id)
	if mux != nil && mux.StrictIDs && !id.IsString() && !id.IsInteger() {
		r.refuse(f, &Error{Code: CodeInvalidRequest, Message: "Invalid request: ids must be strings or integers"})
		return
	}
	rt := e.routes.route(mux, false)
	if rt == nil || e.method == cancelMethod {
		c.answer(id, MethodNotFound(e.method))
		return
	}
	if fe := r.paramsOf(f, rt, e); fe != nil {
		c.event("malformed request", Event{
			Kind: EventMalformedRequest, Method: e.method, Code: CodeInvalidParams, Path: fe.Path, Reason: fe.Reason,
		})
		c.answer(id, invalidParams(fe))
		return
	}
	r.request(f, id, rt, e)
}

func invalidParams(fe *wire.FieldError) *Error {
	data := wire.AppendString([]byte(`{"path":`), fe.Path)
	data = wire.AppendString(append(data, `,"reason":`...), fe.Reason)
	e := *ErrInvalidParams
	e.Data = append(data, '}')
	return &e
}

// paramsOf sees to it that the params are decoded for the route that is taken.
func (r *reader) paramsOf(f Frame, rt *route, e *envelope) *wire.FieldError {
	d := &r.d
	switch {
	case e.has&memberParams == 0:
		e.paramsVal = r.noParams(rt, e)
	case e.paramsFor != rt:
		if e.paramsFor != nil {
			d.Reset(f.Data, f.Owned) // forget what was wrong with the first attempt
			e.missing = nil
		}
		d.Seek(e.params)
		r.decodeParams(rt, e)
	}
	if fe := d.FieldErr(); fe != nil {
		return fe
	}
	return e.missing
}

// response deals with a message without a method. It is never answered (S9).
func (r *reader) response(f Frame, e *envelope) {
	c, d := r.c, &r.d
	cl, result, unknown := e.call, e.callResult, false
	switch {
	case e.id == nil || e.bad&memberID != 0:
		unknown = true // S35
	case cl == nil:
		cl, result, unknown = r.lookup(e.id)
	}
	if unknown {
		c.event("response to an unknown request", Event{Kind: EventUnknownResponse, Data: e.id[:min(len(e.id), 1<<10)]})
		return
	}
	if cl == nil {
		return // late, or a second one
	}
	e.call = cl
	cl.reply = nil
	// Serializers that write every member set the one that is not meant to null.
	if e.has&(memberResult|memberError) == memberResult|memberError {
		switch {
		case e.noError:
			e.has &^= memberError
		case e.noResult:
			e.has &^= memberResult
			d.Reset(f.Data, f.Owned) // forget what was wrong with null as a result
			e.missing = nil
		}
	}
	reason := ""
	switch {
	case e.twice:
		reason = "duplicate member"
	case e.has&memberVersion == 0 || e.bad&memberVersion != 0:
		reason = `jsonrpc is not "2.0"`
	case e.has&(memberResult|memberError) == memberResult|memberError:
		reason = "both result and error"
	case e.has&memberResult != 0:
		if e.callResult == nil && result != nil {
			d.Seek(e.result)
			r.decodeResult(result, e)
		}
		if fe := d.FieldErr(); fe != nil {
			cl.reply = invalidResult(cl.method, fe)
		} else if e.missing != nil {
			cl.reply = invalidResult(cl.method, e.missing)
		}
	case e.has&memberError != 0:
		we := new(Error)
		d.Seek(e.error)
		we.decodeJSON(d)
		if fe := d.FieldErr(); fe != nil {
			reason = fe.Error()
		} else if cl.reply = we; cl.verbose {
			d.Seek(e.error)
			cl.reply = &RawError{Err: we, Text: d.RawCopy()}
		}
	default:
		reason = "neither result nor error"
	}
	if reason != "" {
		cl.reply = invalidResult(cl.method, errors.New(reason))
	}
	if cl.reply != nil {
		if !said(cl.reply) {
			c.event("malformed response", Event{Kind: EventMalformedResponse, Method: cl.method, Reason: reason, Err: cl.reply})
		}
	}
	e.call = nil
	r.stageCall(cl, len(f.Data))
}

// cancellation applies a $/cancel_request. Whatever is wrong with it is
// ignored (S36).
func (r *reader) cancellation(e *envelope) {
	d := &r.d
	if e.has&memberParams == 0 {
		return
	}
	d.Seek(e.params)
	if d.Peek() != '{' {
		return
	}
	var id ID
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		if string(k) == "requestId" && id.IsZero() {
			id.decodeJSON(d)
		} else {
			d.Skip()
		}
	}
	if d.FieldErr() == nil && !id.IsZero() {
		r.c.cancelRequest(id)
	}
}
