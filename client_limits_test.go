package acp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/internal/detach"
	"github.com/goacp/acp/jsonrpc"
)

// TestReplyBeforeEnd holds that an agent that answers and leaves has answered.
func TestReplyBeforeEnd(t *testing.T) {
	for version := 1; version <= 2; version++ {
		for range 200 {
			ours, theirs := jsonrpc.Pipe()
			go answerAndLeave(ours, version)
			conn, err := (&Client{MaxVersion: version}).Connect(t.Context(), Over(theirs))
			if err != nil {
				t.Fatal(err)
			}
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot})
			if err != nil {
				t.Fatal(err)
			}
			res, err := s.Prompt(t.Context(), Text("hi")).Wait()
			if err != nil || res.StopReason != StopEndTurn {
				t.Fatalf("v%d: %+v, %v", version, res, err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if err := conn.Wait(); err != nil {
				t.Error(err)
			}
		}
	}
}

func answerAndLeave(stream jsonrpc.Stream, version int) {
	defer stream.Close()
	said := []string{clientHelloResult(version, clientAll(version)), `{"sessionId":"s"}`, `{"stopReason":"end_turn"}`}
	if version == 2 {
		said[2] = `{"messageId":"u"}`
	}
	for id, result := range said {
		if _, err := stream.ReadFrame(); err != nil {
			return
		}
		if id == 2 && version == 2 {
			const update = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}`
			_ = stream.WriteFrame(fmt.Appendf(nil, update, `{"sessionUpdate":"user_message_chunk","messageId":"u","content":{"type":"text","text":"hi"}}`))
			_ = stream.WriteFrame(fmt.Appendf(nil, update, `{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`))
		}
		_ = stream.WriteFrame(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":%s}`, id, result))
	}
}

