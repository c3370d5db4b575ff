package backend

import (
	"strings"
	"testing"
)

// TestStderrLast looks for the line that tells why a program has failed.
func TestStderrLast(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"loading\nusage: agent -dir DIRECTORY\n", "usage: agent -dir DIRECTORY"},
		{"no end of the line", "no end of the line"},
		{
			"node:internal/modules/run_main:123\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'\n    at resolve (node:internal:1:2) {\n  code: 'ERR_MODULE_NOT_FOUND'\n}\n\nNode.js v20.20.2\n",
			"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'",
		},
		{"Traceback (most recent call last):\n  File \"x\", line 1\nModuleNotFoundError: No module named 'x'\n", "ModuleNotFoundError: No module named 'x'"},
		{"panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/x/main.go:4 +0x1d\nexit status 2\n", "panic: boom"},
	} {
		w := &stderrLines{note: func(Note) {}}
		_, _ = w.Write([]byte(tt.in))
		w.flush()
		if got := w.last(); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

// TestStderrIndent: lines keep their indentation, as traces of the stack are read by it.
func TestStderrIndent(t *testing.T) {
	var got []string
	w := &stderrLines{note: func(n Note) { got = append(got, n.Text) }}
	_, _ = w.Write([]byte("Traceback\n  File \"x\", line 1\n\tf()\n" + strings.Repeat(" ", 100) + "far\n"))
	w.flush()
	if text := strings.Join(got, "|"); text != "Traceback|  File \"x\", line 1|    f()|"+strings.Repeat(" ", maxIndent)+"far" {
		t.Errorf("%q", text)
	}
}
