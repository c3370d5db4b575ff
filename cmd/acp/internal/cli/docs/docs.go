// Package docs is the hidden command acp docs: it writes the documentation of the commands.
package docs

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/goacp/acp/cmd/acp/internal/app"
)

// NewCommand returns the command.
func NewCommand(a *app.App) *cobra.Command {
	cmd := &cobra.Command{Use: "docs", Short: "Write the documentation of the commands", Hidden: true}
	cmd.AddCommand(&cobra.Command{
		Use:   "markdown",
		Short: "Print docs/cli.md",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := a.Out.Write(Markdown(cmd.Root()))
			return err
		},
	}, &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages into a directory",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return Man(cmd.Root(), args[0])
		},
	})
	return cmd
}

// Man writes the manual pages of all commands into a directory, which it makes. The same program
// writes the same pages.
func Man(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	epoch := time.Unix(0, 0).UTC()
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, &doc.GenManHeader{Title: "ACP", Section: "1", Source: "acp", Manual: "acp", Date: &epoch}, dir); err != nil {
		return fmt.Errorf("manual pages in %s: %w", filepath.Clean(dir), err)
	}
	return nil
}

// The exit statuses, for people.
const statuses = `## Exit statuses

| status | meaning |
|---:|---|
| 0 | what was asked for is done |
| 1 | something failed on this side |
| 2 | wrong flags, arguments or configuration; nothing was started |
| 3 | the agent refused the prompt |
| 4 | the turn was cancelled |
| 5 | a permission that the agent asked for was denied, though the turn may have gone on to its end |
| 6 | the agent could not be started, or ended |
| 7 | the agent answered with an error, or not in the protocol |
| 8 | a time limit was reached |
| 9 | a limit of cost was reached |
| 10 | the agent wants a login first |
| 11 | the agent stopped at a limit of its own: tokens or requests |
| 12 | a rule was broken: the agent did something that a rule denies, without asking |

They never change their meaning. Of several, that which ended the turn counts
first: a limit or an interrupt (8, 9, 4), then a failure (6, 7, 10, 1), then a
broken rule (12), then a refusal or a limit of the agent (3, 11), then a denial (5).

Errors are one line on standard error, beginning with ` + "`acp: `" + `. Standard
output has only what was asked for. When nobody reads standard output any more
the program ends quietly, with status 1.

With ` + "`--json`" + `, commands that list things, or tell what happens one thing after the
other, print an object for each, one in each line, and nothing if there is none;
all others print one object. Members keep their names and meanings, and new ones
may come.
`

const rules = `## Permission rules

` + "`--allow` and `--deny`" + ` take rules of one line: one or more conditions, with
white space or semicolons between them. All of them have to be met, and of
conditions with the same name one.

| condition | meaning |
|---|---|
| ` + "`kind:read,search`" + ` or ` + "`read search`" + ` | kinds of tools: read, edit, delete, move, search, execute, think, fetch, other |
| ` + "`path:src/**`" + ` | files: ` + "`*`" + ` is anything but a slash, ` + "`**`" + ` anything; relative to the working directory |
| ` + "`command:go test *`" + ` | a command, up to a semicolon; ` + "`*`" + ` is any text |
| ` + "`regexp:go (test\\|vet)`" + ` | a command, as a regular expression |
| ` + "`cwd:/home/me/**`" + ` | the working directory |
| ` + "`server:github/*`" + ` | an MCP server, or one of its tools |
| ` + "`*`" + ` | everything; it stands alone |
| ` + "`always`" + ` | “allow always” may be chosen where “allow once” is not offered |

A value in double quotes may have anything in it. Rules that deny come first,
then those of the policy file, then those that allow, then the setting
` + "`permissions.default`" + `.

### Commands

A line is taken apart as Bash would. A rule that denies needs to match one of its
commands, rules that allow have to match all of them.

| in the line | a rule that allows | a rule that denies |
|---|---|---|
| ` + "`a; b && c \\| d`" + `, loops, conditions, ` + "`$(…)`" + ` | every command needs a rule | one command is enough |
| ` + "`timeout 5 a`" + `, ` + "`nohup a`" + `, ` + "`xargs a`" + `, ` + "`bash -c 'a'`" + ` | ` + "`a`" + ` needs a rule | sees ` + "`a`" + ` |
| ` + "`sudo a`" + `, ` + "`find . -exec a`" + ` | both need a rule | sees both |
| ` + "`X=1 a`" + ` | the pattern has to begin with ` + "`X=1`" + ` | sees ` + "`a`" + ` |
| ` + "`git -C x push`" + ` | the pattern has to name ` + "`-C`" + ` | sees ` + "`git push`" + `, too |
| ` + "`GIT_PAGER=a git log`" + `, ` + "`tar --to-command=a`" + `, ` + "`docker exec c sh -c 'a'`" + `, ` + "`other-program 'a'`" + ` | as for ` + "`X=1`" + ` and options; ` + "`other-program *`" + ` covers it | asks if ` + "`a`" + ` may be run |
| ` + "`a --option`" + ` | ` + "`a *`" + ` covers it, unless the option runs a program or writes a file: ` + "`go test -exec`" + `, ` + "`git -c`" + `, ` + "`sort -o`" + `, ` + "`tar --to-command`" + `. A pattern that names it before its first ` + "`*`" + ` covers it | sees it |
| ` + "`a > file`" + ` | ` + "`file`" + ` needs a rule that allows to edit it | a rule about paths sees it |
| ` + "`a file`" + `, ` + "`a --from=file`" + `, ` + "`git show HEAD:file`" + `, ` + "`cd dir && a file`" + ` | ` + "`a *`" + ` covers it | a rule about paths asks |
| ` + "`a $HOME/file`" + `, ` + "`a fi*`" + `, ` + "`a $x`" + ` | ` + "`a *`" + ` covers it, unless it may be an option | a rule about paths asks if it may be the file |
| ` + "`$a`" + `, ` + "`python -c '…'`" + `, ` + "`a \\| sh`" + `, ` + "`ssh host a`" + `, what cannot be parsed | only a rule with the same text allows it | asks |

` + "`cd`" + ` into a directory below the working directory, ` + "`echo`" + `, ` + "`test`" + `, ` + "`true`" + ` and the like
need no rule beside commands that are allowed. ` + "`go test *`" + ` is also about ` + "`go test`" + `.

What an agent shows of a command but does not say for certain, such as a text, is
compared with rules that deny, and not allowed by a rule about commands. If
it does not say what it would run, you are asked.

A rule about paths that denies does not look into directories that are read as a whole
(` + "`grep -r x .`" + `, ` + "`cp -r . y`" + `), nor at names that another program finds (` + "`ls | xargs cat`" + `,
` + "`cat $(git ls-files)`" + `), but at the words of that program.

These rules are a net against mistakes, not a sandbox: a command that is allowed
can run anything by other means, such as a script.
`

