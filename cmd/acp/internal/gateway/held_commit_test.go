package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// TestHeldDecided: a decision that an earlier gateway has kept, and the agent has not heard, reaches it from the next one,
// and nobody is asked again: what was chosen, and what was entered.
func TestHeldDecided(t *testing.T) {
	agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		if turn.Text() == "form" {
			answer, err := turn.Elicit(whoForm)
			if err != nil {
				return "", err
			}
			return acp.StopEndTurn, turn.Say("name " + string(answer.Content["name"]))
		}
		answer, err := turn.Ask(acp.Permission{Title: "May I?"})
		if err != nil {
			return "", err
		}
		return acp.StopEndTurn, turn.Say(fmt.Sprint("allowed ", answer.Allowed))
	}}
	versions(t, func(t *testing.T, version, speaks int) {
		for prompt, want := range map[string]string{"ask": "agent: allowed true", "form": `agent: name "Ada"`} {
			r, sims := heldRig(t, agent, speaks, nil)
			dies := func() {
				sim := (*sims)[0]
				sim.mu.Lock()
				defer sim.mu.Unlock()
				sim.cur.dead, sim.stall = true, make(chan struct{})
			}
			c := r.connect(version, func(c *acp.Client) {
				c.RequestPermission = func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
					dies()
					return req.Allow(), nil
				}
			}, filling(func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
				dies()
				return callMe("Ada"), nil
			}))
			s := c.new(t)
			s.Prompt(t.Context(), acp.Text(prompt))
			for kept := false; !kept; {
				runtime.Gosched()
				if err := r.log.Read(t.Context(), string(s.ID()), 0, func(rec engine.Record) error {
					kept = kept || rec.Kind == kindAnswer
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			old := r.takeOver((*sims)[0])
			d := r.connect(version, func(c *acp.Client) {
				c.RequestPermission = func(context.Context, *acp.PermissionRequest) (acp.PermissionDecision, error) {
					t.Error("it is asked again")
					return acp.CancelPermission(), nil
				}
			}, filling(func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
				t.Error("it is asked again")
				return acp.CancelElicitation(), nil
			}))
			d.load(t, s.ID())
			d.seen.until(t, want)
			close((*sims)[0].stall)
			_ = c.conn.Close()
			_ = old.Close()
		}
	})
}

// A slowHeld is an agent whose end takes as long as the test wants.
type slowHeld struct {
	Held
	once           sync.Once
	stopping, goOn chan struct{}
}

func (h *slowHeld) Stop(ctx context.Context) error {
	h.once.Do(func() { close(h.stopping) })
	<-h.goOn
	return h.Held.Stop(ctx)
}

// TestHeldPromptWhileItStops: a prompt that comes while an idle agent is being stopped is for the next one.
func TestHeldPromptWhileItStops(t *testing.T) {
	var r *rig
	agent := &acp.Agent{Prompt: func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
		if turn.Text() == "two" && r.starts.Load() == 1 {
			<-ctx.Done()
		}
		return acp.StopEndTurn, nil
	}}
	r, _ = heldRig(t, agent, 1, nil)
	hold, stopping, goOn, n := r.g.cfg.Hold, make(chan struct{}), make(chan struct{}), 0
	r.g.cfg.Hold = func(ctx context.Context, a, d string) (Held, error) {
		h, err := hold(ctx, a, d)
		if n++; err == nil && n == 1 {
			h = &slowHeld{Held: h, stopping: stopping, goOn: goOn}
		}
		return h, err
	}
	s := r.connect(1).new(t)
	say(t, s, "one one one") // which names the session
	gs := r.g.session(string(s.ID()))
	go gs.rest()
	<-stopping
	reply := s.Prompt(t.Context(), acp.Text("two"))
	queued(gs, 1)
	close(goOn)
	if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn || r.starts.Load() != 2 {
		t.Errorf("%v, %v, after %d starts", res, err, r.starts.Load())
	}
}

// observes has f called with the kinds of each batch of a session before that is appended.
func observes(gs *session, f func(kinds []engine.Kind)) {
	was := gs.log.observe
	gs.log.observe = func(records []engine.Record) func(error) {
		var kinds []engine.Kind
		for _, r := range records {
			kinds = append(kinds, r.Kind)
		}
		f(kinds)
		return was(records)
	}
}

// count returns how many records of each kind a session has.
func (r *rig) count(id acp.SessionID) map[engine.Kind]int {
	r.t.Helper()
	all := map[engine.Kind]int{}
	if err := r.log.Read(r.t.Context(), string(id), 0, func(rec engine.Record) error { all[rec.Kind]++; return nil }); err != nil {
		r.t.Fatal(err)
	}
	return all
}

