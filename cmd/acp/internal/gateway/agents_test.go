package gateway

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// TestAgents: a client gets the agents that its user may use, and of the directories of the user's sessions, the last
// ones first and not too many.
func TestAgents(t *testing.T) {
	r := newRig(t, talking(nil))
	r.g.cfg.Titles = map[string]string{"test": "The Test"}
	policies := map[string]*rights{"bound": {}}
	r.g.cfg.Policy = func(user string, _ []string) Policy {
		if p := policies[user]; p != nil {
			return p
		}
		return nil
	}
	r.g.cfg.Who = func(ctx context.Context) Who {
		user, _ := ctx.Value(userKey{}).(string)
		who := Who{User: user, Rights: MayPrompt | MayApprove}
		if user == "viewer" {
			who.Rights = MayApprove
		}
		if user == "scoped" {
			who.Agent = func(name string) bool { return name == "other" }
		}
		if user == "one" {
			who.Session = func(string) bool { return false }
		}
		return who
	}
	ask := func(user string) *AgentsAnswer {
		t.Helper()
		res, err := AgentsMethod.Call(t.Context(), r.as(user, 2).conn.Conn(), &AgentsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	both := []AgentChoice{{Name: "test", Title: "The Test", Default: true}, {Name: "other"}}
	for user, want := range map[string][]AgentChoice{
		"ann": both, "bound": both[:1], "scoped": both[1:], "viewer": {}, "one": {}, "": {},
	} {
		if got := ask(user); !cmp.Equal(got.Agents, want) || len(got.Directories) > 0 {
			t.Errorf("%q: %+v", user, got)
		}
	}
	r.g.cfg.Installed = func(name string) bool { return name != "other" }
	r.g.cfg.Agents = append(r.g.cfg.Agents, "third")
	if got := ask("ann").Agents; !cmp.Equal(got, []AgentChoice{both[0], {Name: "third"}, {Name: "other", Missing: true}}) {
		t.Errorf("%+v", got)
	}
	r.g.cfg.Directory = "/home/here"
	if got := ask("ann").Directories; !slices.Equal(got, []string{"/home/here"}) {
		t.Error(got)
	}
	if got := ask("bound").Directories; len(got) > 0 {
		t.Error(got)
	}
	for i := range maxDirectories + 5 {
		for _, dir := range []string{"/other", "/project/a", fmt.Sprint("/project/", i)} {
			for _, user := range []string{"ann", "bound"} {
				if _, err := r.log.Create(t.Context(), engine.Session{ID: newID("s_"), Agent: "test", Cwd: dir, Owner: user, State: records.StateIdle}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	got := ask("ann").Directories
	if len(got) != maxDirectories || got[0] != "/project/54" || got[1] != "/project/a" || got[2] != "/other" || got[3] != "/project/53" {
		t.Errorf("%q", got)
	}
	got = ask("bound").Directories
	if len(got) != maxDirectories || got[0] != "/project/54" || got[1] != "/project/a" || got[2] != "/project/53" {
		t.Errorf("%q", got)
	}
	if len(policies["bound"].refused) > 0 {
		t.Errorf("%q was refused, although nobody has asked for it", policies["bound"].refused)
	}
}
