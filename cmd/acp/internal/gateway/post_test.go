package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acptest"
)

// badGateway starts a gateway behind a proxy. Once faults is set to 0, the next message for a session
// is delivered, and answered with 502.
func badGateway(t *testing.T, r *rig) (url string, faults *atomic.Int64) {
	t.Helper()
	s := &acphttp.Server{Serve: r.g.Serve}
	web := httptest.NewServer(s)
	faults = new(atomic.Int64)
	faults.Store(1) // 0 arms it
	transport := new(http.Transport)
	proxy := httptest.NewServer(&acptest.FaultProxy{Target: web.URL, Transport: transport, Fault: func(r *http.Request, _ int) acptest.NetFault {
		if r.Method == http.MethodPost && r.Header.Get(acphttp.HeaderSessionID) != "" && faults.Add(1) == 1 {
			return acptest.NetFault{Replace: http.StatusBadGateway}
		}
		return acptest.NetFault{}
	}})
	t.Cleanup(func() {
		_ = s.Close(context.Background())
		proxy.CloseClientConnections()
		proxy.Close()
		web.Close()
		transport.CloseIdleConnections()
	})
	return proxy.URL + "/acp", faults
}

// runs counts how often a prompt has run, as a client that watches has seen it.
func (c *client) runs(prompt string) (n int) {
	for _, text := range c.seen.take() {
		if text == "user: "+prompt {
			n++
		}
	}
	return n
}

// TestPromptBadGateway: a prompt that was delivered although the client got a 502 runs once, and the client has its answer.
func TestPromptBadGateway(t *testing.T) {
	for version := 1; version <= 2; version++ {
		r := newRig(t, talking(nil))
		url, faults := badGateway(t, r)
		watcher := r.connect(1)
		s := watcher.new(t)
		conn, err := (&acp.Client{MinVersion: version, MaxVersion: version}).Connect(t.Context(), acphttp.NewTransport(url))
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := conn.Resume(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project"})
		if err != nil {
			t.Fatal(err)
		}
		faults.Store(0)
		if res, err := sendOperation(t, theirs, "hello", "op-1").Wait(); err != nil || res.StopReason != acp.StopEndTurn {
			t.Errorf("version %d: %v, %v", version, res, err)
		}
		say(t, s, "last")
		watcher.seen.until(t, "agent: last")
		if n := watcher.runs("hello"); n != 1 || faults.Load() == 0 {
			t.Errorf("version %d: it ran %d times; %d requests", version, n, faults.Load())
		}
		_ = conn.Close()
	}
}

// TestPromptSentAgain: a client that knows nothing of gateways but the name of its operation gets a 502 for a prompt that was
// delivered, and posts it again, while it runs and afterwards. It runs once, and every request has the answer.
func TestPromptSentAgain(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, talking(goOn))
	url, faults := badGateway(t, r)
	watcher := r.connect(2)
	s := watcher.new(t)

	conn := post(t, url, "", "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`).Header.Get(acphttp.HeaderConnectionID)
	stream := func(session string) *bufio.Scanner {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set(acphttp.HeaderConnectionID, conn)
		if session != "" {
			req.Header.Set(acphttp.HeaderSessionID, session)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(err, res.Status)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return bufio.NewScanner(res.Body)
	}
	// answer returns the answer to a request.
	answer := func(events *bufio.Scanner, id int) json.RawMessage {
		for events.Scan() {
			data, ok := strings.CutPrefix(events.Text(), "data:")
			var m struct {
				ID     *int
				Method string
				Result json.RawMessage
			}
			if ok && json.Unmarshal([]byte(data), &m) == nil && m.Method == "" && m.ID != nil && *m.ID == id {
				return m.Result
			}
		}
		t.Fatalf("no answer to %d: %v", id, events.Err())
		return nil
	}
	opening, events := stream(""), stream(string(s.ID()))
	post(t, url, conn, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/resume","params":{"sessionId":%q,"cwd":"/project","mcpServers":[]}}`, s.ID()))
	answer(opening, 1)
	faults.Store(0)
	prompt := func(id int) int {
		return post(t, url, conn, string(s.ID()), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"wait"}],`+
			`"_meta":{"github.com/goacp/acp":{"operationId":"op-1"}}}}`, id, s.ID())).StatusCode
	}
	statuses := []int{prompt(2)}
	watcher.seen.until(t, "agent: waiting")
	statuses = append(statuses, prompt(3))
	close(goOn)
	for id := 2; id <= 4; id++ {
		if id == 4 {
			statuses = append(statuses, prompt(4))
		}
		if got := answer(events, id); !strings.Contains(string(got), `"stopReason":"end_turn"`) {
			t.Errorf("request %d: %s", id, got)
		}
	}
	if !slices.Equal(statuses, []int{http.StatusBadGateway, http.StatusAccepted, http.StatusAccepted}) {
		t.Error(statuses)
	}
	say(t, s, "last")
	watcher.seen.until(t, "agent: last")
	if n := watcher.runs("wait"); n != 1 {
		t.Errorf("it ran %d times: %q", n, watcher.seen.take())
	}
}
