// Package docs is the hidden command acp docs: it writes docs/cli.md and the manual pages from the
// command tree, so that they cannot disagree with --help. A test compares docs/cli.md with what
// this package writes. The texts that belong to no single command, on exit statuses and permission
// rules, are constants here.
package docs

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
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

// statuses describes the exit statuses, and the promises that all commands make about their output.
const statuses = `## Exit statuses

| status | meaning |
|---:|---|
| 0 | success |
| 1 | something failed in acp or on this machine, such as that the conversation could not be stored to its end |
| 2 | invalid flags, arguments or configuration; nothing was started |
| 3 | the agent refused the prompt |
| 4 | the turn was cancelled |
| 5 | a permission request was denied; the turn may still have run to its end |
| 6 | the agent could not be started, or it exited |
| 7 | the agent answered with an error, or violated the protocol |
| 8 | a time limit was reached |
| 9 | the cost limit was reached |
| 10 | the agent requires a login, or the gateway another token |
| 11 | the agent stopped at one of its own limits: tokens or requests |
| 12 | a rule was broken: the agent did something that a rule denies, without asking |
| 13 | the built-in agent has no language model, and the prompt is not one of its commands |
| 14 | the language model ended its turn without an answer, also when it was asked to continue |

The meaning of a status never changes. If several apply, the cause that ended the turn
takes precedence: a limit or an interrupt (8, 9, 4), then a failure (6, 7, 10, 1), then
a broken rule (12), then a missing model or answer (13, 14), then a refusal or a
limit of the agent (3, 11), then a denial (5).

An error is one line on standard error that begins with ` + "`acp: `" + `. Standard output
contains only what you asked for. If the reader of standard output goes away, the
program exits silently with status 1. A standard output that is closed from the start
(` + "`>&-`" + `) counts as ` + "`/dev/null`" + `.

With ` + "`--json`" + `, commands that list items or stream events print one JSON object per
line (nothing if there are none); all others print a single object. Members keep their
names and meanings; new members may be added.
`