// Markdown returns the documentation of all commands.
func Markdown(root *cobra.Command) []byte {
	var b bytes.Buffer
	b.WriteString("# The command acp\n\nWritten by `acp docs markdown`; do not change it by hand.\n\n")
	list(&b, root)
	b.WriteString("\n" + statuses + "\n" + rules + "\n" + hold)
	command(&b, root)
	return b.Bytes()
}

// list writes the table of commands.
func list(w io.Writer, root *cobra.Command) {
	fmt.Fprint(w, "| command | |\n|---|---|\n")
	for _, cmd := range visible(root) {
		fmt.Fprintf(w, "| [`%s`](#%s) | %s |\n", cmd.CommandPath(), anchor(cmd), cell(cmd.Short))
	}
}

// visible returns a command and those below it that are documented.
func visible(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			all = append(all, visible(sub)...)
		}
	}
	return all
}

func anchor(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// command writes what there is to say about a command and those below it.
func command(b *bytes.Buffer, root *cobra.Command) {
	for _, cmd := range visible(root) {
		fmt.Fprintf(b, "\n## %s\n\n", cmd.CommandPath())
		text := cmd.Long
		if text == "" {
			text = cmd.Short + "."
		}
		b.WriteString(paragraphs(text) + "\n")
		if cmd.Runnable() {
			fmt.Fprintf(b, "\n```\n%s\n```\n", cmd.UseLine())
		}
		if cmd.Example != "" {
			fmt.Fprintf(b, "\nExamples:\n\n```sh\n%s\n```\n", dedent(cmd.Example))
		}
		flags(b, "Flags", cmd.NonInheritedFlags())
	}
}

// paragraphs keeps indented lines as they are, in a block.
func paragraphs(text string) string {
	var out []string
	block := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		indented := strings.HasPrefix(line, "  ")
		if indented != block && (indented || line != "") {
			out = append(out, "```")
			block = indented
		}
		out = append(out, line)
	}
	if block {
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}

func dedent(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}

// flags writes the table of flags.
func flags(b *bytes.Buffer, title string, set *pflag.FlagSet) {
	var rows []string
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		text := "`--" + f.Name
		if f.Shorthand != "" {
			text = "`-" + f.Shorthand + "`, " + text
		}
		if name != "" {
			text += " " + name
		}
		text += "`"
		if def := f.DefValue; def != "" && def != "false" && def != "[]" && def != "0" && def != "0s" {
			usage += " (default " + def + ")"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s |", text, cell(usage)))
	})
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n| %s | |\n|---|---|\n%s\n", strings.ToLower(title), strings.Join(rows, "\n"))
	}
}
