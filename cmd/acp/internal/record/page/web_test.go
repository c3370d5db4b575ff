package page

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/trace"
)

func newServer(t *testing.T, opts Options) *Server {
	t.Helper()
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.fold.check = &broken{}
	return s
}

// client returns one that has opened the page.
func client(t *testing.T, s *Server) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	c := &http.Client{Jar: jar, Transport: tr, Timeout: time.Minute}
	if code, _, _ := get(t, c, s.URL(), nil); code != http.StatusOK {
		t.Fatalf("the page answers %d", code)
	}
	return c
}

func get(t *testing.T, c *http.Client, address string, headers map[string]string) (int, string, http.Header) {
	t.Helper()
	method := http.MethodGet
	if m, ok := headers["method"]; ok {
		method = m
	}
	req, err := http.NewRequest(method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range headers {
		switch k {
		case "method":
		case "Host":
			req.Host = v
		default:
			req.Header.Set(k, v)
		}
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body), res.Header
}

func (s *Server) at(path string) string { return "http://" + s.host + path }

func TestGuard(t *testing.T) {
	s := newServer(t, Options{})
	known, stranger := client(t, s), &http.Client{}
	t.Cleanup(stranger.CloseIdleConnections)
	_, port, _ := net.SplitHostPort(s.host)
	for _, tt := range []struct {
		name    string
		client  *http.Client
		path    string
		headers map[string]string
		want    int
	}{
		{"the page", known, "/", nil, 200},
		{"its script", known, "/tap.js", nil, 200},
		{"a conversation nobody had", known, "/session?id=x", nil, 404},
		{"under another name of this machine", known, "/", map[string]string{"Host": "localhost:" + port, "Cookie": s.cookie.String()}, 200},
		{"no token", stranger, "/", nil, 403},
		{"no token for a script", stranger, "/tap.js", nil, 403},
		{"no token for the frames", stranger, "/events", nil, 403},
		{"a wrong token", stranger, "/?token=ABCDEFGHIJKLMNOPQRSTUVWXYZ", nil, 403},
		{"a wrong token of who has the cookie", known, "/?token=x", nil, 403},
		{"the token elsewhere than at the page", stranger, "/events?token=" + s.token, nil, 403},
		{"the token as the cookie", stranger, "/", map[string]string{"Cookie": s.cookie.Name + "=" + s.token}, 403},
		{"the cookie of another server", stranger, "/", map[string]string{"Cookie": "acp-web-1=" + s.cookie.Value}, 403},
		{"a name that points here", known, "/", map[string]string{"Host": "evil.example:" + port}, 421},
		{"a name that points here, with the token", stranger, "/?token=" + s.token, map[string]string{"Host": "evil.example:" + port}, 421},
		{"another port", known, "/", map[string]string{"Host": "127.0.0.1:1"}, 421},
		{"no port", known, "/", map[string]string{"Host": "127.0.0.1"}, 421},
		{"from a page elsewhere", known, "/events", map[string]string{"Origin": "http://evil.example"}, 403},
		{"from a page of another server here", known, "/events", map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		{"from nowhere", known, "/events", map[string]string{"Origin": "null"}, 403},
		{"from the page", known, "/tap.js", map[string]string{"Origin": "http://" + s.host}, 200},
		{"an image elsewhere", known, "/tap.js", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"a server of the same site", known, "/tap.js", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"a link elsewhere that has the token", stranger, "/?token=" + s.token, map[string]string{"Sec-Fetch-Site": "cross-site"}, 200},
		{"to change something", known, "/", map[string]string{"method": "POST"}, 405},
		{"to delete something", known, "/session?id=x", map[string]string{"method": "DELETE"}, 405},
		{"nothing", known, "/nothing", nil, 404},
		{"out of the assets", known, "/..%2fweb.go", nil, 404},
		{"a folder", known, "/assets", nil, 404},
		{"a frame without a number", known, "/frame?seq=x", nil, 400},
		{"a frame nobody sent", known, "/frame?seq=9", nil, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, body, h := get(t, tt.client, s.at(tt.path), tt.headers)
			if code != tt.want {
				t.Errorf("answers %d (%s), want %d", code, body, tt.want)
			}
			if h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" ||
				h.Get("Referrer-Policy") != "no-referrer" || h.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("the headers let too much through: %v", h)
			}
			if code != 200 && strings.Contains(body, s.token) {
				t.Error("a refusal tells the token")
			}
		})
	}
	_, _, h := get(t, stranger, s.URL(), nil)
	c := h.Get("Set-Cookie")
	if !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Strict") || strings.Contains(c, s.token) {
		t.Errorf("the cookie is %q", c)
	}
}

