package backend

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/long"
)

// TestRefusedOnce: a tool call that does not say what it is about is taken for what was refused, one for
// one, and only if it is of that sort. What comes after is reported.
func TestRefusedOnce(t *testing.T) {
	rule := func(name string, r acphost.Rule) acphost.Rule { r.Effect, r.Name = acphost.EffectDeny, name; return r }
	rules := []acphost.Rule{
		rule("deny env", acphost.Rule{Paths: []string{"**/.env"}}),
		rule("deny fetch", acphost.Rule{Kinds: []string{"fetch"}}),
		rule("deny execute", acphost.Rule{Kinds: []string{"execute"}}),
	}
	read := func(turn *acp.Turn) { _, _ = turn.ReadFile(filepath.Join(turn.Session().Cwd(), ".env")) }
	tell := func(turn *acp.Turn, kind acp.ToolKind, title string, paths ...string) {
		c := acp.ToolCall{Title: title, Kind: kind}
		for _, p := range paths {
			c.Locations = append(c.Locations, acp.ToolCallLocation{Path: p})
		}
		_ = turn.ToolCall(c).Complete()
	}
	for _, tt := range []struct {
		name   string
		prompt func(*acp.Turn)
		want   []string
	}{
		{"of another sort", func(turn *acp.Turn) {
			read(turn)
			tell(turn, acp.ToolKindFetch, "fetches")
		}, []string{"denied: Read DIR/.env", "A rule was broken: fetches, forbidden by deny fetch"}},
		{"one for one", func(turn *acp.Turn) {
			h := turn.ToolCall(acp.ToolCall{Title: "demo shell", Kind: acp.ToolKindExecute})
			_, _ = h.Exec(acp.Exec{Command: "true"})
			_ = h.Update(acp.ToolCallUpdate{RawOutput: json.RawMessage(`"refused"`)})
			_ = h.Complete()
			tell(turn, acp.ToolKindExecute, "demo shell again")
		}, []string{"denied: true", "A rule was broken: demo shell again, forbidden by deny execute"}},
		{"a relative path", func(turn *acp.Turn) {
			read(turn)
			tell(turn, acp.ToolKindRead, "reads", ".env")
			tell(turn, acp.ToolKindOther, "looks", ".env")
			tell(turn, acp.ToolKindEdit, "edits", ".env")
		}, []string{"denied: Read DIR/.env", "A rule was broken: edit .env, forbidden by deny env"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := guard(t, 1, rules, tt.prompt, nil)
			put(t, filepath.Join(g.dir, ".env"), "SECRET")
			g.prompt(t)
			if diff := cmp.Diff(tt.want, g.told); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestActsAreBounded: of the tool calls and terminals of a session only the latest are remembered.
func TestActsAreBounded(t *testing.T) {
	var a acts
	many := slices.Repeat([]acp.ToolCallLocation{{Path: "x"}}, 3*maxActParts)
	for i := range 3 * maxTerminals {
		id := acp.ToolCallID(strings.Repeat("x", i%5000) + "y")
		x, _ := a.see(&acp.ToolCallUpdate{ToolCallID: id, Locations: acp.Set(many), RawInput: json.RawMessage(`"` + strings.Repeat("z", maxActInput) + `"`)})
		if n := len(x.call.Locations.Or(nil)); n != maxActParts || x.call.RawInput != nil {
			t.Fatalf("%d locations, %d bytes of input", n, len(x.call.RawInput))
		}
		a.see(&acp.TerminalUpdate{TerminalID: acp.TerminalID(id), Command: acp.Set("x")})
	}
	if n := len(a.byID); n > maxActs || n < maxActs/2 || len(a.order) != n || len(a.terminals) != maxTerminals || len(a.opened) != maxTerminals {
		t.Errorf("%d calls, %d terminals", len(a.byID), len(a.terminals))
	}
}

// TestActBytesAreBounded: whatever an agent tells of its tool calls, what is remembered is within
// maxActsBytes each for calls and terminals.
func TestActBytesAreBounded(t *testing.T) {
	long.Test(t)
	long := strings.Repeat("x", 1<<20)
	path := "/" + strings.Repeat("p", maxActText-1)
	var locations []acp.ToolCallLocation
	diff := new(acp.Diff)
	for range 2 * maxActParts {
		locations = append(locations, acp.ToolCallLocation{Path: path, Meta: json.RawMessage(`{"a":"` + long[:1000] + `"}`)}, acp.ToolCallLocation{Path: long})
		diff.Changes = append(diff.Changes, acp.DiffChange{Operation: &acpv2.DiffModify{Path: path}})
	}
	var content []acp.ToolCallContent
	for i := range 4 {
		content = append(content, diff, &acp.TerminalContent{TerminalID: acp.TerminalID(path[:1000+i])}, &acp.TerminalContent{TerminalID: acp.TerminalID(long)})
	}
	var a acts
	for i := range 2 * maxTerminals {
		id := fmt.Sprint(i)
		a.see(&acp.ToolCallUpdate{
			ToolCallID: acp.ToolCallID(id), Title: acp.Set(long), Name: acp.Set(long), Kind: acp.Set(acp.ToolKind(long)), Status: acp.Set(acp.ToolCallStatus(long)),
			Locations: acp.Set(locations), Content: acp.Set(content), RawInput: json.RawMessage(`"` + long[:maxActInput-2] + `"`),
		})
		a.see(&acp.ToolCallContentChunk{ToolCallID: acp.ToolCallID(id), Content: diff})
		a.see(&acp.ToolCallUpdate{ToolCallID: acp.ToolCallID(id + long)})
		a.see(&acp.TerminalUpdate{TerminalID: acp.TerminalID(id), Command: acp.Set(long[:maxActInput]), Cwd: acp.Set(path)})
		a.see(&acp.TerminalUpdate{TerminalID: acp.TerminalID(id), Command: acp.Set(long), Cwd: acp.Set(long)})
		a.see(&acp.TerminalUpdate{TerminalID: acp.TerminalID(id), Command: acp.Set(long[:maxActInput])})
		a.see(&acp.TerminalUpdate{TerminalID: acp.TerminalID(id + long)})
	}
	calls, terminals := 0, 0
	for _, x := range a.byID {
		calls += x.bytes()
		if len(x.call.Title.Or("")) > 0 || len(x.call.Locations.Or(nil)) != maxActParts {
			t.Fatalf("a title of %d bytes, %d locations", len(x.call.Title.Or("")), len(x.call.Locations.Or(nil)))
		}
	}
	for id, x := range a.terminals {
		terminals += len(id) + len(x.command) + len(x.cwd) + len(x.act)
	}
	if calls != a.size || calls == 0 || calls > maxActsBytes || terminals != a.terminalSize || terminals == 0 || terminals > maxActsBytes {
		t.Errorf("calls take %d (%d), terminals %d (%d)", calls, a.size, terminals, a.terminalSize)
	}
	if len(a.byID) != len(a.order) || len(a.terminals) != len(a.opened) {
		t.Errorf("%d calls of %d, %d terminals of %d", len(a.byID), len(a.order), len(a.terminals), len(a.opened))
	}
}
