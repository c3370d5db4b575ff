package conformance

import (
	"strings"
)

// purposes are what prompts are for, with the words that make agents of our test
// suites, which follow a script, do it in version 1 and 2.
var purposes = map[string]struct {
	About string
	words [2]string
}{
	"text":        {"the agent answers with a short text", [2]string{"hello", "hello"}},
	"chunks":      {"the agent counts from 0 to 49, in many pieces", [2]string{"!chunks 50", "!chunks 50"}},
	"burst":       {"the agent sends thousands of updates as fast as it can", [2]string{"!burst 3000", "!burst 3000"}},
	"large":       {"the agent sends a text of a megabyte in one piece", [2]string{"!big 1000000", "!big 1000000"}},
	"unicode":     {"the agent answers with characters of many scripts", [2]string{"!unicode", "!unicode"}},
	"tool":        {"the agent uses a tool that needs no permission", [2]string{"!permtool", "!permtool"}},
	"permission":  {"the agent asks for permission", [2]string{"!perm", "!perm"}},
	"question":    {"the agent asks and withdraws the question", [2]string{"!permcancel", "!permcancel"}},
	"read":        {"the agent reads {file} through the client", [2]string{"!read {file}", "!read {file}"}},
	"write":       {"the agent writes {file} through the client", [2]string{"!write {file} written", "!write {file} written"}},
	"terminal":    {"the agent runs a command in a terminal of the client", [2]string{"!term echo hello", "!terminal bt1"}},
	"form":        {"the agent shows a form", [2]string{"!elicit", "!elicit"}},
	"link":        {"the agent shows a link to open", [2]string{"!eliciturl", "!eliciturl"}},
	"hang":        {"the agent works until it is cancelled", [2]string{"!hang", "!hang"}},
	"updates":     {"the agent sends one of every update it has", [2]string{"!updates", "!updates"}},
	"plan":        {"the agent shows a plan", [2]string{"!updates", "!updates"}},
	"usage":       {"the agent tells what it has used", [2]string{"!usage", "!usage"}},
	"refusal":     {"the agent refuses", [2]string{"!stop refusal", "!stop refusal"}},
	"failure":     {"the agent fails inside", [2]string{"!fail", "!fail"}},
	"cancellable": {"the agent starts a tool call that can be cancelled", [2]string{"", "!tool tc1"}},
	"held":        {"the agent holds the prompt", [2]string{"!hold", "!hold"}},
	"extension":   {"the agent makes a request of its own", [2]string{"!unknown", "!unknown"}},
	"parallel":    {"the agent makes many requests at once", [2]string{"!parallel 20", "!parallel 20"}},
	"blocks":      {"the agent tells the types of the blocks of the prompt", [2]string{"!blocks", "!blocks"}},
	"mcp":         {"the agent lists the tools of its MCP servers", [2]string{"hello", "hello"}},
}

// Purposes returns what prompts may be for, for [Options.Prompts], with a few
// words that say what the agent has to do.
func Purposes() map[string]string {
	all := map[string]string{}
	for name, p := range purposes {
		all[name] = p.About
	}
	return all
}

// promptText returns the text of a prompt for a purpose, or "" if there is none.
func (o *Options) promptText(purpose string, version int, scripted bool, file string) string {
	text, ok := o.Prompts[purpose]
	if !ok && purpose == "mcp" {
		text, ok = o.Prompts["text"] // most agents connect whatever the prompt says
	}
	if !ok && scripted {
		text = purposes[purpose].words[version-1]
	}
	return strings.ReplaceAll(text, "{file}", file)
}
