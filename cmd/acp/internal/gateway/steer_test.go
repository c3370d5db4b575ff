package gateway

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

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/jsonrpc"
)

// taking is an agent that takes messages while a turn runs whose prompt begins with "go", until it gets "stop".
func taking() *acp.Agent {
	return &acp.Agent{Busy: acp.BusySteer, Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		text := func(blocks []acp.ContentBlock) string { return blocks[len(blocks)-1].(*acp.TextContent).Text }
		_ = t.Say("began")
		t.EndMessage()
		if text(t.Blocks()) != "go" {
			return acp.StopEndTurn, nil
		}
		for {
			select {
			case blocks := <-t.Steering():
				if text(blocks) == "stop" {
					return acp.StopEndTurn, nil
				}
				_ = t.Say("heard " + text(blocks))
				t.EndMessage()
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
	}}
}

// TestSteer: a message of a client reaches the turn that runs, wherever that is; everybody sees it, once, where the agent has
// taken it, also who comes later. The turn stays one.
func TestSteer(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, taking())
		r.max = agent
		c := r.connect(version)
		s := c.new(t)
		if outcome, err := s.Steer(t.Context(), acp.Text("early")); outcome != acp.SteerPromptRequired || err != nil {
			t.Errorf("when no turn runs: %q, %v", outcome, err)
		}
		running := s.Prompt(t.Context(), acp.Text("go"))
		c.seen.until(t, "agent: began")
		others := map[int]*client{1: r.connect(1), 2: r.connect(2)}
		for _, o := range others {
			o.load(t, s.ID())
		}
		theirs, _ := others[1].conn.Session(s.ID())
		for _, from := range []struct {
			s    *acp.ClientSession
			text string
		}{{s, "more"}, {theirs, "and more"}, {s, "stop"}} {
			if outcome, err := from.s.Steer(t.Context(), acp.Text(from.text)); outcome != acp.SteerInjected || err != nil {
				t.Fatalf("%s: %q, %v", from.text, outcome, err)
			}
			if from.text != "stop" {
				c.seen.until(t, "agent: heard "+from.text)
			}
		}
		if res, err := running.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
			t.Error(res, err)
		}
		late := r.connect(2)
		late.load(t, s.ID())
		want := []string{"user: more", "agent: heard more", "user: and more", "agent: heard and more", "user: stop"}
		users := func(c *client, skip ...string) {
			t.Helper()
			c.seen.until(t, "end: end_turn")
			if diff := cmp.Diff(slices.DeleteFunc(slices.Clone(want), func(s string) bool { return slices.Contains(skip, s) }), talk(c.seen.take())); diff != "" {
				t.Error(diff)
			}
		}
		users(others[2])
		users(late)
		if got := recordsOf(t, r, s.ID(), kindPrompt); got != 1 {
			t.Errorf("%d turns", got)
		}
		if version == 1 { // which shows what it has sent itself
			if diff := cmp.Diff([]string{"agent: heard more", "user: and more", "agent: heard and more"}, talk(c.seen.take())); diff != "" {
				t.Error(diff)
			}
		} else if diff := cmp.Diff(want, talk(c.seen.take())); diff != "" {
			t.Error(diff)
		}
		if outcome, err := s.Steer(t.Context(), acp.Text("late")); outcome != acp.SteerPromptRequired || err != nil {
			t.Errorf("after the turn: %q, %v", outcome, err)
		}
	})
}

// talk is what was said after the prompt, and what the agent has begun with.
func talk(seen []string) (said []string) {
	for _, text := range seen {
		if strings.HasPrefix(text, "user: ") && text != "user: go" || strings.HasPrefix(text, "agent: heard") {
			said = append(said, text)
		}
	}
	return said
}