func TestAddresses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct{ addr, want string }{
		{"", ""}, {"localhost:0", ""}, {"127.0.0.1:0", ""}, {":0", ""}, {"127.8.8.8:0", "?"},
		{"0.0.0.0:80", "the page would be open to others at 0.0.0.0:80: use 127.0.0.1:80"},
		{"[::]:80", "the page would be open to others at [::]:80: use 127.0.0.1:80"},
		{"example.com:80", "the page would be open to others at example.com:80: use 127.0.0.1:80"},
		{"8080", `"8080" is no address: write it as 127.0.0.1:8080`},
		{taken.Addr().String(), "the page cannot be served at " + taken.Addr().String()},
	} {
		s, err := New(Options{Addr: tt.addr})
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			if u, err := url.Parse(s.URL()); err != nil || !strings.HasPrefix(u.Host, "127.") {
				t.Errorf("%q: serves %s", tt.addr, s.URL())
			}
			s.Close()
		}
		if tt.want != "?" && !strings.HasPrefix(got, tt.want) || strings.Contains(got, "\n") || tt.want == "" && got != "" {
			t.Errorf("%q: %q, want %q", tt.addr, got, tt.want)
		}
	}
}

// A feed reads the events that a page gets.
type feed struct {
	t    *testing.T
	body io.ReadCloser
	r    *bufio.Reader
}

func follow(t *testing.T, c *http.Client, s *Server, query string) *feed {
	t.Helper()
	res, err := c.Get(s.at("/events" + query))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %v", res.Status, res.Header)
	}
	return &feed{t: t, body: res.Body, r: bufio.NewReader(res.Body)}
}

// next returns the next event, or "" at the end.
func (f *feed) next() (name, data string) {
	f.t.Helper()
	for {
		l, err := f.r.ReadString('\n')
		if err != nil {
			return "", ""
		}
		switch l = strings.TrimSuffix(l, "\n"); {
		case strings.HasPrefix(l, "event: "):
			name = l[len("event: "):]
		case strings.HasPrefix(l, "data: "):
			data = l[len("data: "):]
		case l == "" && name != "":
			return name, data
		}
	}
}

// to reads up to an event of a name and returns its data.
func (f *feed) to(want string) string {
	f.t.Helper()
	for {
		name, data := f.next()
		switch name {
		case want:
			return data
		case "":
			f.t.Fatalf("the stream ends before %q", want)
		}
	}
}

type shownRow struct {
	Seq, At, Asked, Took, Size, Code     int64
	Cut, Short                           int
	Type, Dir, Method, ID, Session, Body string
	Update, Summary                      string
	Findings                             []shownFinding
}

type shownFinding struct {
	Seq                    int64
	Rule, Level, Why, Path string
}

// rows reads rows up to a number.
func (f *feed) rows(last int64) []shownRow {
	f.t.Helper()
	var out []shownRow
	for {
		var part []shownRow
		data := f.to("rows")
		if err := json.Unmarshal([]byte(data), &part); err != nil {
			f.t.Fatalf("%v in %.2000s", err, data)
		}
		out = append(out, part...)
		if out[len(out)-1].Seq >= last {
			return out
		}
	}
}

