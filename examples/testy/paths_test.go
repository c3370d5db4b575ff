package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRelativePaths: read and write take paths relative to the session's directory, which is the root
// here, and tell as text what fails.
func TestRelativePaths(t *testing.T) {
	dir := t.TempDir()
	if filepath.Separator != '/' {
		t.Skip("the session's directory is /")
	}
	name := strings.TrimPrefix(filepath.Join(dir, "f.txt"), "/")
	p := dial(t, 2, false)
	for _, tt := range []struct{ prompt, want string }{
		{"write " + name + " some text", "written"},
		{"read " + name, "some text"},
		{"read " + name + ".not", "read failed: "},
		{"write " + strings.TrimPrefix(dir, "/") + " x", "write failed: "},
	} {
		text, stop, err := p.say(tt.prompt)
		if err != nil || stop != "end_turn" || !strings.HasPrefix(text, tt.want) {
			t.Errorf("%s: %q, %s, %v; want %q", tt.prompt, text, stop, err, tt.want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "f.txt")); err != nil || string(got) != "some text" {
		t.Errorf("%q, %v", got, err)
	}
}
