package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// TestCancelRequestOverlap: a prompt whose request was cancelled keeps its place
// until its turn has ended, so the next one does not run beside it.
func TestCancelRequestOverlap(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		var active atomic.Int32
		started, release := make(chan struct{}), make(chan struct{})
		r := dialVersion(t, &Agent{Prompt: func(_ context.Context, turn *Turn) (StopReason, error) {
			if active.Add(1) > 1 {
				t.Error("two turns at once")
			}
			defer active.Add(-1)
			if turn.Text() == "first" {
				close(started)
				<-release // it does not look at its context
			}
			return StopEndTurn, nil
		}}, v)
		s := r.session()
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { _, err := r.callCtx(ctx, "session/prompt", promptParams(s, "first")); first <- err }()
		<-started
		second := make(chan error, 1)
		go func() { _, err := r.call("session/prompt", promptParams(s, "second")); second <- err }()
		r.await(func() bool {
			r.agent.mu.Lock()
			defer r.agent.mu.Unlock()
			return len(r.agent.prompts[SessionID(s)]) == 2
		})
		cancel()
		<-first
		for range 50 { // time for the second to begin, were it allowed to
			_, _ = r.call("_test/barrier", "{}")
		}
		close(release)
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}

// TestFailedReinitialize: a repeated initialize that fails leaves the connection
// as it was (S58).
func TestFailedReinitialize(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		fail := false
		a := echoAgent()
		a.Initialize = func(context.Context, *AgentConn) (json.RawMessage, error) {
			if fail {
				return nil, errors.New("no")
			}
			return nil, nil
		}
		r := dialVersion(t, a, v)
		fail = true
		if _, err := r.call("initialize", map[int]string{1: helloV1, 2: helloV2}[v]); err == nil {
			t.Error("it did not fail")
		}
		if stop, err := r.turn(r.session(), "still there"); stop != "end_turn" || err != nil {
			t.Errorf("%q, %v", stop, err)
		}
	})
}

// TestReplayInPieces: a message that was written around other updates is
// replayed in pieces, and what a hook sent while the session was being opened is
// a part of its history.
func TestReplayInPieces(t *testing.T) {
	r := dialVersion(t, &Agent{
		NewSession: func(_ context.Context, s *AgentSession) error { return s.Say("welcome") },
		Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
			t.Say("one ")
			t.Plan()
			t.Say("two")
			return StopEndTurn, nil
		},
	}, 2)
	s := r.session()
	if _, err := r.turn(s, "go"); err != nil {
		t.Fatal(err)
	}
	before := len(r.updates())
	r.must("session/resume", `{"sessionId":"`+s+`","cwd":"/","replayFrom":{"type":"start"}}`)
	want := []string{
		"agent_message_chunk welcome", "user_message go", "agent_message_chunk one", "plan_update", "agent_message_chunk two", "replay_complete",
		"idle",
	}
	if diff := cmp.Diff(want, r.updates()[before:]); diff != "" {
		t.Errorf("replay (-want +got):\n%s", diff)
	}
}

// TestHistoryCounts: whatever is remembered counts with what it holds.
func TestHistoryCounts(t *testing.T) {
	big := strings.Repeat("x", 100_000)
	for _, u := range []SessionUpdate{
		&AgentThought{MessageID: "m", Content: Set([]ContentBlock{Text(big)})},
		&UserMessageChunk{MessageID: "m", Content: Text(big)},
		&PlanUpdate{Plan: &PlanMarkdown{PlanID: "p", Content: big}},
		&CompactionSummaryChunk{CompactionID: "c", Content: Text(big)},
		&SessionInfoUpdate{Title: Set(big)},
		&UnknownSessionUpdate{Type: "_x", Raw: json.RawMessage(`{"sessionUpdate":"_x","v":"` + big + `"}`)},
	} {
		var h history
		for range 30 {
			h.add(u)
		}
		if h.bytes < 100_000 || h.bytes > historyBytes {
			t.Errorf("%T: %d items, %d bytes", u, len(h.items), h.bytes)
		}
	}
}

