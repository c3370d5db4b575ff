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
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// heard is an agent that repeats the last block of a prompt and keeps all of it.
type heard struct {
	mu      sync.Mutex
	prompts [][]string
	forked  []acp.SessionID
	known   map[acp.SessionID]bool
}

func (h *heard) agent() *acp.Agent {
	h.known = make(map[acp.SessionID]bool)
	return &acp.Agent{
		NewSession: func(_ context.Context, s *acp.AgentSession) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.known[s.ID()] = true
			return nil
		},
		Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			var texts []string
			for _, b := range t.Blocks() {
				texts = append(texts, b.(*acp.TextContent).Text)
			}
			h.mu.Lock()
			h.prompts = append(h.prompts, texts)
			h.mu.Unlock()
			return acp.StopEndTurn, t.Say("so " + texts[len(texts)-1])
		},
	}
}

// resumes lets the agent bring sessions back.
func (h *heard) resumes(a *acp.Agent) *acp.Agent {
	a.ResumeSession = func(_ context.Context, s *acp.AgentSession, _ bool) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.known[s.ID()] {
			return acp.SessionNotFound(s.ID())
		}
		return nil
	}
	return a
}

// last returns the blocks of the last prompt.
func (h *heard) last() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.prompts[len(h.prompts)-1]
}

func (c *client) fork(t *testing.T, id acp.SessionID, meta string) (*acp.ClientSession, error) {
	t.Helper()
	cfg := acp.SessionConfig{Cwd: "/project"}
	if meta != "" {
		cfg.Meta = json.RawMessage(`{"github.com/goacp/acp":` + meta + `}`)
	}
	return c.conn.Fork(t.Context(), id, cfg)
}

// stopAgent stops the agent of a session, as happens when it is idle.
func (r *rig) stopAgent(id acp.SessionID) {
	s := r.g.session(string(id))
	s.mu.Lock()
	b := s.agent
	s.mu.Unlock()
	if b != nil {
		b.stop()
	}
}

// records returns the kinds of the records of a session, and the first record.
func (r *rig) records(id acp.SessionID) (kinds []engine.Kind, first engine.Record) {
	r.t.Helper()
	err := r.log.Read(r.t.Context(), string(id), 0, func(rec engine.Record) error {
		if rec.Seq == 1 {
			first = rec
		}
		kinds = append(kinds, rec.Kind)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return kinds, first
}

// TestFork: a session of an agent that cannot fork is forked from the log. Its agent gets what was said with the first
// prompt, once, also if it was stopped before; and the session says so.
func TestFork(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		h := new(heard)
		r := newRig(t, h.resumes(h.agent()))
		r.max = agent
		c := r.connect(version)
		s := c.new(t)
		say(t, s, "one")
		say(t, s, "two")
		before, _ := r.records(s.ID())

		f, err := c.fork(t, s.ID(), "")
		if err != nil {
			t.Fatal(err)
		}
		title := "This session was forked from " + string(s.ID()) + "."
		other := r.connect(2)
		other.load(t, f.ID())
		want := []string{"user: one", "agent: so one", "end: end_turn", "user: two", "agent: so two", "end: end_turn", "notice: " + title}
		if got := other.seen.until(t, "notice: "+title); !cmp.Equal(got, want) {
			t.Errorf("history %q", got)
		}
		r.stopAgent(f.ID())
		say(t, f, "three")
		if got := h.last(); len(got) != 2 || !strings.Contains(got[0], "User: one\n\nAgent: so one\n\nUser: two\n\nAgent: so two") || got[1] != "three" {
			t.Errorf("the agent got %q", got)
		}
		r.stopAgent(f.ID())
		say(t, f, "four")
		if got := h.last(); !cmp.Equal(got, []string{"four"}) {
			t.Errorf("the agent got %q", got)
		}
		say(t, s, "five")
		if got := h.last(); !cmp.Equal(got, []string{"five"}) {
			t.Errorf("the agent of the source got %q", got)
		}
		after, _ := r.records(s.ID())
		if !cmp.Equal(after[:len(before)], before) {
			t.Errorf("the source has changed: %q, %q", before, after)
		}
		info, err := r.log.Session(t.Context(), string(f.ID()))
		if err != nil || info.Parent != string(s.ID()) {
			t.Errorf("parent %q, %v", info.Parent, err)
		}
		first := logOf(t, r, f.ID())[1] // behind what describes it
		var origin forkRecord
		if err := json.Unmarshal(first.Data, &origin); err != nil || first.Kind != kindFork || origin.From != string(s.ID()) || origin.At != uint64(len(before)) || origin.Hash == "" || origin.By != local {
			t.Errorf("%s %+v %v", first.Kind, origin, err)
		}
		if err := r.log.Verify(t.Context(), string(f.ID())); err != nil {
			t.Error(err)
		}
	})
}

