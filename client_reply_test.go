package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got\n%s", what, diff)
	}
}

// TestReplyV1 holds what a turn of version 1 looks like: the made-up updates are
// in their place, in the hook as in the reply.
func TestReplyV1(t *testing.T) {
	var told clientTold
	single(t, Client{Update: told.hook}, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
		r := s.Prompt(t.Context(), Text("hi "), Text("there"))
		f := a.next("session/prompt")
		a.say("hello")
		a.answer(f, `{"stopReason":"end_turn","usage":null,"_meta":{"x":1}}`)
		a.say("afterwards")
		got, err := r.collect()
		turn := []string{"made-up user hi there", "made-up running", "say hello", "made-up idle end_turn"}
		want(t, "reply", got, turn)
		want(t, "hook", told.take(), append(turn, "say afterwards"))
		res, err2 := r.Wait()
		if err != nil || err2 != nil || res.StopReason != StopEndTurn || res.Usage != nil || string(res.Meta) != `{"x":1}` {
			t.Error(res, err, err2)
		}
		if r.MessageID() != "prompt-1" {
			t.Error(r.MessageID())
		}
		if got, err := r.collect(); got != nil || err != nil {
			t.Error("a reply is told twice:", got, err)
		}
	})
}

// TestReplyV2 holds where a turn of version 2 begins and ends, wherever the
// receipt stands (S87, S88). A step is R, the receipt, or an update.
func TestReplyV2(t *testing.T) {
	tests := []struct {
		name   string
		steps  string
		reply  string
		result StopReason
		id     MessageID
	}{
		{"receipt first", "R user running hello idle=end_turn", "user hi,running,say hello,idle end_turn", StopEndTurn, "u"},
		{"receipt behind the message", "user running R hello idle=end_turn", "user hi,running,say hello,idle end_turn", StopEndTurn, "u"},
		{"receipt last", "user running hello idle=end_turn R", "user hi,running,say hello,idle end_turn", StopEndTurn, "u"},
		{"receipt later", "user running hello idle=end_turn more running more R", "user hi,running,say hello,idle end_turn", StopEndTurn, "u"},
		{"receipt after many turns", "user running hello idle=cancelled" + strings.Repeat(" others more idle=end_turn", 40) + " R", "user hi,running,say hello,idle cancelled", StopCancelled, "u"},
		{"state first", "R running user hello idle=end_turn", "running,user hi,say hello,idle end_turn", StopEndTurn, "u"},
		{"no message", "R running hello idle=refusal", "running,say hello,idle refusal", StopRefusal, "u"},
		{"never running", "R user hello idle=end_turn", "user hi,say hello,idle end_turn", StopEndTurn, "u"},
		{"no reason", "R user running idle=", "user hi,running,idle", "", "u"},
		{"idle is no end", "R idle= user running hello idle=end_turn", "idle,user hi,running,say hello,idle end_turn", StopEndTurn, "u"},
		{"waits for the user", "R user running requires_action running idle=end_turn", "user hi,running,requires action,running,idle end_turn", StopEndTurn, "u"},
		{"idle twice", "R user running idle=end_turn idle=end_turn", "user hi,running,idle end_turn", StopEndTurn, "u"},
		{"unknown state", "R user future idle=", "user hi,UnknownStateUpdate,idle", "", "u"},
		{"old receipt", "O user running idle=end_turn", "user hi,running,idle end_turn", StopEndTurn, ""},
		{"old receipt last", "user running idle=end_turn O", "user hi,running,idle end_turn", StopEndTurn, "u"},
		{"old states", "R user old_running old_idle=max_tokens", "user hi,running,idle max_tokens", StopMaxTokens, "u"},
		{"end before the message", "idle=end_turn user R running idle=refusal", "idle end_turn,user hi,running,idle refusal", StopRefusal, "u"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			single(t, Client{}, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
				r := s.Prompt(t.Context(), Text("hi"))
				get := func() ([]string, error) { // only what nobody has read can be taken back
					<-r.Done()
					return r.collect()
				}
				if !strings.Contains(tt.steps, "more") {
					get = r.gather()
				}
				f := a.next("session/prompt")
				for _, step := range strings.Fields(tt.steps) {
					a.step(f, step)
				}
				got, err := get()
				want(t, "updates", strings.Join(got, ","), tt.reply)
				res, err2 := r.Wait()
				if err != nil || err2 != nil || res.StopReason != tt.result || r.MessageID() != tt.id {
					t.Error(res, r.MessageID(), err, err2)
				}
			})
		})
	}
}

