package acphttp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/internal/remotetest"
	"github.com/goacp/acp/jsonrpc"
)

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`
	newSession = `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`
)

// A rawClient makes requests of its own.
type rawClient struct {
	t          *testing.T
	url        string
	connection string
	client     *http.Client
}

func newRaw(t *testing.T, url string) *rawClient {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &rawClient{t: t, url: url, client: &http.Client{Transport: transport}}
}

// do makes a request. Headers are "Name: value"; one without a value is removed.
func (c *rawClient) do(method, body string, headers ...string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodGet {
		req.Header.Set("Accept", "text/event-stream")
	}
	if c.connection != "" {
		req.Header.Set(acphttp.HeaderConnectionID, c.connection)
	}
	for _, h := range headers {
		switch name, value, _ := strings.Cut(h, ":"); {
		case name == "Host":
			req.Host = strings.TrimSpace(value)
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, strings.TrimSpace(value))
		}
	}
	resp, err := c.client.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// status makes a request and returns its status.
func (c *rawClient) status(method, body string, headers ...string) int {
	c.t.Helper()
	resp := c.do(method, body, headers...)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// initialize opens a connection.
func (c *rawClient) initialize() {
	c.t.Helper()
	resp := c.do(http.MethodPost, initialize)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		c.t.Fatal(resp.Status)
	}
	c.connection = resp.Header.Get(acphttp.HeaderConnectionID)
}

// An eventStream is what a GET returns.
type eventStream struct {
	c    *rawClient
	resp *http.Response
	r    *bufio.Reader
}

func (c *rawClient) stream(headers ...string) *eventStream {
	c.t.Helper()
	resp := c.do(http.MethodGet, "", headers...)
	if resp.StatusCode != http.StatusOK {
		c.t.Fatal(resp.Status)
	}
	s := &eventStream{c, resp, bufio.NewReader(resp.Body)}
	c.t.Cleanup(s.close)
	return s
}

func (s *eventStream) close() { _ = s.resp.Body.Close() }

// next returns the next event: its id and its data.
func (s *eventStream) next() (id, data string) {
	s.c.t.Helper()
	for {
		line, err := s.r.ReadString('\n')
		if err != nil {
			s.c.t.Fatal(err)
		}
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(line, "id: "):
			id = line[4:]
		case strings.HasPrefix(line, "data: "):
			data = line[6:]
		case line == "" && data != "":
			return id, data
		}
	}
}

// session opens a session and returns its id. The stream of the connection is read.
func (c *rawClient) session() (id string, connection *eventStream) {
	c.t.Helper()
	c.initialize()
	connection = c.stream()
	if code := c.status(http.MethodPost, newSession); code != http.StatusAccepted {
		c.t.Fatal(code)
	}
	return c.newSessionID(connection), connection
}

func (c *rawClient) newSessionID(connection *eventStream) string {
	c.t.Helper()
	_, data := connection.next()
	_, rest, _ := strings.Cut(data, `"sessionId":"`)
	id, _, ok := strings.Cut(rest, `"`)
	if !ok {
		c.t.Fatal(data)
	}
	return id
}

