package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// TestPermission: the answer decides, and only a clear yes allows (S85).
func TestPermission(t *testing.T) {
	cases := []struct {
		name, outcome      string
		allowed, cancelled bool
	}{
		{"allowed", `{"outcome":"selected","optionId":"allow_once"}`, true, false},
		{"always", `{"outcome":"selected","optionId":"allow_always"}`, true, false},
		{"rejected", `{"outcome":"selected","optionId":"reject_once"}`, false, false},
		{"not offered", `{"outcome":"selected","optionId":"sudo"}`, false, true},
		{"cancelled", `{"outcome":"cancelled"}`, false, true},
		{"unknown", `{"outcome":"_perhaps"}`, false, true},
	}
	versions(t, func(t *testing.T, v int) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				var got PermissionAnswer
				var params string
				r := dialVersion(t, &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
					call := t.ToolCall(ToolCall{Title: "Write", Kind: ToolKindEdit, Input: map[string]int{"a": 1}})
					var err error
					got, err = call.Ask(Permission{Description: "Because"})
					return StopEndTurn, err
				}}, v)
				r.answer["session/request_permission"] = func(_ context.Context, p json.RawMessage) (any, error) {
					params = string(p)
					return json.RawMessage(`{"outcome":` + c.outcome + `}`), nil
				}
				if stop, err := r.turn(r.session(), "go"); stop != "end_turn" || err != nil {
					t.Fatalf("%q, %v", stop, err)
				}
				if got.Allowed != c.allowed || got.Cancelled != c.cancelled {
					t.Errorf("decision %+v", got)
				}
				for _, want := range []string{`"title":"Write"`, `"rawInput":{"a":1}`, `"toolCallId":"call_1"`, `allow_once`} {
					if !strings.Contains(params, want) {
						t.Errorf("params %s lack %s", params, want)
					}
				}
				if v == 2 {
					states := slices.DeleteFunc(r.updates(), func(u string) bool {
						return !strings.HasPrefix(u, "running") && !strings.HasPrefix(u, "requires") && !strings.HasPrefix(u, "idle")
					})
					if diff := cmp.Diff([]string{"running", "requires_action", "running", "idle end_turn"}, states); diff != "" {
						t.Errorf("states (-want +got):\n%s", diff)
					}
				}
			})
		}
	})
}

