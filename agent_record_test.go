package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// recorded is what a Record hook was called with.
type recorded struct {
	mu  sync.Mutex
	all []SessionUpdate
}

func (r *recorded) hook(_ context.Context, _ *AgentSession, u SessionUpdate) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, u)
	return nil
}

// words returns the updates as a raw client of version 2 would see them.
func (r *recorded) words(t *testing.T) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var words []string
	for _, u := range r.all {
		data, err := (&acpv2.UpdateSessionNotification{Update: u}).AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, brief(data))
	}
	return words
}

// TestRecord: everything that a session sends is recorded, in the words of version
// 2 whatever the client speaks, and before it is sent.
func TestRecord(t *testing.T) {
	want := []string{
		"agent_message_chunk welcome",
		"user_message go", "running", "agent_thought_chunk hm", "agent_message_chunk one", "agent_message_chunk two",
		"notice N", "tool_call_update call_1 Edit in_progress", "tool_call_content_chunk call_1", "plan_update",
		"requires_action", "running",
		"session_info_update Title", "tool_call_update call_1 completed", "idle end_turn",
	}
	versions(t, func(t *testing.T, v int) {
		var kept recorded
		var r *rawClient
		agent := &Agent{
			Record: func(ctx context.Context, s *AgentSession, u SessionUpdate) error {
				if _, ok := u.(*SessionInfoUpdate); ok && slices.Contains(r.updates(), "session_info_update Title") {
					t.Error("the title was sent first")
				}
				return kept.hook(ctx, s, u)
			},
			NewSession: func(_ context.Context, s *AgentSession) error { return s.Say("welcome") },
			Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
				t.Think("hm")
				t.Say("one ")
				t.Say("two")
				t.Notice(NoticeSeverityInfo, "N", "")
				call := t.ToolCall(ToolCall{Title: "Edit", Kind: ToolKindEdit})
				call.Change(FileChange{Path: "/f", Before: "a\n", After: "b\n"})
				t.Plan(PlanEntry{Content: "step", Priority: PlanEntryPriorityHigh, Status: PlanEntryStatusPending})
				_, _ = call.Ask(Permission{Title: "May I?"})
				t.SetTitle("Title")
				return StopEndTurn, call.Complete()
			},
		}
		r = dialVersion(t, agent, v)
		r.answer["session/request_permission"] = func(context.Context, json.RawMessage) (any, error) {
			return json.RawMessage(`{"outcome":{"outcome":"cancelled"}}`), nil
		}
		if _, err := r.turn(r.session(), "go"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, kept.words(t)); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
		if !slices.Contains(r.updates(), "session_info_update Title") {
			t.Errorf("the title was not sent: %q", r.updates())
		}
	})
}

// TestIsMomentary: what a session's memory leaves out is what IsMomentary names.
func TestIsMomentary(t *testing.T) {
	for _, u := range []SessionUpdate{
		&RunningStateUpdate{}, &IdleStateUpdate{}, &acpv2.UnknownStateUpdate{}, &Notice{}, &UsageUpdate{}, &AvailableCommandsUpdate{}, &ConfigOptionUpdate{},
	} {
		if !IsMomentary(u) {
			t.Errorf("%T is not momentary", u)
		}
	}
	for _, u := range []SessionUpdate{&UserMessage{}, &AgentMessageChunk{}, &SessionInfoUpdate{}, &TerminalUpdate{}, &PlanUpdate{}} {
		if IsMomentary(u) {
			t.Errorf("%T is momentary", u)
		}
	}
}

