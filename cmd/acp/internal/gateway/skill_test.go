package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// skilled returns an agent with a skill that says which blocks its prompts have.
func skilled() *acp.Agent {
	return &acp.Agent{
		Content: acp.PromptContent{Skill: true},
		NewSession: func(_ context.Context, s *acp.AgentSession) error {
			_ = s.SetCommands(acp.SlashCommand{Name: "plan", Description: "plans"})
			return s.SetSkills(acpv2.Skill{Name: "review", Description: "reviews", Path: "/s/SKILL.md"},
				acpv2.Skill{Name: "secret", Description: "for owners", Path: "/t/SKILL.md", Meta: json.RawMessage(`{"github.com/goacp/acp":{"role":"owner"}}`)})
		},
		Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
			var said []string
			for _, b := range turn.Blocks() {
				switch b := b.(type) {
				case *acpv2.SkillReference:
					said = append(said, "skill "+b.Name)
				case *acp.TextContent:
					if strings.HasPrefix(b.Text, handoverBegins) {
						said = append(said, "what was said")
					} else {
						said = append(said, "text "+b.Text)
					}
				}
			}
			return acp.StopEndTurn, turn.Say(strings.Join(said, ", "))
		},
	}
}

// TestSkills: the skills of an agent are skills for clients that know them, and commands for others. Whichever way one is
// invoked, the agent gets a skill, and everybody sees what would have been typed.
func TestSkills(t *testing.T) {
	r := newRig(t, skilled())
	r.max = 2
	first := r.connect(2)
	s := first.new(t)
	watching := r.connect(2)
	watching.load(t, s.ID())
	for _, x := range []struct {
		name    string
		version int
		knows   bool
		prompt  []acp.ContentBlock
	}{
		{"a skill", 2, true, []acp.ContentBlock{&acpv2.SkillReference{Name: "review"}, acp.Text("this")}},
		{"text of who knows skills", 2, true, []acp.ContentBlock{acp.Text("/review this")}},
		{"text of who does not", 2, false, []acp.ContentBlock{acp.Text("/review this")}},
		{"text in version 1", 1, false, []acp.ContentBlock{acp.Text("/review this")}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := r.connect(x.version, func(c *acp.Client) { c.Skills = x.knows })
			cs := c.load(t, s.ID())
			kinds := map[string]string{}
			for _, command := range cs.Commands() {
				switch command := command.(type) {
				case *acp.SlashCommand:
					kinds[command.Name] = "command"
				case *acpv2.Skill:
					kinds[command.Name] = "skill"
				}
			}
			want := map[string]string{"plan": "command", "review": "command", "secret": "command"}
			if x.knows {
				want["review"], want["secret"] = "skill", "skill"
			}
			if diff := cmp.Diff(want, kinds); diff != "" {
				t.Error(diff)
			}
			text, _, err := cs.Prompt(t.Context(), x.prompt...).Text()
			if err != nil || text != "skill review, text this" {
				t.Errorf("the agent got %q, %v", text, err)
			}
		})
	}
	got := strings.Join(watching.seen.until(t, "user: /review this"), "\n")
	if strings.Contains(got, "skill") {
		t.Errorf("a client sees %s", got)
	}
	if _, err := r.connect(2, func(c *acp.Client) { c.Skills = true }).load(t, s.ID()).Prompt(t.Context(), &acpv2.SkillReference{Name: "nope"}).Wait(); err == nil {
		t.Error("an unknown skill is taken")
	}
	r.stopAgent(s.ID()) // which does not remember
	if _, err := s.Prompt(t.Context(), acp.Text("/review this")).Wait(); err != nil {
		t.Error(err)
	}
	first.seen.until(t, "agent: skill review, what was said, text this") // it may hear only now what others were told before
}

// TestSkillsChange: however skills and commands change, a client is sent each list once, as the agent has it. A name may move from
// the ones to the others.
func TestSkillsChange(t *testing.T) {
	lists := [][]acp.AvailableCommand{
		{&acp.SlashCommand{Name: "plan", Description: "plans"}},
		{&acp.SlashCommand{Name: "plan", Description: "plans"}, &acpv2.Skill{Name: "review", Description: "reviews", Path: "/r/SKILL.md"}},
		{&acp.SlashCommand{Name: "review", Description: "reviews"}, &acpv2.Skill{Name: "plan", Description: "plans", Path: "/p/SKILL.md"}},
		{&acpv2.Skill{Name: "plan", Description: "plans", Path: "/p/SKILL.md"}},
		{},
	}
	names := func(list []acp.AvailableCommand) string {
		var all []string
		for _, c := range list {
			switch c := c.(type) {
			case *acp.SlashCommand:
				all = append(all, "command "+c.Name)
			case *acpv2.Skill:
				all = append(all, "skill "+c.Name)
			}
		}
		return strings.Join(all, ", ")
	}
	var want []string
	for _, list := range lists {
		want = append(want, names(list))
	}
	a := &acp.Agent{
		Content: acp.PromptContent{Skill: true},
		Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
			for _, list := range lists {
				if err := turn.Session().SetAvailableCommands(list...); err != nil {
					return "", err
				}
			}
			return acp.StopEndTurn, nil
		},
	}
	r := newRig(t, a)
	r.max = 2
	var mu sync.Mutex
	var got []string
	c := r.connect(2, func(c *acp.Client) {
		c.Skills = true
		c.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			if u, ok := u.Update.(*acp.AvailableCommandsUpdate); ok {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, names(u.AvailableCommands))
			}
		}
	})
	s := c.new(t)
	mu.Lock()
	got = nil // what the session began with
	mu.Unlock()
	say(t, s, "go")
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSkillsOfOthers: what a role may not use it may not use as a skill.
func TestSkillsOfOthers(t *testing.T) {
	r := newRig(t, skilled())
	r.max = 2
	role := Who{User: "anna", Rights: MayPrompt}
	r.g.cfg.Who = func(context.Context) Who { return role }
	s := r.connect(2, func(c *acp.Client) { c.Skills = true }).new(t)
	for _, prompt := range [][]acp.ContentBlock{{&acpv2.SkillReference{Name: "secret"}}, {acp.Text("/secret x")}, {acp.Text("do /secret x")}} {
		_, err := s.Prompt(t.Context(), prompt...).Wait()
		if err == nil || !strings.Contains(fmt.Sprint(err), "use /secret") {
			t.Errorf("%v: %v", prompt[0], err)
		}
	}
	if text, _, err := s.Prompt(t.Context(), &acpv2.SkillReference{Name: "review"}).Text(); err != nil || text != "skill review" {
		t.Errorf("%q, %v", text, err)
	}
}
