package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// inMode is an agent that talks, in a mode; and knows ranks, perhaps.
func inMode(mode string, knows bool, ranks chan<- string) *acp.Agent {
	agent := talking(nil)
	talk := agent.Prompt
	agent.Prompt = func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		var is ownmeta.Rank
		ownmeta.Read(t.Meta(), &is)
		ranks <- is.Rank
		return talk(ctx, t)
	}
	if knows {
		agent.Initialize = func(context.Context, *acp.AgentConn) (json.RawMessage, error) {
			return ownmeta.Of(ownmeta.Ranks{Ranks: true}), nil
		}
	}
	agent.SetOption = func(context.Context, *acp.AgentSession, acp.SessionConfigID, acp.SessionConfigOptionValue) error {
		return nil
	}
	agent.NewSession = func(_ context.Context, s *acp.AgentSession) error {
		if mode == "" {
			return nil
		}
		return s.SetOptions(acp.SessionConfigOption{
			ConfigID: "mode", Name: "Mode", Category: acp.SessionConfigOptionCategoryMode,
			Kind: &acp.SessionConfigSelect{CurrentValue: acp.SessionConfigValueID(mode), Options: acp.SessionConfigSelectOptionList{{Value: acp.SessionConfigValueID(mode), Name: mode}}},
		})
	}
	return agent
}

// TestPrompterInMode: a prompt of somebody who may not approve reaches an agent, in a mode in which that may not ask, only after
// somebody who may approve has allowed it. An agent that knows ranks gets it at once, with the rank.
func TestPrompterInMode(t *testing.T) {
	for _, tt := range []struct {
		mode   string
		knows  bool
		asked  bool
		allows bool
	}{
		{"", false, false, false}, {"ask", false, false, false}, {"default", false, false, false}, {"plan", false, false, false}, {"read-only", false, false, false},
		{"https://agentclientprotocol.com/protocol/session-modes#plan", false, false, false},
		{"auto", false, true, true}, {"full", false, true, false}, {"bypassPermissions", false, true, true}, {"acceptEdits", false, true, false},
		{"yolo", false, true, false}, {"build", false, true, true}, {"https://agentclientprotocol.com/protocol/session-modes#autopilot", false, true, false},
		{"full", true, false, false}, {"auto", true, false, false},
	} {
		for version := 1; version <= 2; version++ {
			ranks := make(chan string, 10)
			r := newRig(t, inMode(tt.mode, tt.knows, ranks))
			r.g.cfg.Who = func(ctx context.Context) Who {
				if who, ok := ctx.Value(whoKey{}).(Who); ok {
					return who
				}
				return whoOf("ann", RoleOwner)
			}
			asked := make(chan string, 10)
			ann := r.connect(version, func(c *acp.Client) {
				c.RequestPermission = func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
					asked <- req.Title
					i := 1
					if tt.allows {
						i = 0
					}
					return acp.SelectPermission(req.Options[i].OptionID), nil
				}
			})
			s := ann.new(t)
			low := r.connectIn(context.WithValue(context.Background(), whoKey{}, whoOf("ann", RolePrompter)), version)
			_, err := low.load(t, s.ID()).Prompt(t.Context(), acp.Text("x")).Wait()
			if ran := err == nil; ran != (!tt.asked || tt.allows) {
				t.Errorf("%q: %v", tt.mode, err)
			}
			if got := len(asked) > 0; got != tt.asked {
				t.Errorf("%q: asked: %v", tt.mode, got)
			} else if got && !strings.Contains(<-asked, "ann's prompter in the mode "+tt.mode) {
				t.Errorf("%q: the question does not say who wants what", tt.mode)
			}
			want := map[bool]string{true: RolePrompter}[tt.knows]
			if err == nil {
				if got := <-ranks; got != want {
					t.Errorf("%q: the agent learns the rank %q", tt.mode, got)
				}
			} else if len(ranks) > 0 {
				t.Errorf("%q: the agent got the prompt", tt.mode)
			}
			say(t, s, "x") // somebody who may approve is not asked
			if len(asked) > 0 {
				t.Errorf("%q: %s", tt.mode, <-asked)
			}
			if want = map[bool]string{true: RoleOwner}[tt.knows]; <-ranks != want {
				t.Errorf("%q: the agent learns another rank than %q of an owner", tt.mode, want)
			}
		}
	}
}

// TestForgedRank: what a client says of its rank counts for nothing.
func TestForgedRank(t *testing.T) {
	ranks := make(chan string, 10)
	r := newRig(t, inMode("full", true, ranks))
	r.g.cfg.Who = func(context.Context) Who { return whoOf("ann", RolePrompter) }
	c := r.connect(2)
	s := c.new(t)
	params := `{"sessionId":"` + string(s.ID()) + `","prompt":[{"type":"text","text":"x"}],"_meta":{"` + metaKey + `":{"rank":"owner"}}}`
	var res json.RawMessage
	if err := c.conn.Conn().Call(t.Context(), "session/prompt", json.RawMessage(params), &res); err != nil {
		t.Fatal(err)
	}
	if got := <-ranks; got != RolePrompter {
		t.Errorf("%q", got)
	}
}

// TestRefusalsBounded: the same refusal again and again is reported once, with how many there were, whatever sessions it names.
func TestRefusalsBounded(t *testing.T) {
	var f refusals
	reported := 0
	for range 100 {
		if _, ok := f.take(Refusal{User: "ann", Method: "m", Session: newID("s_")}); ok {
			reported++
		}
	}
	for i := range 3 * maxRefusals {
		f.take(Refusal{User: "ann", Method: string(rune(i))})
	}
	if reported != 1 || len(f.last) > maxRefusals {
		t.Errorf("%d reports, %d remembered", reported, len(f.last))
	}
	for _, last := range f.last {
		last.at, last.more = last.at.Add(-refusedEvery), 7
	}
	if more, ok := f.take(Refusal{User: "ann", Method: string(rune(3*maxRefusals - 1))}); !ok || more != 7 {
		t.Errorf("%d, %v", more, ok)
	}
	if err := errors.New("x"); sessionIn(err) != "" || sessionIn(nil) != "" || sessionIn(&ShareRequest{SessionID: "s"}) != "s" {
		t.Error("the session of a request")
	}
}

// TestPrompterStopped: who stops the prompt of somebody who may not approve is known, also while it is asked about.
func TestPrompterStopped(t *testing.T) {
	r := newRig(t, inMode("full", false, make(chan string, 1)))
	r.g.cfg.Who = func(ctx context.Context) Who {
		if who, ok := ctx.Value(whoKey{}).(Who); ok {
			return who
		}
		return whoOf("ann", RoleOwner)
	}
	asked := make(chan struct{}, 1)
	ann := r.connect(2, func(c *acp.Client) {
		c.RequestPermission = func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return acp.CancelPermission(), nil
		}
	})
	s := ann.new(t)
	low := r.connectIn(context.WithValue(context.Background(), whoKey{}, whoOf("ann", RolePrompter)), 2)
	reply := low.load(t, s.ID()).Prompt(t.Context(), acp.Text("x"))
	<-asked
	if err := s.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopCancelled {
		t.Errorf("%v, %v", res, err)
	}
	for _, rec := range logOf(t, r, s.ID()) {
		if rec.Kind != kindEnd {
			continue
		}
		if end, err := records.DecodeEnd(rec.Data); err != nil || end.By == "" || end.Lost {
			t.Errorf("the turn has ended as %s, %v", rec.Data, err)
		}
	}
}
