package cli

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// TestUsage looks at what people read who mistype something.
func TestUsage(t *testing.T) {
	home := t.TempDir()
	for _, v := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(v, home)
	}
	for _, tt := range []struct {
		args string
		want string // of standard error
	}{
		{"sessions show", "acp: an argument is missing: acp sessions show ID\n"},
		{"sessions show a b", `acp: unexpected argument "b": acp sessions show ID` + "\n"},
		{"sessions list x", `acp: unexpected argument "x": acp sessions list` + "\n"},
		{"config set agent", "acp: an argument is missing: acp config set KEY VALUE\n"},
		{"completion tcsh", `acp: "tcsh" is not a valid argument: acp completion bash|zsh|fish|powershell` + "\n"},
		{"exec --json --quiet hi", "acp: --json and --quiet cannot be combined\n"},
		{"sessions list --all -n 3", "acp: --all and --limit cannot be combined\n"},
		{"trace replay x", "acp: --as is missing: acp trace replay FILE --as SIDE [flags] [-- COMMAND [ARG]...]\n"},
		{"exec --timeout soon hi", `acp: --timeout "soon" is not a duration such as 90s or 5m; see acp exec --help` + "\n"},
		{"sessions list -n x", `acp: --limit "x" is not a whole number; see acp sessions list --help` + "\n"},
		{"exec --json=x hi", `acp: --json "x" is neither true nor false; see acp exec --help` + "\n"},
		{"fix the bug", `acp: unknown command "fix" for "acp"; see acp --help; to send a prompt, use acp exec` + "\n"},
		{"exec --quite hi", "acp: unknown flag: --quite; did you mean --quiet?\n"},
		{"help nonsense", `acp: unknown command "nonsense" for "acp"; see acp --help; to send a prompt, use acp exec` + "\n"},
		{"help sessions lits", `acp: unknown command "lits" for "acp sessions"; did you mean list?` + "\n"},
		{"gemini", "acp: gemini is an agent: to talk to it, write acp chat gemini\n"},
		{"-- my-agent --acp", "acp: to talk to an agent by its command, write acp chat -- my-agent --acp\n"},
		{"sesions", `acp: unknown command "sesions" for "acp"; did you mean sessions?` + "\n"},
		{"what\tis this", `acp: unknown command "what\tis" for "acp"; to send a prompt, use acp exec` + "\n"},
	} {
		var out, errs bytes.Buffer
		code := Main(strings.Split(tt.args, " "), strings.NewReader(""), &out, &errs)
		if code != int(exitcode.Usage) || out.Len() > 0 || errs.String() != tt.want {
			t.Errorf("acp %s: status %d, stdout %q, stderr %q, want %q", tt.args, code, &out, &errs, tt.want)
		}
	}
}

func TestAsksForHelp(t *testing.T) {
	for args, want := range map[string]string{
		"--version":          "acp ",
		"--help":             "acp talks to coding agents",
		"help":               "acp talks to coding agents",
		"help sessions show": "Print a stored conversation.\n",
		"help exec":          "Send one prompt",
		"exec --help":        "Send one prompt",
	} {
		var out, errs bytes.Buffer
		code := Main(strings.Fields(args), strings.NewReader(""), &out, &errs)
		if code != 0 || errs.Len() > 0 || !strings.HasPrefix(out.String(), want) {
			t.Errorf("acp %s: status %d, stderr %q, stdout %.80q, want %q", args, code, &errs, &out, want)
		}
	}
}

// TestExamples: the first help that is read says what to type.
func TestExamples(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Main([]string{"--help"}, strings.NewReader(""), &out, &errs); code != 0 || !strings.Contains(out.String(), "\nExamples:\n  acp ") {
		t.Errorf("status %d, stderr %q:\n%s", code, &errs, &out)
	}
}

// TestUnreadable: nothing can be found in a directory that cannot be read, so it is no place to work.
func TestUnreadable(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("every directory can be read")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o100); err != nil {
		t.Fatal(err)
	}
	if _, err := directory("--cwd", dir); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("%v", err)
	}
}
