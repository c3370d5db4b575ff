package main

import (
	"os"
	"strings"
	"testing"
)

// TestRun: what is wrong for one system only is found, in packages and in their tests.
func TestRun(t *testing.T) {
	for _, tt := range []struct{ name, args, file, text, want string }{
		{"right everywhere", "windows darwin -- ./...", "a_windows.go", "package a", ""},
		{"wrong for another system", "darwin -- ./...", "a_windows.go", "package a\n\nvar x int = \"\"", ""},
		{"wrong", "darwin windows -- ./...", "a_windows.go", "package a\n\nvar x int = \"\"", "windows: 1 errors"},
		{"a test", "windows -- ./...", "a_windows_test.go", "package a\n\nvar x int = \"\"", "windows: 1 errors"},
		{"no package", "windows -- ./b", "a.go", "package a", "windows: 1 errors"},
		{"no system", "-- ./...", "a.go", "package a", "usage: "},
		{"nothing to check", "windows --", "a.go", "package a", "usage: "},
		{"no end of the systems", "windows", "a.go", "package a", "usage: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("GOWORK", "off")
			t.Setenv("GOFLAGS", "")
			for name, text := range map[string]string{"go.mod": "module example.com/a\n\ngo 1.26\n", "here.go": "package a\n", tt.file: tt.text} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := run(strings.Fields(tt.args), t.Output(), t.Output())
			if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
