package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestDefect: a command that panics, also one of several, has the loop of the screen panic, with where it was.
func TestDefect(t *testing.T) {
	fails := func() tea.Msg { panic("on purpose") }
	works := func() tea.Msg { return "done" }
	for name, cmd := range map[string]tea.Cmd{"alone": fails, "of several": tea.Batch(works, fails), "of several of several": tea.Batch(works, tea.Batch(works, fails))} {
		t.Run(name, func(t *testing.T) {
			var found []defect
			done := 0
			var run func(cmd tea.Cmd)
			run = func(cmd tea.Cmd) {
				switch msg := cmd().(type) {
				case tea.BatchMsg:
					for _, cmd := range msg {
						run(cmd)
					}
				case defect:
					found = append(found, msg)
				default:
					done++
				}
			}
			run(guard(cmd))
			if want := strings.Count(name, "of several"); len(found) != 1 || done != want {
				t.Fatalf("%d defects, %d are done, want %d", len(found), done, want)
			}
			defer func() {
				text := ""
				if err, ok := recover().(error); ok {
					text = err.Error()
				}
				if !strings.HasPrefix(text, "on purpose\n") || !strings.Contains(text, "TestDefect") {
					t.Errorf("the loop panics with %q", text)
				}
			}()
			new(model).Update(found[0])
		})
	}
	if guard(nil) != nil {
		t.Error("no command is one")
	}
}