// rules describes the one-line rules of --allow and --deny. The policy engine in acphost is what
// they have to agree with.
const rules = `## Permission rules

` + "`--allow` and `--deny`" + ` take rules written on one line. A rule consists of one or
more conditions, separated by white space or semicolons. It matches if all of its
conditions do; where several conditions have the same name, one of those is enough.

| condition | meaning |
|---|---|
| ` + "`kind:read,search`" + ` or ` + "`read search`" + ` | kinds of tools: read, edit, delete, move, search, execute, think, fetch, other |
| ` + "`path:src/**`" + ` | files: ` + "`*`" + ` matches anything except a slash, ` + "`**`" + ` matches anything; relative to the working directory |
| ` + "`command:go test *`" + ` | a command, up to a semicolon; ` + "`*`" + ` matches any text |
| ` + "`regexp:go (test\\|vet)`" + ` | a command, as a regular expression |
| ` + "`cwd:/home/me/**`" + ` | the working directory |
| ` + "`server:github/*`" + ` | an MCP server, or one of its tools |
| ` + "`*`" + ` | everything; must be the only condition |
| ` + "`always`" + ` | lets acp choose “allow always” where “allow once” is not offered |

A value in double quotes may contain any character. Deny rules are applied first, then
the rules of the policy file, then allow rules, and finally the setting
` + "`permissions.default`" + `.

Some files are protected, because other programs go by them: hooks and settings of git,
the files that shells, editors and agents read when they start, and what instructs agents
(` + "`.git/**`" + `, ` + "`.envrc`" + `, ` + "`.bashrc`" + `, ` + "`.vscode/**`" + `, ` + "`.mcp.json`" + `, ` + "`.acp*`" + `, ` + "`AGENTS.md`" + `, ` + "`SKILL.md`" + ` …).
To allow a change of such a file, write a path that names it without wildcards in the
name, as ` + "`path:**/AGENTS.md`" + ` does; ` + "`kind:edit`" + ` and ` + "`path:**`" + ` do not cover it, and the rule ` + "`*`" + ` does.

### Commands

A command line is split into commands as Bash would split it. One command that a deny
rule matches is enough to deny the line; to allow the line, allow rules must cover
every command in it.

| in the line | allow rules | deny rules |
|---|---|---|
| ` + "`a; b && c \\| d`" + `, loops, conditions, ` + "`$(…)`" + ` | every command must be allowed | one match is enough |
| ` + "`timeout 5 a`" + `, ` + "`nohup a`" + `, ` + "`xargs a`" + `, ` + "`bash -c 'a'`" + ` | ` + "`a`" + ` must be allowed | apply to ` + "`a`" + ` |
| ` + "`sudo a`" + `, ` + "`find . -exec a`" + ` | both must be allowed | apply to both |
| ` + "`X=1 a`" + ` | the pattern must begin with ` + "`X=1`" + ` | apply to ` + "`a`" + ` |
| ` + "`git -C x push`" + ` | the pattern must include ` + "`-C`" + ` | apply to ` + "`git push`" + `, too |
| ` + "`GIT_PAGER=a git log`" + `, ` + "`tar --to-command=a`" + `, ` + "`docker exec c sh -c 'a'`" + `, ` + "`other-program 'a'`" + ` | as for ` + "`X=1`" + ` and options; ` + "`other-program *`" + ` covers it | acp asks if the line might run ` + "`a`" + ` |
| ` + "`a --option`" + ` | ` + "`a *`" + ` covers it, unless the option runs or loads a program, has it work by other settings, or writes a file: ` + "`go test -exec`" + `, ` + "`git -c`" + `, ` + "`sort -o`" + `, ` + "`tar --to-command`" + `. A pattern that names the option before its first ` + "`*`" + ` covers that as well | apply to it |
| ` + "`npx a --option`" + `, ` + "`uv run a --option`" + `, ` + "`npm test -- --option`" + `, ` + "`kubectl get x --kubeconfig f`" + ` | as for ` + "`a --option`" + `: options count wherever they stand, and so do those of a program that another one runs | apply to ` + "`a`" + `, too |
| ` + "`a @file`" + ` of compilers and test runners, ` + "`a --config=f`" + ` of a program that acp does not know | ` + "`a *`" + ` does not cover it: the file may hold any option, and the name says that something is run or loaded | apply to it |
| ` + "`a > file`" + ` | ` + "`file`" + ` needs a rule that allows editing it | path rules apply |
| ` + "`a file`" + `, ` + "`a --from=file`" + `, ` + "`git show HEAD:file`" + `, ` + "`cd dir && a file`" + ` | ` + "`a *`" + ` covers it | if a path rule matches, acp asks |
| ` + "`a $HOME/file`" + `, ` + "`a fi*`" + `, ` + "`a $x`" + ` | ` + "`a *`" + ` covers it, unless the word might be an option | if a path rule might match, acp asks |
| ` + "`$a`" + `, ` + "`python -c '…'`" + `, ` + "`a \\| sh`" + `, ` + "`ssh host a`" + `, anything that cannot be parsed | only a rule with exactly this text allows it | acp asks |

` + "`cd`" + ` into a directory below the working directory, ` + "`echo`" + `, ` + "`test`" + `, ` + "`true`" + ` and the
like need no rule if the other commands of the line are allowed. Neither do commands
that only read files below it: ` + "`go test *`" + ` allows ` + "`go test ./... | tail -20`" + `. It also
matches ` + "`go test`" + ` without arguments.

The built-in agent runs a line without asking, in read-only mode too, if all of its
commands are known to only read, with exactly these options: ` + "`ls`" + `, ` + "`cat`" + `, ` + "`head`" + `, ` + "`grep`" + `, ` + "`rg`" + `,
` + "`find`" + `, ` + "`sed -n`" + `, ` + "`awk`" + `, ` + "`jq`" + `, ` + "`sort`" + `, ` + "`wc`" + `, ` + "`diff`" + `, ` + "`git status`" + `, ` + "`git log`" + `, ` + "`git diff`" + `, ` + "`go list`" + `,
` + "`node --version`" + ` and the like, with ` + "`|`" + `, ` + "`&&`" + `, ` + "`;`" + `, loops and ` + "`$(…)`" + `. It asks nevertheless if

- a rule that denies or asks is about the line, or about reading a file that it reads, also
  one in a directory that is read as a whole;
- the line reads anything outside of the session's directories, also through a link, or a
  file that usually holds keys (` + "`.env`" + `, ` + "`id_rsa`" + `, ` + "`*.pem`" + `, ` + "`.npmrc`" + `, ` + "`credentials.json`" + ` …), or
  shows a variable of the environment that is not known to hold none, unlike ` + "`HOME`" + ` or ` + "`PATH`" + `,
  or an address that may hold a password, as ` + "`git remote -v`" + ` does;
- it computes with anything but numbers that are written out: a shell runs commands in the
  values of variables that it computes with;
- the client lends terminals: its programs and variables are not the agent's;
- it writes anywhere but to ` + "`/dev/null`" + `, runs something in the background, defines a
  function, or has a variable or a glob that might become an option;
- a program of the line is found in the session's directories, or relative to the working
  directory;
- the repository names filters, drivers or other programs for git that cannot be left out,
  has submodules, or lies elsewhere;
- the prompt comes from somebody who may not approve.

Such a line runs without the settings of git of the user and the system, and with those
of the repository that name programs switched off. go fetches nothing meanwhile.

Some agents only describe a command, for example in a text, without declaring it as what
they would run. Deny rules apply to such a command, but no allow rule about commands
allows it. If an agent does not say what it would run, acp asks.

A deny rule about paths covers the words of a command line. It covers neither the files
in a directory that is read as a whole (` + "`grep -r x .`" + `, ` + "`cp -r . y`" + `) nor names that
another program produces (` + "`ls | xargs cat`" + `, ` + "`cat $(git ls-files)`" + `).

These rules guard against mistakes; they are not a sandbox. A command that is allowed
can run anything by other means, such as a script.
`

// Markdown returns the documentation of all commands: the contents of docs/cli.md.
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

// visible returns cmd and the documented commands below it, parents before children. Hidden
// commands and cobra's own help command are left out.
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

// command writes one section for cmd and for each documented command below it.
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

// paragraphs turns help text into Markdown: indented lines become code blocks, everything else
// stays as it is.
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
		name, usage := described(f)
		text := "`--" + f.Name
		if f.Shorthand != "" {
			text = "`-" + f.Shorthand + "`, " + text
		}
		if name != "" {
			text += " " + name
		}
		text += "`"
		rows = append(rows, fmt.Sprintf("| %s | %s |", text, cell(usage)))
	})
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n| %s | |\n|---|---|\n%s\n", strings.ToLower(title), strings.Join(rows, "\n"))
	}
}
