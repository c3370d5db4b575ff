//go:build unix

package pty

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
)

// TestLineRunsAsRead: in a pseudo-terminal, too, a line is not the name of a file in the working
// directory.
func TestLineRunsAsRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "cat src"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cat src", "main.go"), []byte("#!/bin/sh\necho evil\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "src", "main.go"), []byte("package main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := acphost.Local()
	h.PTY = Terminals{}
	defer h.Close()
	made, err := h.CreateTerminal(t.Context(), &acpv1.CreateTerminalRequest{SessionID: "s", Command: "cat src/main.go", Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.WaitForTerminalExit(t.Context(), &acpv1.WaitForTerminalExitRequest{SessionID: "s", TerminalID: made.TerminalID}); err != nil {
		t.Fatal(err)
	}
	out, err := h.TerminalOutput(t.Context(), &acpv1.TerminalOutputRequest{SessionID: "s", TerminalID: made.TerminalID})
	if err != nil || strings.TrimSpace(out.Output) != "package main" {
		t.Errorf("%+v, %v", out, err)
	}
}
