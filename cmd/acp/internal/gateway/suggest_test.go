package gateway

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// suggesting is an agent that suggests the words of a prompt. It knows whether it was asked for that.
func suggesting(t *testing.T) *acp.Agent {
	return &acp.Agent{
		ResumeSession: func(context.Context, *acp.AgentSession, bool) error { return nil },
		Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
			if s := turn.Session().Conn().Capabilities().Session; s == nil || s.PromptSuggestions == nil {
				t.Error("the gateway does not say that it passes suggestions")
			}
			list := []acpv2.PromptSuggestion{}
			for _, word := range strings.Fields(turn.Text()) {
				list = append(list, acpv2.PromptSuggestion{Prompt: []acp.ContentBlock{acp.Text(word)}})
			}
			return acp.StopEndTurn, turn.Send(&acpv2.PromptSuggestionsUpdate{Suggestions: list})
		},
	}
}

// words returns what is suggested in a session.
func words(s *acp.ClientSession) (list []string) {
	for _, s := range s.Suggestions() {
		list = append(list, s.Prompt[0].(*acp.TextContent).Text)
	}
	return list
}

// TestSuggestions: the prompts that the agent suggests reach the clients that offer some, in their place the next ones, and also
// who comes later or back, but not as part of the history; and they count no more when the agent has ended.
func TestSuggestions(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, suggesting(t))
		r.max = agent
		type said struct {
			to *acp.ClientSession
			*acp.Update
		}
		updates := make(chan said, 100)
		offers := func(c *acp.Client) {
			c.Suggestions = &acp.PromptContent{}
			c.Update = func(_ context.Context, to *acp.ClientSession, u *acp.Update) {
				if _, ok := u.Update.(*acpv2.PromptSuggestionsUpdate); ok {
					updates <- said{to, u}
				}
			}
		}
		// both waits until two clients have been sent so many suggestions.
		both := func(n int) {
			got := map[*acp.ClientSession]bool{}
			for len(got) < 2 {
				if u := <-updates; len(u.Update.Update.(*acpv2.PromptSuggestionsUpdate).Suggestions) == n {
					got[u.to] = true
				}
			}
		}
		c, plain := r.connect(version, offers), r.connect(version, func(c *acp.Client) {
			c.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
				if _, ok := u.Update.(*acpv2.PromptSuggestionsUpdate); ok {
					t.Error("a client was sent suggestions that does not offer any")
				}
			}
		})
		s := c.new(t)
		other := plain.load(t, s.ID())
		is := func(s *acp.ClientSession, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, words(s)); diff != "" {
				t.Error(diff)
			}
		}
		is(s)
		say(t, s, "one two")
		is(s, "one", "two")
		say(t, s, "three")
		is(s, "three")

		late := r.connect(version, offers)
		for len(updates) > 0 {
			<-updates
		}
		there := late.load(t, s.ID())
		if u := <-updates; u.Replayed {
			t.Error("the suggestions are part of the history")
		}
		is(there, "three")
		if len(updates) > 0 {
			t.Error("the client was sent suggestions of the history")
		}

		say(t, s, " ")
		is(s)
		say(t, s, "four")
		is(s, "four")
		both(1)
		r.stopAgent(s.ID())
		both(0)
		is(s)
		is(there)
		is(r.connect(version, offers).load(t, s.ID()))
		say(t, other, "five")
	})
}
