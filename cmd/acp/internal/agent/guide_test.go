package agent

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/agent/guide"
)

// TestSkillsAndPrompts: the model learns of skills and reads them by name; prompts from
// files are commands of the session.
func TestSkillsAndPrompts(t *testing.T) {
	w, with := scripted(t, `
when Deploy
use read {"path":"skill:deploy"}
---
when by hand
say I have read it.
---
when Review main against dev
say Reviewed.
`)
	k := start(t, 2, with, func(k *talk) {
		k.write("home/prompts/review.md", "---\ndescription: Review a branch\nargument-hint: BRANCH\n---\nReview $1 against dev.\n")
		k.write("home/prompts/help.md", "Not this one.\n")
		k.write(".agents/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: How to deploy\n---\nIt is done by hand.\n")
		k.home = guide.Home{Config: filepath.Join(k.cwd, "home")}
	})
	contains(t, k.tell("Deploy it."), "I have read it.")
	contains(t, messageText(w.requests[0].Messages[0]), "Read skill:NAME before you do it:\n- deploy: How to deploy\n")
	if c, ok := k.session.Command("review"); !ok || c.Description != "Review a branch" {
		t.Errorf("%+v", c)
	}
	contains(t, k.tell("/review main"), "Reviewed.")
	if got := w.last(); strings.TrimSpace(got) != "Review main against dev." {
		t.Errorf("the model got %q", got)
	}
	contains(t, k.tell("/help"), "I am the agent")
}
