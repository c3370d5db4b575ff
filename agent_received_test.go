package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/jsonrpc"
)

// startPrompt sends a prompt and returns how it is answered: prompts that are started
// one after the other arrive in that order.
func (r *rawClient) startPrompt(ctx context.Context, s, text string) (wait func() (string, error)) {
	r.t.Helper()
	params := json.RawMessage(promptParams(s, text))
	call, err := jsonrpc.Method[json.RawMessage, json.RawMessage]{Name: "session/prompt"}.Start(ctx, r.conn, &params)
	if err != nil {
		r.t.Fatal(err)
	}
	return func() (string, error) {
		res, err := call.Wait()
		if err != nil {
			return "", err
		}
		return string(*res), nil
	}
}

// TestReceived: prompts are received in order while one runs, by one call of the hook at
// a time, and their turns get to the other hooks. One that is refused holds up nobody.
func TestReceived(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		var mu sync.Mutex
		var received, ran []string
		turns := make(map[string]*Turn)
		calls := 0
		running, release := make(chan struct{}), make(chan struct{})
		all := make(chan struct{})
		const last = "p11"
		r := dialVersion(t, &Agent{
			Received: func(_ context.Context, turn *Turn) error {
				mu.Lock()
				if calls++; calls > 1 {
					t.Error("two calls at once")
				}
				received = append(received, turn.Text())
				turns[turn.Text()] = turn
				mu.Unlock()
				if err := turn.Say("too early"); err == nil {
					t.Error("it can send something")
				}
				mu.Lock()
				calls--
				mu.Unlock()
				switch turn.Text() {
				case "p3":
					return &Failure{Message: "no", Reason: "no"}
				case "p4":
					panic("on purpose")
				case last:
					close(all)
				}
				return nil
			},
			Accept: func(_ context.Context, turn *Turn) error {
				mu.Lock()
				defer mu.Unlock()
				if turns[turn.Text()] != turn {
					t.Errorf("Accept: another turn than was received of %s", turn.Text())
				}
				return nil
			},
			Prompt: func(_ context.Context, turn *Turn) (StopReason, error) {
				if turn.Text() == "p0" {
					close(running)
					<-release
				}
				mu.Lock()
				defer mu.Unlock()
				if turns[turn.Text()] != turn {
					t.Errorf("Prompt: another turn than was received of %s", turn.Text())
				}
				ran = append(ran, turn.Text())
				return StopEndTurn, nil
			},
		}, v)
		s := r.session()
		var waits []func() (string, error)
		var want []string
		for i := range 12 {
			text := fmt.Sprint("p", i)
			waits, want = append(waits, r.startPrompt(t.Context(), s, text)), append(want, text)
			if i == 0 {
				<-running
			}
		}
		<-all // while the first one runs
		if f, ok := errors.AsType[*Failure](second(waits[3]())); !ok || f.Reason != "no" {
			t.Errorf("p3: %v", f)
		}
		if err := second(waits[4]()); code(err) != jsonrpc.CodeInternalError {
			t.Errorf("p4: %v", err)
		}
		close(release)
		for i, wait := range waits {
			if i == 3 || i == 4 {
				continue
			}
			if _, err := wait(); err != nil {
				t.Errorf("p%d: %v", i, err)
			}
		}
		r.await(func() bool { mu.Lock(); defer mu.Unlock(); return len(ran) == len(want)-2 })
		if diff := cmp.Diff(want, received); diff != "" {
			t.Errorf("received: %s", diff)
		}
		if diff := cmp.Diff(slices.Delete(want, 3, 5), ran); diff != "" {
			t.Errorf("ran: %s", diff)
		}
	})
}

// second returns the error.
func second(_ string, err error) error { return err }

// TestReceivedCancelled: a prompt that is cancelled after it was received gets to no other
// hook, and its context is done. One that is cancelled while the hook has it lets nobody
// overtake.
func TestReceivedCancelled(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		received := make(chan *Turn, 10)
		running, hold, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
		r := dialVersion(t, &Agent{
			Received: func(_ context.Context, turn *Turn) error {
				received <- turn
				if turn.Text() == "held" {
					<-hold
				}
				return nil
			},
			Prompt: func(ctx context.Context, turn *Turn) (StopReason, error) {
				switch turn.Text() {
				case "first":
					close(running)
					<-release
				case "last":
				default:
					t.Errorf("%s ran", turn.Text())
				}
				return StopEndTurn, nil
			},
		}, v)
		s := r.session()
		first := r.startPrompt(t.Context(), s, "first")
		<-received
		<-running
		ctx, cancel := context.WithCancel(t.Context())
		held := r.startPrompt(ctx, s, "held")
		turn := <-received
		last := r.startPrompt(t.Context(), s, "last")
		r.await(func() bool {
			r.agent.mu.Lock()
			defer r.agent.mu.Unlock()
			return len(r.agent.prompts[SessionID(s)]) == 3
		})
		cancel()
		if err := second(held()); err == nil {
			t.Error("it has an answer")
		}
		<-turn.Context().Done()
		if len(received) > 0 {
			t.Errorf("%s was received meanwhile", (<-received).Text())
		}
		close(hold)
		if got := (<-received).Text(); got != "last" {
			t.Errorf("%s was received", got)
		}
		close(release)
		for _, wait := range []func() (string, error){first, last} {
			if err := second(wait()); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestCancelHook: it is called with cancellations that no prompt of the connection was
// cancelled by.
func TestCancelHook(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		running := make(chan struct{})
		called := make(chan string, 10)
		r := dialVersion(t, &Agent{
			Cancel: func(_ context.Context, s *AgentSession) {
				called <- string(s.ID())
				panic("on purpose")
			},
			Prompt: func(ctx context.Context, _ *Turn) (StopReason, error) {
				close(running)
				<-ctx.Done()
				return StopEndTurn, nil
			},
		}, v)
		s, other := r.session(), r.session()
		wait := r.startPrompt(t.Context(), s, "go")
		<-running
		r.notify("session/cancel", `{"sessionId":"`+s+`"}`)
		if res, err := wait(); err != nil || v == 1 && !strings.Contains(res, "cancelled") {
			t.Error(res, err)
		}
		r.notify("session/cancel", `{"sessionId":"unknown"}`)
		r.notify("session/cancel", `{"sessionId":"`+other+`"}`)
		if got := <-called; got != other {
			t.Errorf("called with %s", got)
		}
		r.await(func() bool {
			r.agent.mu.Lock()
			defer r.agent.mu.Unlock()
			return len(r.agent.prompts) == 0
		})
		r.notify("session/cancel", `{"sessionId":"`+s+`"}`)
		if got := <-called; got != s {
			t.Errorf("called with %s", got)
		}
		r.await(func() bool { // that of the unknown session has a timeline of its own
			r.agent.mu.Lock()
			defer r.agent.mu.Unlock()
			return len(r.agent.idleCancels) == 0
		})
		if len(called) > 0 {
			t.Errorf("%d more calls", len(called))
		}
	})
}