func TestRows(t *testing.T) {
	s := newServer(t, Options{Title: "t", Header: trace.Header{Tool: "acp 1", Redacted: true}})
	for _, r := range demo() {
		s.Record(r)
	}
	s.End()
	f := follow(t, client(t, s), s, "")
	var h hello
	if err := json.Unmarshal([]byte(f.to("hello")), &h); err != nil || h.Title != "t" || h.Run != s.run || !h.Redacted || h.MaxRows != DefaultFrames {
		t.Errorf("hello: %+v %v", h, err)
	}
	list := f.rows(int64(len(demo())))
	if len(list) != len(demo()) {
		t.Fatalf("%d rows of %d", len(list), len(demo()))
	}
	for i, r := range list {
		if r.Seq != int64(i+1) {
			t.Fatalf("row %d has number %d", i+1, r.Seq)
		}
		if d := demo()[i]; r.Type != "event" && r.Body != string(d.Data) || r.At != int64(d.At) {
			t.Errorf("row %d is %+v", i+1, r)
		}
		if r.Asked > 0 && (list[r.Asked-1].ID != r.ID || list[r.Asked-1].Dir == r.Dir || list[r.Asked-1].Method != r.Method) {
			t.Errorf("row %d answers %+v", i+1, list[r.Asked-1])
		}
	}
	var found []shownFinding
	for _, r := range list {
		found = append(found, r.Findings...)
	}
	want := []shownFinding{
		{33, "agent/tools/announced", "should", "there is no tool call toolu_0XX", "params.update.toolCallId"},
		{39, "agent/methods/known", "must", "the protocol has no method session/set_title", "method"},
		{46, "agent/stream/json", "must", "this line is not JSON", ""},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	var sessions []struct{ ID string }
	if err := json.Unmarshal([]byte(f.to("sessions")), &sessions); err != nil || len(sessions) != 1 {
		t.Errorf("sessions: %v %v", sessions, err)
	}
	f.to("end")
	code, body, _ := get(t, client(t, s), s.at("/session?id="+sessions[0].ID), nil)
	if code != 200 || !json.Valid([]byte(body)) || !strings.Contains(body, "Fixed. ") {
		t.Errorf("the conversation: %d %s", code, body)
	}
}

// TestConnections holds that a recording that was written to again, and one of an agent that was started
// again, has several connections: nothing in one belongs to another.
func TestConnections(t *testing.T) {
	for _, tt := range []struct {
		name          string
		before, again []string // what is recorded before the first connection, and before the second
	}{
		{"written to again", nil, []string{"*" + NewPart}},
		{"started again", []string{"*start"}, []string{"*start"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, Options{})
			lines := slices.Concat(tt.before, []string{`>{"id":1,"method":"initialize","params":{}}`},
				tt.again, []string{`<{"id":1,"result":{"protocolVersion":1}}`, "<Warning"})
			for i, line := range lines {
				s.Feed(said(i, line))
			}
			n := len(lines)
			list := follow(t, client(t, s), s, "").rows(int64(n))
			if list[n-2].Asked != 0 {
				t.Error("an answer belongs to the request of another connection")
			}
			if f := list[n-1].Findings; len(f) != 1 || f[0].Seq != int64(n) {
				t.Errorf("findings: %+v", f)
			}
		})
	}
}

