package process

import (
	"strings"
	"testing"
)

// TestReason looks for the line that tells why a program has failed.
func TestReason(t *testing.T) {
	const node = "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'\n    at resolve (node:internal:1:2) {\n  code: 'ERR_MODULE_NOT_FOUND'\n}\n\nNode.js v20.20.2\n"
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{" \n\n", ""},
		{"loading\nusage: agent -dir DIRECTORY\n\n", "usage: agent -dir DIRECTORY"},
		{"no end of the line", "no end of the line"},
		{node, "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'"},
		{"fatal: the first\nfatal: the last\nbye\n", "fatal: the last"},
	} {
		if got := Reason(tt.in); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
	if got := (&ExitError{Code: 1, Stderr: node}).Error(); got != "exit status 1: Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'" {
		t.Error(got)
	}
	if got := (&ExitError{Code: -1, Signal: "SIGKILL", Stderr: strings.Repeat("\n", 9)}).Error(); got != "ended by SIGKILL" {
		t.Error(got)
	}
}
