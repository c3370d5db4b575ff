// Package shown says what tool calls and questions in a conversation are about, so that screens, lines
// and exports name the same: what would be run always, in whatever shape the agent told it.
package shown

import (
	"strings"
	"unicode"
	"unicode/utf8"

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
	if command = strings.TrimSpace(command); command == "" || hasWords(squeeze(title), squeeze(command)) {
		return title
	}
	if strings.HasSuffix(title, "?") {
		return title + " " + command
	}
	return title + ": " + command
}

// hasWords reports whether a text has another one in it that neither begins nor ends within a word.
func hasWords(text, part string) bool {
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./", r) }
	for from := 0; ; {
		i := strings.Index(text[from:], part)
		if i < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(text[:from+i])
		after, _ := utf8.DecodeRuneInString(text[from+i+len(part):])
		if (from+i == 0 || !isWord(before)) && (from+i+len(part) == len(text) || !isWord(after)) {
			return true
		}
		from += i + 1
	}
}

// squeeze makes texts alike that differ in white space.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