// TestElicit: forms and links, inside a session and for a login.
func TestElicit(t *testing.T) {
	a := &Agent{
		Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
			e, err := t.Elicit(FormRequest{Message: "name?"})
			if err != nil || !e.Accepted || string(e.Content["name"]) != `"Ada"` {
				return "", fmt.Errorf("form: %+v, %w", e, err)
			}
			l, done, err := t.ElicitURL(LinkRequest{Message: "go", URL: "https://example.com", ID: "e1"})
			if err != nil || !l.Declined {
				return "", fmt.Errorf("link: %+v, %w", l, err)
			}
			return StopEndTurn, done()
		},
		AuthMethods: []AuthMethod{&AuthMethodAgent{MethodID: "m", Name: "M"}},
		Login: func(ctx context.Context, c *AgentConn, _ AuthMethodID) error {
			_, err := c.Elicit(ctx, FormRequest{Message: "password?"})
			return err
		},
	}
	hello := map[int]string{
		1: `{"protocolVersion":1,"clientCapabilities":{"elicitation":{"form":{},"url":{}}}}`,
		2: `{"protocolVersion":2,"info":{"name":"raw","version":"1"},"capabilities":{"elicitation":{"form":{},"url":{}}}}`,
	}
	versions(t, func(t *testing.T, v int) {
		r := dial(t, a)
		var forms []string
		r.answer["elicitation/create"] = func(_ context.Context, p json.RawMessage) (any, error) {
			forms = append(forms, string(p))
			if strings.Contains(string(p), `"mode":"url"`) {
				return json.RawMessage(`{"action":"decline"}`), nil
			}
			return json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`), nil
		}
		r.initialize(v, hello[v])
		r.must(map[int]string{1: "authenticate", 2: "auth/login"}[v], `{"methodId":"m"}`)
		if len(forms) != 1 || !strings.Contains(forms[0], `"requestId":`) {
			t.Errorf("for the login: %q", forms)
		}
		if stop, err := r.turn(r.session(), "go"); stop != "end_turn" || err != nil {
			t.Errorf("%q, %v", stop, err)
		}
		r.await(func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.notes) > 0 })
		r.mu.Lock()
		defer r.mu.Unlock()
		if want := []string{`elicitation/complete {"elicitationId":"e1"}`}; !slices.Equal(r.notes, want) {
			t.Errorf("notes %q", r.notes)
		}
	})
}

// TestFilesAndCommands: the client's, where a version 1 client lends them, and
// the agent's own otherwise.
func TestFilesAndCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("1\n2\n3\n4"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got string
	a := &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
		text, err := t.ReadLines(file, 2, 2)
		if err == nil {
			err = t.WriteFile(file+".new", text)
		}
		if err != nil {
			return "", err
		}
		call := t.ToolCall(ToolCall{Title: "Run", Kind: ToolKindExecute})
		term, err := call.Run(Exec{Command: "sh", Args: []string{"-c", "echo $GREETING; exit 3"}, Env: []EnvVariable{{Name: "GREETING", Value: "hello"}}})
		if err != nil {
			return "", err
		}
		exit, err := term.Wait()
		if err != nil {
			return "", err
		}
		state, err := term.State()
		if err != nil {
			return "", err
		}
		got = fmt.Sprint(text, "|", strings.TrimSpace(state.Output), "|", *exit.ExitCode, " ", state.Exit != nil)
		return StopEndTurn, errors.Join(term.Kill(), term.Release(), call.Complete())
	}}
	t.Run("own", func(t *testing.T) {
		versions(t, func(t *testing.T, v int) {
			r := dialVersion(t, a, v)
			if stop, err := r.turn(r.session(), "go"); stop != "end_turn" || err != nil {
				t.Fatalf("%q, %v", stop, err)
			}
			if want := "2\n3\n|hello|3 true"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			data, err := os.ReadFile(file + ".new")
			if string(data) != "2\n3\n" || err != nil {
				t.Errorf("written %q, %v", data, err)
			}
		})
	})
	t.Run("lent", func(t *testing.T) {
		r := dial(t, a)
		var asked []string
		for method, answer := range map[string]string{
			"fs/read_text_file": `{"content":"unsaved"}`, "fs/write_text_file": `{}`,
			"terminal/create": `{"terminalId":"T"}`, "terminal/wait_for_exit": `{"exitCode":7}`,
			"terminal/output": `{"output":"theirs","truncated":false,"exitStatus":{"exitCode":7}}`,
			"terminal/kill":   `{}`, "terminal/release": `{}`,
		} {
			r.answer[method] = func(_ context.Context, p json.RawMessage) (any, error) {
				r.mu.Lock()
				defer r.mu.Unlock()
				asked = append(asked, method+" "+string(p))
				return json.RawMessage(answer), nil
			}
		}
		r.initialize(1, `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}}`)
		s := r.session()
		if stop, err := r.turn(s, "go"); stop != "end_turn" || err != nil {
			t.Fatalf("%q, %v", stop, err)
		}
		if want := "unsaved|theirs|7 true"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if len(asked) != 7 || !strings.Contains(asked[0], `"line":2,"limit":2`) || !strings.Contains(asked[2], `"GREETING"`) {
			t.Errorf("asked %q", asked)
		}
	})
}

// TestCancelEntity: tool calls that allow it are cancelled by their id, once,
// as long as they run (S90).
func TestCancelEntity(t *testing.T) {
	r := dialVersion(t, &Agent{Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
		stop := make(chan struct{})
		call := t.ToolCall(ToolCall{ID: "c", Title: "Long", Cancel: func() { close(stop) }})
		<-stop
		return StopEndTurn, call.SetStatus(ToolCallStatusCancelled)
	}}, 2)
	s := r.session()
	params := `{"sessionId":"` + s + `","toolCallId":"c"}`
	go func() {
		r.await(func() bool { return slices.Contains(r.updates(), "tool_call_update c Long in_progress") })
		r.must("tool_call/cancel", params)
	}()
	if stop, err := r.turn(s, "go"); stop != "end_turn" || err != nil {
		t.Fatalf("%q, %v", stop, err)
	}
	if _, err := r.call("tool_call/cancel", params); code(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("after its end: %v", err)
	}
}

// TestCallMCP: an MCP server of the client, over the connection (S104–S107).
func TestCallMCP(t *testing.T) {
	var result json.RawMessage
	var notes []string
	a := &Agent{MCP: MCPTransports{ACP: true}, Prompt: func(ctx context.Context, t *Turn) (_ StopReason, err error) {
		notes = nil
		result, err = t.Session().CallMCP(ctx, "srv", "tools/call", map[string]any{"name": "x"}, func(m string, _ json.RawMessage) {
			notes = append(notes, m)
		})
		return StopEndTurn, err
	}}
	versions(t, func(t *testing.T, v int) {
		r := dialVersion(t, a, v)
		answer := `{"result":{"ok":true}}`
		r.answer["mcp/message"] = func(_ context.Context, p json.RawMessage) (any, error) {
			var req struct {
				RequestID string
				Params    struct {
					Meta map[string]any `json:"_meta"`
				}
			}
			if err := json.Unmarshal(p, &req); err != nil {
				return nil, err
			}
			if req.Params.Meta["io.modelcontextprotocol/protocolVersion"] != mcpVersion {
				return nil, errors.New("no version")
			}
			r.notify("mcp/message", `{"serverId":"srv","requestId":"`+req.RequestID+`","method":"notifications/progress"}`)
			r.notify("mcp/message", `{"serverId":"srv","requestId":"other","method":"late"}`)
			return json.RawMessage(answer), nil
		}
		s := r.session()
		if stop, err := r.turn(s, "go"); stop != "end_turn" || err != nil || string(result) != `{"ok":true}` || !slices.Equal(notes, []string{"notifications/progress"}) {
			t.Errorf("%q, %v: %s with %q", stop, err, result, notes)
		}
		answer = `{"error":{"code":-5,"message":"no"}}`
		if stop, err := r.turn(s, "go"); v == 1 && code(err) != jsonrpc.CodeInternalError || v == 2 && stop != "error -32603" {
			t.Errorf("a server's error: %q, %v", stop, err)
		}
	})
}

// TestTrace: the trace context of a request reaches the hooks, and what they ask
// of the client carries it on.
func TestTrace(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		var trace Trace
		r := dialVersion(t, &Agent{Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
			trace, _ = TraceFrom(ctx)
			t.Permit(Permission{Title: "?", Meta: json.RawMessage(`{"mine":1}`)})
			return StopEndTurn, nil
		}}, v)
		var params string
		r.answer["session/request_permission"] = func(_ context.Context, p json.RawMessage) (any, error) {
			params = string(p)
			return json.RawMessage(`{"outcome":{"outcome":"cancelled"}}`), nil
		}
		s := r.session()
		p := strings.TrimSuffix(promptParams(s, "go"), "}") + `,"_meta":{"traceparent":"00-ab-cd-01","tracestate":"k=v"}}`
		r.must("session/prompt", p)
		if v == 2 {
			r.awaitIdle(0)
		}
		if want := (Trace{Parent: "00-ab-cd-01", State: "k=v"}); trace != want {
			t.Errorf("trace %+v", trace)
		}
		for _, want := range []string{`"traceparent":"00-ab-cd-01"`, `"tracestate":"k=v"`, `"mine":1`} {
			if !strings.Contains(params, want) {
				t.Errorf("params %s lack %s", params, want)
			}
		}
	})
}

// TestExtensions: an agent's own methods, with its connection at hand.
func TestExtensions(t *testing.T) {
	a := echoAgent()
	a.Extensions = func(mux *jsonrpc.Mux) {
		jsonrpc.Method[map[string]int, map[string]int]{Name: "_x/version"}.Handle(mux,
			func(ctx context.Context, p *map[string]int) (*map[string]int, error) {
				return &map[string]int{"version": AgentConnFrom(ctx).Version(), "got": (*p)["n"]}, nil
			})
	}
	versions(t, func(t *testing.T, v int) {
		r := dialVersion(t, a, v)
		if got, want := string(r.must("_x/version", `{"n":5}`)), fmt.Sprintf(`{"got":5,"version":%d}`, v); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestMisconfigured: hooks that need each other.
func TestMisconfigured(t *testing.T) {
	prompt := echoAgent().Prompt
	for name, a := range map[string]*Agent{
		"nothing":       {},
		"login alone":   {Prompt: prompt, Login: func(context.Context, *AgentConn, AuthMethodID) error { return nil }},
		"methods alone": {Prompt: prompt, AuthMethods: []AuthMethod{&AuthMethodAgent{MethodID: "m", Name: "M"}}},
		"providers":     {Prompt: prompt, ListProviders: func(context.Context, *AgentConn) ([]ProviderInfo, error) { return nil, nil }},
		"versions":      {Prompt: prompt, MinVersion: 2, MaxVersion: 1},
		"no version":    {Prompt: prompt, MaxVersion: 3},
	} {
		if err := a.Serve(t.Context(), Stdio()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	var opened bool
	_, err := echoAgent().Connect(t.Context(), transportFunc(func(context.Context) (jsonrpc.Stream, error) {
		opened = true
		return nil, ErrReopen
	}))
	if !opened || !errors.Is(err, ErrReopen) {
		t.Errorf("a transport that fails: %v", err)
	}
}

type transportFunc func(ctx context.Context) (jsonrpc.Stream, error)

func (f transportFunc) Open(ctx context.Context) (jsonrpc.Stream, error) { return f(ctx) }

// TestWithContextUnused: what has another context costs no memory once it is not used any more.
func TestWithContextUnused(t *testing.T) {
	owner, end := context.WithCancelCause(context.Background())
	o := &Output{output: new(output), ctx: owner}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const count = 20_000
	before := heap()
	for range count {
		_ = o.WithContext(owner).Err()
	}
	if after := heap(); after > before+count*16 {
		t.Errorf("%d of them cost %d bytes", count, after-before)
	}
	runtime.KeepAlive(o)
	lost := errors.New("lost")
	early, late := o.WithContext(context.Background()).ctx, o.WithContext(context.Background()).ctx
	waiting := early.Done()
	end(lost)
	<-waiting
	for name, ctx := range map[string]context.Context{"early": early, "late": late} {
		if err := ctx.Err(); err != context.Canceled || context.Cause(ctx) != lost {
			t.Errorf("%s: %v, cause %v", name, err, context.Cause(ctx))
		}
		<-ctx.Done()
	}
}

// TestWithContext: one question can be given up alone, and is in any case when
// the turn is cancelled.
func TestWithContext(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		asked := make(chan struct{})
		r := dialVersion(t, &Agent{Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
			one, cancel := context.WithCancel(ctx)
			go func() { <-asked; cancel() }()
			d, err := t.WithContext(one).Ask(Permission{Title: "alone?"})
			if !d.Cancelled || err != nil || ctx.Err() != nil {
				return "", fmt.Errorf("alone: %+v, %w", d, err)
			}
			d, err = t.WithContext(context.Background()).Ask(Permission{Title: "with the turn?"})
			if !d.Cancelled || err != nil || ctx.Err() == nil {
				return "", fmt.Errorf("with the turn: %+v, %w", d, err)
			}
			return StopEndTurn, nil
		}}, v)
		s := r.session()
		first := true
		r.answer["session/request_permission"] = func(ctx context.Context, _ json.RawMessage) (any, error) {
			if first {
				first = false
				close(asked)
			} else {
				r.notify("session/cancel", `{"sessionId":"`+s+`"}`)
			}
			<-ctx.Done()
			return json.RawMessage(`{"outcome":{"outcome":"cancelled"}}`), nil
		}
		if stop, err := r.turn(s, "go"); stop != "cancelled" || err != nil {
			t.Errorf("%q, %v", stop, err)
		}
	})
}

// TestAcceptCannotSend: a prompt that is held is no part of the conversation.
func TestAcceptCannotSend(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		r := dialVersion(t, &Agent{
			Accept: func(_ context.Context, t *Turn) error {
				if err := t.Say("too soon"); err == nil {
					return errors.New("it was sent")
				}
				return nil
			},
			Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
				if t.PromptID() == "" || t.MessageID() != "" {
					return "", errors.New("a message has begun")
				}
				t.Say("now")
				first := t.MessageID()
				t.EndMessage()
				t.Say("then")
				if second := t.MessageID(); first == "" || first == second {
					return "", errors.New("one message")
				}
				return StopEndTurn, nil
			},
		}, v)
		if stop, err := r.turn(r.session(), "go"); stop != "end_turn" || err != nil {
			t.Errorf("%q, %v", stop, err)
		}
	})
}

// TestTerminalOutlivesTurn: a command whose turn has ended is killed, and its
// end is told all the same.
func TestTerminalOutlivesTurn(t *testing.T) {
	r := dialVersion(t, &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
		_, err := t.Run(Exec{Command: "sleep", Args: []string{"1000"}})
		return StopEndTurn, err
	}}, 2)
	if stop, err := r.turn(r.session(), "go"); stop != "end_turn" || err != nil {
		t.Errorf("%q, %v", stop, err)
	}
	r.await(func() bool {
		n := 0
		for _, u := range r.updates() {
			if strings.HasPrefix(u, "terminal_update") {
				n++
			}
		}
		return n == 2
	})
}

// TestHandleConveniences: a command to its end, and a file with its change.
func TestHandleConveniences(t *testing.T) {
	dir := t.TempDir()
	file, missing := filepath.Join(dir, "f"), filepath.Join(dir, "missing")
	versions(t, func(t *testing.T, v int) {
		var got string
		r := dialVersion(t, &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
			call := t.ToolCall(ToolCall{Title: "Both"})
			state, err := call.Exec(Exec{Command: "sh", Args: []string{"-c", "echo out; exit 4"}})
			if err != nil {
				return "", err
			}
			got = fmt.Sprint(strings.TrimSpace(state.Output), *state.Exit.ExitCode)
			if _, err := call.Exec(Exec{Command: missing}); err == nil {
				return "", errors.New("no error")
			}
			return StopEndTurn, errors.Join(call.WriteFile(file, "one\n"), call.WriteFile(file, "two\n"), call.Complete())
		}}, v)
		if stop, err := r.turn(r.session(), "go"); stop != "end_turn" || err != nil || got != "out4" {
			t.Errorf("%q, %v, %q", stop, err, got)
		}
		if data, err := os.ReadFile(file); string(data) != "two\n" || err != nil {
			t.Errorf("file %q, %v", data, err)
		}
	})
}

// TestStopError: the reason without an error is a mistake of the agent, told as
// a failure in both versions.
func TestStopError(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		r := dialVersion(t, &Agent{Prompt: func(context.Context, *Turn) (StopReason, error) { return StopError, nil }}, v)
		stop, err := r.turn(r.session(), "go")
		if v == 1 && code(err) != jsonrpc.CodeInternalError || v == 2 && stop != "error -32603" {
			t.Errorf("%q, %v", stop, err)
		}
	})
}

// TestStdioServers: an agent that says nothing about MCP still takes what every
// version 1 client may send.
func TestStdioServers(t *testing.T) {
	const params = `{"cwd":"/","mcpServers":[{%s"name":"n","command":"/bin/true","args":[],"env":[]}]}`
	r := dialVersion(t, echoAgent(), 1)
	r.must("session/new", fmt.Sprintf(params, ""))
	r = dialVersion(t, echoAgent(), 2)
	if _, err := r.call("session/new", fmt.Sprintf(params, `"type":"stdio",`)); code(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("version 2: %v", err)
	}
}
