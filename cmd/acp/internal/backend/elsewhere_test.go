//go:build unix

package backend

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/transcript"
)

// TestElsewhere: a question has the answer that a gateway has decided for, whenever that is said.
func TestElsewhere(t *testing.T) {
	withdrawn := func(ctx context.Context) (acp.PermissionOptionID, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	chooses := func(id acp.PermissionOptionID) func(context.Context) (acp.PermissionOptionID, error) {
		return func(context.Context) (acp.PermissionOptionID, error) { return id, nil }
	}
	for _, tt := range []struct {
		name   string
		here   func(context.Context) (acp.PermissionOptionID, error)
		before bool // the decision is said before the question is withdrawn
		option acp.PermissionOptionID
		want   acpv2.RequestPermissionOutcome
	}{
		{"said before", withdrawn, true, "y", &acpv2.SelectedPermissionOutcome{OptionID: "y"}},
		{"said after", withdrawn, false, "n", &acpv2.SelectedPermissionOutcome{OptionID: "n"}},
		{"dismissed by all", withdrawn, false, "", &acpv2.CancelledPermissionOutcome{}},
		{"dismissed here", chooses(""), false, "y", &acpv2.SelectedPermissionOutcome{OptionID: "y"}},
		{"too late here", chooses("y"), false, "n", &acpv2.SelectedPermissionOutcome{OptionID: "n"}},
		{"too late here, said meanwhile", chooses("y"), true, "n", &acpv2.SelectedPermissionOutcome{OptionID: "n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			versions(t, func(t *testing.T, version int) {
				shown := make(chan struct{}, 1)
				gateway := &acp.Agent{
					Initialize: func(context.Context, *acp.AgentConn) (json.RawMessage, error) {
						return ownmeta.Of(map[string]bool{"gateway": true}), nil
					},
					Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
						say := func() error {
							return turn.Session().Conn().Conn().Notify(turn.Context(), ownmeta.Method+"decided", decided{SessionID: turn.Session().ID(), By: "ann", Outcome: "x", Ask: "ask_1", Option: tt.option})
						}
						ctx, cancel := context.WithCancel(turn.Context())
						defer cancel()
						said := make(chan error, 1)
						go func() {
							<-shown
							if tt.before {
								said <- say()
							}
							cancel()
						}()
						_, _ = turn.WithContext(ctx).Ask(acp.Permission{Title: "Really?", Meta: ownmeta.Of(map[string]string{"ask": "ask_1"}), Options: []acp.PermissionOption{
							{OptionID: "y", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce},
							{OptionID: "n", Name: "No", Kind: acp.PermissionOptionKindRejectOnce},
						}})
						if !tt.before {
							return acp.StopEndTurn, say()
						}
						return acp.StopEndTurn, <-said
					},
				}
				cfg := config(t, version, gateway)
				cfg.Agent.Gateway = true
				cfg.Front.Ask = func(ctx context.Context, _ *Session, _ acphost.Request) (acp.PermissionOptionID, error) {
					shown <- struct{}{}
					return tt.here(ctx)
				}
				settled := make(chan struct{}, 100)
				cfg.Front.Changed = func(*Session, []transcript.Change) { settled <- struct{}{} }
				h := open(t, cfg)
				s, err := h.NewSession(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Prompt(t.Context(), acp.Text("ask")); err != nil {
					t.Fatal(err)
				}
				for {
					var got acpv2.RequestPermissionOutcome
					for e := range s.Snapshot().Entries() {
						if p, ok := e.(*transcript.Permission); ok {
							got = p.Outcome
						}
					}
					if fmt.Sprintf("%T %v", got, got) == fmt.Sprintf("%T %v", tt.want, tt.want) {
						break
					}
					<-settled
				}
			})
		})
	}
}

// TestElsewhereBound: questions of which nothing is said are forgotten.
func TestElsewhereBound(t *testing.T) {
	var e elsewhere
	for i := range 3 * maxElsewhere {
		e.decided(fmt.Sprint(i), &acpv2.CancelledPermissionOutcome{})
	}
	if len(e.open) != maxElsewhere || e.open[0].name != fmt.Sprint(2*maxElsewhere) {
		t.Errorf("%d, from %s", len(e.open), e.open[0].name)
	}
	for _, meta := range []string{"", "null", "[]", `{"github.com/goacp/acp":{"ask":1}}`, `{"github.com/goacp/acp":[]}`} {
		if got := askName(json.RawMessage(meta)); got != "" {
			t.Errorf("%s: %q", meta, got)
		}
	}
}

// TestPatience: the time for an answer here decides nothing for the others at a gateway.
func TestPatience(t *testing.T) {
	for _, gateway := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			agent := &acp.Agent{
				Initialize: func(context.Context, *acp.AgentConn) (json.RawMessage, error) {
					return ownmeta.Of(map[string]bool{"gateway": gateway}), nil
				},
				Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
					ctx, cancel := context.WithTimeout(turn.Context(), 24*time.Hour)
					defer cancel()
					answer, err := turn.WithContext(ctx).Ask(acp.Permission{Title: "Really?"})
					if rejected := err == nil && !answer.Cancelled; rejected == gateway {
						t.Errorf("a gateway, %v: %+v, %v", gateway, answer, err)
					}
					return acp.StopEndTurn, nil
				},
			}
			cfg := config(t, 2, agent)
			cfg.Agent.Gateway = gateway
			cfg.Front.Ask = func(ctx context.Context, _ *Session, _ acphost.Request) (acp.PermissionOptionID, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}
			h := open(t, cfg)
			s, err := h.NewSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Prompt(t.Context(), acp.Text("ask")); err != nil {
				t.Fatal(err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBystander: a command that only looks answers no question of a gateway, whatever its rules say; those of an agent of its
// own it has to answer.
func TestBystander(t *testing.T) {
	for _, tt := range []struct {
		gateway   bool
		effect    acphost.Effect
		cancelled bool
	}{
		{true, acphost.EffectAsk, true},
		{true, acphost.EffectAllow, true},
		{true, acphost.EffectDeny, true},
		{false, acphost.EffectAsk, false},
	} {
		t.Run(fmt.Sprint(tt.gateway, tt.effect), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := &acp.Agent{
					Initialize: func(context.Context, *acp.AgentConn) (json.RawMessage, error) {
						return ownmeta.Of(map[string]bool{"gateway": tt.gateway}), nil
					},
					Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
						ctx, cancel := context.WithTimeout(turn.Context(), 24*time.Hour)
						defer cancel()
						answer, err := turn.WithContext(ctx).Ask(acp.Permission{Title: "Really?"})
						if waited := err != nil || answer.Cancelled; waited != tt.cancelled {
							t.Errorf("%+v, %v", answer, err)
						}
						return acp.StopEndTurn, nil
					},
				}
				cfg := config(t, 2, agent)
				cfg.Agent.Gateway, cfg.Front.Aside = tt.gateway, func() bool { return true }
				cfg.Policy = &acphost.Policy{Default: tt.effect}
				h := open(t, cfg)
				s, err := h.NewSession(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Prompt(t.Context(), acp.Text("ask")); err != nil {
					t.Fatal(err)
				}
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
