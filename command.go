package acp

import "strings"

// Command returns the name and the rest of a prompt that begins with a slash, as
// commands that were announced by [AgentSession.SetCommands] do; ok is false for
// any other prompt. Whether there is such a command is for the agent to say.
func (t *Turn) Command() (name, rest string, ok bool) {
	if len(t.blocks) == 0 {
		return "", "", false
	}
	first, ok := t.blocks[0].(*TextContent)
	if !ok {
		return "", "", false
	}
	line, ok := strings.CutPrefix(strings.TrimSpace(first.Text), "/")
	if !ok {
		return "", "", false
	}
	name, rest, _ = strings.Cut(line, " ")
	return name, strings.TrimSpace(rest), name != ""
}