// recordsOf counts the records of a kind.
func recordsOf(t *testing.T, r *rig, id acp.SessionID, kind engine.Kind) (n int) {
	t.Helper()
	err := r.log.Read(t.Context(), string(id), 0, func(rec engine.Record) error {
		if rec.Kind == kind {
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSteerUnable: for a session whose agent cannot be steered there is no such method, so that the client sends a prompt, which
// waits in the queue.
func TestSteerUnable(t *testing.T) {
	for version := 1; version <= 2; version++ {
		goOn := make(chan struct{})
		r := newRig(t, talking(goOn))
		c := r.connect(version)
		s := c.new(t)
		running := s.Prompt(t.Context(), acp.Text("wait one"))
		c.seen.until(t, "agent: waiting")
		if outcome, err := s.Steer(t.Context(), acp.Text("two")); outcome != acp.SteerQueued || err != nil {
			t.Errorf("%q, %v", outcome, err)
		}
		params := fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"two"}]}`, s.ID())
		if err := c.conn.Conn().Call(t.Context(), methodSteering, json.RawMessage(params), nil); !errors.Is(err, jsonrpc.ErrMethodNotFound) {
			t.Error(err)
		}
		second := s.Prompt(t.Context(), acp.Text("two"))
		queued(r.g.session(string(s.ID())), 2)
		close(goOn)
		for _, reply := range []*acp.Reply{running, second} {
			if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
				t.Error(res, err)
			}
		}
		var res struct{ Outcome string }
		if err := c.conn.Conn().Call(t.Context(), methodSteering, json.RawMessage(params), &res); res.Outcome != "failed" || err != nil {
			t.Errorf("a client that does not ask for a prompt: %v, %v", res, err)
		}
	}
}

// TestSteerEchoed: a message that the agent has taken is in the log once, and the request with it ends, however the agent says
// that it has the message: as a piece of a message, with another text, or not at all.
func TestSteerEchoed(t *testing.T) {
	const more = `{"type":"text","text":"more"}`
	message := func(content string) string {
		return `{"sessionUpdate":"user_message","messageId":"m","content":[` + content + `]}`
	}
	for name, c := range map[string]struct {
		version int
		says    []string // by the agent, before it answers
		content []acp.ContentBlock
		late    bool // it is known with the answer only that the agent has it
	}{
		"nothing":              {1, nil, []acp.ContentBlock{acp.Text("more")}, true},
		"a piece":              {1, []string{`{"sessionUpdate":"user_message_chunk","content":` + more + `}`}, []acp.ContentBlock{acp.Text("more")}, false},
		"two pieces":           {1, []string{`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"mo"}}`, `{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"re"}}`}, []acp.ContentBlock{acp.Text("more")}, true},
		"a piece without":      {1, []string{`{"sessionUpdate":"user_message_chunk","content":` + more + `}`}, []acp.ContentBlock{acp.Text("more"), acp.Text("")}, true},
		"a piece of version 2": {2, []string{`{"sessionUpdate":"user_message_chunk","messageId":"m","content":` + more + `}`}, []acp.ContentBlock{acp.Text("more")}, false},
		"a message":            {2, []string{message(more)}, []acp.ContentBlock{acp.Text("more")}, false},
		"a message without":    {2, []string{message(more)}, []acp.ContentBlock{acp.Text("more"), acp.Text("")}, true},
		"a message twice":      {2, []string{message(more), message(more)}, []acp.ContentBlock{acp.Text("more")}, false},
		"another message":      {2, []string{message(`{"type":"text","text":"<user>more</user>"}`)}, []acp.ContentBlock{acp.Text("more")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			goOn := make(chan struct{})
			agent := talking(goOn)
			agent.Steer = func(ctx context.Context, s *acp.AgentSession, _ *acp.SteerMessage) (acp.SteerOutcome, error) {
				for _, text := range append(slices.Clone(c.says), said(`{"type":"text","text":"heard"}`)) {
					params := json.RawMessage(fmt.Sprintf(`{"sessionId":%q,"update":%s}`, s.ID(), text))
					if err := s.Conn().Conn().Notify(ctx, "session/update", params); err != nil {
						return "", err
					}
				}
				return acp.SteerInjected, nil
			}
			r := newRig(t, agent)
			r.max = c.version
			first := r.connect(2)
			s := first.new(t)
			running := s.Prompt(t.Context(), acp.Text("wait"))
			first.seen.until(t, "agent: waiting")
			if outcome, err := s.Steer(t.Context(), c.content...); outcome != acp.SteerInjected || err != nil {
				t.Fatalf("%q, %v", outcome, err)
			}
			close(goOn)
			if _, err := running.Wait(); err != nil {
				t.Fatal(err)
			}
			want := []string{"user: more", "agent: heard"}
			if c.late {
				slices.Reverse(want)
			}
			late := r.connect(2)
			late.load(t, s.ID())
			for _, o := range []*client{first, late} {
				if diff := cmp.Diff(want, talk(slices.DeleteFunc(o.seen.until(t, "end: end_turn"), func(s string) bool { return s == "user: wait" }))); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestSteerCounted: a message counts as one prompt, whether it is steered, or the client sends it as a prompt since it could
// not be.
func TestSteerCounted(t *testing.T) {
	for _, tt := range []struct {
		name    string
		agent   *acp.Agent
		steered acp.SteerOutcome // what becomes of a message while a turn runs
	}{
		{"steered", taking(), acp.SteerInjected},
		{"queued", &acp.Agent{Prompt: taking().Prompt}, acp.SteerQueued},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mine := &rights{prompts: 9}
			r := newRig(t, tt.agent)
			r.g.cfg.Policy = func(string, []string) Policy { return mine }
			c := r.connect(2)
			s := c.new(t)
			left := func(want int) {
				t.Helper()
				mine.mu.Lock()
				defer mine.mu.Unlock()
				if mine.prompts != want {
					t.Errorf("%d prompts are left, want %d", mine.prompts, want)
				}
			}
			steer := func(text string, want acp.SteerOutcome) {
				t.Helper()
				if outcome, err := s.Steer(t.Context(), acp.Text(text)); outcome != want || err != nil {
					t.Fatalf("%s: %q, %v", text, outcome, err)
				}
			}
			for range 3 { // each of them is counted, and the prompt in their place is not
				steer("go", acp.SteerPromptRequired)
			}
			left(6)
			running := s.Prompt(t.Context(), acp.Text("go"))
			c.seen.until(t, "agent: began")
			left(6)
			steer("stop", tt.steered)
			left(5)
			if tt.steered == acp.SteerQueued {
				next := s.Prompt(t.Context(), acp.Text("stop"))
				queued(r.g.session(string(s.ID())), 2)
				left(5)
				if err := s.Cancel(t.Context()); err != nil {
					t.Error(err)
				}
				_, _ = next.Wait()
			}
			if _, err := running.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSteerRank: what somebody says who may do less than who has begun the turn does not become part of it.
func TestSteerRank(t *testing.T) {
	r := newRig(t, taking())
	owner := r.connectIn(context.WithValue(context.Background(), whoKey{}, whoOf("ann", RoleOwner)), 2)
	s := owner.new(t)
	running := s.Prompt(t.Context(), acp.Text("go"))
	owner.seen.until(t, "agent: began")
	gs := r.g.session(string(s.ID()))
	for rank, want := range map[string]acp.SteerOutcome{RoleViewer: acp.SteerQueued, RolePrompter: acp.SteerQueued, RoleOwner: acp.SteerInjected} {
		m := &steering{id: "u", by: "ann", rank: rank, content: []acp.ContentBlock{acp.Text("as " + rank)}}
		if outcome, seq, err := gs.steer(t.Context(), m); outcome != want || err != nil || (seq > 0) != (want == acp.SteerInjected) {
			t.Errorf("%s: %q, %d, %v", rank, outcome, seq, err)
		}
	}
	if _, err := s.Steer(t.Context(), acp.Text("stop")); err != nil {
		t.Error(err)
	}
	if _, err := running.Wait(); err != nil {
		t.Error(err)
	}
}

// TestSteerElsewhere: a client of another node steers, too.
func TestSteerElsewhere(t *testing.T) {
	dir := t.TempDir()
	a, b := newMember(t, dir, "a", taking()), newMember(t, dir, "b", taking())
	first, second := a.connect(2), b.connect(1)
	s := first.new(t)
	running := s.Prompt(t.Context(), acp.Text("go"))
	first.seen.until(t, "agent: began")
	theirs := second.load(t, s.ID())
	for _, text := range []string{"more", "stop"} {
		if outcome, err := theirs.Steer(t.Context(), acp.Text(text)); outcome != acp.SteerInjected || err != nil {
			t.Fatalf("%q, %v", outcome, err)
		}
	}
	if res, err := running.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
		t.Error(res, err)
	}
	if diff := cmp.Diff([]string{"user: more", "agent: heard more", "user: stop"}, talk(first.seen.until(t, "user: stop"))); diff != "" {
		t.Error(diff)
	}
	if outcome, err := theirs.Steer(t.Context(), acp.Text("late")); outcome != acp.SteerPromptRequired || err != nil {
		t.Errorf("%q, %v", outcome, err)
	}
}

// TestSteerRace: messages that meet the end of a turn are delivered once, in the turn or as prompts.
func TestSteerRace(t *testing.T) {
	const rounds = 100
	var mu sync.Mutex
	got := map[string]int{}
	take := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		got[text]++
	}
	begun, release := make(chan struct{}), make(chan struct{})
	agent := &acp.Agent{Busy: acp.BusySteer, Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		take(t.Text())
		if !strings.HasPrefix(t.Text(), "go") {
			return acp.StopEndTurn, nil
		}
		begun <- struct{}{}
		for {
			select {
			case blocks := <-t.Steering():
				take(blocks[0].(*acp.TextContent).Text)
			case <-release:
				return acp.StopEndTurn, nil
			}
		}
	}}
	r := newRig(t, agent)
	c := r.connect(2)
	s := c.new(t)
	for i := range rounds {
		running := s.Prompt(t.Context(), acp.Text(fmt.Sprint("go ", i)))
		<-begun
		go func() { release <- struct{}{} }()
		text := fmt.Sprint("more ", i)
		outcome, err := s.Steer(t.Context(), acp.Text(text))
		if outcome == acp.SteerPromptRequired || outcome == acp.SteerQueued {
			_, err = s.Prompt(t.Context(), acp.Text(text)).Wait()
		}
		if err != nil {
			t.Fatalf("round %d: %q, %v", i, outcome, err)
		}
		if _, err := running.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for i := range rounds {
		if n := got[fmt.Sprint("more ", i)]; n != 1 {
			t.Errorf("message %d was delivered %d times", i, n)
		}
	}
}
