package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/internal/pattern"
)

// A netTrial plays one scenario with a server. What it receives is read by goroutines,
// one for each stream and one for a WebSocket, which end with close; mu guards what
// they share with the one who plays.
type netTrial struct {
	ctx     context.Context
	stop    context.CancelFunc
	site    *site
	version int
	opt     *Options
	client  *http.Client
	readers sync.WaitGroup
	ready   chan struct{} // something was received

	known    pattern.Captures
	limit    time.Duration
	opened   []string // ids of connections, to be deleted
	id       int      // of the last prompt
	response *response
	streams  map[string]*eventStream
	socket   *socket

	mu     sync.Mutex
	saw    evidence
	judged bool // what passes from now on shows nothing
}

func newNetTrial(ctx context.Context, s *site, version int, opt *Options) *netTrial {
	t := &netTrial{
		site: s, version: version, opt: opt, ready: make(chan struct{}, 1),
		limit: opt.timeout(), streams: map[string]*eventStream{},
	}
	t.ctx, t.stop = context.WithCancel(ctx)
	t.client = s.client()
	h := newHost(version, opt.cwd())
	text := func(text string) *pattern.Value {
		v, err := pattern.Parse(text)
		if err != nil {
			panic("conformance: " + err.Error()) // made by ourselves
		}
		return v
	}
	hello := `{"protocolVersion":1,"clientInfo":` + checkerInfo + `,"clientCapabilities":{}}`
	if version == 2 {
		hello = h.hello(nil, nil)
	}
	t.known = pattern.Captures{
		"version": number(version), "cwd": pattern.Text(h.cwd), "hello": text(hello),
		"new": text(`{"cwd":` + pattern.Quote(h.cwd) + `,"mcpServers":[]}`),
	}
	if s.init != nil {
		t.known["init"] = s.init
	}
	return t
}

// close ends everything that the scenario has opened.
func (t *netTrial) close() {
	t.mu.Lock()
	t.judged = true
	t.mu.Unlock()
	if t.socket != nil {
		t.socket.abort()
	}
	interrupted := t.ctx.Err() != nil
	for _, id := range t.opened { // agents need not wait until they are given up
		if interrupted {
			break
		}
		ctx, cancel := context.WithTimeout(t.ctx, min(t.opt.timeout(), closeGrace))
		if req, err := t.newRequest(ctx, http.MethodDelete, "", []string{"Acp-Connection-Id: " + id}); err == nil {
			if resp, err := t.client.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}
		cancel()
	}
	t.stop()
	if t.response != nil {
		t.response.close()
	}
	t.readers.Wait()
	t.client.CloseIdleConnections()
}

// see adds to the evidence.
func (t *netTrial) see(out bool, format string, args ...any) {
	text := t.site.conceal(fmt.Sprintf(format, args...))
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.judged {
		t.saw.add(out, []byte(text))
	}
}

// until waits until done holds, for at most the limit of a step. done is called with
// the lock held.
func (t *netTrial) until(done func() bool) error {
	timer := time.NewTimer(t.limit)
	defer timer.Stop()
	for {
		t.mu.Lock()
		ok := done()
		t.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-t.ready:
		case <-timer.C:
			return errTimeout
		case <-t.ctx.Done():
			return cause(t.ctx)
		}
	}
}

// missing is what an error of until means.
func (t *netTrial) missing(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if errors.Is(err, errTimeout) {
		return &verdict{status: Fail, why: fmt.Sprintf("%s did not come within %v", what, t.limit), late: true}
	}
	return err
}

func (t *netTrial) play(steps []*step) error {
	for _, s := range steps {
		if err := t.step(s); err != nil {
			return err
		}
	}
	return nil
}

// step plays one step.
func (t *netTrial) step(s *step) error {
	switch s.verb {
	case "connect":
		return t.connect(s.texts)
	case "request":
		return t.request(s.method, "", s.texts)
	case "get", "delete":
		return t.request(strings.ToUpper(s.verb), "", s.texts)
	case "post":
		return t.post(s.val, s.texts)
	case "status", "header", "without", "body", "optional":
		return t.judge(s)
	case "session":
		return t.session(s.name)
	case "prompt":
		return t.prompt(s)
	case "stream":
		return asBroken(t.stream(s.name, s.texts))
	case "reads":
		return t.stream(s.name, s.texts)
	case "anywhere":
		return t.anywhere(s)
	case "reopen":
		return t.reopen(s.name, s.texts)
	case "event", "await", "never", "wellformed", "unnamed", "comment", "ended", "leave", "arrives", "counting":
		e := t.streams[s.name]
		if e == nil {
			return broken("line %d: $%s is no stream", s.line, s.name)
		}
		return t.onStream(e, s)
	case "upgrade", "socket":
		return t.upgrade(s.texts, s.verb == "socket")
	case "let", "fill", "is", "isnt", "need", "within":
		return t.control(s)
	case "differ":
		return t.differ(s)
	}
	if t.socket == nil {
		return broken("line %d: there is no WebSocket", s.line)
	}
	return t.onSocket(s)
}

// control plays the steps that have nothing to do with the server.
func (t *netTrial) control(s *step) error {
	p := &player{known: t.known, opt: t.opt, limit: t.limit}
	err := p.control(s)
	t.limit = p.limit
	return err
}