// TestRecordFails: what cannot be recorded is not sent, and the turn fails.
func TestRecordFails(t *testing.T) {
	full := errors.New("the disk is full")
	text := func(u SessionUpdate) bool { _, ok := u.(*AgentMessageChunk); return ok }
	cases := []struct {
		name   string
		fails  func(SessionUpdate) bool
		panics bool
		prompt func(*testing.T, *Turn) (StopReason, error)
		unsent string
	}{
		{"text", text, false, func(t *testing.T, turn *Turn) (StopReason, error) {
			if err := turn.Say("text"); !errors.Is(err, full) {
				t.Errorf("Say: %v", err)
			}
			if err := turn.SetTitle("later"); !errors.Is(err, full) || turn.Context().Err() == nil {
				t.Errorf("afterwards: %v, %v", err, turn.Context().Err())
			}
			return StopEndTurn, nil
		}, "agent_message_chunk"},
		{"panic", text, true, func(t *testing.T, turn *Turn) (StopReason, error) {
			if err := turn.Say("text"); !errors.Is(err, errHookPanicked) {
				t.Errorf("Say: %v", err)
			}
			return StopEndTurn, nil
		}, "agent_message_chunk"},
		{"update", func(u SessionUpdate) bool { _, ok := u.(*PlanUpdate); return ok }, false, func(_ *testing.T, turn *Turn) (StopReason, error) {
			_ = turn.Plan()
			return StopEndTurn, nil
		}, "plan"},
		{"prompt", func(u SessionUpdate) bool { _, ok := u.(*UserMessage); return ok }, false, func(t *testing.T, _ *Turn) (StopReason, error) {
			t.Error("Prompt was called")
			return StopEndTurn, nil
		}, "user_message"},
		{"end", func(u SessionUpdate) bool {
			idle, ok := u.(*IdleStateUpdate)
			return ok && idle.StopReason == StopEndTurn
		}, false,
			func(*testing.T, *Turn) (StopReason, error) { return StopEndTurn, nil }, "idle end_turn"},
	}
	versions(t, func(t *testing.T, v int) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				failing := true
				r := dialVersion(t, &Agent{
					Logger: slog.New(slog.DiscardHandler),
					Record: func(_ context.Context, _ *AgentSession, u SessionUpdate) error {
						switch {
						case !failing || !c.fails(u):
							return nil
						case c.panics:
							panic("boom")
						}
						return full
					},
					Prompt: func(_ context.Context, turn *Turn) (StopReason, error) {
						if !failing {
							return StopEndTurn, turn.Say("well")
						}
						return c.prompt(t, turn)
					},
				}, v)
				s := r.session()
				stop, err := r.turn(s, "go")
				if we, _ := errors.AsType[*jsonrpc.Error](err); v == 1 && (we == nil || we.Code != jsonrpc.CodeInternalError) {
					t.Errorf("version 1: %q, %v", stop, err)
				}
				if v == 2 && (err != nil || !strings.HasPrefix(stop, "error")) {
					t.Errorf("version 2: %q, %v", stop, err)
				}
				for _, u := range r.updates() {
					if strings.HasPrefix(u, c.unsent) {
						t.Errorf("%q was sent", u)
					}
				}
				failing = false
				if stop, err := r.turn(s, "again"); stop != "end_turn" || err != nil {
					t.Errorf("the next turn: %q, %v", stop, err)
				}
			})
		}
	})
}

// TestRecordCancelled: calls that a cancelled turn leaves open end in the record
// too, before the turn does, and a cancelled turn stays one when its end cannot be
// recorded (S40).
func TestRecordCancelled(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		var kept recorded
		r := dialVersion(t, &Agent{
			Logger: slog.New(slog.DiscardHandler),
			Record: func(ctx context.Context, s *AgentSession, u SessionUpdate) error {
				if ctx.Err() != nil {
					t.Errorf("%T: ctx is done", u)
				}
				_ = kept.hook(ctx, s, u)
				if _, ok := u.(*IdleStateUpdate); ok {
					return errors.New("the disk is full")
				}
				return nil
			},
			Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
				t.ToolCall(ToolCall{Title: "Tool"})
				_ = t.Session().Conn().cancelSoon(t.Session().ID())
				<-ctx.Done()
				t.Say("after")
				return "", ctx.Err()
			},
		}, v)
		if stop, err := r.turn(r.session(), "go"); stop != "cancelled" || err != nil {
			t.Errorf("%q, %v", stop, err)
		}
		want := []string{
			"user_message go", "running", "tool_call_update call_1 Tool in_progress", "agent_message_chunk after",
			"tool_call_update call_1 cancelled", "idle cancelled",
		}
		if diff := cmp.Diff(want, kept.words(t)); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
	})
}

