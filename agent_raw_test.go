package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
)

// rawClient is a client that knows nothing but JSON-RPC: it sees what is on the
// wire. It works in synctest bubbles.
type rawClient struct {
	t       *testing.T
	version int
	conn    *jsonrpc.Conn
	agent   *AgentConn
	hello   map[string]any // the result of initialize

	mu     sync.Mutex
	seen   []string // session/update notifications, in short
	asked  []string // methods of the agent's requests
	notes  []string // methods of other notifications
	answer map[string]func(ctx context.Context, params json.RawMessage) (any, error)
}

// logged returns an agent whose failures are in the output of the test.
func logged(t *testing.T, a *Agent) *Agent {
	b := *a
	b.Logger = cmp.Or(a.Logger, logtest.New(t))
	return &b
}

// dial connects a raw client to an agent without initializing.
func dial(t *testing.T, a *Agent) *rawClient {
	t.Helper()
	ours, theirs := jsonrpc.Pipe()
	conn, err := logged(t, a).Connect(t.Context(), Over(theirs))
	if err != nil {
		t.Fatal(err)
	}
	r := &rawClient{t: t, agent: conn, answer: map[string]func(context.Context, json.RawMessage) (any, error){}}
	mux := new(jsonrpc.Mux)
	mux.Fallback(func(ctx context.Context, req *jsonrpc.Request) (any, error) {
		r.mu.Lock()
		r.asked = append(r.asked, req.Method)
		f := r.answer[req.Method]
		r.mu.Unlock()
		if f == nil {
			return nil, jsonrpc.MethodNotFound(req.Method)
		}
		raw, _ := req.Params.(json.RawMessage)
		return f(ctx, raw)
	})
	mux.FallbackNotification(func(_ context.Context, req *jsonrpc.Request) (any, error) {
		raw, _ := req.Params.(json.RawMessage)
		r.mu.Lock()
		defer r.mu.Unlock()
		if req.Method == "session/update" {
			r.seen = append(r.seen, brief(raw))
		} else {
			r.notes = append(r.notes, req.Method+" "+string(raw))
		}
		return nil, nil
	})
	r.conn = jsonrpc.NewConn(ours, jsonrpc.Config{Mux: mux})
	t.Cleanup(func() {
		_ = r.conn.Close()
		if err := conn.Wait(); err != nil {
			t.Errorf("agent: %v", err)
		}
	})
	return r
}

const (
	helloV1 = `{"protocolVersion":1,"clientCapabilities":{}}`
	helloV2 = `{"protocolVersion":2,"info":{"name":"raw","version":"1"}}`
)

// dialVersion connects and initializes.
func dialVersion(t *testing.T, a *Agent, version int) *rawClient {
	t.Helper()
	r := dial(t, a)
	hello := helloV1
	if version == 2 {
		hello = helloV2
	}
	r.initialize(version, hello)
	return r
}

func (r *rawClient) initialize(version int, hello string) {
	r.t.Helper()
	r.version = version
	if err := json.Unmarshal(r.must("initialize", hello), &r.hello); err != nil {
		r.t.Fatal(err)
	}
	if got := r.hello["protocolVersion"]; got != float64(version) {
		r.t.Fatalf("initialize: version %v, want %d", got, version)
	}
}

// call makes a request; params are JSON.
func (r *rawClient) call(method, params string) (json.RawMessage, error) {
	return r.callCtx(r.t.Context(), method, params)
}

func (r *rawClient) callCtx(ctx context.Context, method, params string) (json.RawMessage, error) {
	var res json.RawMessage
	err := r.conn.Call(ctx, method, json.RawMessage(params), &res)
	return res, err
}

func (r *rawClient) must(method, params string) json.RawMessage {
	r.t.Helper()
	res, err := r.call(method, params)
	if err != nil {
		r.t.Fatalf("%s: %v", method, err)
	}
	return res
}

func (r *rawClient) notify(method, params string) {
	r.t.Helper()
	if err := r.conn.Notify(r.t.Context(), method, json.RawMessage(params)); err != nil {
		r.t.Fatal(err)
	}
}

// code is the JSON-RPC code of an error, or 0.
func code(err error) int {
	if we, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return we.Code
	}
	return 0
}

// session opens a session and returns its id.
func (r *rawClient) session() string {
	r.t.Helper()
	var res struct{ SessionID string }
	if err := json.Unmarshal(r.must("session/new", `{"cwd":"/tmp","mcpServers":[]}`), &res); err != nil {
		r.t.Fatal(err)
	}
	return res.SessionID
}

func promptParams(session, text string) string {
	return fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session, text)
}

// turn prompts and waits for the end of the turn: in version 2 for the state
// that follows. It returns the stop reason.
func (r *rawClient) turn(session, text string) (string, error) {
	r.t.Helper()
	before := r.idles()
	res, err := r.call("session/prompt", promptParams(session, text))
	if err != nil {
		return "", err
	}
	if r.version == 1 {
		var v struct{ StopReason string }
		err := json.Unmarshal(res, &v)
		return v.StopReason, err
	}
	return r.awaitIdle(before), nil
}

func (r *rawClient) idles() (n int) {
	for _, u := range r.updates() {
		if strings.HasPrefix(u, "idle") {
			n++
		}
	}
	return n
}

// awaitIdle waits for an idle state beyond the first n and returns its reason.
func (r *rawClient) awaitIdle(n int) string {
	r.t.Helper()
	var last string
	r.await(func() bool {
		count := 0
		for _, u := range r.updates() {
			if strings.HasPrefix(u, "idle") {
				if count++; count > n {
					last = strings.TrimPrefix(strings.TrimPrefix(u, "idle"), " ")
					return true
				}
			}
		}
		return false
	})
	return last
}

// await waits until cond holds, by asking the agent something again and again:
// the answer to that comes behind what it sent before.
func (r *rawClient) await(cond func() bool) {
	r.t.Helper()
	for !cond() {
		if r.t.Context().Err() != nil {
			r.t.Fatal("what was waited for did not happen")
		}
		_, _ = r.call("_test/barrier", "{}")
	}
}

func (r *rawClient) updates() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// brief is an update in short: what the tests look at.
func brief(raw json.RawMessage) string {
	var n struct {
		Update struct {
			SessionUpdate, State, StopReason, Status, ToolCallID, Title, CurrentModeID string
			Content                                                                    json.RawMessage
			Error                                                                      *struct{ Code int }
			ReplayTitle                                                                string
		}
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return "undecodable: " + err.Error()
	}
	u := n.Update
	var text struct{ Text string }
	switch u.SessionUpdate {
	case "state_update":
		s := strings.TrimSuffix(u.State+" "+u.StopReason, " ")
		if u.Error != nil {
			s += fmt.Sprint(" ", u.Error.Code)
		}
		return s
	case "user_message", "agent_message", "agent_thought":
		var blocks []struct{ Text string }
		_ = json.Unmarshal(u.Content, &blocks)
		s := u.SessionUpdate
		for _, b := range blocks {
			s += " " + b.Text
		}
		return s
	}
	_ = json.Unmarshal(u.Content, &text)
	return strings.Join(strings.Fields(strings.Join([]string{u.SessionUpdate, u.ToolCallID, u.Title, u.Status, u.CurrentModeID, text.Text}, " ")), " ")
}

// versions runs a test once for each protocol version.
func versions(t *testing.T, f func(t *testing.T, version int)) {
	for _, v := range []int{1, 2} {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) { f(t, v) })
	}
}
