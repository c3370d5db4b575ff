package app

import (
	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// Named parses the arguments of a command that accepts the name of an agent or of something else
// or, after --, the command that starts the agent; the flag --agent, if the command has one, names
// an agent as well. It may return neither. It returns the name beside an error, for callers that
// can explain it better.
func Named(cmd *cobra.Command, args []string, something string) (name string, argv []string, err error) {
	if f := cmd.Flag("agent"); f != nil && f.Changed {
		name = f.Value.String()
	}
	names := args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		names, argv = args[:dash], args[dash:]
		if len(argv) == 0 {
			return name, nil, exitcode.Errorf(exitcode.Usage, "no command after --")
		}
	}
	if len(names) == 1 && name == "" {
		name, names = names[0], nil
	}
	switch {
	case len(names) > 0:
		err = exitcode.Errorf(exitcode.Usage, "more than one %s: %q; a command with arguments comes after --", something, names)
	case name != "" && len(argv) > 0:
		err = exitcode.Errorf(exitcode.Usage, "both an agent (%s) and a command after --", name)
	}
	return name, argv, err
}