// cancelSoon is what a cancel of the client's does.
func (c *AgentConn) cancelSoon(id SessionID) error { c.cancelPrompts(id, ErrCancelled); return nil }

// TestRecordReplay: history that ResumeSession sends is not recorded again, whether
// the session is open or not; what comes later is.
func TestRecordReplay(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		var kept recorded
		agent := &Agent{
			Record: kept.hook,
			ResumeSession: func(_ context.Context, s *AgentSession, replay bool) error {
				return errors.Join(s.User(Text("before")), s.Say("history"), s.SetTitle("Title"))
			},
			Prompt: func(_ context.Context, t *Turn) (StopReason, error) { return StopEndTurn, t.Say("new") },
		}
		r := dialVersion(t, agent, v)
		method, params := "session/load", `{"sessionId":"old","cwd":"/","mcpServers":[]}`
		if v == 2 {
			method, params = "session/resume", `{"sessionId":"old","cwd":"/","replayFrom":{"type":"start"}}`
		}
		for range 2 { // the second time it is open
			r.must(method, params)
			if _, err := r.turn("old", "go"); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, u := range kept.words(t) {
			if u != "idle" { // the state after it was resumed
				got = append(got, u)
			}
		}
		want := []string{"user_message go", "running", "agent_message_chunk new", "idle end_turn"}
		if diff := cmp.Diff(append(want, want...), got); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
		if !slices.Contains(r.updates(), "agent_message_chunk history") {
			t.Error("the history was not sent")
		}
	})
}

// TestRecordOrder: what goroutines send at once is recorded in the order in which it
// is sent.
func TestRecordOrder(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		var kept recorded
		r := dialVersion(t, &Agent{
			Record: kept.hook,
			Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
				var wg sync.WaitGroup
				for i := range 8 {
					wg.Go(func() {
						for j := range 25 {
							if (i+j)%3 == 0 {
								_ = t.SetTitle(fmt.Sprint(i, "-", j))
							} else {
								_ = t.Say(fmt.Sprint(i, "-", j))
							}
						}
					})
				}
				wg.Wait()
				return StopEndTurn, t.Err()
			},
		}, v)
		if _, err := r.turn(r.session(), "go"); err != nil {
			t.Fatal(err)
		}
		sent := func(all []string) []string {
			return slices.DeleteFunc(all, func(u string) bool {
				return !strings.HasPrefix(u, "agent_message_chunk") && !strings.HasPrefix(u, "session_info_update")
			})
		}
		got, want := sent(kept.words(t)), sent(r.updates())
		if len(want) != 200 {
			t.Errorf("%d updates were sent", len(want))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("recorded (-sent +recorded):\n%s", diff)
		}
	})
}

// TestRecordReenters: Record may look at its session and send in another one. To
// send in its own waits for itself, until the turn is given up.
func TestRecordReenters(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		synctest.Test(t, func(t *testing.T) {
			var other *AgentSession
			var inner error
			r := dialVersion(t, &Agent{
				Logger: slog.New(slog.DiscardHandler),
				NewSession: func(_ context.Context, s *AgentSession) error {
					s.Value = "value"
					return s.SetOptions()
				},
				Record: func(_ context.Context, s *AgentSession, u SessionUpdate) error {
					if _, text := u.(*AgentMessageChunk); !text || s == other {
						return nil
					}
					if s.Value != "value" || s.Cwd() != "/tmp" || s.Title() != "" || s.Turn() == nil || len(s.Options()) > 0 {
						t.Errorf("%v, %q, %q, %v", s.Value, s.Cwd(), s.Title(), s.Turn())
					}
					if err := other.Say("elsewhere"); err != nil {
						t.Errorf("in another session: %v", err)
					}
					s.c.cancelPrompts(s.ID(), ErrCancelled)
					inner = s.Turn().Say("here")
					return nil
				},
				Prompt: func(_ context.Context, t *Turn) (StopReason, error) { return StopEndTurn, t.Say("text") },
			}, v)
			id := r.session()
			other, _ = r.agent.Session(SessionID(id))
			res, err := r.call("session/prompt", promptParams(r.session(), "go"))
			time.Sleep(2 * defaultCancelGrace)
			if err != nil || v == 1 && !strings.Contains(string(res), `"cancelled"`) || v == 2 && !slices.Contains(r.updates(), "idle cancelled") {
				t.Errorf("%s, %v, %q", res, err, r.updates())
			}
			if !errors.Is(inner, ErrTurnEnded) {
				t.Errorf("in its own session: %v", inner)
			}
			_ = r.conn.Close()
			_ = r.agent.Wait()
		})
	})
}

