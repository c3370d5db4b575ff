package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

func echoAgent() *Agent {
	return &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
		return StopEndTurn, t.Say(t.Text())
	}}
}

// TestNegotiation: what is answered to what is asked, and by whom (S50, S51,
// S56, S57, S61).
func TestNegotiation(t *testing.T) {
	const info = `,"info":{"name":"c","version":"1"}`
	cases := []struct {
		name     string
		min, max int
		params   string
		version  int // 0: an error
		code     int
		data     string
	}{
		{"one of both", 0, 0, `{"protocolVersion":1}`, 1, 0, ""},
		{"two of both", 0, 0, `{"protocolVersion":2` + info + `}`, 2, 0, ""},
		{"later than ours", 0, 0, `{"protocolVersion":7` + info + `}`, 2, 0, ""},
		{"later, of another shape", 0, 0, `{"protocolVersion":7}`, 2, 0, ""},
		{"two without info", 0, 0, `{"protocolVersion":2}`, 0, jsonrpc.CodeInvalidParams, "info"},
		{"zero of both", 0, 0, `{"protocolVersion":0}`, 0, jsonrpc.CodeUnsupportedVersion, `{"requested":0,"supported":[1,2]}`},
		{"one of two", 2, 2, `{"protocolVersion":1}`, 0, jsonrpc.CodeUnsupportedVersion, `{"requested":1,"supported":[2]}`},
		{"zero of one", 1, 1, `{"protocolVersion":0}`, 1, 0, ""},
		{"two of one", 1, 1, `{"protocolVersion":2` + info + `}`, 1, 0, ""},
		{"many of one", 1, 1, `{"protocolVersion":999}`, 1, 0, ""},
		{"no version", 0, 0, `{}`, 0, jsonrpc.CodeInvalidParams, "protocolVersion"},
		{"null", 0, 0, `{"protocolVersion":null}`, 0, jsonrpc.CodeInvalidParams, "protocolVersion"},
		{"a string", 0, 0, `{"protocolVersion":"1"}`, 0, jsonrpc.CodeInvalidParams, "protocolVersion"},
		{"a fraction", 0, 0, `{"protocolVersion":1.5}`, 0, jsonrpc.CodeInvalidParams, "protocolVersion"},
		{"negative", 0, 0, `{"protocolVersion":-1}`, 0, jsonrpc.CodeInvalidParams, "protocolVersion"},
		{"too large", 0, 0, `{"protocolVersion":65536}`, 0, jsonrpc.CodeInvalidParams, "protocolVersion"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := echoAgent()
			a.MinVersion, a.MaxVersion = c.min, c.max
			r := dial(t, a)
			res, err := r.call("initialize", c.params)
			if c.version == 0 {
				we, _ := errors.AsType[*jsonrpc.Error](err)
				if code(err) != c.code || !strings.Contains(string(we.Data), c.data) {
					t.Fatalf("%s, %v; want %d with %s", res, err, c.code, c.data)
				}
				if v := r.agent.Version(); v != 0 {
					t.Errorf("version %d after a failure", v)
				}
				// It can be tried again.
				c.version, c.params = max(1, a.MinVersion), helloV1
				if a.MinVersion == 2 {
					c.params = helloV2
				}
				if res, err = r.call("initialize", c.params); err != nil {
					t.Fatalf("second attempt: %v", err)
				}
			}
			var got struct{ ProtocolVersion int }
			if err := json.Unmarshal(res, &got); err != nil || got.ProtocolVersion != c.version || r.agent.Version() != c.version {
				t.Errorf("answer %s, connection %d, want %d", res, r.agent.Version(), c.version)
			}
			if r.session() == "" {
				t.Error("no session")
			}
		})
	}
}

