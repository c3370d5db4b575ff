package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// TestNewer: a client that knows what is newer than the official schemas gets it: cursors, at which the session is forked,
// suggestions, and the skill.
func TestNewer(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		ours, theirs := jsonrpc.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- serve(context.Background(), theirs, options{}, slog.New(slog.DiscardHandler))
		}()
		var mu sync.Mutex
		var replayed []string
		client := &acp.Client{
			Suggestions: &acp.PromptContent{}, Cursors: true, Skills: true, MinVersion: version, MaxVersion: version,
			Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
				if u.Replayed && u.Kind() != "available_commands_update" {
					mu.Lock()
					defer mu.Unlock()
					replayed = append(replayed, u.Kind())
				}
			},
		}
		c, err := client.Connect(t.Context(), acp.Over(ours))
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		say := func(blocks ...acp.ContentBlock) string {
			t.Helper()
			text, _, err := s.Prompt(t.Context(), blocks...).Text()
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		isSkill := func(c acp.AvailableCommand) bool { _, ok := c.(*acpv2.Skill); return ok }
		if has := slices.ContainsFunc(s.Commands(), isSkill); has != (version == 2) {
			t.Errorf("a skill: %t", has)
		}
		if version == 2 {
			if got := say(&acpv2.SkillReference{Name: "review"}, acp.Text(" this")); got != "skill:review this" {
				t.Errorf("%q", got)
			}
		}
		say(acp.Text("!suggest Run the tests"))
		if got := s.Suggestions(); len(got) != 1 || got[0].Prompt[0].(*acp.TextContent).Text != "Run the tests" {
			t.Errorf("suggested %v", got)
		}
		say(acp.Text("!suggest"))
		if got := s.Suggestions(); len(got) != 0 {
			t.Errorf("suggested %v", got)
		}
		say(acp.Text("!cursor here"))
		say(acp.Text("more"))
		fork, err := s.ForkAt(t.Context(), "here", acp.SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.ForkAt(t.Context(), "nowhere", acp.SessionConfig{Cwd: "/"}); err == nil {
			t.Error("forked nowhere")
		}
		if _, err := c.Load(t.Context(), fork.ID(), acp.SessionConfig{Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
		before := slices.Clone(replayed)
		if _, err := c.Load(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		user, agent := "user_message", "agent_message"
		if version == 1 {
			user, agent = "user_message_chunk", "agent_message_chunk"
		}
		want := []string{user, agent, user, agent, user, agent}
		if version == 2 { // the skill
			want = append(want, user, agent)
		}
		if diff := cmp.Diff(want, before); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(append(want, "cursor_update", user, agent), replayed[len(before):]); diff != "" {
			t.Error(diff)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Errorf("agent: %v", err)
		}
	})
}
