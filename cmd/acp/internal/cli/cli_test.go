package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	tests := []struct {
		name           string
		args           []string
		stdin          string
		code           int
		stdout, stderr string
	}{
		{name: "prompt as arguments", args: []string{"hello", "big", "world"}, stdout: "hello big world\n"},
		{name: "prompts from input", stdin: "one two\n\nthree\n", stdout: "one two\nthree\n", stderr: "built-in agent"},
		{name: "no input", stderr: "built-in agent"},
		{name: "help", args: []string{"-h"}, stdout: usage},
		{name: "unknown flag", args: []string{"-x"}, code: 2, stderr: "unknown flag -x"},
		{name: "line beyond the limit", stdin: strings.Repeat("x", maxPrompt+1) + "\n", code: 1, stderr: "token too long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := Main(tt.args, strings.NewReader(tt.stdin), &out, &errs); code != tt.code {
				t.Errorf("exit status %d, want %d; stderr: %s", code, tt.code, &errs)
			}
			if out.String() != tt.stdout {
				t.Errorf("stdout %q, want %q", &out, tt.stdout)
			}
			if !strings.Contains(errs.String(), tt.stderr) {
				t.Errorf("stderr %q lacks %q", &errs, tt.stderr)
			}
		})
	}
}
