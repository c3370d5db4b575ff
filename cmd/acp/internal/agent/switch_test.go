package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/model/catalog"
	"github.com/goacp/acp/internal/standin"
)

// TestModelSwitch: a conversation goes from one model to another and back, with calls of the
// tools of each. Services that refuse what the real ones refuse take all of it, each model has
// the tool for changes that it was trained on, and what the first one has cached is there
// when it comes back.
func TestModelSwitch(t *testing.T) {
	service := standin.New(standin.Options{Strict: true, Script: func(r *standin.Request) standin.Step {
		var n int
		last := r.Users[len(r.Users)-1]
		if _, err := fmt.Sscanf(last[strings.LastIndex(last, "to ")+3:], "%d", &n); err != nil || r.Answers%2 == 1 {
			return standin.Step{Text: []string{"Done."}}
		}
		old, now := fmt.Sprintf("n=%d;", n-1), fmt.Sprintf("n=%d;", n)
		patch := "*** Begin Patch\n*** Update File: count.txt\n@@\n-" + old + "\n+" + now + "\n*** End Patch"
		call := standin.Call{Name: "edit", Args: map[string]any{"path": "count.txt", "old": old, "new": now}}
		switch {
		case slices.Contains(r.Tools, "apply_patch"):
			call = standin.Call{Name: "apply_patch", Args: patch}
		case slices.Contains(r.Tools, "patch"):
			call = standin.Call{Name: "patch", Args: map[string]any{"patch": patch}}
		}
		return standin.Step{Text: []string{"Now."}, Calls: []standin.Call{call}}
	}})
	defer service.Close()
	own := func(api catalog.API, model, base string) catalog.Own {
		return catalog.Own{API: api, URL: service.URL + base, Key: "key-of-a-test", Models: []string{model}, Context: 200_000}
	}
	models, err := catalog.New(catalog.Settings{
		Use: "a/claude-sonnet-5",
		Own: map[string]catalog.Own{
			"a": own(catalog.Messages, "claude-sonnet-5", ""), "b": own(catalog.Responses, "gpt-5.5", "/v1"),
			"c": own(catalog.Chat, "gpt-5.5", "/v1"), "d": own(catalog.Responses, "gpt-4.1", "/v1"),
		},
		Env: func(string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	k := start(t, 2, func(k *talk) { k.shelf = models })
	k.write("count.txt", "n=0;\n")
	k.tell("/mode auto")
	for i, ref := range []acp.SessionConfigValueID{
		"a/claude-sonnet-5", "b/gpt-5.5", "a/claude-sonnet-5", "c/gpt-5.5", "d/gpt-4.1", "b/gpt-5.5",
	} {
		change(t, k, optionModel, ref)
		k.tell(fmt.Sprintf("Count to %d", i+1))
		if got := k.read("count.txt"); got != fmt.Sprintf("n=%d;\n", i+1) {
			t.Fatalf("%s: the file is %q: %v", ref, got, service.Faults())
		}
	}
	if len(service.Faults()) > 0 {
		t.Errorf("refused: %v", service.Faults())
	}
	bodies := service.Bodies()
	if len(bodies) != 12 {
		t.Fatalf("%d requests", len(bodies))
	}
	was, is := string(bodies[3]), string(bodies[10]) // of the same model
	if cut := strings.LastIndex(was, "],"); !strings.HasPrefix(is, was[:cut]) {
		t.Errorf("what the model has cached is of no use any more:\n%s\n\n%s", was, is)
	}
}
