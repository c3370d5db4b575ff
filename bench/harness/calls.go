package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goacp/acp/internal/standin"
)

// An op is something that the model wants done, whatever the agent calls it.
type op struct {
	do       string // read, edit, write, search or run
	path     string // absolute; the names of search
	old, new string // of edit; new is the text of write, old what search looks for
	command  string // of run
}

// names are what agents call their tools, and parameters what these call what they are given.
var (
	names = map[string][]string{
		"read":   {"read", "read_file", "Read"},
		"edit":   {"edit", "replace", "Edit"},
		"write":  {"write", "write_file", "Write"},
		"search": {"search", "grep_search", "search_file_content", "grep", "Grep"},
		"run":    {"run", "run_shell_command", "bash", "Bash", "exec_command", "shell_command", "shell"},
	}
	parameters = map[string][]string{
		"path":    {"path", "file_path", "filePath", "absolute_path"},
		"old":     {"old", "old_string", "oldString"},
		"new":     {"new", "new_string", "newString"},
		"text":    {"text", "content"},
		"command": {"command", "cmd"},
		"pattern": {"pattern", "query"},
		"glob":    {"glob", "include", "include_pattern"},
	}
)

// call returns the call of a tool that does o, among those that a request offers.
func (o op) call(r *standin.Request, shell bool) (standin.Call, error) {
	do := o.do
	if shell && do != "run" {
		return o.byCommand().call(r, shell)
	}
	i := slices.IndexFunc(names[do], func(n string) bool { return slices.Contains(r.Tools, n) })
	if i < 0 {
		return standin.Call{}, fmt.Errorf("no tool for %s among %q", do, r.Tools)
	}
	name := names[do][i]
	var schema struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(r.Schemas[name], &schema); err != nil {
		return standin.Call{}, fmt.Errorf("the schema of %s: %w", name, err)
	}
	args := object{}
	set := func(what string, value any) {
		for _, p := range parameters[what] {
			if _, ok := schema.Properties[p]; ok {
				args[p] = value
				return
			}
		}
	}
	switch do {
	case "read":
		set("path", o.path)
	case "edit":
		set("path", o.path)
		if _, ok := schema.Properties["edits"]; ok {
			args["edits"] = []object{{"old": o.old, "new": o.new}}
			break
		}
		set("old", o.old)
		set("new", o.new)
	case "write":
		set("path", o.path)
		set("text", o.new)
	case "search":
		set("pattern", o.old)
		set("glob", o.path)
	case "run":
		if name == "shell" {
			args["command"] = []string{"sh", "-c", o.command}
		} else {
			set("command", o.command)
		}
		if _, ok := schema.Properties["sandbox_permissions"]; ok {
			args["sandbox_permissions"], args["justification"] = "require_escalated", "as asked"
		}
	}
	for _, p := range schema.Required {
		if _, ok := args[p]; ok {
			continue
		}
		switch fmt.Sprint(schema.Properties[p].Type) {
		case "boolean", "BOOLEAN":
			args[p] = false
		case "number", "integer", "NUMBER", "INTEGER":
			args[p] = 1
		default:
			args[p] = "as asked"
		}
	}
	return standin.Call{Name: name, Args: args}, nil
}

// byCommand is the op as a command, for agents that have no other tools for files.
func (o op) byCommand() op {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	c := op{do: "run"}
	switch o.do {
	case "read":
		c.command = "cat " + quote(o.path)
	case "search":
		c.command = fmt.Sprintf("rg -n -g %s -e %s . || grep -rn --include=*.ts --include=*.tsx -e %[2]s .", quote(o.path), quote(o.old))
	case "write":
		c.command = fmt.Sprintf("cat > %s <<'END'\n%s\nEND", quote(o.path), strings.TrimSuffix(o.new, "\n"))
	case "edit":
		var b strings.Builder
		fmt.Fprintf(&b, "apply_patch <<'END'\n*** Begin Patch\n*** Update File: %s\n@@\n", o.path)
		for _, l := range strings.Split(strings.TrimSuffix(o.old, "\n"), "\n") {
			b.WriteString("-" + l + "\n")
		}
		for _, l := range strings.Split(strings.TrimSuffix(o.new, "\n"), "\n") {
			b.WriteString("+" + l + "\n")
		}
		b.WriteString("*** End Patch\nEND")
		c.command = b.String()
	}
	return c
}