// TestForkMessages: what the agent of a fork says does not become part of a message of the history.
func TestForkMessages(t *testing.T) {
	r := newRig(t, new(heard).agent())
	c := r.connect(2)
	s := c.new(t)
	say(t, s, "one")
	f, err := c.fork(t, s.ID(), "")
	if err != nil {
		t.Fatal(err)
	}
	say(t, f, "two")
	ids := make(map[acp.MessageID]int)
	err = r.log.Read(t.Context(), string(f.ID()), 0, func(rec engine.Record) error {
		if rec.Kind == kindUpdate {
			u, err := records.DecodeUpdate(rec.Data)
			if c, ok := u.(*acp.AgentMessageChunk); ok {
				ids[c.MessageID]++
			}
			return err
		}
		return nil
	})
	if err != nil || len(ids) != 2 {
		t.Error(ids, err)
	}
}

// TestForkAt: a fork ends where the client says, or with the last turn that had ended there.
func TestForkAt(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, talking(goOn))
	c := r.connect(1)
	s := c.new(t)
	say(t, s, "one")
	say(t, s, "two")
	kinds, _ := r.records(s.ID())
	first := slices.Index(kinds, kindEnd) + 1
	s.Prompt(t.Context(), acp.Text("wait"))
	c.seen.until(t, "agent: waiting")
	defer close(goOn)
	for _, test := range []struct {
		name, meta string
		want       []string
	}{
		{"before anything", `{"at":0}`, nil},
		{"a turn", fmt.Sprintf(`{"at":%d}`, first), []string{"user: one", "agent: one", "end: end_turn"}},
		{"in a turn", fmt.Sprintf(`{"at":%d}`, first+2), []string{"user: one", "agent: one", "end: end_turn"}},
		{"the end, while a turn runs", "", []string{"user: one", "agent: one", "end: end_turn", "user: two", "agent: two", "end: end_turn"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := c.fork(t, s.ID(), test.meta)
			if err != nil {
				t.Fatal(err)
			}
			notice := "notice: This session was forked from " + string(s.ID()) + "."
			other := r.connect(2)
			other.load(t, f.ID())
			if got := other.seen.until(t, notice); !cmp.Equal(got, append(test.want, notice)) {
				t.Errorf("%q", got)
			}
		})
	}
	bad := (*jsonrpc.Error)(nil)
	if _, err := c.fork(t, s.ID(), `{"at":100000}`); !errors.As(err, &bad) || bad.Code != jsonrpc.CodeInvalidParams {
		t.Error("after the end:", err)
	}
	if _, err := c.fork(t, "s_other", ""); !acp.IsSessionNotFound(err) {
		t.Error("another session:", err)
	}
}

// TestForkByAgent: an agent that can fork copies its own session, and nothing is handed over.
func TestForkByAgent(t *testing.T) {
	h := new(heard)
	a := h.resumes(h.agent())
	a.ForkSession = func(_ context.Context, s *acp.AgentSession, from acp.SessionID) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.known[from] {
			return acp.SessionNotFound(from)
		}
		h.known[s.ID()], h.forked = true, append(h.forked, from)
		return nil
	}
	r := newRig(t, a)
	c := r.connect(2)
	s := c.new(t)
	say(t, s, "one")
	f, err := c.fork(t, s.ID(), "")
	if err != nil {
		t.Fatal(err)
	}
	say(t, f, "two")
	if got := h.last(); !cmp.Equal(got, []string{"two"}) || len(h.forked) != 1 {
		t.Errorf("the agent got %q, and forked %q", got, h.forked)
	}
	if f, err = c.fork(t, s.ID(), `{"at":0}`); err != nil {
		t.Fatal(err)
	}
	say(t, f, "three")
	if len(h.forked) != 1 {
		t.Errorf("the agent forked %q", h.forked)
	}
}
