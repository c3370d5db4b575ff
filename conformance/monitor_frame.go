package conformance

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

var (
	ckJSON         = decides("both/json/text")
	ckDepth        = decides("both/json/depth")
	ckSize         = decides("both/json/size")
	ckUTF8         = decides("both/json/utf-8")
	ckSurrogate    = decides("both/json/surrogate")
	ckTwice        = decides("both/json/duplicate-member")
	ckSpelling     = decides("both/json/integer")
	ckObject       = decides("both/envelope/object")
	ckBatch        = decides("both/envelope/batch")
	ckVersion      = decides("both/envelope/jsonrpc")
	ckShape        = decides("both/envelope/shape")
	ckMembers      = decides("both/envelope/members")
	ckIDKind       = decides("both/envelope/id-kind")
	ckIDPlain      = decides("both/envelope/id-plain")
	ckIDReused     = decides("both/envelope/id-reused")
	ckResponse     = decides("both/envelope/response-known")
	ckAnsweredOnce = decides("both/envelope/answered-once")
	ckOutcome      = decides("both/envelope/one-outcome")
	ckErrorShape   = decides("both/envelope/error-shape")
	ckErrorCode    = decides("both/envelope/error-code")
	ckErrorText    = decides("both/error/message")
	ckErrorLeak    = decides("both/error/stack-trace")
	ckErrorRange   = decides("both/error/range")
	ckErrorLine    = decides("both/error/one-line")
	ckNull         = decides("both/envelope/null-result")
)

// request is one that is not answered yet.
type request struct {
	key       string // its id
	name      string
	m         *method // nil if the protocol does not know it
	from      int     // the side that asked
	frame     int64
	at        int64    // nanoseconds
	s         *session // the session it is about, if it is known
	lost      bool     // it is about one that does not exist
	relative  bool     // it opens one in a directory that is not absolute
	malformed bool     // its params are not as the schema has them
	again     int      // requests with the same id that were not answered when it was made
	doubtful  bool     // what is wrong with it may keep it from being answered
	withdrawn bool     // $/cancel_request was sent for it
	due       int64    // the frame that did so, or frame: since then an answer is due
	dueAt     int64    // when that was, in nanoseconds
	stopped   bool     // session/cancel or the like was sent for its session
	parent    string   // the request on whose behalf it is made, or ""
	facts     any      // what has to be known when it is answered
}

// envelope is what is known of the object at hand.
type envelope struct {
	has    members
	twice  string // a member that came twice
	other  string // a member that does not belong there
	method string
	id     []byte
	params int // where these start
	result int
	error  int
}

type members uint8

const (
	hasVersion members = 1 << iota
	hasID
	hasMethod
	hasParams
	hasResult
	hasError
	badVersion
	badMethod
)

// frame looks at the text as such, and then at what it is.
func (m *Monitor) frame() {
	b := m.data
	m.expect(ckSize, len(b) <= largeFrame, "", "sent %d bytes in one frame", len(b))
	if m.breaks(ckUTF8, !utf8.Valid(b)) {
		m.add(ckUTF8, "", "sent bytes that are not UTF-8")
	}
	if m.breaks(ckSurrogate, stray(b)) {
		m.add(ckSurrogate, "", "sent half of a surrogate pair")
	}
	d := &m.d
	m.watch.Notes = m.watch.Notes[:0]
	d.Reset(b, false)
	switch d.Peek() {
	case '{':
		var e envelope
		m.scan(&e)
		if d.SyntaxErr() == nil {
			_ = d.Finish()
		}
		if !m.sound() {
			return
		}
		m.breaks(ckObject, false)
		m.breaks(ckBatch, false)
		m.object(&e)
	case '[':
		m.open[m.from].forgot = true // what is in it may be answered
		d.Skip()
		if _ = d.Finish(); m.sound() && m.breaks(ckBatch, true) {
			m.add(ckBatch, "", "sent an array")
		}
	default:
		d.Skip()
		if _ = d.Finish(); m.sound() && m.breaks(ckObject, true) {
			m.add(ckObject, "", "sent %s", quote(string(b[:min(len(b), 200)])))
		}
	}
}