func prompt(id int, session, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}}`, id, session, text)
}

func sessionHeader(id string) string { return acphttp.HeaderSessionID + ": " + id }

// TestStatuses goes through the table of the package documentation.
func TestStatuses(t *testing.T) {
	url := serve(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve, Limits: acphttp.Limits{MaxMessage: 1 << 20}})
	c := newRaw(t, url)
	session, _ := c.session()
	other := "Acp-Connection-Id: 00000000000000000000000000000000"
	none := "Acp-Connection-Id:"
	long := strings.Repeat("x", 1100)
	cancel := fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session)
	for _, test := range []struct {
		name, method, body string
		headers            []string
		want               int
	}{
		{"parameters of the media type", "POST", `{"jsonrpc":"2.0","method":"_x"}`, []string{"Content-Type: Application/JSON; charset=utf-8"}, 202},
		{"no JSON", "POST", initialize, []string{"Content-Type: text/plain"}, 415},
		{"a form", "POST", "a=b", []string{"Content-Type: application/x-www-form-urlencoded"}, 415},
		{"no media type", "POST", initialize, []string{"Content-Type:"}, 415},
		{"JSON as a suffix", "POST", initialize, []string{"Content-Type: application/jsonp"}, 415},
		{"malformed", "POST", `{"jsonrpc":`, nil, 400},
		{"empty", "POST", ``, nil, 400},
		{"two values", "POST", `{} {}`, nil, 400},
		{"a number", "POST", `17`, nil, 400},
		{"null", "POST", `null`, nil, 400},
		{"a batch", "POST", `[` + initialize + `]`, nil, 501},
		{"too large", "POST", `{"x":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413},
		{"initialize again", "POST", initialize, nil, 400},
		{"initialize without id", "POST", `{"jsonrpc":"2.0","method":"initialize","params":{}}`, []string{none}, 400},
		{"initialize with id null", "POST", `{"jsonrpc":"2.0","id":null,"method":"initialize","params":{}}`, []string{none}, 400},
		{"initialize with a long id", "POST", `{"jsonrpc":"2.0","id":"` + long + `","method":"initialize","params":{}}`, []string{none}, 400},
		{"no connection", "POST", cancel, []string{none}, 400},
		{"unknown connection", "POST", cancel, []string{other}, 404},
		{"no session", "POST", cancel, nil, 400},
		{"another session", "POST", cancel, []string{sessionHeader("other")}, 400},
		{"the session", "POST", cancel, []string{sessionHeader(session)}, 202},
		{"a method of sessions", "POST", `{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{}}`, nil, 400},
		{"a long session", "POST", cancel, []string{sessionHeader(long)}, 400},
		{"a long id", "POST", `{"jsonrpc":"2.0","id":"` + long + `","method":"_x"}`, nil, 400},
		{"neither method nor result", "POST", `{"jsonrpc":"2.0"}`, nil, 202},
		{"a malformed number", "POST", `{"jsonrpc":"2.0","method":"_x"}`, []string{"Acp-Message: x"}, 400},
		{"GET for anything", "GET", "", []string{"Accept: */*"}, 406},
		{"GET for nothing", "GET", "", []string{"Accept:"}, 406},
		{"GET, no connection", "GET", "", []string{none}, 400},
		{"GET, unknown connection", "GET", "", []string{other}, 404},
		{"GET, being read", "GET", "", nil, 409},
		{"GET, unknown session", "GET", "", []string{sessionHeader("later")}, 200},
		{"GET, long session", "GET", "", []string{sessionHeader(long)}, 400},
		{"GET, cannot resume", "GET", "", []string{sessionHeader(session), "Last-Event-ID: x-1"}, 409},
		{"a WebSocket", "GET", "", []string{"Connection: Upgrade", "Upgrade: websocket"}, 426},
		{"another method", "PUT", "", nil, 405},
		{"OPTIONS", "OPTIONS", "", nil, 405},
		{"DELETE, no connection", "DELETE", "", []string{none}, 400},
		{"DELETE, unknown connection", "DELETE", "", []string{other}, 404},
		{"DELETE", "DELETE", "", nil, 202},
		{"DELETE again", "DELETE", "", nil, 404},
		{"POST after DELETE", "POST", cancel, []string{sessionHeader(session)}, 404},
		{"GET after DELETE", "GET", "", nil, 404},
	} {
		if got := c.status(test.method, test.body, test.headers...); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// TestForeign: what a web page of another origin could send is refused, whatever the
// method, and before the agent sees it.
func TestForeign(t *testing.T) {
	s := &acphttp.Server{Serve: remotetest.Counting(t).Serve, Origins: []string{"https://app.example"}}
	url := serve(t, s)
	c := newRaw(t, url)
	c.initialize()
	own := strings.TrimSuffix(url, "/acp")
	for _, test := range []struct {
		header string
		want   int // of POST
	}{
		{"Origin: https://evil.example", 403},
		{"Origin: null", 403},
		{"Origin: http://localhost.evil.example", 403},
		{"Origin: " + own + ".evil.example", 403},
		{"Origin: " + strings.Replace(own, "http:", "https:", 1), 403},
		{"Origin: http://127.0.0.1:1", 403},
		{"Sec-Fetch-Site: cross-site", 403},
		{"Sec-Fetch-Site: same-site", 403},
		{"Host: evil.example", 421},
		{"Host: 127.0.0.1.evil.example", 421},
		{"Host: 192.0.2.1", 421},
		{"Origin: " + own, 202},
		{"Origin: https://app.example", 202},
		{"Sec-Fetch-Site: same-origin", 202},
		{"Host: localhost:1", 202},
		{"Host: [::1]", 202},
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete, "upgrade"} {
			headers := []string{test.header}
			refused := test.want == 403 || test.want == 421
			switch {
			case method == "upgrade":
				method = http.MethodGet
				headers = append(headers, "Connection: Upgrade", "Upgrade: websocket")
				if !refused {
					continue
				}
			case method != http.MethodPost && !refused:
				continue
			}
			if got := c.status(method, `{"jsonrpc":"2.0","method":"_x"}`, headers...); got != test.want {
				t.Errorf("%s %s: %d, want %d", method, test.header, got, test.want)
			}
		}
	}
	resp := c.do(http.MethodOptions, "", "Origin: https://app.example")
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent || resp.Header.Get("Access-Control-Allow-Origin") != "https://app.example" ||
		!strings.Contains(resp.Header.Get("Access-Control-Allow-Headers"), "Acp-Connection-Id") {
		t.Error(resp.Status, resp.Header)
	}
}