// TestBackgroundState: the state that goes with background work is that of the
// moment it is sent, never one from before the end of a turn.
func TestBackgroundState(t *testing.T) {
	r := dialVersion(t, echoAgent(), 2)
	s := r.session()
	session, _ := r.agent.Session(SessionID(s))
	ends := func() (n int) {
		for _, u := range r.updates() {
			if u == "idle end_turn" {
				n++
			}
		}
		return n
	}
	for i := range 100 {
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 5 {
				_ = session.SetBackground(&acpv2.BackgroundToolCall{ToolCallID: "x"})
			}
		})
		r.must("session/prompt", promptParams(s, "go"))
		r.await(func() bool { return ends() > i })
		wg.Wait()
		_, _ = r.call("_test/barrier", "{}")
		if got := r.updates(); !strings.HasPrefix(got[len(got)-1], "idle") {
			t.Fatalf("the last state is %s", got[len(got)-1])
		}
	}
}

// TestPromptDuringClose: nothing slips into a session that is being closed.
func TestPromptDuringClose(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		closing, goOn := make(chan struct{}), make(chan struct{})
		a := echoAgent()
		a.CloseSession = func(context.Context, *AgentSession) error {
			close(closing)
			<-goOn
			return nil
		}
		r := dialVersion(t, a, v)
		s := r.session()
		done := make(chan error, 1)
		go func() { _, err := r.call("session/close", `{"sessionId":"`+s+`"}`); done <- err }()
		<-closing
		if _, err := r.call("session/prompt", promptParams(s, "late")); code(err) != jsonrpc.CodeResourceNotFound {
			t.Errorf("a prompt meanwhile: %v", err)
		}
		close(goOn)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestNullMeta: null in place of an object is no reason to panic.
func TestNullMeta(t *testing.T) {
	params := Trace{Parent: "00-a-b-01"}.addTo(&SessionQuery{Meta: json.RawMessage(`null`)})
	if meta := string(params.(*SessionQuery).Meta); !strings.Contains(meta, "00-a-b-01") {
		t.Errorf("meta %s", meta)
	}
	r := dialVersion(t, &Agent{MCP: MCPTransports{ACP: true}, Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
		for _, p := range []any{nil, json.RawMessage(`null`), (*struct{})(nil), json.RawMessage(`{"_meta":null}`)} {
			if _, err := t.Session().CallMCP(ctx, "s", "m", p, nil); err != nil {
				return "", err
			}
		}
		return StopEndTurn, nil
	}}, 2)
	r.answer["mcp/message"] = func(_ context.Context, p json.RawMessage) (any, error) {
		if !strings.Contains(string(p), mcpVersion) {
			return nil, errors.New("no version")
		}
		return json.RawMessage(`{"result":{}}`), nil
	}
	if stop, err := r.turn(r.session(), "go"); stop != "end_turn" || err != nil {
		t.Errorf("%q, %v", stop, err)
	}
}

// TestSteerAccept: a prompt that steers is accepted first, and once.
func TestSteerAccept(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		var accepted atomic.Int32
		running, release := make(chan struct{}, 1), make(chan struct{})
		r := dialVersion(t, &Agent{
			Busy: BusySteer,
			Accept: func(_ context.Context, t *Turn) error {
				if t.Text() == "bad" {
					return jsonrpc.Errorf(-32042, "no")
				}
				accepted.Add(1)
				return nil
			},
			Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
				running <- struct{}{}
				<-release
				return StopEndTurn, nil
			},
		}, v)
		s := r.session()
		first := make(chan error, 1)
		go func() { _, err := r.call("session/prompt", promptParams(s, "first")); first <- err }()
		<-running
		if _, err := r.call("session/prompt", promptParams(s, "bad")); code(err) != -32042 {
			t.Errorf("a bad prompt: %v", err)
		}
		second := make(chan error, 1)
		go func() { _, err := r.call("session/prompt", promptParams(s, "left over")); second <- err }()
		r.await(func() bool { return accepted.Load() == 2 })
		close(release)
		for _, c := range []chan error{first, second} {
			if err := <-c; err != nil {
				t.Error(err)
			}
		}
		if n := accepted.Load(); n != 2 {
			t.Errorf("accepted %d times", n)
		}
	})
}