// sound reports whether the text was JSON.
func (m *Monitor) sound() bool {
	err, _ := m.d.SyntaxErr().(*wire.SyntaxError)
	if err != nil { // the other side may take it for a request all the same
		m.open[m.from].forgot = true
	}
	deep := err != nil && err.Reason == "nested too deeply"
	if m.breaks(ckDepth, deep) {
		m.add(ckDepth, "", "nested objects and arrays deeper than %d", wire.MaxDepth)
	}
	if deep {
		return false
	}
	m.torn = err != nil
	if m.breaks(ckJSON, err != nil) {
		m.add(ckJSON, "", "sent what is not JSON: %s at byte %d", err.Reason, err.Offset)
	}
	return err == nil
}

// cutOff reports whether text is the beginning of an object.
func cutOff(text []byte) bool {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' {
		return false
	}
	var all json.RawMessage
	return json.NewDecoder(bytes.NewReader(text)).Decode(&all) == io.ErrUnexpectedEOF
}

// stray reports whether an escaped surrogate stands alone.
func stray(b []byte) bool {
	for {
		i := bytes.Index(b, []byte(`\u`))
		if i < 0 {
			return false
		}
		if n := backslashes(b[:i]); n%2 == 1 {
			b = b[i+1:] // the backslash is escaped itself
			continue
		}
		c := escaped(b[i:])
		b = b[min(i+6, len(b)):]
		switch {
		case c >= 0xdc00 && c < 0xe000:
			return true
		case c >= 0xd800 && c < 0xdc00:
			if low := escaped(b); low < 0xdc00 || low >= 0xe000 {
				return true
			}
			b = b[6:]
		}
	}
}

func backslashes(b []byte) (n int) {
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n
}

// escaped reads \uXXXX, and returns 0 if it is not there.
func escaped(b []byte) uint64 {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return n
}

// scan notes where the members of the object are.
func (m *Monitor) scan(e *envelope) {
	d := &m.d
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		var bit members
		switch string(k) {
		case "jsonrpc":
			bit = hasVersion
		case "id":
			bit = hasID
		case "method":
			bit = hasMethod
		case "params":
			bit = hasParams
		case "result":
			bit = hasResult
		case "error":
			bit = hasError
		default:
			if len(k) > 0 && k[0] != '_' {
				e.other = brief(string(k))
			}
			d.Skip()
			continue
		}
		if e.has&bit != 0 {
			e.twice = string(k)
			d.Skip()
			continue
		}
		e.has |= bit
		d.Peek()
		switch bit {
		case hasVersion:
			if d.Peek() != '"' {
				e.has |= badVersion
				d.Skip()
			} else if string(d.Bytes()) != "2.0" {
				e.has |= badVersion
			}
		case hasID:
			e.id = d.Raw()
		case hasMethod:
			if d.Peek() != '"' {
				e.has |= badMethod
				d.Skip()
			} else {
				e.method = d.ID()
			}
		case hasParams:
			e.params = d.Pos()
			d.Skip()
		case hasResult:
			e.result = d.Pos()
			d.Skip()
		case hasError:
			e.error = d.Pos()
			d.Skip()
		}
	}
}

// object checks the envelope and passes on what it is.
func (m *Monitor) object(e *envelope) {
	if m.breaks(ckTwice, e.twice != "") {
		m.add(ckTwice, e.twice, "sent the member %s twice", e.twice)
	}
	if m.breaks(ckMembers, e.other != "") {
		m.add(ckMembers, "", "sent the member %s, which messages do not have", quote(e.other))
	}
	if m.breaks(ckVersion, e.has&hasVersion == 0 || e.has&badVersion != 0) {
		m.add(ckVersion, "jsonrpc", `sent a message without "jsonrpc":"2.0"`)
	}
	if e.has&hasID != 0 && e.has&hasMethod == 0 {
		m.idKind(e)
	}
	shape := ""
	switch {
	case e.has&badMethod != 0:
		shape = "sent a method that is not a string"
	case e.has&hasMethod != 0 && e.has&(hasResult|hasError) != 0:
		shape = "sent a method together with a result or an error"
	case e.has&hasMethod == 0 && e.has&(hasID|hasResult|hasError) == 0:
		shape = "sent an object that is neither a request, a notification nor a response"
	case e.has&hasMethod == 0 && e.has&hasID == 0 && e.has&hasResult != 0:
		shape = "sent a result without an id"
	}
	if m.breaks(ckShape, shape != "") {
		m.add(ckShape, "", "%s", shape)
	}
	switch {
	case shape != "":
		m.open[m.from].forgot = true // it may be answered
	case e.has&hasMethod == 0:
		m.response(e)
	case e.has&hasID == 0:
		m.stats.Notifications[m.from]++
		m.notification(e)
	default:
		m.stats.Requests[m.from]++
		m.request(e)
	}
}

