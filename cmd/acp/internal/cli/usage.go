package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/cli/version"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// explainArgs has cmd and the commands below it say which argument is missing or too many, and how
// the command is written, in place of how many arguments there were.
func explainArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		explainArgs(sub)
	}
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil || exitcode.Of(err) != exitcode.Failed {
			return err
		}
		use := cmd.CommandPath()
		if _, rest, ok := strings.Cut(cmd.Use, " "); ok {
			use += " " + rest
		}
		for n := len(args) - 1; n >= 0; n-- {
			if check(cmd, args[:n]) == nil {
				return exitcode.Errorf(exitcode.Usage, "unexpected argument %q: %s", args[n], use)
			}
		}
		if len(args) > 0 && len(cmd.ValidArgs) > 0 {
			return exitcode.Errorf(exitcode.Usage, "%q is none of those there are: %s", args[0], use)
		}
		return exitcode.Errorf(exitcode.Usage, "an argument is missing: %s", use)
	}
}

// explainFlags turns the library's error for flags that exclude each other into one that people
// understand, and leaves other errors alone.
func explainFlags(err error) error {
	if err == nil {
		return nil
	}
	if _, after, ok := strings.Cut(err.Error(), "are set none of the others can be; ["); ok {
		if names, _, ok := strings.Cut(after, "]"); ok {
			return exitcode.Errorf(exitcode.Usage, "--%s exclude each other", strings.Join(strings.Fields(names), " and --"))
		}
	}
	return err
}

// addVersion adds the flag --version, which many try first.
func addVersion(root *cobra.Command) {
	root.Flags().Bool("version", false, "print the version")
	root.Version = version.String()
	root.SetVersionTemplate("acp {{.Version}}\n")
}

// strictHelp has the command help refuse what is no command.
func strictHelp(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		help := cmd.Run
		if cmd.Name() != "help" || help == nil {
			continue
		}
		cmd.Run = nil
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			topic, rest, err := root.Find(args)
			if err != nil || topic == nil {
				return exitcode.With(exitcode.Usage, err)
			}
			if len(rest) > 0 {
				return unknownCommand(topic, rest[0])
			}
			help(cmd, args)
			return nil
		}
	}
}
