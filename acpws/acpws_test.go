package acpws_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/remotetest"
	"github.com/goacp/acp/jsonrpc"
)

// counting is an agent that says the numbers up to the one it is asked for.
// serve starts a server and returns its URL, with the scheme http.
func serve(t *testing.T, s *acphttp.Server) string {
	t.Helper()
	s.Upgrade = acpws.Upgrader{}
	s.Logger = cmp.Or(s.Logger, logtest.New(t))
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		_ = s.Close(context.Background())
		web.Close()
	})
	return web.URL + "/acp"
}

func ws(url string) string { return "ws" + strings.TrimPrefix(url, "http") }

// turn has the agent count.
func turn(t *testing.T, transport acp.Transport, n, version int) (string, error) {
	t.Helper()
	client := &acp.Client{MinVersion: version, MaxVersion: version}
	conn, err := client.Connect(t.Context(), transport)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"})
	if err != nil {
		return "", err
	}
	text, _, err := session.Prompt(t.Context(), acp.Text(fmt.Sprint(n))).Text()
	return text, err
}

// TestUnmasked: a client must mask its frames (RFC 6455, section 5.1), and the connection of one that does not is closed
// before what it has sent is read.
func TestUnmasked(t *testing.T) {
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`
	for _, masked := range []bool{true, false} {
		url := serve(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve})
		at, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET /acp HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n", at)
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%v %v", res, err)
		}
		frame := []byte{0x81, byte(len(initialize))}
		if masked {
			frame[1] |= 0x80
			frame = append(frame, 0, 0, 0, 0) // which changes nothing
		}
		if _, err := conn.Write(append(frame, initialize...)); err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 2)
		_, err = io.ReadFull(in, head)
		if text := err == nil && head[0] == 0x81; text != masked {
			t.Errorf("masked %t: the answer begins with %x, %v", masked, head, err)
		}
		if !masked {
			rest, err := io.ReadAll(in)
			if err != nil && !errors.Is(err, syscall.ECONNRESET) || bytes.Contains(rest, []byte("protocolVersion")) {
				t.Errorf("the connection goes on: %q, %v", rest, err)
			}
		}
	}
}

func TestCounting(t *testing.T) {
	url := ws(serve(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve}))
	for _, version := range []int{1, 2} {
		text, err := turn(t, acpws.NewTransport(url), 20000, version)
		if err != nil || text != remotetest.Numbers(20000) {
			t.Errorf("version %d: %d bytes, %v", version, len(text), err)
		}
	}
}

// dial opens a WebSocket.
func dial(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	c, resp, err := websocket.Dial(t.Context(), ws(url), nil)
	if err != nil {
		t.Fatal(err)
	}
	if id := resp.Header.Get(acphttp.HeaderConnectionID); len(id) != 32 {
		t.Errorf("the id of the connection is %q", id)
	}
	c.SetReadLimit(64 << 20)
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

// TestConversations plays conversations from their first frame on: -> is sent, <- must
// be received, and a number is the code with which the server closes the WebSocket.
func TestConversations(t *testing.T) {
	const (
		initialize = `-> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`
		welcome    = `<- "id":1,"result":{`
	)
	long := strings.Repeat("x", 1100)
	for name, lines := range map[string][]string{
		"another message first": {`-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`, "1002"},
		"a notification first":  {`-> {"jsonrpc":"2.0","method":"initialize","params":{}}`, "1002"},
		"junk first": {
			`-> {`, `<- -32700`, `-> []`, `<- -32600`, `-> 1`, `<- -32600`, `-> {}`, `<- -32600`,
			`-> {"jsonrpc":"2.0","id":1,"result":{}}`, initialize, welcome,
		},
		"binary frames":    {"=> x", initialize, "=> x", welcome},
		"initialize again": {initialize, welcome, initialize, `<- "id":1,"error":{"code":-32600`},
		"initialize after an error": {
			`-> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"x"}}`, `<- -32602`,
			strings.Replace(initialize, `"id":1`, `"id":2`, 1), `<- "id":2,"result":{`,
			strings.Replace(initialize, `"id":1`, `"id":3`, 1), `<- "id":3,"error":{"code":-32600`,
		},
		"junk later":         {initialize, welcome, `-> {`, `<- -32700`, `-> [1]`, `<- -32600`},
		"a long id":          {initialize, welcome, `-> {"jsonrpc":"2.0","id":"` + long + `","method":"_x"}`, "1008"},
		"a long session":     {initialize, welcome, `-> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + long + `"}}`, "1008"},
		"a long first id":    {`-> {"jsonrpc":"2.0","id":"` + long + `","method":"initialize"}`, "1008"},
		"too large":          {initialize, welcome, `-> "` + strings.Repeat("x", 17<<20) + `"`, "1009"},
		"invalid UTF-8":      {initialize, welcome, "-> \"\xff\"", "1007"},
		"unknown extensions": {initialize, welcome, `-> {"jsonrpc":"2.0","method":"$/ping"}`, `-> {"jsonrpc":"2.0","id":2,"method":"_x"}`, `<- -32601`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, serve(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve}))
			for _, line := range lines {
				switch what, text, _ := strings.Cut(line, " "); what {
				case "->":
					if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
						t.Fatal(err)
					}
				case "=>":
					if err := c.Write(t.Context(), websocket.MessageBinary, []byte(text)); err != nil {
						t.Fatal(err)
					}
				case "<-":
					_, got, err := c.Read(t.Context())
					if err != nil || !strings.Contains(string(got), text) {
						t.Fatalf("%.80s: got %.200s, %v", text, got, err)
					}
				default:
					_, got, err := c.Read(t.Context())
					if code := websocket.CloseStatus(err); fmt.Sprint(int(code)) != what {
						t.Fatalf("closed with %v, want %s; %.200s %v", code, what, got, err)
					}
				}
			}
		})
	}
}