// idKind judges an id, and reports whether it is one.
func (m *Monitor) idKind(e *envelope) bool {
	c := byte(0)
	if len(e.id) > 0 {
		c = e.id[0]
	}
	kind := ""
	switch c {
	case '{', '[', 't', 'f':
		kind = "an id that is neither a string nor a number"
	case '"':
	case 'n':
		kind = "the id null"
	default:
		if !whole(e.id) {
			kind = "an id that is not an integer"
		}
	}
	bad := c == '{' || c == '[' || c == 't' || c == 'f'
	if e.has&hasMethod == 0 {
		// Responses repeat an id, or have none that they could repeat.
		m.expect(ckIDKind, !bad, "id", "sent %s", kind)
		return !bad
	}
	if m.speaks() == 2 {
		bad = kind != ""
	}
	m.expect(ckIDKind, !bad, "id", "sent a request with %s", kind)
	if !bad {
		m.expect(ckIDPlain, kind == "", "id", "sent a request with %s", kind)
	}
	return !bad
}

// speaks is the version in use, or that which is being offered.
func (m *Monitor) speaks() int {
	if m.version != 0 {
		return m.version
	}
	return max(m.offered, 1)
}

func whole(id []byte) bool {
	if !bytes.ContainsAny(id, ".eE") {
		return true
	}
	f, err := strconv.ParseFloat(string(id), 64)
	return err == nil && f == math.Trunc(f)
}

// idKey returns one spelling for ids that mean the same.
func idKey(id []byte) string {
	if len(id) == 0 {
		return ""
	}
	switch {
	case id[0] == '"' && bytes.IndexByte(id, '\\') >= 0:
		var v jsonrpc.ID
		if v.UnmarshalJSON(id) == nil {
			if s, ok := v.Text(); ok {
				return brief(string(wire.AppendString(nil, s)))
			}
		}
	case id[0] != '"' && bytes.ContainsAny(id, ".eE"):
		if f, err := strconv.ParseFloat(string(id), 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return strconv.FormatInt(int64(f), 10)
		}
	}
	return brief(string(id))
}

// exactLimit is up to where all integers are exact in JavaScript.
const exactLimit = 1 << 53

// rounded finds the request that a peer answers whose language has rounded its
// id, a large integer.
func (m *Monitor) rounded(asker int, id []byte) (key string, r *request, ok bool) {
	value := func(id string) float64 {
		f, err := strconv.ParseFloat(id, 64)
		if err != nil {
			return 0
		}
		return f
	}
	f := value(string(id))
	if math.Abs(f) < exactLimit {
		return "", nil, false
	}
	for _, e := range m.open[asker].m {
		if value(e.v.key) == f {
			return e.v.key, e.v, true
		}
	}
	return "", nil, false
}