// TestNewerClient: a version 2 client is understood by a version 1 agent (S64).
func TestNewerClient(t *testing.T) {
	a := echoAgent()
	a.MaxVersion = 1
	r := dial(t, a)
	r.must("initialize", `{"protocolVersion":2,"info":{"name":"c","version":"3"},"capabilities":{"auth":{"terminal":{}},"elicitation":{"form":{}}}}`)
	caps := r.agent.CapabilitiesV1()
	if caps == nil || !caps.Auth.Terminal || caps.Elicitation == nil || caps.Elicitation.Form == nil || caps.FS.ReadTextFile || caps.Terminal {
		t.Errorf("capabilities %+v", caps)
	}
	if got := r.agent.Client(); got.Name != "c" || got.Version != "3" {
		t.Errorf("client %+v", got)
	}
}

// TestBeforeInitialize: nothing works before initialize, whether or not there
// is such a method, and nothing is broken by trying (S48, S54, S60).
func TestBeforeInitialize(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		r := dial(t, echoAgent())
		for _, method := range []string{"session/new", "session/prompt", "_vendor/x", "no/such"} {
			if _, err := r.call(method, `{}`); code(err) != jsonrpc.CodeInvalidRequest {
				t.Errorf("%s: %v", method, err)
			}
		}
		r.notify("session/cancel", `{"sessionId":"x"}`)
		hello := map[int]string{1: helloV1, 2: helloV2}[v]
		r.initialize(v, hello)
		if r.session() == "" {
			t.Error("no session")
		}
	})
}

// TestInitializeAgain: when it may be repeated (S49, S58).
func TestInitializeAgain(t *testing.T) {
	r := dialVersion(t, echoAgent(), 1)
	s := r.session()
	r.initialize(1, helloV1)
	r.initialize(1, helloV2) // the version stays
	if _, err := r.turn(s, "still there"); err != nil {
		t.Error(err)
	}
	r = dialVersion(t, echoAgent(), 2)
	r.initialize(2, helloV2)
	if _, err := r.call("initialize", helloV1); code(err) != jsonrpc.CodeInvalidRequest {
		t.Errorf("another version: %v", err)
	}
	r.session()
	if _, err := r.call("initialize", helloV2); code(err) != jsonrpc.CodeInvalidRequest {
		t.Errorf("after another request: %v", err)
	}
}