// TestSessionOutputGoesOn: one value that cannot be sent does not silence a
// session.
func TestSessionOutputGoesOn(t *testing.T) {
	a := echoAgent()
	a.NewSession = func(_ context.Context, s *AgentSession) error {
		// Held until the client knows the session; the second goes out all the same.
		return errors.Join(s.Send(&UnknownSessionUpdate{Type: "_x", Raw: json.RawMessage(`not JSON`)}), s.Say("welcome"))
	}
	r := dialVersion(t, a, 2)
	id := r.session()
	s, _ := r.agent.Session(SessionID(id))
	if _, err := r.turn(id, "go"); err != nil { // nothing is held any more
		t.Fatal(err)
	}
	if got := r.updates(); got[0] != "agent_message_chunk welcome" {
		t.Errorf("updates %q", got)
	}
	if err := s.Send(&UnknownSessionUpdate{Type: "_x", Raw: json.RawMessage(`not JSON`)}); err == nil {
		t.Error("no error")
	}
	if err := errors.Join(s.Say("on"), s.Err()); err != nil {
		t.Error(err)
	}
}

// TestCancelsForgotten: tool calls cannot be cancelled after their turn.
func TestCancelsForgotten(t *testing.T) {
	r := dialVersion(t, &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
		t.ToolCall(ToolCall{ID: "c", Title: "Left open", Cancel: func() {}})
		return StopEndTurn, nil
	}}, 2)
	s := r.session()
	if _, err := r.turn(s, "go"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.call("tool_call/cancel", `{"sessionId":"`+s+`","toolCallId":"c"}`); code(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("cancelled: %v", err)
	}
}

// TestClientErrorIsNotOurs: what the client answered to a question is not the
// agent's answer to the prompt.
func TestClientErrorIsNotOurs(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		var seen error
		r := dialVersion(t, &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
			_, seen = t.Ask(Permission{Title: "?"})
			return "", seen
		}}, v)
		stop, err := r.turn(r.session(), "go")
		if v == 1 && code(err) != jsonrpc.CodeInternalError || v == 2 && stop != "error -32603" {
			t.Errorf("%q, %v", stop, err)
		}
		if code(seen) != jsonrpc.CodeMethodNotFound {
			t.Errorf("the hook saw %v", seen)
		}
	})
}

// TestPermissionAboutCommand: version 1 clients see the command a permission is
// about, and the question.
func TestPermissionAboutCommand(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		var params string
		r := dialVersion(t, &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
			t.ToolCall(ToolCall{Title: "Clean up"}).Permit(Permission{Title: "Delete everything?", Command: "rm -rf /", Cwd: "/w"})
			return StopEndTurn, nil
		}}, v)
		r.answer["session/request_permission"] = func(_ context.Context, p json.RawMessage) (any, error) {
			params = string(p)
			return json.RawMessage(`{"outcome":{"outcome":"cancelled"}}`), nil
		}
		if _, err := r.turn(r.session(), "go"); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Delete everything?", "rm -rf /", "/w", "call_1"} {
			if !strings.Contains(params, want) {
				t.Errorf("%s lacks %q", params, want)
			}
		}
		if strings.Contains(params, "always") {
			t.Errorf("%s offers what Permit cannot tell apart", params)
		}
	})
}