func TestOddRecords(t *testing.T) {
	s := newServer(t, Options{})
	s.fold.check = new(conformance.Recording)
	big := `{"method":"x","params":"` + strings.Repeat("é", inlineBytes) + `"}`
	s.Record(&trace.Record{Kind: trace.Text, Dir: '<', Data: []byte("\xff\xfe\x00\r\n\r\n</script>\u2028")})
	s.Record(&trace.Record{Kind: trace.Frame, Dir: '>', Data: []byte(big)})
	s.Record(&trace.Record{Kind: trace.Text, Dir: '>', Data: []byte("begin"), Size: 1 << 30})
	s.Record(&trace.Record{Kind: trace.Event, Name: "evil\nname", Detail: trace.Detail{Text: "a\x1b[31m\nb"}})
	s.Record(&trace.Record{Kind: 200, Data: []byte("{}")})
	s.Record(&trace.Record{})
	s.End()
	c := client(t, s)
	list := follow(t, c, s, "").rows(6)
	if got := list[0].Body; got != "\uFFFD\uFFFD\x00\r\n\r\n</script>\u2028" {
		t.Errorf("binary: %q", got)
	}
	if r := list[1]; r.Cut != 1 || r.Size != int64(len(big)) || len(r.Body) > inlineBytes+3 {
		t.Errorf("a long frame: cut %d, size %d, %d bytes", r.Cut, r.Size, len(r.Body))
	}
	code, body, h := get(t, c, s.at("/frame?seq=2"), nil)
	if code != 200 || body != big || !strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
		t.Errorf("all of it: %d, %d bytes, %s", code, len(body), h.Get("Content-Type"))
	}
	if r := list[2]; r.Short != 1 || r.Size != 1<<30 || len(r.Findings) > 0 {
		t.Errorf("a line that was not recorded whole: %+v", r)
	}
	if r := list[3]; r.Method != "evil\nname" || r.Summary != "a b" {
		t.Errorf("an event: %+v", r)
	}
}

func TestBounds(t *testing.T) {
	s := newServer(t, Options{MaxFrames: 50})
	many(500, func(r *trace.Record) { s.Feed(r) })
	s.End()
	f := follow(t, client(t, s), s, "?after=10&run="+s.run)
	var st state
	if err := json.Unmarshal([]byte(f.to("state")), &st); err != nil || st.First == 0 {
		t.Errorf("state: %+v %v", st, err)
	}
	list := f.rows(500)
	if n := len(list); n < 50 || n > 500-10 {
		t.Errorf("%d rows are sent", n)
	}
	if n := len(s.log.rows); n != 50 {
		t.Errorf("%d rows are kept, want 50", n)
	}

	b := newServer(t, Options{MaxBytes: 20_000})
	many(500, func(r *trace.Record) { b.Feed(r) })
	b.End()
	follow(t, client(t, b), b, "").rows(500)
	if b.log.bytes > 20_000 || len(b.log.rows) < 10 {
		t.Errorf("%d bytes in %d rows are kept", b.log.bytes, len(b.log.rows))
	}
	// One that is too large for everything is shown all the same.
	one := newServer(t, Options{MaxBytes: 1000})
	one.Record(said(0, ">{}"))
	one.Record(said(1, ">"+`{"x":"`+strings.Repeat("x", 5000)+`"}`))
	follow(t, client(t, one), one, "").rows(2)
	if len(one.log.rows) != 1 {
		t.Errorf("%d rows are kept, want 1", len(one.log.rows))
	}
}

func TestViewers(t *testing.T) {
	s := newServer(t, Options{MaxViewers: 2})
	c := client(t, s)
	a := follow(t, c, s, "")
	follow(t, c, s, "").to("hello")
	if code, body, _ := get(t, c, s.at("/events"), nil); code != 503 || !strings.Contains(body, "too many") {
		t.Errorf("a third page: %d %s", code, body)
	}
	a.body.Close()
	// The server hears of it when it can: then there is room again.
	for {
		res, err := c.Get(s.at("/events"))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode == 200 {
			break
		}
		runtime.Gosched()
	}
}

func TestResume(t *testing.T) {
	s := newServer(t, Options{})
	many(100, s.Record)
	c := client(t, s)
	f := follow(t, c, s, "")
	f.rows(100)
	f.body.Close()
	many(20, s.Record)
	if list := follow(t, c, s, "?after=100&run="+s.run).rows(120); list[0].Seq != 101 || len(list) != 20 {
		t.Errorf("goes on with %d, %d rows", list[0].Seq, len(list))
	}
	// What a page knows from another server is of no use.
	if list := follow(t, c, s, "?after=100&run=another").rows(120); list[0].Seq != 1 {
		t.Errorf("a page of another server goes on with %d", list[0].Seq)
	}
	if list := follow(t, c, s, "?after=-5&run="+s.run).rows(120); list[0].Seq != 1 {
		t.Errorf("begins with %d", list[0].Seq)
	}
	// One from the future waits for what comes.
	g := follow(t, c, s, fmt.Sprintf("?after=%d&run=%s", 1<<60, s.run))
	g.to("hello")
	s.Record(said(1, ">{}"))
	if list := g.rows(121); list[0].Seq != 121 {
		t.Errorf("a page from the future begins with %d", list[0].Seq)
	}
}

