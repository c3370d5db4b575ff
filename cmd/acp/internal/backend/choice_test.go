package backend

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// TestChoices: what was chosen is for new sessions, and for an earlier one when it is opened for the first time: when its agent
// is started again, what the user has changed meanwhile stays.
func TestChoices(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		mode := func(now acp.SessionConfigValueID) acp.SessionConfigOption {
			return acp.SessionConfigOption{ConfigID: "manner", Name: "Manner", Category: acp.SessionConfigOptionCategoryMode,
				Kind: &acp.SessionConfigSelect{CurrentValue: now, Options: acp.SessionConfigSelectOptionList{{Value: "ask", Name: "Ask"}, {Value: "code", Name: "Code"}}}}
		}
		var asked []acp.SessionID
		now := acp.SessionConfigValueID("ask")
		agent := &acp.Agent{
			Prompt:        func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil },
			NewSession:    func(_ context.Context, s *acp.AgentSession) error { return s.SetOptions(mode("ask")) },
			ResumeSession: func(_ context.Context, s *acp.AgentSession, _ bool) error { return s.SetOptions(mode(now)) },
			SessionOptions: func(_ context.Context, _ *acp.AgentConn, q *acp.OptionsQuery) (*acp.OptionsPreview, error) {
				asked = append(asked, q.SessionID)
				return &acp.OptionsPreview{ConfigOptions: []acp.SessionConfigOption{mode("ask")}}, nil
			},
			SetOption: func(_ context.Context, _ *acp.AgentSession, _ acp.SessionConfigID, v acp.SessionConfigOptionValue) error {
				now = v.(*acpv2.SessionConfigOptionValueID).Value
				return nil
			},
		}
		choices := &Choices{All: []Choice{{Flag: "--mode code", Category: acp.SessionConfigOptionCategoryMode, Value: "code"}, {Flag: "-o x=1", ID: "x", Value: "1"}}}
		begin := func() *Host {
			cfg := config(t, version, agent)
			cfg.Choices = choices
			return open(t, cfg)
		}
		restored := func() acp.SessionConfigValueID {
			s, _, err := begin().Restore(t.Context(), "s1")
			if err != nil {
				t.Fatal(err)
			}
			return s.Client().Mode()
		}
		s, err := begin().NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Client().Mode(); got != "code" {
			t.Errorf("a new session is in mode %q", got)
		}
		if unset := s.Unset(); len(unset) != 1 {
			t.Errorf("it says that these are not set: %v", unset)
		}
		now = "ask"
		if got := restored(); got != "code" {
			t.Errorf("an earlier session is in mode %q", got)
		}
		now = "ask" // by the user
		if got := restored(); got != "ask" {
			t.Errorf("after a restart it is in mode %q", got)
		}
		if diff := cmp.Diff([]acp.SessionID{"", "s1"}, asked); diff != "" {
			t.Error(diff)
		}
	})
}

// TestChoicesElsewhere: a copy of a session has what the session has, also when it is opened again, and a session that takes the
// place of a lost one has what was chosen.
func TestChoicesElsewhere(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		now := map[acp.SessionID]acp.SessionConfigValueID{}
		set := func(s *acp.AgentSession) error {
			return s.SetOptions(acp.SessionConfigOption{ConfigID: "manner", Name: "Manner", Category: acp.SessionConfigOptionCategoryMode,
				Kind: &acp.SessionConfigSelect{CurrentValue: now[s.ID()], Options: acp.SessionConfigSelectOptionList{{Value: "ask", Name: "Ask"}, {Value: "code", Name: "Code"}}}})
		}
		began := 0
		begin := func(s *acp.AgentSession, mode acp.SessionConfigValueID) error {
			began++
			s.SetID(acp.SessionID(fmt.Sprint("s", began)))
			now[s.ID()] = mode
			return set(s)
		}
		agent := &acp.Agent{
			Prompt:     func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil },
			NewSession: func(_ context.Context, s *acp.AgentSession) error { return begin(s, "ask") },
			ForkSession: func(_ context.Context, s *acp.AgentSession, from acp.SessionID) error {
				return begin(s, now[from])
			},
			ResumeSession: func(_ context.Context, s *acp.AgentSession, _ bool) error {
				if now[s.ID()] == "" {
					return acp.SessionNotFound(s.ID())
				}
				return set(s)
			},
			SetOption: func(_ context.Context, s *acp.AgentSession, _ acp.SessionConfigID, v acp.SessionConfigOptionValue) error {
				now[s.ID()] = v.(*acpv2.SessionConfigOptionValueID).Value
				return nil
			},
		}
		choices := &Choices{All: []Choice{{Flag: "--mode code", Category: acp.SessionConfigOptionCategoryMode, Value: "code"}}}
		host := func() *Host {
			cfg := config(t, version, agent)
			cfg.Choices = choices
			return open(t, cfg)
		}
		has := func(what string, s *Session, want acp.SessionConfigValueID) {
			t.Helper()
			if got := s.Client().Mode(); got != want {
				t.Errorf("%s is in mode %q, not %q", what, got, want)
			}
		}
		h := host()
		s, err := h.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Client().SetMode(t.Context(), "ask"); err != nil { // by the user
			t.Fatal(err)
		}
		fork, err := s.Fork(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		has("a copy", fork, "ask")
		again, _, err := host().Restore(t.Context(), fork.ID())
		if err != nil {
			t.Fatal(err)
		}
		has("a copy that is opened again", again, "ask")
		delete(now, s.ID()) // the agent has forgotten it
		other, how, err := host().Restore(t.Context(), s.ID())
		if err != nil || how != acp.RestoredNew {
			t.Fatal(how, err)
		}
		has("what takes the place of a lost session", other, "code")
	})
}

// TestUnasked: if the agent asks for nothing in the mode in which a session is, the user learns so once, before the first prompt,
// unless the user has chosen the mode.
func TestUnasked(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		for _, x := range []struct {
			alone  []string
			choose string
			says   bool
		}{{[]string{"other", "auto"}, "", true}, {nil, "", false}, {[]string{"auto"}, "ask", false}, {[]string{"auto"}, "auto", false}} {
			agent := &acp.Agent{
				Prompt: func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil },
				NewSession: func(_ context.Context, s *acp.AgentSession) error {
					return s.SetOptions(acp.SessionConfigOption{ConfigID: "manner", Name: "Manner", Category: acp.SessionConfigOptionCategoryMode,
						Kind: &acp.SessionConfigSelect{CurrentValue: "auto", Options: acp.SessionConfigSelectOptionList{{Value: "auto", Name: "Auto"}, {Value: "ask", Name: "Ask"}}}})
				},
				SetOption: func(context.Context, *acp.AgentSession, acp.SessionConfigID, acp.SessionConfigOptionValue) error {
					return nil
				},
			}
			cfg := config(t, version, agent)
			cfg.Agent.Alone = x.alone
			if x.choose != "" {
				cfg.Choices = &Choices{All: []Choice{{Flag: "--mode", Category: acp.SessionConfigOptionCategoryMode, Value: x.choose}}}
			}
			s, err := open(t, cfg).NewSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s.journal.sync()
			said := 0
			for e := range s.Snapshot().Entries() {
				if n, ok := e.(*transcript.Notice); ok && strings.Contains(n.Title, "is in the mode auto, in which it decides by itself") {
					said++
				}
			}
			if (said == 1) != x.says || said > 1 || (s.Unasked() != "") != x.says {
				t.Errorf("%+v: said %d times, %q", x, said, s.Unasked())
			}
		}
	})
}