// step plays one step of a turn of version 2.
func (a *clientScript) step(f clientFrame, step string) {
	a.t.Helper()
	name, reason, hasReason := strings.Cut(step, "=")
	fields := ""
	if reason != "" {
		fields = fmt.Sprintf(`"stopReason":%q`, reason)
	}
	switch name {
	case "R":
		a.answer(f, `{"messageId":"u"}`)
	case "O":
		a.answer(f, `{}`)
	case "user":
		a.update("user_message", `"messageId":"u","content":[{"type":"text","text":"hi"}]`)
	case "others":
		a.update("user_message", `"messageId":"o","content":[]`)
	case "idle":
		a.state("idle", fields)
	case "old_running":
		a.update("state_change", `"state":"running"`)
	case "old_idle":
		a.update("state_change", fmt.Sprintf(`"state":"idle","stop_reason":%q`, reason))
	case "running", "requires_action", "future":
		a.state(name, "")
	default:
		if hasReason {
			a.t.Fatal(step)
		}
		a.say(name)
	}
}

// TestReplyV2Result holds what a turn tells at its end.
func TestReplyV2Result(t *testing.T) {
	single(t, Client{}, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		r := s.Prompt(t.Context(), Text("hi"))
		a.step(a.next("session/prompt"), "R")
		a.state("running", `"background":[{"type":"terminal","terminalId":"t"}]`)
		a.state("idle", `"stopReason":"error","error":{"code":-32603,"message":"model down"},"usage":{"totalTokens":3,"inputTokens":1,"outputTokens":2},"_meta":{"m":1}`)
		res, err := r.Wait()
		if said, ok := errors.AsType[*jsonrpc.Error](err); !ok || said.Code != -32603 || said.Message != "model down" {
			t.Error(err)
		}
		want(t, "result", res, &Result{
			StopReason: StopError, Usage: &Usage{TotalTokens: 3, InputTokens: 1, OutputTokens: 2},
			Error: &acpv2.Error{Code: -32603, Message: "model down"}, Meta: []byte(`{"m":1}`),
		})
		if len(s.Background()) != 1 {
			t.Error("background work is forgotten where it is not reported")
		}
	})
}

