package tui

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp/acpv2"
)

// TestMark: what is between press and release of the mouse is copied as it was written; a click is none,
// and any key ends it.
func TestMark(t *testing.T) {
	r := newRig(t, 40, 24, nil).start()
	r.said(&acpv2.AgentMessageChunk{MessageID: "a", Content: acpv2.Text("A sentence that is wrapped because it is longer than the screen.\n\nAnother.")})
	row := func(text string) int {
		t.Helper()
		for i, l := range strings.Split(r.screen(), "\n") {
			if strings.Contains(l, text) {
				return i
			}
		}
		t.Fatalf("no %q in\n%s", text, r.screen())
		return 0
	}
	from, to := row("A sentence"), row("Another")
	r.send(tea.MouseClickMsg{X: 3, Y: from, Button: tea.MouseLeft})
	r.send(tea.MouseMotionMsg{X: 9, Y: to, Button: tea.MouseLeft})
	lines, _ := r.m.draw()
	if !strings.Contains(lines[from], "\x1b[7m") || strings.Contains(lines[to+1], "\x1b[7m") {
		t.Errorf("%q", lines)
	}
	r.send(tea.MouseReleaseMsg{X: 9, Y: to, Button: tea.MouseLeft})
	r.wants("copied what you have marked, 73")
	if got, want := r.m.screen.tr.Selected(r.m.screen.marked.from, r.m.screen.marked.to), "A sentence that is wrapped because it is longer than the screen.\n\nAnother"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.keys("x")
	if lines, _ := r.m.draw(); strings.Contains(strings.Join(lines, ""), "\x1b[7m") {
		t.Error("marked after a key")
	}
	if cmd := r.send(tea.MouseClickMsg{X: 3, Y: from, Button: tea.MouseLeft}); cmd != nil {
		t.Error("a click copies")
	}
	r.send(tea.MouseReleaseMsg{X: 3, Y: from, Button: tea.MouseLeft})
	r.send(tea.MouseMotionMsg{X: 9, Y: to, Button: tea.MouseLeft}) // without a press
	if r.m.screen.marked != nil {
		t.Error("marked by a click")
	}
}

// TestFileLink: only files of the project get a link.
func TestFileLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of Unix")
	}
	t.Setenv("SSH_CONNECTION", "")
	for _, tt := range []struct{ how, path, want string }{
		{"file", "/w/a b.go", "file:///w/a%20b.go"}, {"vscode", "/w/a.go", "vscode://file/w/a.go:7"}, {"zed", "/w/a.go", "zed://file/w/a.go:7"},
		{"idea", "/w/a.go", "idea://open?file=%2Fw%2Fa.go&line=7"}, {"off", "/w/a.go", ""}, {"file", "/etc/passwd", ""}, {"file", "a.go", ""}, {"file", "/w/../etc/passwd", ""},
	} {
		r := newRig(t, 80, 24, func(o *Options) { o.cwd = filepath.FromSlash("/w"); o.ui.Links = tt.how })
		if got := r.m.fileLink(tt.path, 7); got != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.how, tt.path, got, tt.want)
		}
	}
}
