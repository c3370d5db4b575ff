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
	if strings.ContainsFunc(value, func(c rune) bool { return c >= 0x80 || !strings.ContainsRune(plainValue, c) }) {
		return false // make and scripts may expand it
	}
	switch name {
	case "SHELL": // as the shells that are looked through
		_, ok := shellScript(value, []string{"-c", ""})
		return ok && filepath.IsAbs(value)
	case "PAGER", "GIT_PAGER", "MANPAGER", "GH_PAGER", "AWS_PAGER", "SYSTEMD_PAGER":
		return value == "" || value == "cat"
	case "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR":
		return value == "true" || value == ":" || value == "false"
	case "GOTOOLCHAIN":
		return value == "local"
	case "GOWORK":
		return value == "off"
	case "GODEBUG":
		return !strings.Contains(value, "execerrdot")
	case "LESS":
		return strings.Trim(value, "-FRXSKiIJNM") == ""
	}
	return harmlessVariables()[name] || strings.HasPrefix(name, "LC_")
}

// plainValue are the characters of values that nothing expands.
const plainValue = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/=+@%* "

// harmlessVariables are variables that say how much a program says, in which
// language and colors, and for which platform and environment it works. They name
// no file, no program and no options.
var harmlessVariables = namesOf(`
	TERM COLORTERM COLUMNS LINES LANG LANGUAGE TZ NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE CI DEBIAN_FRONTEND GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS
	GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE
	CLAUDECODE CLAUDE_CODE_ENTRYPOINT GEMINI_CLI QWEN_CODE
	CGO_ENABLED GOOS GOARCH GOARM GOARM64 GOAMD64 GO386 GOMIPS GOPPC64 GORISCV64 GOWASM GO111MODULE GOMAXPROCS GOGC GOMEMLIMIT GOTRACEBACK
	NODE_ENV NODE_NO_WARNINGS NODE_DISABLE_COLORS RUST_BACKTRACE RUST_LIB_BACKTRACE RUST_LOG RUST_TEST_THREADS CARGO_TERM_COLOR CARGO_TERM_PROGRESS_WHEN CARGO_TERM_QUIET CARGO_TERM_VERBOSE CARGO_INCREMENTAL CARGO_NET_OFFLINE CARGO_BUILD_JOBS
	PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONIOENCODING PYTHONUTF8 PYTHONFAULTHANDLER
	PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_INPUT PIP_QUIET PIP_PROGRESS_BAR npm_config_loglevel npm_config_fund npm_config_audit npm_config_color npm_config_progress npm_config_update_notifier
	MIX_ENV RAILS_ENV RACK_ENV APP_ENV DEBUG VERBOSE HOMEBREW_NO_AUTO_UPDATE DOTNET_CLI_TELEMETRY_OPTOUT NEXT_TELEMETRY_DISABLED TF_IN_AUTOMATION`)