// TestResumeAgain: a session that is open takes what is asked of it the next
// time, and two who bring it back do so one after the other.
func TestResumeAgain(t *testing.T) {
	var active atomic.Int32
	var dirs []string
	a := echoAgent()
	a.ResumeSession = func(_ context.Context, s *AgentSession, _ bool) error {
		if active.Add(1) > 1 {
			return errors.New("two at once")
		}
		defer active.Add(-1)
		dirs = append(dirs, s.Cwd())
		return nil
	}
	r := dialVersion(t, a, 2)
	var wg sync.WaitGroup
	for _, dir := range []string{"/a", "/b"} {
		wg.Go(func() {
			if _, err := r.call("session/resume", `{"sessionId":"x","cwd":"`+dir+`","replayFrom":{"type":"start"}}`); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if slices.Sort(dirs); !slices.Equal(dirs, []string{"/a", "/b"}) {
		t.Errorf("directories %q", dirs)
	}
}

// TestTerminalGivenUp: a terminal that the client made for nobody is released.
func TestTerminalGivenUp(t *testing.T) {
	r := dial(t, &Agent{Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
		term, err := t.Run(Exec{Command: "x"})
		if term != nil || err == nil {
			return "", fmt.Errorf("%v, %w", term, err)
		}
		return StopEndTurn, nil
	}})
	released := make(chan struct{})
	creating := make(chan struct{})
	r.answer["terminal/create"] = func(ctx context.Context, _ json.RawMessage) (any, error) {
		close(creating)
		<-ctx.Done() // it was withdrawn, but too late
		return json.RawMessage(`{"terminalId":"T"}`), nil
	}
	r.answer["terminal/release"] = func(context.Context, json.RawMessage) (any, error) {
		close(released)
		return json.RawMessage(`{}`), nil
	}
	r.initialize(1, `{"protocolVersion":1,"clientCapabilities":{"terminal":true}}`)
	s := r.session()
	go func() { <-creating; r.notify("session/cancel", `{"sessionId":"`+s+`"}`) }()
	if stop, err := r.turn(s, "go"); stop != "cancelled" || err != nil {
		t.Errorf("%q, %v", stop, err)
	}
	select {
	case <-released:
	case <-time.After(time.Minute):
		t.Error("not released")
	}
}

// TestFailureCodes: only codes for applications are failures.
func TestFailureCodes(t *testing.T) {
	for _, err := range []error{SessionNotFound("x"), jsonrpc.ErrUnsupportedVersion, jsonrpc.ErrInternal, errors.New("x")} {
		if f, ok := errors.AsType[*Failure](err); ok {
			t.Errorf("%v is %+v", err, f)
		}
	}
	we, _ := errors.AsType[*jsonrpc.Error](error(&Failure{Code: 7, Message: "m"}))
	if we == nil || we.Code != -32001 {
		t.Errorf("sent as %+v", we)
	}
}

// TestStubbornHook: a hook that ignores its context is settled after the grace
// and can send nothing more. Middleware sees its turn end then, too.
func TestStubbornHook(t *testing.T) {
	t.Run("plain", func(t *testing.T) { testStubbornHook(t, nil) })
	t.Run("middleware", func(t *testing.T) {
		testStubbornHook(t, []jsonrpc.Middleware{func(next jsonrpc.Handler) jsonrpc.Handler {
			return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
				begin := time.Now()
				res, err := next(ctx, req)
				if time.Since(begin) > 4*time.Second {
					t.Errorf("%s took %v", req.Method, time.Since(begin))
				}
				return res, err
			}
		}})
	})
}

func testStubbornHook(t *testing.T, mw []jsonrpc.Middleware) {
	versions(t, func(t *testing.T, v int) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			late := make(chan error, 2)
			r := dialVersion(t, &Agent{CancelGrace: 3 * time.Second, Engine: jsonrpc.Settings{Incoming: mw}, Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
				if t.Text() == "next" {
					return StopEndTurn, nil
				}
				call := t.ToolCall(ToolCall{Title: "Tool"})
				<-release
				late <- t.Say("late")
				late <- call.Complete()
				return StopEndTurn, nil
			}}, v)
			s := r.session()
			begin := time.Now()
			stop, err := r.cancelledTurn(v, s, 4*time.Second)
			if stop != "cancelled" || err != nil || time.Since(begin) < 3*time.Second {
				t.Errorf("turn: %q, %v after %v", stop, err, time.Since(begin))
			}
			if stop, err := r.turn(s, "next"); v == 1 && (stop != "end_turn" || err != nil) {
				t.Errorf("next turn: %q, %v", stop, err)
			}
			before := len(r.updates())
			time.Sleep(time.Minute) // virtual
			close(release)
			for range 2 {
				if err := <-late; !errors.Is(err, ErrTurnEnded) {
					t.Errorf("late send: %v", err)
				}
			}
			synctest.Wait()
			if got := r.updates(); len(got) != before {
				t.Errorf("sent late: %q", got[before:])
			}
		})
	})
}