// TestPrincipals: a connection does not exist for anybody but its owner, and those who
// give no name are refused.
func TestPrincipals(t *testing.T) {
	seen := make(chan string, 1)
	agent := remotetest.Counting(t)
	agent.NewSession = func(ctx context.Context, s *acp.AgentSession) error {
		seen <- acphttp.Principal(ctx)
		return nil
	}
	url := serve(t, &acphttp.Server{Serve: agent.Serve, Authenticate: func(r *http.Request) (string, error) {
		name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case name == "banned":
			return "", &acphttp.StatusError{Status: http.StatusForbidden, Text: "banned"}
		case !ok:
			return "", errors.New("no token")
		}
		return name, nil
	}})
	anne, bert := "Authorization: Bearer anne", "Authorization: Bearer bert"
	c := newRaw(t, url)
	resp := c.do(http.MethodPost, initialize)
	_ = resp.Body.Close()
	if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Error(resp.Status, resp.Header)
	}
	if got := c.status(http.MethodPost, initialize, "Authorization: Bearer banned"); got != 403 {
		t.Error(got)
	}
	resp = c.do(http.MethodPost, initialize, anne)
	_ = resp.Body.Close()
	c.connection = resp.Header.Get(acphttp.HeaderConnectionID)
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		if got := c.status(method, newSession, bert); got != 404 {
			t.Errorf("%s: %d", method, got)
		}
		if got := c.status(method, newSession); got != 401 {
			t.Errorf("%s: %d", method, got)
		}
	}
	if got := c.status(http.MethodPost, newSession, anne); got != 202 {
		t.Error(got)
	}
	if got := <-seen; got != "anne" {
		t.Errorf("the hook was called for %q", got)
	}
}

// TestInitializeFails: the client learns that its agent failed, and gets no id for a
// connection that is gone.
func TestInitializeFails(t *testing.T) {
	ends := func(ctx context.Context, t acp.Transport) error {
		stream, err := t.Open(ctx)
		if err != nil {
			return err
		}
		return stream.Close()
	}
	panics := func(ctx context.Context, t acp.Transport) error { panic("oh") }
	refuses := remotetest.Counting(t)
	refuses.Initialize = func(context.Context, *acp.AgentConn) (json.RawMessage, error) { return nil, jsonrpc.ErrAuthRequired }
	for name, test := range map[string]struct {
		serve  func(context.Context, acp.Transport) error
		status int
		body   string
	}{
		"ends":    {ends, 500, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Initialize failed"}}`},
		"panics":  {panics, 500, `"message":"Initialize failed"`},
		"none":    {nil, 500, "there is no agent"},
		"refuses": {refuses.Serve, 200, `"code":-32000`},
	} {
		c := newRaw(t, serve(t, &acphttp.Server{Serve: test.serve}))
		resp := c.do(http.MethodPost, initialize)
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != test.status || !bytes.Contains(body, []byte(test.body)) || resp.Header.Get(acphttp.HeaderConnectionID) != "" {
			t.Errorf("%s: %s %v %s %v", name, resp.Status, resp.Header, body, err)
		}
	}
}

// TestResume: a stream resumes exactly after a cursor; a new reader takes it over from
// the old one; what is not kept any more is refused.
func TestResume(t *testing.T) {
	url := serve(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve, Keep: acphttp.Retention{Bytes: 32 << 10}})
	c := newRaw(t, url)
	session, connection := c.session()
	first := c.stream(sessionHeader(session))
	if code := c.status(http.MethodPost, prompt(3, session, "5"), sessionHeader(session)); code != 202 {
		t.Fatal(code)
	}
	var ids, datas []string
	for range 6 { // five updates and the answer
		id, data := first.next()
		ids, datas = append(ids, id), append(datas, data)
	}
	for i, id := range ids {
		again := c.stream(sessionHeader(session), "Last-Event-ID: "+id)
		for j := i + 1; j < len(ids); j++ {
			if id, data := again.next(); id != ids[j] || data != datas[j] {
				t.Errorf("after %s: %s %s, want %s %s", ids[i], id, data, ids[j], datas[j])
			}
		}
		if i == 0 {
			if _, err := first.r.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("the reader that was replaced got %v", err)
			}
		}
	}
	for _, cursor := range []string{"x", "0", ids[0] + "9", strings.Replace(ids[0], "-", "-x", 1), "00000000-1"} {
		if got := c.status(http.MethodGet, "", sessionHeader(session), "Last-Event-ID: "+cursor); got != 409 {
			t.Errorf("%s: %d", cursor, got)
		}
	}
	long := c.stream(sessionHeader(session), "Last-Event-ID: "+ids[5])
	if code := c.status(http.MethodPost, prompt(4, session, "9000"), sessionHeader(session)); code != 202 {
		t.Fatal(code)
	}
	for range 9001 {
		long.next()
	}
	if got := c.status(http.MethodGet, "", sessionHeader(session), "Last-Event-ID: "+ids[0]); got != 409 {
		t.Errorf("events that are not kept: %d", got)
	}
	_ = connection
}