// TestReplyQueued holds that prompts that wait for each other each get their own
// updates and end, although nobody reads the second one until the first has
// ended (S87).
func TestReplyQueued(t *testing.T) {
	const n = 3 * maxHeld
	t.Run("v1", func(t *testing.T) {
		single(t, Client{}, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
			one, two := s.Prompt(t.Context(), Text("one")), s.Prompt(t.Context(), Text("two"))
			get := one.gather()
			first, second := a.next("session/prompt"), a.next("session/prompt")
			for range n {
				a.say("1")
			}
			a.answer(first, `{"stopReason":"end_turn"}`)
			a.say("2")
			a.answer(second, `{"stopReason":"refusal"}`)
			got, err := get()
			if len(got) != n+5 || err != nil {
				t.Errorf("%d updates, %v", len(got), err)
			}
			got, err = two.collect()
			want(t, "second", got, []string{"made-up user two", "made-up running", "say 2", "made-up idle refusal"})
			if err != nil {
				t.Error(err)
			}
		})
	})
	for _, order := range []string{"receipt first", "receipt last"} {
		t.Run("v2 "+order, func(t *testing.T) {
			single(t, Client{}, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
				one, two := s.Prompt(t.Context(), Text("one")), s.Prompt(t.Context(), Text("two"))
				get := one.gather()
				first, second := a.next("session/prompt"), a.next("session/prompt")
				a.answer(first, `{"messageId":"a"}`)
				a.update("user_message", `"messageId":"a","content":[{"type":"text","text":"one"}]`)
				a.state("running", "")
				for range n {
					a.say("1")
				}
				a.state("idle", `"stopReason":"end_turn"`)
				if order == "receipt first" {
					a.answer(second, `{"messageId":"b"}`)
				}
				a.update("user_message", `"messageId":"b","content":[{"type":"text","text":"two"}]`)
				a.state("running", "")
				a.say("2")
				a.state("idle", `"stopReason":"refusal"`)
				if order == "receipt last" {
					a.answer(second, `{"messageId":"b"}`)
				}
				got, err := get()
				if len(got) != n+3 || err != nil || got[n+2] != "idle end_turn" {
					t.Errorf("%d updates, %v", len(got), err)
				}
				got, err = two.collect()
				want(t, "second", got, []string{"user two", "running", "say 2", "idle refusal"})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
	t.Run("v2 steering", func(t *testing.T) {
		single(t, Client{}, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
			one, two := s.Prompt(t.Context(), Text("one")), s.Prompt(t.Context(), Text("two"))
			get := one.gather()
			first, second := a.next("session/prompt"), a.next("session/prompt")
			a.answer(first, `{"messageId":"a"}`)
			a.state("running", "")
			a.answer(second, `{"messageId":"b"}`)
			a.update("user_message", `"messageId":"b","content":[{"type":"text","text":"two"}]`)
			a.state("idle", `"stopReason":"end_turn"`)
			got, _ := get()
			want(t, "first", got, []string{"running", "user two", "idle end_turn"})
			got, _ = two.collect()
			want(t, "second", got, []string{"user two", "idle end_turn"})
		})
	})
}

// TestReplyHolds holds the bound of what is kept for a reader: the agent is
// pushed back, and goes on when somebody reads, waits, or gives up.
func TestReplyHolds(t *testing.T) {
	const n = 3 * maxHeld
	stuck := func(t *testing.T, end string, s *ClientSession, a *clientScript, r *Reply) (sent func()) {
		t.Helper()
		f := a.next("session/prompt")
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range n {
				_ = a.stream.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":
					{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x"}}}}`))
			}
			if end == "close" {
				return
			}
			a.answer(f, map[int]string{1: `{"stopReason":"end_turn"}`, 2: `{"messageId":"u"}`}[s.conn.Version()])
			if s.conn.Version() == 2 {
				a.state("idle", `"stopReason":"end_turn"`)
			}
		}()
		synctest.Wait()
		r.buffer.mu.Lock()
		held := len(r.buffer.held)
		r.buffer.mu.Unlock()
		if held != maxHeld {
			t.Errorf("%d updates are held", held)
		}
		select {
		case <-r.Done():
			t.Error("the turn has ended though nobody reads")
		default:
		}
		return func() { <-done }
	}
	c := Client{Engine: jsonrpc.Settings{MaxQueued: 1 << 20}}
	for _, end := range []string{"read", "wait", "break", "cancel", "close"} {
		t.Run(end, func(t *testing.T) {
			both(t, c, func(t *testing.T, s *ClientSession, a *clientScript) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := s.Prompt(ctx, Text("hi"))
				sent := stuck(t, end, s, a, r)
				switch end {
				case "read":
					got, err := r.collect()
					if len(got) < n || err != nil || slices.Contains(got, "lost") {
						t.Errorf("%d updates, %v", len(got), err)
					}
				case "wait":
					if res, err := r.Wait(); err != nil || res.StopReason != StopEndTurn {
						t.Error(res, err)
					}
					if got, err := r.collect(); len(got) > 0 || err != nil {
						t.Error("updates are left", got, err)
					}
				case "break":
					for range r.Updates() {
						break
					}
					if res, err := r.Wait(); err != nil || res.StopReason != StopEndTurn {
						t.Error(res, err)
					}
				case "cancel":
					cancel()
					synctest.Wait() // nobody reads yet: what does not fit is lost
					got, err := r.collect()
					if !slices.Contains(got, "lost") || !errors.Is(err, context.Canceled) {
						t.Errorf("%d updates, %v", len(got), err)
					}
				case "close":
					_ = s.conn.Close()
					if _, err := r.Wait(); !errors.Is(err, jsonrpc.ErrClosed) {
						t.Error(err)
					}
					_ = a.stream.Close()
				}
				sent()
			})
		})
	}
}

// TestReplyLost holds that a prompt nobody reads, and that is never answered,
// loses updates rather than hang the others: a quirk of real agents.
func TestReplyLost(t *testing.T) {
	single(t, Client{}, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
		ctx, cancel := context.WithCancel(t.Context())
		one, dead := s.Prompt(ctx, Text("one")), s.Prompt(ctx, Text("two"))
		first, _ := a.next("session/prompt"), a.next("session/prompt")
		a.answer(first, `{"stopReason":"end_turn"}`)
		if _, err := one.Wait(); err != nil {
			t.Error(err)
		}
		three := s.Prompt(t.Context(), Text("three"))
		get := three.gather()
		f := a.next("session/prompt")
		for range 2 * maxHeld {
			a.say("x")
		}
		a.answer(f, `{"stopReason":"end_turn"}`)
		got, err := get()
		if n := len(got); n < 2*maxHeld || err != nil || slices.Contains(got, "lost") {
			t.Errorf("%d updates, %v", n, err)
		}
		cancel() // and ctx works
		a.next("session/cancel")
		time.Sleep(defaultClientCancelGrace)
		a.next("$/cancel_request")
		got, err = dead.collect()
		if len(got) != maxHeld+1 || got[0] != "lost" || !errors.Is(err, context.Canceled) {
			t.Errorf("%d updates, %v", len(got), err)
		}
	})
}