// TestHeldWithdrawn: a question that is withdrawn, at whatever moment, has one decision.
func TestHeldWithdrawn(t *testing.T) {
	for _, slow := range []engine.Kind{"", kindAsk, kindSent} {
		asked := make(chan struct{}, 1)
		agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
			if turn.Text() == "name" {
				return acp.StopEndTurn, nil
			}
			asked <- struct{}{}
			_, err := turn.Ask(acp.Permission{Title: "May I?"})
			return acp.StopCancelled, err
		}}
		r, _ := heldRig(t, agent, 1, nil)
		c := r.connect(1, asking(func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
			<-ctx.Done()
			return acp.CancelPermission(), nil
		}))
		s := c.new(t)
		say(t, s, "name")
		gs := r.g.session(string(s.ID()))
		cancelled := make(chan struct{})
		var once sync.Once
		observes(gs, func(kinds []engine.Kind) {
			if slow != "" && slices.Contains(kinds, slow) && !slices.Contains(kinds, kindPrompt) {
				once.Do(func() { <-cancelled; time.Sleep(20 * time.Millisecond) })
			}
		})
		reply := s.Prompt(t.Context(), acp.Text("ask"))
		<-asked
		if slow != kindAsk {
			for r.count(s.ID())[kindAsk] == 0 {
				runtime.Gosched()
			}
		}
		if err := s.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(cancelled)
		if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopCancelled {
			t.Errorf("%s: %v, %v", slow, res, err)
		}
		for n := r.count(s.ID()); n[kindEnd] < 2 || n[kindAsk] != n[kindAnswer]; n = r.count(s.ID()) {
			if t.Context().Err() != nil {
				t.Fatalf("%s: %v", slow, n)
			}
			runtime.Gosched()
		}
		if n := r.count(s.ID()); n[kindAnswer] > 1 {
			t.Errorf("%s: %v", slow, n)
		}
	}
}

// TestHeldLargePrompt: a prompt that is too large to be committed together with its frame sets the state of the session all
// the same, and precedes its end, even if it is given up while it is being kept.
func TestHeldLargePrompt(t *testing.T) {
	r, _ := heldRig(t, talking(nil), 1, nil)
	s := r.connect(1).new(t)
	say(t, s, "one")
	gs := r.g.session(string(s.ID()))
	var mu sync.Mutex
	prompt, states := false, []string{}
	observes(gs, func(kinds []engine.Kind) {
		mu.Lock()
		defer mu.Unlock()
		if prompt {
			info, err := r.log.Session(t.Context(), string(s.ID()))
			if err != nil {
				t.Error(err)
			}
			states = append(states, info.State)
		}
		prompt = slices.Contains(kinds, kindPrompt)
	})
	if _, err := s.Prompt(t.Context(), acp.Text("many "+strings.Repeat("x", 3*maxUnwritten/2))).Wait(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(states) == 0 || states[0] != records.StateRunning {
		t.Errorf("after the prompt the session is %q", states)
	}
}

// TestHeldWithdrawalOpen: that a question is withdrawn has not reached the log before the answer has: the next gateway must get
// to know of it.
func TestHeldWithdrawalOpen(t *testing.T) {
	h := &plainHeld{hastyHeld: hastyHeld{events: make(chan string, 3)}}
	hs := newHeldStream(h, nil, "", nil)
	defer func() {
		close(h.events)
		_ = hs.Close()
	}()
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":8}}`,
	} {
		h.events <- text
		if f, err := hs.ReadFrame(); err != nil || string(f.Data) != text {
			t.Fatal(string(f.Data), err)
		}
	}
	hs.settled(1, false) // the question is in the log
	if got := hs.watermark(); got != 1 {
		t.Errorf("%d events are settled before the answer", got)
	}
	if err := hs.WriteFrame([]byte(`{"jsonrpc":"2.0","id":7,"error":{"code":-32800,"message":"cancelled"}}`)); err != nil {
		t.Fatal(err)
	}
	if got := hs.watermark(); got != 3 {
		t.Errorf("%d events are settled after it", got)
	}
}

// TestHeldAsksBeforeEvents: the connection to an agent that was taken over sees what that waits for before anything else, which
// may withdraw it.
func TestHeldAsksBeforeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &plainHeld{hastyHeld: hastyHeld{events: make(chan string, 1)}}
		hs := newHeldStream(h, nil, "", &adoption{opened: true})
		defer func() {
			close(h.events)
			_ = hs.Close()
		}()
		const withdrawal = `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`
		const question = `{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{}}`
		h.events <- withdrawal
		got := make(chan string, 2)
		go func() {
			for range 2 {
				f, err := hs.ReadFrame()
				if err != nil {
					t.Error(err)
				}
				got <- string(f.Data)
			}
		}()
		synctest.Wait()
		if len(got) > 0 {
			t.Errorf("%s comes at once", <-got)
		}
		hs.again([]openAsk{{Asked: records.Asked{ID: "ask", Raw: json.RawMessage(question)}}})
		if first, second := <-got, <-got; first != question || second != withdrawal {
			t.Errorf("%s, and then %s", first, second)
		}
	})
}
