package acphost

import (
	"testing"

	"github.com/goacp/acp/acpv1"
)

func TestTerminalCommand(t *testing.T) {
	t.Setenv("H3_SAME", "v")
	env := []acpv1.EnvVariable{{Name: "H3_SAME", Value: "v"}, {Name: "LC_ALL", Value: "C"}, {Name: "A", Value: ""}, {Name: "B", Value: "it's"}, {Name: "PAGER", Value: "less"}}
	for _, tt := range []struct {
		req  acpv1.CreateTerminalRequest
		want string
	}{
		{acpv1.CreateTerminalRequest{Command: "ls | wc"}, "ls | wc"},
		{acpv1.CreateTerminalRequest{Command: "ls", Args: []string{"-l", "a b"}}, "ls -l 'a b'"},
		{acpv1.CreateTerminalRequest{Command: "sh", Args: []string{"-c", "ls | wc"}}, "ls | wc"},
		{acpv1.CreateTerminalRequest{Command: "/tmp/sh", Args: []string{"-c", "ls"}}, "/tmp/sh -c ls"},
		{acpv1.CreateTerminalRequest{Command: "A=b", Args: []string{"x"}}, "'A=b' x"},
		{acpv1.CreateTerminalRequest{Command: "ls", Env: env}, `export A=''; export B='it'\''s'; export PAGER=less; ls`},
	} {
		if got := TerminalCommand(&tt.req); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