// TestReplyUnclaimed: a message of a turn that has ended is not that of a prompt that comes later, although agents of older drafts do
// not say whose messages are.
func TestReplyUnclaimed(t *testing.T) {
	single(t, Client{}, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		for _, reason := range []StopReason{StopEndTurn, StopRefusal} {
			r := s.Prompt(t.Context(), Text("hi"))
			f := a.next("session/prompt")
			for _, step := range strings.Fields("user others O running idle=" + string(reason)) {
				a.step(f, step)
			}
			if res, err := r.Wait(); err != nil || res.StopReason != reason {
				t.Error(res, err)
			}
		}
	})
}

// TestReplyWithdrawn: in version 2 a prompt whose answer says that it was cancelled before it began has ended so (S42), no
// matter who cancelled it.
func TestReplyWithdrawn(t *testing.T) {
	single(t, Client{}, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		r := s.Prompt(t.Context(), Text("1"))
		a.refuse(a.next("session/prompt"), jsonrpc.ErrRequestCancelled.Code, "null")
		if res, err := r.Wait(); err != nil || res.StopReason != StopCancelled {
			t.Error(res, err)
		}
	})
}

// TestReplyOutOfOrder holds that two prompts may be answered in any order.
func TestReplyOutOfOrder(t *testing.T) {
	single(t, Client{}, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
		one, two := s.Prompt(t.Context(), Text("1")), s.Prompt(t.Context(), Text("2"))
		first, second := a.next("session/prompt"), a.next("session/prompt")
		a.answer(second, `{"stopReason":"refusal"}`)
		a.answer(first, `{"stopReason":"end_turn"}`)
		if res, err := two.Wait(); err != nil || res.StopReason != StopRefusal {
			t.Error(res, err)
		}
		if res, err := one.Wait(); err != nil || res.StopReason != StopEndTurn {
			t.Error(res, err)
		}
		if _, ok := s.State().(*IdleStateUpdate); !ok {
			t.Error(s.State())
		}
	})
}

// TestReplyFails holds the errors of prompts.
func TestReplyFails(t *testing.T) {
	both(t, Client{}, func(t *testing.T, s *ClientSession, a *clientScript) {
		r := s.Prompt(t.Context(), Text("hi"))
		a.refuse(a.next("session/prompt"), 400, `{"a":1}`) // code 400: a quirk of real agents
		var said *jsonrpc.Error
		if _, err := r.Wait(); !errors.As(err, &said) || said.Code != 400 {
			t.Error(err)
		}
		if _, ok := s.State().(*IdleStateUpdate); !ok {
			t.Error(s.State())
		}
		for name, blocks := range map[string][]ContentBlock{"nothing": nil, "nil": {nil}} {
			if _, err := s.Prompt(t.Context(), blocks...).Wait(); err == nil {
				t.Error(name)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("because")
		cancel(cause)
		if _, err := s.Prompt(ctx, Text("hi")).Wait(); !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Error(err)
		}
		a.silent()
	})
}

// clientDying is a stream whose process has an exit status.
type clientDying struct{ jsonrpc.Stream }

var errClientExit = errors.New("exit status 3: out of luck")

func (clientDying) ExitErr() error { return errClientExit }

// TestReplyAgentDies holds that a turn whose agent dies ends, with everything
// that was received, and tells how the process ended.
func TestReplyAgentDies(t *testing.T) {
	for version := 1; version <= 2; version++ {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := jsonrpc.Pipe()
			a := newClientScript(t, ours)
			get := later(func() (*ClientConn, error) {
				return (&Client{MaxVersion: version}).Connect(t.Context(), Over(clientDying{theirs}))
			})
			a.answer(a.next("initialize"), clientHelloResult(version, clientAll(version)))
			conn, err := get()
			if err != nil {
				t.Fatal(err)
			}
			s := a.session(conn)
			r := s.Prompt(t.Context(), Text("hi"))
			f := a.next("session/prompt")
			if version == 2 {
				a.answer(f, `{"messageId":"u"}`)
			}
			a.say("last words")
			_ = ours.Close()
			got, err := r.collect()
			if !slices.Contains(got, "say last words") || !errors.Is(err, jsonrpc.ErrClosed) || !errors.Is(err, io.EOF) || !errors.Is(err, errClientExit) {
				t.Error(got, err)
			}
			if err := conn.Wait(); !errors.Is(err, errClientExit) {
				t.Error(err)
			}
			if _, err := conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot}); !errors.Is(err, jsonrpc.ErrClosed) || !errors.Is(err, errClientExit) {
				t.Error(err)
			}
			if err := s.Cancel(t.Context()); !errors.Is(err, jsonrpc.ErrClosed) {
				t.Error(err)
			}
			if _, err := s.Prompt(t.Context(), Text("hi")).Wait(); !errors.Is(err, jsonrpc.ErrClosed) {
				t.Error(err)
			}
		})
		clientNoLeaks(t)
	}
}

