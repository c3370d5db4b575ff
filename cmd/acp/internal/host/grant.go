package host

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
)

// maxGranted bounds what is remembered of what was allowed in a turn; beyond it the user is asked
// again.
const maxGranted = 1024

// granted is what was allowed in the turns that run and is not done yet: agents ask and then have it
// done by us. “Once” is for one time, and for what was asked about to the letter: for anything else
// it is as if nothing had been asked. The zero value has nothing.
type granted struct {
	left map[string]int // how often, below 0 for as long as the turns run
}

func (g *granted) clear() { g.left = nil }

// grant notes that something may be done, once or always.
func (g *granted) grant(what string, always bool) {
	n, has := g.left[what]
	switch {
	case !has && len(g.left) >= maxGranted:
		return
	case always || n < 0:
		n = -1
	default:
		n++
	}
	if g.left == nil {
		g.left = map[string]int{}
	}
	g.left[what] = n
}

// take reports whether something may be done, and takes one time away.
func (g *granted) take(what string) bool {
	n := g.left[what]
	switch {
	case n == 1:
		delete(g.left, what)
	case n > 1:
		g.left[what] = n - 1
	}
	return n != 0
}

func writing(path string) string { return "write\x00" + filepath.Clean(path) }

func running(command, cwd string) string { return "run\x00" + filepath.Clean(cwd) + "\x00" + command }

// grants returns what a request that was allowed lets the agent have done by us. What a tool of
// another kind says it would run was not what was allowed.
func grants(r acphost.Request) (list []string) {
	switch acp.ToolKind(r.Kind) {
	case acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove:
		for _, p := range r.Paths {
			if filepath.IsAbs(p) {
				list = append(list, writing(p))
			}
		}
	case acp.ToolKindExecute, acp.ToolKindOther, "":
		if command := commandOf(r); command != "" {
			list = append(list, running(command, r.Cwd))
		}
	}
	return list
}

// commandOf returns the command that a request shows, also where the rules do not take it for
// certain: a command that is run is compared with the whole of it. It is "" where it could be read
// in two ways.
func commandOf(r acphost.Request) string {
	if r.Command != "" {
		return r.Command
	}
	members, ok := uniqueMembers(r.RawInput)
	if !ok {
		return ""
	}
	var args []string
	if raw, ok := members["args"]; ok && json.Unmarshal(raw, &args) != nil {
		return ""
	}
	var line string
	if json.Unmarshal(members["command"], &line) == nil {
		return commandLine(line, args)
	}
	var words []string
	if json.Unmarshal(members["command"], &words) != nil || len(words) == 0 || len(args) > 0 {
		return ""
	}
	if script, ok := shellScript(words[0], words[1:]); ok {
		return script
	}
	return commandLine(words[0], words[1:])
}

// uniqueMembers returns the members of an object; ok says that none is there twice.
func uniqueMembers(raw json.RawMessage) (members map[string]json.RawMessage, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	members = map[string]json.RawMessage{}
	for dec.More() {
		t, err := dec.Token()
		name, isText := t.(string)
		var value json.RawMessage
		if err != nil || !isText || dec.Decode(&value) != nil {
			return nil, false
		}
		if _, twice := members[name]; twice {
			return nil, false
		}
		members[name] = value
	}
	return members, true
}

// commandLine writes a command for people and rules: arguments that a shell would take apart are
// quoted.
func commandLine(command string, args []string) string {
	if len(args) == 0 {
		return command
	}
	words := make([]string, 0, len(args)+1)
	for i, w := range append([]string{command}, args...) {
		if w == "" || strings.ContainsAny(w, " \t\n\r\v\f\"'`$&|;<>()*?[]{}~#!\\") || i == 0 && strings.Contains(w, "=") {
			w = quoted(w)
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// TerminalCommand returns what a request for a terminal would run, as rules and people read it: with
// the variables it sets, where they can change what the command does.
func TerminalCommand(req *acpv1.CreateTerminalRequest) string {
	return settings(req.Env) + commandLine(req.Command, req.Args)
}

func quoted(w string) string { return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'" }

// shellScript returns the script of "sh -c script" and the like. A program of that name somewhere
// else may be anything.
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

// settings writes variables that a command is to have as a shell would set them, "" if none of them
// can change what the command does. So a rule that allows the command does not allow it with them,
// and one that denies it still does.
func settings(env []acpv1.EnvVariable) string {
	var b strings.Builder
	for _, v := range env {
		if harmless(v.Name, v.Value) {
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

// harmless reports whether a variable says but how a program is to talk, or is set here anyway.
// Others may name what a program loads or runs.
func harmless(name, value string) bool {
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
