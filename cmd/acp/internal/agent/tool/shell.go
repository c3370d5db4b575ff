package tool

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/withheld"
)

// Shell returns the name of the shell that runs the lines of [Run]: bash where there is one,
// which is what models write for, or else sh; on Windows cmd. It is looked for once.
func Shell() string { return theShell() }

var theShell = sync.OnceValue(func() string { return shellOf(runtime.GOOS, exec.LookPath) })

// shellOf is Shell for a system and what it finds.
func shellOf(system string, look func(string) (string, error)) string {
	if system == "windows" {
		return "cmd"
	}
	if _, err := look("bash"); err != nil {
		return "sh"
	}
	return "bash"
}

// noEditor is what runs in the place of an editor: it fails at once and says what to do.
// Programs that split it at blanks, in place of having a shell do it, fail as well.
const noEditor = `sh -c 'echo "There is no editor here: give the text as an argument, as with git commit -m, ` +
	`or set GIT_EDITOR=true to keep the text that there is." >&2; exit 1' editor`

// environment is what is set for commands: nobody can read on page by page, type into an
// editor or a question, or see colours.
var environment = []acp.EnvVariable{
	{Name: "TERM", Value: "dumb"}, {Name: "NO_COLOR", Value: "1"},
	{Name: "PAGER", Value: "cat"}, {Name: "GIT_PAGER", Value: "cat"}, {Name: "MANPAGER", Value: "cat"},
	{Name: "GH_PAGER", Value: "cat"}, {Name: "SYSTEMD_PAGER", Value: "cat"}, {Name: "AWS_PAGER", Value: "cat"},
	{Name: "EDITOR", Value: noEditor}, {Name: "VISUAL", Value: noEditor},
	{Name: "GIT_EDITOR", Value: noEditor}, {Name: "GIT_SEQUENCE_EDITOR", Value: noEditor},
	{Name: "GIT_TERMINAL_PROMPT", Value: "0"},
}

// unset are variables that ask for colours whatever TERM is. A terminal that the client lends
// has them all the same.
var unset = []string{"FORCE_COLOR=", "CLICOLOR_FORCE=", "GIT_PAGER_IN_USE="}

// command returns what runs a line of the shell, without keys.
func command(keys *withheld.Keys, line, dir string) acp.Exec {
	args := []string{"-c", line}
	if Shell() == "cmd" {
		args[0] = "/C"
	}
	return acp.Exec{
		Command: Shell(), Args: args, Line: line, Dir: dir, OutputLimit: MaxOutput,
		Environ: environ(keys), Env: environment, Hide: keys.Values(),
	}
}

// environ returns the environment there is, without keys and what asks for colours.
func environ(keys *withheld.Keys) []string {
	all := keys.Environ()
	if all == nil {
		all = os.Environ()
	}
	return slices.DeleteFunc(slices.Clone(all), func(v string) bool {
		return slices.ContainsFunc(unset, func(name string) bool { return strings.HasPrefix(v, name) })
	})
}
