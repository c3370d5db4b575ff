// Package completion is the command acp completion: it prints the scripts that make shells complete
// acp's command lines. What is completed is decided in package cli.
package completion

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
)

// Shells are the supported shells.
var Shells = []string{"bash", "zsh", "fish", "powershell"}

// Options are the arguments of the command. Root is the command tree to complete.
type Options struct {
	App   *app.App
	Shell string
	Root  *cobra.Command
}

// NewCommand returns the command. If runF is not nil, it is called instead of the command itself.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that completes command lines",
		Long: `Print a script that makes a shell complete commands, flags, names of agents
and ids of sessions. Load it as follows:

  bash:        source <(acp completion bash)
  zsh:         acp completion zsh > "${fpath[1]}/_acp"
  fish:        acp completion fish > ~/.config/fish/completions/acp.fish
  powershell:  acp completion powershell | Out-String | Invoke-Expression`,
		Args:                  cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs:             Shells,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Shell, o.Root = args[0], cmd.Root()
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return run(o)
		},
	}
}

func run(o *Options) error {
	switch o.Shell {
	case "bash":
		return bash(o.Root, o.App.Out)
	case "zsh":
		return o.Root.GenZshCompletion(o.App.Out)
	case "fish":
		return o.Root.GenFishCompletion(o.App.Out, true)
	default:
		return o.Root.GenPowerShellCompletionWithDesc(o.App.Out)
	}
}

// words replaces a function of the package bash-completion, which many systems do not have. The
// replacement also splits words at = and :, as plain Bash does.
const words = `
__acp_words()
{
    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    words=("${COMP_WORDS[@]}")
    cword=$COMP_CWORD
    cur=${words[cword]}
    prev=
    if [[ $cword -gt 0 ]]; then
        prev=${words[cword-1]}
    fi
}
`

// bash writes cobra's script for Bash, changed to work without the package bash-completion.
func bash(root *cobra.Command, w io.Writer) error {
	var b bytes.Buffer
	if err := root.GenBashCompletionV2(&b, true); err != nil {
		return err
	}
	script := strings.Replace(b.String(), `_get_comp_words_by_ref "$@" cur prev words cword`, `__acp_words "$@"`, 1)
	_, err := io.WriteString(w, script+words)
	return err
}
