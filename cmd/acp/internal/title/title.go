// Package title makes titles for sessions that their agents do not name. All of it is safe for concurrent use.
package title

import (
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// maxWidth bounds a title made here, in cells.
const maxWidth = 80

// Handover is how a text begins that tells an agent what was said to another one. A session is not
// named after it.
const Handover = "This is what was said so far, in a conversation that you continue:"

// Of returns a title for sessions that their agents do not name: the first line of the prompt, or "".
// What only goes with a prompt, such as the output of a command, gives a title if there is nothing else.
func Of(content []acp.ContentBlock) string {
	aside := ""
	for _, block := range content {
		text, ok := block.(*acp.TextContent)
		if !ok || strings.HasPrefix(text.Text, Handover) {
			continue
		}
		goesWith := strings.HasPrefix(text.Text, "```")
		for line := range strings.Lines(text.Text) {
			line = strings.TrimSpace(safetext.Line(line, maxWidth))
			switch {
			case line == "" || strings.HasPrefix(line, "```"):
				continue
			case !goesWith:
				return line
			case aside == "":
				aside = line
			}
			break
		}
	}
	return aside
}

// IsProvisional reports whether a title is only a slash command, which says little about a session.
func IsProvisional(title string) bool { return strings.HasPrefix(title, "/") }

// Better returns the name of a session: its title, unless that is missing or provisional and asked, which the
// user has said, is something better.
func Better(title, asked string) string {
	if title == "" || IsProvisional(title) && asked != "" && !IsProvisional(asked) {
		return asked
	}
	return title
}
