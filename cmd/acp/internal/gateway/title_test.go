package gateway

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
)

// TestTitle: a session that nobody has named is listed with the title that its first prompt makes, and one that an agent or a
// user gives it counts more. Nobody who has the session open, or comes, is sent a title that was made.
func TestTitle(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			if title, ok := strings.CutPrefix(t.Text(), "name "); ok {
				return acp.StopEndTurn, t.SetTitle(title)
			}
			return acp.StopEndTurn, t.Say("yes")
		}})
		r.max = agent
		c := r.connect(version)
		s := c.new(t)
		is := func(id acp.SessionID, want string) {
			t.Helper()
			info, err := r.log.Session(t.Context(), string(id))
			if err != nil || info.Title != want {
				t.Errorf("it is called %q, want %q; %v", info.Title, want, err)
			}
			for info, err := range r.connect(version).conn.ListSessions(t.Context(), acp.ListOptions{}) {
				if err != nil || info.SessionID == id && info.Title != want {
					t.Errorf("it is listed as %q, want %q; %v", info.Title, want, err)
				}
			}
		}
		titles := func(c *client) (all []string) {
			for _, text := range c.seen.take() {
				if strings.HasPrefix(text, "title: ") {
					all = append(all, text)
				}
			}
			return all
		}
		for _, tt := range []struct{ prompt, want string }{
			{"/help", "/help"},
			{"\n Fix the bug\nplease", "Fix the bug"},
			{"Another thing", "Fix the bug"},
		} {
			say(t, s, tt.prompt)
			is(s.ID(), tt.want)
		}
		fork, err := c.conn.Fork(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project"})
		if err != nil {
			t.Fatal(err)
		}
		is(fork.ID(), "Fix the bug")
		late := r.connect(version)
		late.load(t, s.ID())
		for who, c := range map[string]*client{"live": c, "loaded": late} {
			if got := titles(c); len(got) > 0 {
				t.Errorf("%s: %q", who, got)
			}
		}
		say(t, s, "name Of the agent")
		say(t, s, "More")
		is(s.ID(), "Of the agent")
		last := r.connect(version)
		last.load(t, s.ID())
		for who, c := range map[string]*client{"live": c, "loaded": last} {
			got := titles(c)
			if slices.Sort(got); !cmp.Equal(slices.Compact(got), []string{"title: Of the agent"}) {
				t.Errorf("%s: %q", who, got)
			}
		}
		named := c.new(t)
		title := "Mine"
		if err := r.g.apply(t.Context(), named.ID(), change{Title: &title}); err != nil {
			t.Fatal(err)
		}
		say(t, named, "Fix it")
		is(named.ID(), "Mine")
	})
}
