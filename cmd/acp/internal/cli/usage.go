package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/goacp/acp/cmd/acp/internal/cli/version"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// explainArgs makes cmd and the commands below it report which argument is missing or unexpected,
// together with the usage line. Cobra's own messages only count arguments.
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
		use := usageLine(cmd)
		// The longest prefix that is valid shows which argument is the first one too many.
		for n := len(args) - 1; n >= 0; n-- {
			if check(cmd, args[:n]) == nil {
				return exitcode.Errorf(exitcode.Usage, "unexpected argument %q: %s", args[n], use)
			}
		}
		if len(args) > 0 && len(cmd.ValidArgs) > 0 {
			return exitcode.Errorf(exitcode.Usage, "%q is not a valid argument: %s", args[0], use)
		}
		return exitcode.Errorf(exitcode.Usage, "an argument is missing: %s", use)
	}
}

// usageLine returns the full usage line of a command: its path and its arguments.
func usageLine(cmd *cobra.Command) string {
	use := cmd.CommandPath()
	if _, rest, ok := strings.Cut(cmd.Use, " "); ok {
		use += " " + rest
	}
	return use
}

// wrongValue returns a readable error for the value of a flag. The library's message names the Go
// function that failed to parse it.
func wrongValue(err error) error {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	name, value := "--"+wrong.GetFlag().Name, wrong.GetValue()
	switch wrong.GetFlag().Value.Type() {
	case "duration":
		return fmt.Errorf("%s %q is not a duration such as 90s or 5m", name, value)
	case "int", "int64":
		return fmt.Errorf("%s %q is not a whole number", name, value)
	case "bool":
		return fmt.Errorf("%s %q is neither true nor false", name, value)
	}
	return err
}

// explainFlags rewrites the library's errors about flags that are missing or exclude each other,
// and returns all other errors unchanged. The library has no types for these errors, so their text
// is matched; if it changes, the original message appears.
func explainFlags(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	if _, after, ok := strings.Cut(err.Error(), "required flag(s) "); ok {
		names := strings.Split(strings.TrimSuffix(after, " not set"), ", ")
		for i, name := range names {
			names[i] = "--" + strings.Trim(name, `"`)
		}
		return exitcode.Errorf(exitcode.Usage, "%s is missing: %s", strings.Join(names, " and "), usageLine(cmd))
	}
	if _, after, ok := strings.Cut(err.Error(), "are set none of the others can be; ["); ok {
		if names, _, ok := strings.Cut(after, "]"); ok {
			return exitcode.Errorf(exitcode.Usage, "--%s cannot be combined", strings.Join(strings.Fields(names), " and --"))
		}
	}
	return err
}

// addVersion adds the flag --version, which many users try before the command of that name. It works whatever else is
// said. The library's own needs a template, for whose sake the linker would keep each exported method of every type.
func addVersion(root *cobra.Command) {
	asked := root.Flags().Bool("version", false, "print the version")
	args, run := root.Args, root.RunE
	root.Args = func(cmd *cobra.Command, rest []string) error {
		if *asked {
			return nil
		}
		return args(cmd, rest)
	}
	root.RunE = func(cmd *cobra.Command, rest []string) error {
		if *asked {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "acp %s\n", version.String())
			return err
		}
		return run(cmd, rest)
	}
}

// strictHelp makes the help command fail for anything that is not a command. By default cobra
// prints the nearest parent's help and reports success.
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
