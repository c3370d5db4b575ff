// Package shown says what tool calls and questions in a conversation are about, so that screens, lines
// and exports name the same: what would be run always, in whatever shape the agent told it.
package shown

import (
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// Command returns the command that a tool call shows, and whether it is certain: see
// [acphost.Request.Shows].
func Command(c *transcript.ToolCall) (command string, certain bool) {
	u, ok := c.Update().(*acp.ToolCallUpdate)
	if !ok {
		return "", true
	}
	return acphost.ToolCallCommand(u)
}

// Asked returns the command that a question is about, and whether it is certain.
func Asked(t *transcript.Snapshot, p *transcript.Permission) (command string, certain bool) {
	switch s := p.Subject.(type) {
	case *acpv2.CommandPermissionSubject:
		return s.Command, true
	case *acpv2.ToolCallPermissionSubject:
		if c := t.ToolCall(s.ToolCall.ToolCallID); c != nil {
			return Command(c)
		}
	}
	return "", true
}

// Title returns the title of a tool call, or its name or kind, with the command that it shows if the
// title does not have that. It may be of several lines.
func Title(c *transcript.ToolCall) string {
	title := c.Title
	if strings.TrimSpace(title) == "" {
		title = c.Name
	}
	if strings.TrimSpace(title) == "" {
		title = string(c.Kind)
	}
	command, _ := Command(c)
	return With(title, command)
}

// With returns a title with a command behind it, unless the title has it.
func With(title, command string) string {
	if command = strings.TrimSpace(command); command == "" || strings.Contains(squeeze(title), squeeze(command)) {
		return title
	}
	// A long command may be cut in the title.
	if cut := strings.TrimRight(squeeze(title), "….`"); len(cut) >= 20 && strings.HasPrefix(squeeze(command), strings.TrimLeft(cut, "`$ ")) {
		return title
	}
	if strings.HasSuffix(title, "?") {
		return title + " " + command
	}
	return title + ": " + command
}

// squeeze makes texts alike that differ in white space.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