// differ looks at two texts that must not have both their beginnings and their ends in
// common.
func (t *netTrial) differ(s *step) error {
	a, b := t.known[s.name].Str, t.known[s.other].Str
	n := min(s.n, len(a), len(b))
	if a[:n] == b[:n] && a[len(a)-n:] == b[len(b)-n:] {
		return failed("%s and %s begin and end alike", clip(a, 100), clip(b, 100))
	}
	return nil
}

// expand replaces $name in a header or a text.
func (t *netTrial) expand(text string) string {
	if !strings.Contains(text, "$") {
		return text
	}
	return os.Expand(text, func(name string) string {
		switch v := t.known[name]; {
		case v == nil:
			return ""
		case v.Kind == pattern.String:
			return v.Str
		default:
			return v.Text
		}
	})
}

// post posts a value: a text as it is, and anything else as a message.
func (t *netTrial) post(v *pattern.Value, headers []string) error {
	if v.Kind == pattern.Name && t.known[v.Str] != nil {
		v = t.known[v.Str]
	}
	if v.Kind == pattern.String {
		return t.request(http.MethodPost, v.Str, headers)
	}
	body := v.Fill(t.known)
	if v.Kind == pattern.Object {
		body = v.Message(t.known)
	}
	// As a correct client does, unless the scenario says otherwise.
	if m, err := pattern.Parse(body); err == nil && t.known["connection"] != nil {
		if id := m.Get("params").StringAt("sessionId"); id != "" && len(id) < 100 {
			headers = append([]string{"Acp-Session-Id: " + id}, headers...)
		}
	}
	return t.request(http.MethodPost, body, headers)
}

// connect opens a connection over HTTP, with which what follows is about.
func (t *netTrial) connect(headers []string) error {
	delete(t.known, "connection")
	if err := t.request(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+t.known["hello"].Text+`}`, headers); err != nil {
		return asBroken(err)
	}
	r := t.response
	id := r.header.Get(connectionHeader)
	result := r.value().Get("body").Get("result")
	switch {
	case r.status != http.StatusOK:
		return broken("initialize was answered with %s", r)
	case result == nil:
		return broken("initialize was answered with %s", clip(r.body, 200))
	case id == "":
		return broken("initialize was answered without the header Acp-Connection-Id")
	}
	t.known["connection"], t.known["init"] = pattern.Text(id), result
	return nil
}

// asBroken makes a failure one of what had to be done before a rule can be tried.
func asBroken(err error) error {
	if v, ok := errors.AsType[*verdict](err); ok && v.status == Fail {
		return &verdict{status: Broken, why: v.why, late: v.late}
	}
	return err
}

// session opens a connection unless there is one, reads its stream as $stream, and opens
// a session. A session of another name is opened on the same connection.
func (t *netTrial) session(name string) error {
	if t.known["connection"] == nil {
		if err := t.connect(nil); err != nil {
			return err
		}
	}
	if t.streams["stream"] == nil {
		if err := t.stream("stream", nil); err != nil {
			return asBroken(err)
		}
	}
	t.id++
	id := fmt.Sprintf(`"session-%d"`, t.id)
	err := t.request(http.MethodPost, `{"jsonrpc":"2.0","id":`+id+`,"method":"session/new","params":`+t.known["new"].Text+`}`, nil)
	if err != nil {
		return asBroken(err)
	}
	if t.response.status != http.StatusAccepted {
		return broken("session/new was answered with %s", t.response)
	}
	want, err := pattern.ParseAs(`{"id":`+id+`,...}`, pattern.Pattern)
	if err != nil {
		return err
	}
	m, err := t.find(t.streams["stream"], want)
	if err != nil {
		return asBroken(t.missing(err, "the answer to session/new"))
	}
	sid := m.Get("result").Get("sessionId")
	if sid == nil || sid.Kind != pattern.String {
		return broken("session/new was answered with %s", clip(m.Text, 200))
	}
	if name == "" {
		name = "session"
	}
	t.known[name] = sid
	return nil
}

// prompt posts a prompt for a purpose.
func (t *netTrial) prompt(s *step) error {
	session := t.known["session"]
	if s.other != "" {
		session = t.known[s.other]
	}
	if session == nil {
		return broken("line %d: there is no session to prompt", s.line)
	}
	text := t.opt.promptText(s.method, t.version, t.site.scripted, "")
	if text == "" {
		return unseen(noWords+"%s (%s)", s.method, purposes[s.method].About)
	}
	t.id++
	id := pattern.Text(fmt.Sprintf("prompt-%d", t.id))
	t.known[s.name] = id
	return t.request(http.MethodPost, `{"jsonrpc":"2.0","id":`+id.Text+`,"method":"session/prompt","params":{"sessionId":`+session.Text+
		`,"prompt":[{"type":"text","text":`+pattern.Quote(text)+`}]}}`, []string{"Acp-Session-Id: " + session.Str})
}

// matches reports whether a value fits a pattern, and then captures.
func (t *netTrial) matches(want, v *pattern.Value) bool {
	known := maps.Clone(t.known)
	if pattern.MatchMessage(want, v, known) != nil {
		return false
	}
	t.known = known
	return true
}

// headerText returns headers for people, those that matter.
func headerText(h http.Header) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(h)) {
		switch {
		case name == "Authorization", name == "Cookie", name == "Set-Cookie":
			all = append(all, name+": [redacted]")
		case name == "User-Agent", name == "Date", strings.HasPrefix(name, "Sec-Websocket-K"), name == "Content-Length":
		default:
			all = append(all, name+": "+clip(strings.Join(h[name], ", "), 100))
		}
	}
	return strings.Join(all, "; ")
}
