package agent

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
)

// tellAs is tell for somebody of a rank, as a gateway says it. Questions are answered by somebody who may approve.
func (k *talk) tellAs(rank, prompt string) string {
	k.t.Helper()
	k.taken()
	req := &acpv2.PromptRequest{Prompt: []acp.ContentBlock{acp.Text(prompt)}, Meta: ownmeta.Of(ownmeta.Rank{Rank: rank})}
	if _, err := k.session.PromptRequest(k.t.Context(), req).Wait(); err != nil {
		k.t.Fatalf("%s: %v", prompt, err)
	}
	return k.taken()
}

// TestRanks: who may use which command in a gateway's session, and what is asked. Each command has a row, with something that
// changes, or runs, what it can.
func TestRanks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	rows := map[string]struct {
		prompt string
		least  string
		asks   bool // in mode full, for somebody who may not approve
	}{
		"help": {"/help", forPrompters, false}, "read": {"/read main.go", forPrompters, false}, "search": {"/search one", forPrompters, false},
		"edit":  {`/edit main.go println("one") => println("1")`, forPrompters, true},
		"write": {"/write new.txt x", forPrompters, true}, "run": {"/run touch ran", forPrompters, true},
		"plan": {"/plan a; b", forPrompters, false}, "title": {"/title x", forPrompters, false}, "usage": {"/usage", forPrompters, false},
		"compact": {"/compact", forPrompters, false}, "mcp": {"/mcp", forPrompters, false}, "demo": {"/demo flood 1", forPrompters, false},
		"mode": {"/mode auto", forApprovers, false}, "key": {"/key", forApprovers, false}, "sessions": {"/sessions all", forOwners, false},
	}
	for _, c := range commands() {
		row, ok := rows[c.name]
		if !ok {
			t.Errorf("TestRanks has no row for /%s: say who may use it", c.name)
			continue
		}
		if c.role != row.least {
			t.Errorf("/%s is for %q", c.name, c.role)
		}
		for i, rank := range []string{"viewer", forPrompters, forApprovers, forOwners, "something"} {
			k := start(t, 2)
			k.tell("/mode full")
			k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision { return r.Reject() }
			said := k.tellAs(rank, row.prompt)
			least := map[string]int{forPrompters: 1, forApprovers: 2, forOwners: 3}[row.least]
			want := i < least || rank == "something"
			if refused := strings.Contains(said, "Not done: you are a"); refused != want {
				t.Errorf("%s by %s: %s", row.prompt, rank, said)
			}
			if asked := len(k.asked) > 0; asked != (row.asks && rank == forPrompters) {
				t.Errorf("%s by %s: asked: %q", row.prompt, rank, k.asked)
			}
			for _, file := range []string{"new.txt", "ran"} {
				if _, err := os.Stat(filepath.Join(k.cwd, file)); err == nil && (rank == forPrompters || want) {
					t.Errorf("%s by %s: %s is there", row.prompt, rank, file)
				}
			}
			if strings.Contains(said, "allow_always") {
				t.Errorf("%s by %s: an answer for ever is offered: %s", row.prompt, rank, said)
			}
		}
	}
}

// TestRankOfModel: the tools of a model ask for somebody who may not approve, whatever the mode is and was answered before.
func TestRankOfModel(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	_, with := scripted(t, "use run {\"command\":\"touch a\"}\n---\nsay one\n---\nuse run {\"command\":\"touch b\"}\n---\nsay two\n")
	k := start(t, 2, with)
	k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision { return acp.SelectPermission("allow_always") }
	k.tell("one")
	k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision { return r.Reject() }
	k.asked = nil
	k.tellAs(forPrompters, "two")
	if len(k.asked) != 1 {
		t.Errorf("%q", k.asked)
	}
	if _, err := os.Stat(filepath.Join(k.cwd, "b")); err == nil {
		t.Error("b is there")
	}
}