// A page that reads nothing keeps nobody waiting, and the server forgets what is
// beyond its bounds all the same.
func TestSlowViewer(t *testing.T) {
	s := newServer(t, Options{MaxBytes: 1 << 20})
	c := client(t, s)
	slow := follow(t, c, s, "")
	const n = 40_000
	many(n, func(r *trace.Record) { s.Feed(r) })
	follow(t, c, s, fmt.Sprintf("?after=%d&run=%s", n-1, s.run)).rows(int64(n))
	if s.log.bytes > 1<<20 {
		t.Errorf("%d bytes are kept for a page that reads nothing", s.log.bytes)
	}
	list := slow.rows(int64(n))
	if len(list) == n {
		t.Skip("the system has buffered everything")
	}
	var jump bool
	for i := range list[1:] {
		jump = jump || list[i+1].Seq > list[i].Seq+1
	}
	if !jump {
		t.Error("the slow page has missed nothing")
	}
}

// held is a check that waits.
type held struct {
	broken
	in, out chan struct{}
}

func (h *held) Add(rec *trace.Record) []conformance.Finding {
	if rec.Kind == trace.Frame {
		h.in <- struct{}{}
		<-h.out
	}
	return nil
}

// Record does not wait even if nothing is digested; what does not fit is counted.
func TestOverrun(t *testing.T) {
	s := newServer(t, Options{})
	h := &held{in: make(chan struct{}, 1), out: make(chan struct{})}
	s.fold.check = h
	s.Record(said(0, ">{}"))
	<-h.in
	rec := &trace.Record{Kind: trace.Stderr, Data: make([]byte, 1<<20)}
	for range 100 {
		s.Record(rec)
	}
	s.queue.mu.Lock()
	bytes, lost := s.queue.bytes, s.queue.lost
	s.queue.mu.Unlock()
	if bytes > queueBytes || lost != 100-63 {
		t.Errorf("%d bytes wait, %d were lost", bytes, lost)
	}
	done := make(chan bool)
	go func() { done <- s.Feed(rec) }()
	close(h.out)
	if !<-done {
		t.Error("Feed was refused")
	}
	f := follow(t, client(t, s), s, "")
	f.rows(65)
	s.End()
	if s.Feed(rec) {
		t.Error("Feed takes more after the end")
	}
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if s.log.lost != lost {
		t.Errorf("%d are told lost, want %d", s.log.lost, lost)
	}
}

func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	s := newServer(t, Options{})
	c := client(t, s)
	f := follow(t, c, s, "")
	many(10, s.Record)
	closed := make(chan struct{})
	go func() {
		s.Close()
		close(closed)
	}()
	f.rows(10)
	f.to("end")
	f.to("bye")
	// The page still gets what it lacks.
	if code, body, _ := get(t, c, s.at("/session?id=s"), nil); code != 200 || !strings.Contains(body, "prompt 0") {
		t.Errorf("before the end: %d %s", code, body)
	}
	f.body.Close()
	<-closed
	s.Close()
	s.Record(said(0, ">{}"))
	if _, err := c.Get(s.at("/")); err == nil {
		t.Error("serves after Close")
	}
	c.CloseIdleConnections()
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("goroutines are left:\n%s", buf[:runtime.Stack(buf, true)])
		}
	}
}

// A page that does not go is left.
func TestCloseStuck(t *testing.T) {
	long.Test(t)
	s := newServer(t, Options{})
	follow(t, client(t, s), s, "").to("hello")
	s.Close()
}
