package acphost

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp/acpv1"
)

// TerminalCommand returns what a request for a terminal would run as a line for
// rules and people. Words that a shell would take apart are quoted, and variables
// that the request sets come first, where they can change what the command does.
// A command without arguments that [Terminals] would give to a shell is returned as
// it is.
func TerminalCommand(req *acpv1.CreateTerminalRequest) string {
	command := commandLine(req.Command, req.Args)
	if len(req.Args) == 0 && mustQuote(command) && !isLine(command, nil) {
		command = quoted(command)
	}
	if script, ok := shellScript(req.Command, req.Args); ok {
		command = script
	}
	return settings(req.Env) + command
}

// commandLine writes a command for people and rules: arguments that a shell would
// take apart are quoted.
func commandLine(command string, args []string) string {
	if len(args) == 0 {
		return command
	}
	words := make([]string, 0, len(args)+1)
	for i, w := range append([]string{command}, args...) {
		if mustQuote(w) || i == 0 && strings.Contains(w, "=") {
			w = quoted(w)
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// mustQuote reports whether a shell would take a word for something else.
func mustQuote(w string) bool {
	return w == "" || strings.ContainsAny(w, " \t\n\r\v\f\"'`$&|;<>()*?[]{}~#!\\")
}

func quoted(w string) string { return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'" }

// shellScript returns the script of "sh -c script" and the like. A program of that
// name somewhere else may be anything.
func shellScript(command string, args []string) (string, bool) {
	dir, base := filepath.Split(command)
	if dir != "" && !slices.Contains([]string{"/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"}, dir) ||
		!slices.Contains([]string{"sh", "bash", "zsh", "dash", "ksh"}, base) || len(args) != 2 {
		return "", false
	}
	switch args[0] {
	case "-c", "-lc", "-cl":
		return args[1], true
	}
	return "", false
}

// settings writes variables that a command is to have as a shell would set them, ""
// if none of them can change what the command does. So a rule that allows the
// command does not allow it with them, and one that denies it still does.
func settings(env []acpv1.EnvVariable) string {
	var b strings.Builder
	for _, v := range env {
		if harmlessVariable(v.Name, v.Value) {
			continue
		}
		value := v.Value
		if value == "" || strings.ContainsFunc(value, func(c rune) bool {
			return !strings.ContainsRune("-_./:,=+@%", c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
		}) {
			value = quoted(value)
		}
		b.WriteString("export " + v.Name + "=" + value + "; ")
	}
	return b.String()
}

// harmlessVariable reports whether a variable says but how a program is to talk, or
// is set here anyway. Others may name what a program loads or runs.
func harmlessVariable(name, value string) bool {
	if now, ok := os.LookupEnv(name); ok && now == value {
		return true
	}
	switch name {
	case "TERM", "COLORTERM", "COLUMNS", "LINES", "LANG", "LANGUAGE", "TZ", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE",
		"CI", "DEBIAN_FRONTEND", "PYTHONUNBUFFERED", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS",
		"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "GEMINI_CLI", "QWEN_CODE":
		return true
	case "PAGER", "GIT_PAGER", "MANPAGER", "GH_PAGER":
		return value == "" || value == "cat"
	}
	return strings.HasPrefix(name, "LC_")
}
