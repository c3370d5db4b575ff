//go:build unix

package backend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
)

// TestMovedMeanwhile: what the user has allowed counts for what it led to when they were asked. A link
// that the agent changes while they think, or after that, makes it another act.
func TestMovedMeanwhile(t *testing.T) {
	edit := func(turn *acp.Turn, g *guarded) {
		_, _ = turn.ToolCall(acp.ToolCall{Title: "Edit", Kind: acp.ToolKindEdit, Locations: []acp.ToolCallLocation{{Path: g.dir + "/now/f"}}}).Ask(acp.Permission{})
	}
	run := func(turn *acp.Turn, g *guarded) *acp.ToolCallHandle {
		return turn.ToolCall(acp.ToolCall{Title: "Run", Kind: acp.ToolKindExecute, Input: map[string]string{"command": "touch made", "cwd": g.dir + "/now"}})
	}
	touch := func(h *acp.ToolCallHandle, g *guarded) {
		_, _ = h.Exec(acp.Exec{Command: "touch", Args: []string{"made"}, Dir: g.dir + "/now"})
	}
	write := func(turn *acp.Turn, g *guarded) { _ = turn.WriteFile(g.dir+"/now/f", "new") }
	for _, tt := range []struct {
		name    string
		prompt  func(turn *acp.Turn, g *guarded, swap func())
		swap    bool   // while the first question is open
		asked   string // the titles of the questions
		changed string // which of the files are there or have changed
	}{
		{"asked about, nothing changes", func(turn *acp.Turn, g *guarded, _ func()) { edit(turn, g); write(turn, g) }, false, "Edit", "a/f"},
		{"asked about, changed meanwhile", func(turn *acp.Turn, g *guarded, _ func()) { edit(turn, g); write(turn, g) }, true, "Edit|Write DIR/b/f", ""},
		{"asked about, changed later", func(turn *acp.Turn, g *guarded, swap func()) { edit(turn, g); swap(); write(turn, g) }, false, "Edit|Write DIR/b/f", ""},
		{"a file of ours", func(turn *acp.Turn, g *guarded, _ func()) { write(turn, g) }, true, "Write DIR/a/f", ""},
		{"a command asked about", func(turn *acp.Turn, g *guarded, _ func()) {
			h := run(turn, g)
			_, _ = h.Ask(acp.Permission{})
			touch(h, g)
		}, false, "Run", "a/made"},
		{"a command asked about, changed meanwhile", func(turn *acp.Turn, g *guarded, _ func()) {
			h := run(turn, g)
			_, _ = h.Ask(acp.Permission{})
			touch(h, g)
		}, true, "Run|touch made", ""},
		{"a command asked about, changed later", func(turn *acp.Turn, g *guarded, swap func()) {
			h := run(turn, g)
			_, _ = h.Ask(acp.Permission{})
			swap()
			touch(h, g)
		}, false, "Run|touch made", ""},
		{"a directory of ours", func(turn *acp.Turn, g *guarded, _ func()) { touch(run(turn, g), g) }, true, "touch made", ""},
		{"a word of a command", func(turn *acp.Turn, g *guarded, _ func()) {
			_, _ = run(turn, g).Exec(acp.Exec{Command: "touch now/made", Dir: g.dir})
		}, true, "touch now/made", ""},
		{"a word that leads to what a rule denies", func(turn *acp.Turn, g *guarded, _ func()) {
			_, _ = run(turn, g).Exec(acp.Exec{Command: "touch", Args: []string{"now/made"}, Dir: g.dir})
		}, true, "touch now/made", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var g *guarded
			swap := func() {
				now := filepath.Join(g.dir, "now")
				if err := os.Remove(now); err != nil {
					t.Error(err)
				}
				if err := os.Symlink("b", now); err != nil {
					t.Error(err)
				}
			}
			questions := 0
			rules := []acphost.Rule{{Name: "d", Effect: acphost.EffectDeny, Paths: []string{"**/b/made"}}}
			g = guard(t, 1, rules, func(turn *acp.Turn) { tt.prompt(turn, g, swap) }, func(r acphost.Request) acp.PermissionOptionID {
				if questions++; questions > 1 {
					return r.Reject()
				}
				if tt.swap {
					swap()
				}
				return r.Allow()
			})
			put(t, filepath.Join(g.dir, "a", "f"), "old")
			put(t, filepath.Join(g.dir, "b", "f"), "old")
			if err := os.Symlink("a", filepath.Join(g.dir, "now")); err != nil {
				t.Fatal(err)
			}
			g.prompt(t)
			if err := g.s.host.Close(); err != nil { // what still runs
				t.Fatal(err)
			}
			if got := strings.Join(g.asked, "|"); got != tt.asked {
				t.Errorf("asked %q, want %q", got, tt.asked)
			}
			var changed []string
			for _, name := range []string{"a/f", "b/f", "a/made", "b/made"} {
				if text, err := os.ReadFile(filepath.Join(g.dir, name)); err == nil && string(text) != "old" {
					changed = append(changed, name)
				}
			}
			if got := strings.Join(changed, "|"); got != tt.changed {
				t.Errorf("changed %q, want %q", got, tt.changed)
			}
		})
	}
}