// TestPipelined: requests behind initialize, in the same write, are handled
// after it and by its version, in both versions, also while its hook runs.
func TestPipelined(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		release := make(chan struct{})
		a := echoAgent()
		a.Initialize = func(context.Context, *AgentConn) (json.RawMessage, error) {
			<-release
			return json.RawMessage(`{"k":1}`), nil
		}
		ours, theirs := jsonrpc.Pipe()
		conn, err := a.Connect(t.Context(), Over(theirs))
		if err != nil {
			t.Fatal(err)
		}
		hello := map[int]string{1: helloV1, 2: helloV2}[v]
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + hello + `}`,
			`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`,
			`{"jsonrpc":"2.0","id":3,"method":"no/such"}`,
		} {
			if err := ours.WriteFrame([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		// no/such needs no handler, so it is answered first; the others wait.
		read := func() string {
			f, err := ours.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			return string(f.Data)
		}
		if got := read(); !strings.Contains(got, `"id":3`) || !strings.Contains(got, "-32601") {
			t.Errorf("first %s", got)
		}
		close(release)
		if got := read(); !strings.Contains(got, `"id":1`) || !strings.Contains(got, `"_meta":{"k":1}`) {
			t.Errorf("second %s", got)
		}
		if got := read(); !strings.Contains(got, `"id":2`) || !strings.Contains(got, "sess_") {
			t.Errorf("third %s", got)
		}
		_ = ours.Close()
		if err := conn.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestInitializeRefused: the hook's error is the answer and leaves the
// connection as it was.
func TestInitializeRefused(t *testing.T) {
	refuse := true
	a := echoAgent()
	a.Initialize = func(_ context.Context, c *AgentConn) (json.RawMessage, error) {
		if refuse {
			return nil, jsonrpc.Errorf(-32050, "not you, %s", c.Client().Name)
		}
		return nil, nil
	}
	r := dial(t, a)
	if _, err := r.call("initialize", helloV2); code(err) != -32050 || !strings.Contains(err.Error(), "raw") {
		t.Errorf("refused with %v", err)
	}
	if _, err := r.call("session/new", `{"cwd":"/"}`); code(err) != jsonrpc.CodeInvalidRequest {
		t.Errorf("afterwards: %v", err)
	}
	refuse = false
	r.initialize(1, helloV1) // and another version may be chosen
	r.session()
}

// TestStrictIDs: version 2 knows ids that are strings and integers only (S11,
// S62).
func TestStrictIDs(t *testing.T) {
	ours, theirs := jsonrpc.Pipe()
	conn, err := echoAgent().Connect(t.Context(), Over(theirs))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{`{"jsonrpc":"2.0","id":null,"method":"initialize","params":` + helloV2 + `}`, `-32600`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"initialize","params":` + helloV2 + `}`, `-32600`},
		{`{"jsonrpc":"2.0","id":"a","method":"initialize","params":` + helloV2 + `}`, `"id":"a"`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"session/list","params":{}}`, `"id":null`},
		{`{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}`, `"sessions":[]`},
	} {
		if err := ours.WriteFrame([]byte(c[0])); err != nil {
			t.Fatal(err)
		}
		f, err := ours.ReadFrame()
		if err != nil || !strings.Contains(string(f.Data), c[1]) {
			t.Errorf("%s\n got %s, %v", c[0], f.Data, err)
		}
	}
	_ = ours.Close()
	_ = conn.Wait()
}

// TestRouter: two agents by hand on one connection (S60–S66).
func TestRouter(t *testing.T) {
	// The same cases as for an Agent, as far as they do not need sessions.
	for _, c := range []struct {
		name   string
		params string
		want   string
	}{
		{"v1", helloV1, `"agentInfo":{"name":"one"`},
		{"v2", helloV2, `"info":{"name":"two"`},
		{"later", `{"protocolVersion":9}`, `"info":{"name":"two"`},
		{"zero", `{"protocolVersion":0}`, `-32022`},
		{"bad", `{"protocolVersion":"x"}`, `-32602`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ours, theirs := jsonrpc.Pipe()
			conn := testRouter().Connect(theirs, jsonrpc.Config{})
			send := func(line string) string {
				if err := ours.WriteFrame([]byte(line)); err != nil {
					t.Fatal(err)
				}
				f, err := ours.ReadFrame()
				if err != nil {
					t.Fatal(err)
				}
				return string(f.Data)
			}
			if got := send(`{"jsonrpc":"2.0","id":0,"method":"session/new","params":{}}`); !strings.Contains(got, "first ACP request must be initialize") {
				t.Errorf("before initialize: %s", got)
			}
			if got := send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + c.params + `}`); !strings.Contains(got, c.want) {
				t.Errorf("initialize: %s, want %s", got, c.want)
			}
			if strings.HasPrefix(c.want, "-") {
				if got := send(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":` + helloV1 + `}`); !strings.Contains(got, "one") {
					t.Errorf("second attempt: %s", got)
				}
			}
			if got := send(`{"jsonrpc":"2.0","id":3,"method":"_which","params":{}}`); !strings.Contains(got, `"result":{}`) {
				t.Errorf("the agent's own method: %s", got)
			}
			if got := send(`{"jsonrpc":"2.0","id":4,"method":"initialize","params":` + c.params + `}`); strings.Contains(got, "must be initialize") {
				t.Errorf("again: %s", got)
			}
			_ = ours.Close()
			_ = conn.Wait()
		})
	}
}

// TestRouterMux: a router refuses handlers that it would not use.
func TestRouterMux(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_, theirs := jsonrpc.Pipe()
	testRouter().Connect(theirs, jsonrpc.Config{Mux: new(jsonrpc.Mux)})
}