// TestNumbered: a message that is posted again is handled once.
func TestNumbered(t *testing.T) {
	url := serve(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve})
	c := newRaw(t, url)
	session, _ := c.session()
	s := c.stream(sessionHeader(session))
	for range 3 {
		if code := c.status(http.MethodPost, prompt(3, session, "2"), sessionHeader(session), "Acp-Message: 2"); code != 202 {
			t.Fatal(code)
		}
	}
	if code := c.status(http.MethodPost, prompt(4, session, "1"), sessionHeader(session), "Acp-Message: 3"); code != 202 {
		t.Fatal(code)
	}
	var got []string
	for range 5 {
		_, data := s.next()
		if i := strings.Index(data, `"id":`); i >= 0 {
			data = data[i : i+6]
		} else {
			_, data, _ = strings.Cut(data, `"text":`)
			data = data[:4]
		}
		got = append(got, data)
	}
	if want := `["0," "1," "id":3 "0," "id":4]`; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestLoadUnread: clients such as that of the Python SDK do not name the session that
// they load, and read the answer on the stream of the connection; those that read the
// session's get it there, after the history.
func TestLoadUnread(t *testing.T) {
	var prompts atomic.Int64
	url := serve(t, &acphttp.Server{Serve: remembering(t, &prompts).Serve})
	first := newRaw(t, url)
	session, _ := first.session()
	said := first.stream(sessionHeader(session))
	if code := first.status(http.MethodPost, prompt(3, session, "2"), sessionHeader(session)); code != 202 {
		t.Fatal(code)
	}
	for range 3 {
		said.next()
	}
	load := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":%q,"cwd":"/","mcpServers":[]}}`, session)

	c := newRaw(t, url)
	c.initialize()
	connection := c.stream()
	if code := c.status(http.MethodPost, load); code != 202 {
		t.Fatal(code)
	}
	if _, data := connection.next(); !strings.Contains(data, `"id":7,"result"`) {
		t.Error(data)
	}
	history := c.stream(sessionHeader(session))
	for _, want := range []string{"user_message_chunk", `"0,"`, `"1,"`} {
		if _, data := history.next(); !strings.Contains(data, want) {
			t.Errorf("got %s, want %s", data, want)
		}
	}

	c = newRaw(t, url)
	c.initialize()
	history = c.stream(sessionHeader(session))
	if code := c.status(http.MethodPost, load, sessionHeader(session)); code != 202 {
		t.Fatal(code)
	}
	for _, want := range []string{"user_message_chunk", `"0,"`, `"1,"`, `"id":7,"result"`} {
		if _, data := history.next(); !strings.Contains(data, want) {
			t.Errorf("got %s, want %s", data, want)
		}
	}
}