// TestGivenUpWhileItReturns: a hook that returns just after it was given up, as
// one does that was in the middle of sending, changes nothing about the end of
// its turn.
func TestGivenUpWhileItReturns(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		synctest.Test(t, func(t *testing.T) {
			const grace = 3 * time.Second
			r := dialVersion(t, &Agent{CancelGrace: grace, Logger: slog.New(slowLog{slog.DiscardHandler}), Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
				call := t.ToolCall(ToolCall{Title: "Tool"})
				<-ctx.Done()
				time.Sleep(grace + slowLog{}.takes()/2) // virtual: after it was given up, before that is told
				return StopEndTurn, call.Complete()
			}}, v)
			s := r.session()
			stop, err := r.cancelledTurn(v, s, 2*grace)
			if stop != "cancelled" || err != nil {
				t.Errorf("turn: %q, %v", stop, err)
			}
		})
	})
}

// cancelledTurn prompts, cancels what goes on when nothing moves, and returns how
// the turn has ended, which it does within some time.
func (r *rawClient) cancelledTurn(v int, session string, within time.Duration) (string, error) {
	go func() {
		synctest.Wait()
		r.notify("session/cancel", `{"sessionId":"`+session+`"}`)
	}()
	if v == 1 {
		return r.turn(session, "go")
	}
	r.must("session/prompt", promptParams(session, "go"))
	time.Sleep(within) // virtual
	synctest.Wait()
	return r.awaitIdle(0), nil
}

// slowLog is a log that takes its time.
type slowLog struct{ slog.Handler }

func (slowLog) takes() time.Duration                        { return 100 * time.Millisecond }
func (slowLog) Enabled(context.Context, slog.Level) bool    { return true }
func (l slowLog) Handle(context.Context, slog.Record) error { time.Sleep(l.takes()); return nil }

// TestHookExits: a hook that ends its goroutine ends its turn with an error, or as
// cancelled if it was, and the session goes on.
func TestHookExits(t *testing.T) {
	for _, mw := range [][]jsonrpc.Middleware{nil, {func(next jsonrpc.Handler) jsonrpc.Handler { return next }}} {
		versions(t, func(t *testing.T, v int) {
			synctest.Test(t, func(t *testing.T) {
				r := dialVersion(t, &Agent{Engine: jsonrpc.Settings{Incoming: mw}, Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
					switch t.Text() {
					case "exit":
						runtime.Goexit()
					case "exit when cancelled":
						<-ctx.Done()
						runtime.Goexit()
					}
					return StopEndTurn, nil
				}}, v)
				s := r.session()
				stop, err := r.turn(s, "exit")
				if v == 1 && code(err) != jsonrpc.CodeInternalError || v == 2 && stop != "error -32603" {
					t.Errorf("turn: %q, %v", stop, err)
				}
				if v == 1 {
					go func() {
						synctest.Wait()
						r.notify("session/cancel", `{"sessionId":"`+s+`"}`)
					}()
					if stop, err := r.turn(s, "exit when cancelled"); stop != "cancelled" || err != nil {
						t.Errorf("cancelled turn: %q, %v", stop, err)
					}
				}
				if stop, err := r.turn(s, "next"); stop != "end_turn" || err != nil {
					t.Errorf("next turn: %q, %v", stop, err)
				}
			})
		})
	}
}

// TestAcceptExits: an Accept hook that ends its goroutine ends its prompt, and the
// session goes on.
func TestAcceptExits(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		synctest.Test(t, func(t *testing.T) {
			r := dialVersion(t, &Agent{
				Accept: func(_ context.Context, t *Turn) error {
					if t.Text() == "exit" {
						runtime.Goexit()
					}
					return nil
				},
				Prompt: func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil },
			}, v)
			s := r.session()
			params := `{"sessionId":"` + s + `","prompt":[{"type":"text","text":"exit"}]}`
			if _, err := r.call("session/prompt", params); code(err) != jsonrpc.CodeInternalError {
				t.Errorf("prompt: %v", err)
			}
			if stop, err := r.turn(s, "next"); stop != "end_turn" || err != nil {
				t.Errorf("next turn: %q, %v", stop, err)
			}
		})
	})
}
