package app

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestProgram: the commands that the program suggests can be typed.
func TestProgram(t *testing.T) {
	const pkg = "example.com/acp"
	for exe, want := range map[string]string{
		"tmp/go-build123/b001/exe/acp": "go run example.com/acp",
		"home/me/bin/acp":              "home/me/bin/acp",
	} {
		root := t.TempDir()
		got := strings.Join(programAt(filepath.Join(root, filepath.FromSlash(exe)), pkg), " ")
		if want = filepath.FromSlash(want); got != want && got != filepath.Join(root, want) {
			t.Errorf("%s: %s, want %s", exe, got, want)
		}
	}
	if runtime.GOOS == "windows" {
		return // programs have an extension there
	}
	dir := t.TempDir()
	if got := Program([]string{"PATH=" + dir}); got[0] == "acp" {
		t.Errorf("%q, though the PATH has no acp", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "acp"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := Program([]string{"PATH=" + dir}); len(got) != 1 || got[0] != "acp" {
		t.Errorf("%q, though the PATH has acp", got)
	}
}
