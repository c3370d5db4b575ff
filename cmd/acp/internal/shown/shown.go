// Package shown says what tool calls and questions in a conversation are about, so that screens,
// lines and exports say the same. In particular, it always includes the command that would be run,
// whatever form the agent gave it.
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

// Command returns the command that a tool call shows, and whether that is certain: see
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

// AskedCall returns the id of the tool call that a question is about, or "".
func AskedCall(p *transcript.Permission) acp.ToolCallID {
	switch s := p.Subject.(type) {
	case *acpv2.CommandPermissionSubject:
		return s.ToolCallID
	case *acpv2.ToolCallPermissionSubject:
		return s.ToolCall.ToolCallID
	}
	return ""
}

// maxAfter bounds the entries after a tool call that are searched for a question about it.
const maxAfter = 1024

// Awaits reports whether a question about a tool call has no answer yet.
func Awaits(t *transcript.Snapshot, c *transcript.ToolCall) bool {
	n := 0
	for e := range t.Backward() {
		if n++; e.Seq() <= c.Seq() || n > maxAfter {
			return false
		}
		if p, ok := e.(*transcript.Permission); ok && p.Outcome == nil && AskedCall(p) == c.ID {
			return true
		}
	}
	return false
}

// Title returns the title of a tool call, or its name or kind, with the command that it shows
// unless the title contains that. It may have several lines.
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

// With returns a title followed by a command, unless the title contains it.
func With(title, command string) string {
	if command = strings.TrimSpace(command); command == "" || hasWords(squeeze(title), squeeze(command)) {
		return title
	}
	if whole, ok := uncut(title, command); ok {
		return whole
	}
	if strings.HasSuffix(title, "?") {
		return title + " " + command
	}
	return title + ": " + command
}

// Bounds of a command that was cut at the end of a title, in bytes: what is shorter proves nothing, and
// what is longer is not looked for.
const (
	minCut = 4
	maxCut = 1000
)

// uncut returns a title with the whole command in the place of its beginning, if the title ends with that
// and an ellipsis.
func uncut(title, command string) (whole string, ok bool) {
	text, ok := strings.CutSuffix(title, "…")
	if !ok {
		text, ok = strings.CutSuffix(title, "...")
	}
	if text = strings.TrimRight(text, " "); !ok {
		return "", false
	}
	for i := max(0, len(text)-maxCut); len(text)-i >= minCut; i++ {
		if (i == 0 || text[i-1] == ' ' || text[i-1] == '`') && strings.HasPrefix(command, text[i:]) {
			return text[:i] + command, true
		}
	}
	return "", false
}

// Same reports whether two texts say the same: agents give a command as the title, in a block of
// code or after a prompt, and leave out the working directory.
func Same(a, b, cwd string) bool {
	a, b = bare(a, cwd), bare(b, cwd)
	return a != "" && a == b
}

// bare returns a text without what it is wrapped in.
func bare(s, cwd string) string {
	s = strings.TrimSpace(s)
	if fence := s[:len(s)-len(strings.TrimLeft(s, "`"))]; fence != "" && len(s) > 2*len(fence) && strings.HasSuffix(s, fence) {
		inside := s[len(fence) : len(s)-len(fence)]
		info, code, block := strings.Cut(inside, "\n")
		switch {
		case strings.Contains(inside, fence):
		case len(fence) >= 3 && block && !strings.ContainsAny(strings.TrimSpace(info), " \t"):
			s = code
		case len(fence) < 3 && !block:
			s = inside
		}
	}
	s = strings.TrimPrefix(strings.TrimSpace(s), "$ ")
	if cwd != "" && cwd != "/" {
		s = strings.ReplaceAll(s, strings.TrimSuffix(cwd, "/")+"/", "")
	}
	return squeeze(s)
}

// hasWords reports whether a text contains another one that neither begins nor ends within a word.
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

// squeeze makes texts equal that differ in white space.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