// TestReplyInHook holds that a prompt may be sent, and in version 1 waited for,
// inside an Update hook.
func TestReplyInHook(t *testing.T) {
	replies := make(chan *Reply, 1)
	c := Client{Update: func(ctx context.Context, s *ClientSession, u *Update) {
		if u.short() != "say go" {
			return
		}
		r := s.Prompt(ctx, Text("again"))
		replies <- r
		if s.Conn().Version() == 1 {
			if _, err := r.Wait(); err != nil {
				panic(err)
			}
		}
	}}
	both(t, c, func(t *testing.T, s *ClientSession, a *clientScript) {
		a.say("go")
		f := a.next("session/prompt")
		if s.conn.Version() == 1 {
			a.say("in between")
			a.answer(f, `{"stopReason":"end_turn"}`)
		} else {
			a.answer(f, `{"messageId":"u"}`)
			a.state("idle", `"stopReason":"end_turn"`)
		}
		if res, err := (<-replies).Wait(); err != nil || res.StopReason != StopEndTurn {
			t.Error(res, err)
		}
		synctest.Wait()
		if _, ok := s.State().(*IdleStateUpdate); !ok {
			t.Errorf("state %T", s.State())
		}
	})
}

// TestReplyOrder plays turns with the receipt, the updates of other sessions and
// pauses in random places: what a turn yields never depends on it.
func TestReplyOrder(t *testing.T) {
	both(t, Client{}, func(t *testing.T, s *ClientSession, a *clientScript) {
		random := rand.New(rand.NewPCG(1, 2))
		other := s.conn.known("other", clientRoot)
		for round := range 200 {
			r := s.Prompt(t.Context(), Text("hi"))
			get := r.gather()
			f := a.next("session/prompt")
			steps := []string{"user", "running", "1", "2", "3", "idle=end_turn"}
			expect := []string{"user hi", "running", "say 1", "say 2", "say 3", "idle end_turn"}
			at := random.IntN(len(steps) + 1)
			if s.conn.Version() == 1 {
				steps, at = steps[2:5], 3
				expect = []string{"made-up user hi", "made-up running", "say 1", "say 2", "say 3", "made-up idle end_turn"}
			}
			for i := 0; i <= len(steps); i++ {
				if i == at {
					a.answer(f, fmt.Sprintf(`{"messageId":"u%d","stopReason":"end_turn"}`, round))
				}
				if random.IntN(3) == 0 {
					a.updateOf("other", "agent_message_chunk", `"messageId":"m","content":{"type":"text","text":"x"}`)
				}
				if random.IntN(4) == 0 {
					synctest.Wait()
				}
				switch {
				case i == len(steps):
				case steps[i] == "user":
					a.update("user_message", fmt.Sprintf(`"messageId":"u%d","content":[{"type":"text","text":"hi"}]`, round))
				default:
					a.step(f, steps[i])
				}
			}
			got, err := get()
			if diff := cmp.Diff(expect, got); diff != "" || err != nil {
				t.Fatalf("round %d, receipt at %d: %v\n%s", round, at, err, diff)
			}
			if random.IntN(2) == 0 {
				synctest.Wait()
			}
		}
		_ = other
	})
}
