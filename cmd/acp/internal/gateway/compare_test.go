package gateway

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// remembering is an agent that keeps its sessions outside its process, and replays them. change may change what it
// replays.
func remembering(h *heard, change func([]string) []string) *acp.Agent {
	a := h.agent()
	said := make(map[acp.SessionID][]string)
	repeat := a.Prompt
	a.Prompt = func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		var all string
		for _, b := range t.Blocks() {
			all += b.(*acp.TextContent).Text
		}
		stop, err := repeat(ctx, t)
		h.mu.Lock()
		defer h.mu.Unlock()
		id := t.Session().ID()
		said[id] = append(said[id], all, "so "+t.Blocks()[len(t.Blocks())-1].(*acp.TextContent).Text)
		return stop, err
	}
	a.ResumeSession = func(_ context.Context, s *acp.AgentSession, replay bool) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.known[s.ID()] {
			return acp.SessionNotFound(s.ID())
		}
		if !replay {
			return nil
		}
		texts := slices.Clone(said[s.ID()])
		if change != nil {
			texts = change(texts)
		}
		for i, text := range texts {
			var err error
			if i%2 == 0 {
				err = s.User(acp.Text(text))
			} else {
				err = s.Say(text)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return a
}

// loadOnly is the stream of an agent of version 1 that can load, and not resume.
type loadOnly struct{ jsonrpc.Stream }

func (s loadOnly) ReadFrame() (jsonrpc.Frame, error) {
	f, err := s.Stream.ReadFrame()
	if err == nil && bytes.Contains(f.Data, []byte(`"loadSession":true`)) {
		f.Data = bytes.ReplaceAll(bytes.Clone(f.Data), []byte(`"resume":{}`), []byte(`"_resume":{}`))
	}
	return f, err
}

// loads makes the agents of a rig load their sessions.
func (r *rig) loads() {
	start := r.g.cfg.Start
	r.g.cfg.Start = func(ctx context.Context, name, cwd string) (acp.Transport, error) {
		if _, err := start(ctx, name, cwd); err != nil {
			return nil, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return acp.Over(loadOnly{r.last}), nil
	}
}

// TestBroughtBack: an agent that was stopped is started by the next prompt. It resumes its session, or loads it, or gets
// what was said.
func TestBroughtBack(t *testing.T) {
	for _, test := range []struct {
		name   string
		load   bool
		change func([]string) []string
		forget bool
		notice string
		blocks int
	}{
		{name: "resume", blocks: 1},
		{name: "load", load: true, blocks: 1},
		{name: "load, white space", load: true, blocks: 1, change: func(texts []string) []string {
			return []string{texts[0] + "\n", " " + strings.ReplaceAll(texts[1], " ", "  "), texts[2], texts[3]}
		}},
		{name: "load, less", load: true, blocks: 1, change: func(texts []string) []string { return texts[:2] },
			notice: "It remembers 1 turns of 2."},
		{name: "load, more", load: true, blocks: 1, change: func(texts []string) []string { return append(texts, "three", "so three") },
			notice: "It remembers 1 turns more than there are here."},
		{name: "load, another prompt", load: true, blocks: 1, change: func(texts []string) []string { return []string{texts[0], texts[1], "x", texts[3]} },
			notice: "Its turn 2 is another one than here."},
		{name: "load, another answer", load: true, blocks: 1, change: func(texts []string) []string { return []string{texts[0], "x", texts[2], texts[3]} },
			notice: "Its answer in turn 1 is another one than here."},
		{name: "a new one", forget: true, blocks: 2, notice: "The agent does not remember this session."},
		{name: "a new one instead of loading", load: true, forget: true, blocks: 2, notice: "The agent does not remember this session."},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := new(heard)
			r := newRig(t, remembering(h, test.change))
			r.max = 1
			if test.load {
				r.loads()
			}
			c := r.connect(2)
			s := c.new(t)
			say(t, s, "one")
			say(t, s, "two")
			if test.forget {
				h.mu.Lock()
				clear(h.known)
				h.mu.Unlock()
			}
			for range 2 { // the second time it has nothing new to say
				r.stopAgent(s.ID())
				if text, _, err := s.Prompt(t.Context(), acp.Text("three")).Text(); err != nil || text != "so three" {
					t.Fatal(text, err)
				}
				if got := h.last(); len(got) != test.blocks {
					t.Errorf("the agent got %q", got)
				}
				if test.forget {
					test.blocks = 1
				}
				if test.change != nil {
					break
				}
			}
			if n := r.starts.Load(); test.change == nil && n != 3 || test.change != nil && n != 2 {
				t.Errorf("%d starts", n)
			}
			other := r.connect(2)
			var said []string
			other.load(t, s.ID())
			for _, text := range other.seen.take() {
				if n, ok := strings.CutPrefix(text, "notice: "); ok {
					said = append(said, n)
				}
			}
			var want []string
			switch {
			case test.forget:
				want = []string{test.notice}
			case test.notice != "":
				want = []string{"The agent remembers this session in another way."}
			}
			if !cmp.Equal(said, want) {
				t.Errorf("notices %q", said)
			}
			if info, err := r.log.Session(t.Context(), string(s.ID())); err != nil || !test.forget && test.notice != "" && !strings.Contains(string(info.Attributes), test.notice) {
				t.Errorf("%s, %v", info.Attributes, err)
			}
		})
	}
}

// TestIdleAgent: an agent that has had nothing to do for a while is stopped, and a session that is watched stays open.
func TestIdleAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan struct{})
		g := &Gateway{cfg: Config{IdleAgent: time.Minute}}
		s := newSession(g, "s")
		defer s.cancel(nil)
		s.watchers[new(watcher)] = true
		s.idle = time.AfterFunc(g.cfg.IdleAgent, func() {
			s.rest()
			close(stopped)
		})
		time.Sleep(59 * time.Second)
		s.mu.Lock()
		s.touch()
		s.mu.Unlock()
		time.Sleep(59 * time.Second)
		select {
		case <-stopped:
			t.Error("stopped early")
		default:
		}
		<-stopped
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			t.Error("a session that is watched was closed")
		}
	})
}