// TestEnds: how a WebSocket ends is what the other side sees.
func TestEnds(t *testing.T) {
	initialize := []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	t.Run("server closes", func(t *testing.T) {
		s := &acphttp.Server{Serve: remotetest.Counting(t).Serve}
		c := dial(t, serve(t, s))
		if err := c.Write(t.Context(), websocket.MessageText, initialize); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- s.Close(context.Background()) }()
		if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
			t.Error(err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
	t.Run("client leaves", func(t *testing.T) {
		ended := make(chan error, 1)
		agent := remotetest.Counting(t)
		url := serve(t, &acphttp.Server{Serve: func(ctx context.Context, t acp.Transport) error {
			err := agent.Serve(ctx, t)
			ended <- err
			return err
		}})
		if _, err := turn(t, acpws.NewTransport(ws(url)), 1, 1); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestRefused: what a server says instead of opening a WebSocket is a StatusError.
func TestRefused(t *testing.T) {
	s := &acphttp.Server{Serve: remotetest.Counting(t).Serve, Authenticate: func(r *http.Request) (string, error) {
		if r.Header.Get("Authorization") != "Bearer right" {
			return "", errors.New("no")
		}
		return "anne", nil
	}}
	url := ws(serve(t, s))
	token := func(s string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return s, nil }
	}
	for _, test := range []struct {
		name      string
		transport *acpws.Transport
		want      int
	}{
		{"no token", &acpws.Transport{URL: url}, 401},
		{"wrong token", &acpws.Transport{URL: url, Token: token("wrong")}, 401},
		{"origin", &acpws.Transport{URL: url, Token: token("right"), Header: http.Header{"Origin": {"https://evil.example"}}}, 403},
		{"right token", &acpws.Transport{URL: url, Token: token("right")}, 0},
	} {
		_, err := turn(t, test.transport, 1, 1)
		said := (*acphttp.StatusError)(nil)
		if got := errors.As(err, &said); got != (test.want > 0) || got && said.Status != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	for _, bad := range []string{"http://x/acp", "ws://", "wss://user:secret@x/acp", ":"} {
		if _, err := acpws.NewTransport(bad).Open(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestCut: a WebSocket that is cut ends the connection, and the error says that the
// outcome is unknown; the answer is never silently incomplete.
func TestCut(t *testing.T) {
	target := serve(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	for after := int64(1); after < 2000; after += 37 {
		web := httptest.NewServer(&acptest.FaultProxy{Target: target, Fault: func(*http.Request, int) acptest.NetFault {
			return acptest.NetFault{Break: acptest.Cut, After: after}
		}})
		text, err := turn(t, acpws.NewTransport(ws(web.URL)), 100, 1)
		web.Close()
		switch {
		case err == nil && text == remotetest.Numbers(100):
		case err == nil:
			t.Fatalf("cut after %d bytes: %q without an error", after, text)
		case !errors.Is(err, jsonrpc.ErrOutcomeUnknown):
			t.Fatalf("cut after %d bytes: %v", after, err)
		}
	}
}

// TestResumed: with a server that keeps what it sends, a turn loses, doubles and
// reorders nothing, however often its WebSocket is cut.
func TestResumed(t *testing.T) {
	cuts, updates := 1000, 10000
	if !long.All() {
		cuts, updates = 100, 2000
	}
	for version := 1; version <= 2; version++ {
		target := serve(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve, Keep: acphttp.Retention{Bytes: 4 << 20}})
		random := rand.New(rand.NewPCG(1, uint64(version)))
		done := 0
		transport := &http.Transport{}
		web := httptest.NewServer(&acptest.FaultProxy{Target: target, Transport: transport, Fault: func(*http.Request, int) acptest.NetFault {
			if done == cuts {
				return acptest.NetFault{}
			}
			done++
			return acptest.NetFault{Break: acptest.Cut, After: random.Int64N(3000)}
		}})
		text, err := turn(t, acpws.NewTransport(ws(web.URL)), updates, version)
		web.CloseClientConnections()
		web.Close()
		transport.CloseIdleConnections()
		if err != nil || text != remotetest.Numbers(updates) {
			t.Fatalf("got %d bytes, want %d: %v", len(text), len(remotetest.Numbers(updates)), err)
		}
		if done < cuts/2 {
			t.Errorf("only %d cuts", done)
		}
	}
}

// TestResent: what a client has sent while its WebSocket was broken arrives, once and
// in order.
func TestResent(t *testing.T) {
	target := serve(t, &acphttp.Server{Serve: echo, Keep: acphttp.Retention{Bytes: 1 << 20}})
	n := 0
	web := httptest.NewServer(&acptest.FaultProxy{Target: target, Fault: func(*http.Request, int) acptest.NetFault {
		n++
		if n > 20 {
			return acptest.NetFault{}
		}
		return acptest.NetFault{Break: acptest.Cut, After: int64(n * 50)}
	}})
	defer web.Close()
	defer web.CloseClientConnections()
	stream, err := acpws.NewTransport(ws(web.URL)).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	const messages = 500
	go func() {
		for i := range messages {
			method := "_x"
			if i == 0 {
				method = "initialize"
			}
			if err := stream.WriteFrame(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q}`, i, method)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for i := range messages {
		f, err := stream.ReadFrame()
		if err != nil {
			t.Fatal(i, err)
		}
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, i); !strings.HasPrefix(string(f.Data), want) {
			t.Fatalf("got %s, want %s", f.Data, want)
		}
	}
	if n <= 20 {
		t.Errorf("only %d WebSockets", n)
	}
}

// echo sends every message back.
func echo(ctx context.Context, t acp.Transport) error {
	stream, err := t.Open(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		f, err := stream.ReadFrame()
		if err != nil {
			return nil
		}
		if err := stream.WriteFrame(f.Data); err != nil {
			return err
		}
	}
}

// TestResumeRefused: a connection that is unknown, or somebody else's, or whose events
// are not kept any more, is not resumed.
func TestResumeRefused(t *testing.T) {
	s := &acphttp.Server{Serve: echo, Keep: acphttp.Retention{Bytes: 1}, Authenticate: func(r *http.Request) (string, error) {
		return r.Header.Get("Authorization"), nil
	}}
	url := serve(t, s)
	open := func(name string) (*websocket.Conn, string) {
		c, resp, err := websocket.Dial(t.Context(), ws(url), &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {name}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.CloseNow() })
		return c, fmt.Sprintf(`"connectionId":%q,"cursor":"%s`, resp.Header.Get(acphttp.HeaderConnectionID),
			strings.TrimSuffix(resp.Header.Get("Last-Event-ID"), "0"))
	}
	say := func(c *websocket.Conn, text string) string {
		t.Helper()
		if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		_, got, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	anne, at := open("anne")
	large := strings.Repeat("x", 40_000)
	for i := range 3 { // more than a chunk of the log
		say(anne, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","x":"%s"}`, i, large[:1+i*30_000/2]))
	}
	for _, test := range []struct{ who, params, want string }{
		{"bert", at + `3"`, "resume_failed"},
		{"anne", strings.Replace(at, `"connectionId":"`, `"connectionId":"x`, 1) + `3"`, "resume_failed"},
		{"anne", at + `99"`, "resume_failed"},
		{"anne", at + `x"`, "resume_failed"},
		{"anne", `"connectionId":7`, "resume_failed"},
		{"anne", at + `3"`, `"received":3`},
	} {
		c, _ := open(test.who)
		if got := say(c, `{"jsonrpc":"2.0","method":"stream/resume","params":{`+test.params+`}}`); !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %s", test.who, test.params, got)
		}
	}
	plain := dial(t, serve(t, &acphttp.Server{Serve: echo}))
	if err := plain.Write(t.Context(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","method":"stream/resume","params":{}}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := plain.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusProtocolError {
		t.Error(err)
	}
}

// TestFull: a server that has as many connections as it may have lets them resume, and
// refuses others.
func TestFull(t *testing.T) {
	target := serve(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve, Keep: acphttp.Retention{Bytes: 1 << 20}, Limits: acphttp.Limits{MaxConnections: 1}})
	n := 0
	web := httptest.NewServer(&acptest.FaultProxy{Target: target, Fault: func(*http.Request, int) acptest.NetFault {
		if n++; n > 5 {
			return acptest.NetFault{}
		}
		return acptest.NetFault{Break: acptest.Cut, After: 700}
	}})
	defer web.Close()
	defer web.CloseClientConnections()
	conn, err := new(acp.Client).Connect(t.Context(), acpws.NewTransport(ws(web.URL)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if text, _, err := session.Prompt(t.Context(), acp.Text("50")).Text(); err != nil || text != remotetest.Numbers(50) || n < 5 {
		t.Error(text, err, n)
	}
	other := dial(t, target)
	if err := other.Write(t.Context(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := other.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusTryAgainLater {
		t.Error(err)
	}
}