// response looks at an answer, and passes on what it is the answer to.
func (m *Monitor) response(e *envelope) {
	m.stats.Responses[m.from]++
	if e.has&hasError != 0 {
		m.stats.Errors[m.from]++
	}
	asker := 1 - m.from
	key := idKey(e.id)
	r, ok := m.open[asker].get(key)
	if near := ""; !ok {
		if near, r, ok = m.rounded(asker, e.id); ok {
			key = near
		}
	}
	if !ok {
		if e.has&hasResult == 0 && (key == "" || key == "null") {
			m.errorOf(e, nil)
			return // about something that could not be read (S5, S8, S35)
		}
		_, again := m.answered[asker].get(key)
		if m.breaks(ckAnsweredOnce, again) {
			m.add(ckAnsweredOnce, "id", "answered the request %s again", quote(key))
		}
		if m.breaks(ckResponse, !again && m.open[asker].lacks(key) && !m.answered[asker].forgot) {
			m.add(ckResponse, "id", "answered a request %s that was never made", quote(key))
		}
		m.errorOf(e, nil)
		return
	}
	m.breaks(ckResponse, false)
	m.breaks(ckAnsweredOnce, false)
	m.breaks(ckAnswered, false)
	if r.again > 0 { // nobody can tell which one is meant
		r.again--
		m.errorOf(e, nil)
		return
	}
	m.open[asker].drop(key)
	m.answered[asker].put(key, m.stats.Frames)
	m.settle(r)
	both := e.has&(hasResult|hasError) == hasResult|hasError
	if m.breaks(ckOutcome, both || e.has&(hasResult|hasError) == 0) {
		why := "answered %s with neither result nor error"
		if both {
			why = "answered %s with both result and error"
		}
		m.add(ckOutcome, "", why, quote(r.name))
	}
	switch {
	case both:
		m.bothWays(e, r)
	case e.has&hasResult != 0:
		m.resultOf(e, r)
	case e.has&hasError != 0:
		if we := m.errorOf(e, r); we != nil {
			m.refused(r, we)
		}
	}
}

// errorOf checks the error of a response.
func (m *Monitor) errorOf(e *envelope, r *request) *jsonrpc.Error {
	if e.has&hasError == 0 {
		return nil
	}
	d := &m.d
	d.Seek(e.error)
	we := new(jsonrpc.Error)
	wire.Decode(we, d)
	m.member = "error"
	if fe := d.FieldErr(); fe != nil {
		if m.breaks(ckErrorShape, true) {
			m.add(ckErrorShape, m.path(fe.Path), "sent an error with a malformed part: %s", fe.Reason)
		}
		return nil
	}
	if m.breaks(ckErrorShape, we.Code != int(int32(we.Code))) {
		m.add(ckErrorShape, "error.code", "sent an error code of more than 32 bits")
		return nil
	}
	if m.breaks(ckErrorText, we.Message == "") {
		m.add(ckErrorText, "error.message", "sent an error with code %d that says nothing", we.Code)
	}
	if m.breaks(ckErrorLine, strings.ContainsAny(we.Message, "\n\r")) {
		m.add(ckErrorLine, "error.message", "sent an error with code %d whose message has several lines", we.Code)
	}
	c := we.Code
	if m.breaks(ckErrorRange, !reserved(c) && (c < -33002 || c > -33000 && c < -32768 || c > -32000)) {
		m.add(ckErrorRange, "error.code", "sent the code %d, which is outside of the ranges of JSON-RPC and the protocol", c)
	}
	if m.breaks(ckErrorCode, c >= -32768 && c < -32099 && !reserved(c)) {
		m.add(ckErrorCode, "error.code", "sent the code %d, which is reserved and means nothing", c)
	}
	if m.breaks(ckErrorLeak, traced(we.Message) || traced(string(we.Data))) {
		m.add(ckErrorLeak, "error", "sent the stack of its own program")
	}
	return we
}

func reserved(code int) bool {
	switch code {
	case -32700, -32600, -32601, -32602, -32603, -32800:
		return true
	}
	return false
}

// traced reports whether a text shows the calls of a program.
func traced(s string) bool {
	for _, mark := range []string{"goroutine 1 [", ".go:", "Traceback (most recent call last)", "\\n    at ", "\n    at ", "stack backtrace:"} {
		i := bytes.Index([]byte(s), []byte(mark))
		if i >= 0 && (mark != ".go:" || bytes.Contains([]byte(s), []byte("goroutine "))) {
			return true
		}
	}
	return false
}

// path completes a path within the member that is being judged.
func (m *Monitor) path(p string) string {
	switch {
	case p == "":
		return m.member
	case len(p) >= len(m.member) && p[:len(m.member)] == m.member:
		return p
	case p[0] == '[':
		return m.member + p
	}
	return m.member + "." + p
}