// TestRecordLentTerminal: a terminal of the client's is recorded with its command
// and, when it is released, with what it has shown, by an id that no other
// connection uses. The client is sent its own id and nothing of the record.
func TestRecordLentTerminal(t *testing.T) {
	const start = `{"sessionUpdate":"terminal_update","terminalId":"call_2","command":"go test","cwd":"/"}`
	const shown = `{"sessionUpdate":"tool_call_content_chunk","toolCallId":"call_1","content":{"type":"terminal","terminalId":"call_2"}}`
	ended := `{"sessionUpdate":"terminal_update","terminalId":"call_2","output":{"data":"b2s="},"exitStatus":{"exitCode":3}}`
	run := func(use func(*Terminal) error) func(*ToolCallHandle) error {
		return func(h *ToolCallHandle) error {
			term, err := h.Run(Exec{Command: "go", Args: []string{"test"}, Dir: "/"})
			if err != nil {
				return err
			}
			return errors.Join(use(term), term.Release(), term.Release())
		}
	}
	cases := []struct {
		name   string
		do     func(*ToolCallHandle) error
		output string // what terminal/output is answered with, or an error
		end    string // what is recorded last
	}{
		{"exec", func(h *ToolCallHandle) error {
			_, err := h.Exec(Exec{Command: "go", Args: []string{"test"}, Dir: "/"})
			return err
		}, `{"output":"ok","truncated":false,"exitStatus":{"exitCode":3}}`, ended},
		{"waited", run(func(term *Terminal) error { _, err := term.Wait(); return err }), `{"output":"ok","truncated":false}`, ended},
		{"looked at too early", run(func(term *Terminal) error { _, err := term.State(); return err }), `{"output":"ok","truncated":false}`,
			strings.Replace(ended, `{"exitCode":3}`, `{}`, 1)},
		{"nothing reported", run(func(*Terminal) error { return nil }), ``,
			`{"sessionUpdate":"terminal_update","terminalId":"call_2","exitStatus":{}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var kept recorded
			r := dial(t, &Agent{
				Record: kept.hook,
				Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
					h := t.ToolCall(ToolCall{Title: "Run"})
					return StopEndTurn, errors.Join(c.do(h), h.Complete())
				},
			})
			r.initialize(1, `{"protocolVersion":1,"clientCapabilities":{"terminal":true}}`)
			shownAs := ""
			says := func(method, answer string) {
				r.answer[method] = func(context.Context, json.RawMessage) (any, error) {
					if answer == "" {
						return nil, jsonrpc.ErrInternal
					}
					return json.RawMessage(answer), nil
				}
			}
			says("terminal/create", `{"terminalId":"yours"}`)
			says("terminal/wait_for_exit", `{"exitCode":3}`)
			says("terminal/output", c.output)
			r.answer["terminal/release"] = func(_ context.Context, p json.RawMessage) (any, error) {
				shownAs = string(p)
				return json.RawMessage(`{}`), nil
			}
			if stop, err := r.turn(r.session(), "go"); stop != "end_turn" || err != nil {
				t.Fatalf("%q, %v", stop, err)
			}
			var got []string
			for _, u := range kept.all {
				switch u.(type) {
				case *TerminalUpdate, *ToolCallContentChunk:
					data, err := json.Marshal(u)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, string(data))
				}
			}
			if diff := cmp.Diff([]string{start, shown, c.end}, got); diff != "" {
				t.Errorf("recorded (-want +got):\n%s", diff)
			}
			if !strings.Contains(shownAs, `"yours"`) {
				t.Errorf("released %s", shownAs)
			}
			if n := len(r.updates()); n != 3 { // the call, its terminal, its end
				t.Errorf("%d updates were sent: %q", n, r.updates())
			}
		})
	}
}