// TestReplyUnreadAtEnd holds that a connection ends though nobody reads.
func TestReplyUnreadAtEnd(t *testing.T) {
	both(t, Client{}, func(t *testing.T, s *ClientSession, a *clientScript) {
		r := s.Prompt(t.Context(), Text("hi"))
		f := a.next("session/prompt")
		for range maxHeld + 50 {
			a.say("x")
		}
		a.answer(f, `{"stopReason":"end_turn","messageId":"u"}`)
		_ = a.stream.Close()
		<-r.Done()
		if _, err := r.Wait(); err != nil && !errors.Is(err, jsonrpc.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestReplyUnreadCalls holds that calls about a session go through though nobody
// reads its reply, or its reader makes them.
func TestReplyUnreadCalls(t *testing.T) {
	title := func(s *ClientSession) error { _, err := s.SetTitle(context.Background(), "x"); return err }
	status := func(s *ClientSession) error { _, err := s.conn.Status(context.Background(), s.id); return err }
	calls := []struct {
		name, method, result string
		call                 func(s *ClientSession) error
	}{
		{"close", "session/close", `{}`, func(s *ClientSession) error { return s.Close(context.Background()) }},
		{"delete", "session/delete", `{}`, func(s *ClientSession) error { return s.Delete(context.Background()) }},
		{"title", "session/set_title", `{"title":"x"}`, title},
		{"status", "session/status", `{"status":"saved"}`, status},
	}
	for _, tt := range calls {
		for _, reads := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reads=%v", tt.name, reads), func(t *testing.T) {
				both(t, Client{}, func(t *testing.T, s *ClientSession, a *clientScript) {
					r := s.Prompt(t.Context(), Text("hi"))
					a.next("session/prompt")
					if reads {
						a.say("go")
					}
					done := laterErr(func() error {
						if reads {
							for range r.Updates() {
								break
							}
						}
						return tt.call(s)
					})
					synctest.Wait()
					for range maxHeld + 50 {
						a.say("x")
					}
					a.answer(a.next(tt.method), tt.result)
					if err := done(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
	// What was lost is told.
	single(t, Client{}, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
		r := s.Prompt(t.Context(), Text("hi"))
		f := a.next("session/prompt")
		for range maxHeld + 50 {
			a.say("x")
		}
		done := laterErr(func() error { return title(s) })
		a.answer(a.next("session/set_title"), `{"title":"x"}`)
		if err := done(); err != nil {
			t.Error(err)
		}
		got := r.gather()
		a.answer(f, `{"stopReason":"end_turn"}`)
		if list, err := got(); err != nil || len(list) < maxHeld || list[0] != "lost" {
			t.Errorf("%d updates, %v", len(list), err)
		}
	})
}

// TestReplyHoldsBytes holds that a reply nobody reads is bounded by what its
// updates take, too.
func TestReplyHoldsBytes(t *testing.T) {
	const mib = 1 << 20
	chunk := fmt.Sprintf(`"messageId":"m","content":{"type":"text","text":%q}`, strings.Repeat("x", mib))
	call := fmt.Sprintf(`"toolCallId":"c","title":"t","rawInput":%q`, strings.Repeat("x", mib))
	for kind, fields := range map[string]string{"agent_message_chunk": chunk, "tool_call_update": call} {
		single(t, Client{}, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := s.Prompt(ctx, Text("hi"))
			f := a.next("session/prompt")
			a.answer(f, `{"messageId":"u"}`)
			for range 20 {
				a.update(kind, fields)
			}
			synctest.Wait()
			b := &r.buffer
			b.mu.Lock()
			n, bytes := len(b.held)-b.head, b.bytes
			b.mu.Unlock()
			if n != 15 || bytes < 15*mib || bytes > maxHeldBytes {
				t.Errorf("%s: holds %d updates of %d bytes", kind, n, bytes)
			}
			got := r.gather()
			a.state("idle", `"stopReason":"end_turn"`)
			if list, err := got(); err != nil || len(list) != 21 {
				t.Errorf("%s: %d updates, %v", kind, len(list), err)
			}
			if b.bytes != 0 {
				t.Errorf("%d bytes counted", b.bytes)
			}
			// One that is larger than all there is room for is held all the same.
			r = s.Prompt(ctx, Text("hi"))
			f = a.next("session/prompt")
			a.answer(f, `{"messageId":"v"}`)
			a.say(strings.Repeat("x", maxHeldBytes))
			a.state("idle", `"stopReason":"end_turn"`)
			if list, err := r.collect(); err != nil || len(list) != 2 {
				t.Errorf("%d updates, %v", len(list), err)
			}
		})
	}
}

// TestCancelledPromptForgotten holds that a cancelled prompt that is never
// answered does not refuse permissions for ever (S40).
func TestCancelledPromptForgotten(t *testing.T) {
	allow := Client{RequestPermission: func(_ context.Context, r *PermissionRequest) (PermissionDecision, error) { return r.Allow(), nil }}
	const selected, cancelled = `{"outcome":{"outcome":"selected","optionId":"o"}}`, `{"outcome":{"outcome":"cancelled"}}`
	ask := func(a *clientScript, id int) string {
		a.request(id, "session/request_permission", permissionParams(1, clientAllowOption))
		return a.response()
	}
	for _, again := range []bool{true, false} {
		single(t, allow, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
			s.Prompt(t.Context(), Text("one"))
			a.next("session/prompt")
			if err := s.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			a.next("session/cancel")
			want(t, "after the cancellation", ask(a, 1), cancelled)
			if again {
				s.Prompt(t.Context(), Text("two"))
				a.next("session/prompt")
			} else {
				time.Sleep(defaultClientCancelGrace)
			}
			want(t, "later", ask(a, 2), selected)
		})
	}
}

// TestSecondPromptCancelled holds that stopping a prompt does not stop the one
// before it.
func TestSecondPromptCancelled(t *testing.T) {
	single(t, Client{}, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
		r1 := s.Prompt(t.Context(), Text("one"))
		f1 := a.next("session/prompt")
		ctx, cancel := context.WithCancel(t.Context())
		r2 := s.Prompt(ctx, Text("two"))
		a.next("session/prompt")
		cancel()
		a.next("$/cancel_request")
		if _, err := r2.Wait(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		a.silent()
		a.answer(f1, `{"stopReason":"end_turn"}`)
		if res, err := r1.Wait(); err != nil || res.StopReason != StopEndTurn {
			t.Error(res, err)
		}
	})
}

// TestPromptsNeverAnswered holds that prompts nobody answers leave nothing.
func TestPromptsNeverAnswered(t *testing.T) {
	single(t, Client{CancelGrace: time.Second}, 2, func(t *testing.T, s *ClientSession, _ *clientScript) {
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			r := s.Prompt(ctx, Text("hi"))
			cancel()
			if _, err := r.Wait(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		buf := make([]byte, 1<<20)
		if stacks := string(buf[:runtime.Stack(buf, true)]); strings.Contains(stacks, "acp.(*Reply)") {
			t.Error("a prompt still waits:\n" + stacks)
		}
	})
}

// TestHooksThatIgnoreCtx holds that hooks that do not return are bounded.
func TestHooksThatIgnoreCtx(t *testing.T) {
	var block chan struct{}
	ran := 0
	stuck := Client{RequestPermission: func(_ context.Context, r *PermissionRequest) (PermissionDecision, error) {
		ran++
		<-block
		return r.Allow(), nil
	}}
	single(t, stuck, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		block = make(chan struct{})
		for i := range detach.Max + 9 {
			a.request(i, "session/request_permission", permissionParams(2, clientAllowOption))
			synctest.Wait()
			if i < detach.Max {
				a.notify("$/cancel_request", fmt.Sprintf(`{"requestId":%d}`, i))
			}
			want(t, "withdrawn", a.response(), `{"outcome":{"outcome":"cancelled"}}`)
		}
		if ran != detach.Max {
			t.Errorf("%d hooks ran", ran)
		}
		close(block)
		synctest.Wait()
		if n := s.conn.asking.Running(); n != 0 {
			t.Errorf("%d hooks are counted", n)
		}
	})
}

// TestReplyUnreadable: updates beyond the limits of the engine are missing in every
// reply in flight, which says so once for all that were missing by then.
func TestReplyUnreadable(t *testing.T) {
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	for _, tt := range []struct{ name, meta, want string }{
		{"too deep", deep, "acp: updates were lost: one was nested too deeply"},
		{"too large", strconv.Quote(strings.Repeat("x", 10<<10)), "acp: updates were lost: one was too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, Client{Engine: jsonrpc.Settings{MaxFrame: 8 << 10}}, func(t *testing.T, s *ClientSession, a *clientScript) {
				v := s.Conn().Version()
				r := s.Prompt(t.Context(), Text("go"))
				f := a.next("session/prompt")
				if v == 2 {
					a.answer(f, `{"messageId":"p"}`)
					a.update("user_message", `"messageId":"p","content":[]`)
					a.state("running", "")
				}
				for range 3 {
					a.update("agent_message_chunk", `"messageId":"m","content":{"type":"text","text":"lost"},"_meta":{"x":`+tt.meta+`}`)
				}
				a.notify("_other", `{"x":`+tt.meta+`}`)
				synctest.Wait()
				a.say("kept")
				if v == 2 {
					a.state("idle", `"stopReason":"end_turn"`)
				} else {
					a.answer(f, `{"stopReason":"end_turn"}`)
				}
				var errs []string
				text := ""
				for u, err := range r.Updates() {
					switch {
					case err == nil:
						text += u.Text()
					case !errors.Is(err, ErrUpdatesLost):
						t.Error(err)
					default:
						errs = append(errs, err.Error())
					}
				}
				if text != "kept" || len(errs) != 1 || errs[0] != tt.want {
					t.Errorf("%q, %q", text, errs)
				}
				if _, err := r.Wait(); err != nil {
					t.Error(err)
				}
				// Replies that begin later miss nothing.
				r = s.Prompt(t.Context(), Text("again"))
				f = a.next("session/prompt")
				if v == 2 {
					a.answer(f, `{"messageId":"q"}`)
					a.update("user_message", `"messageId":"q","content":[]`)
					a.state("idle", `"stopReason":"end_turn"`)
				} else {
					a.answer(f, `{"stopReason":"end_turn"}`)
				}
				if got, err := r.collect(); err != nil || slices.Contains(got, "lost") {
					t.Error(got, err)
				}
			})
		})
	}
}
