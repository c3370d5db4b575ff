package backend

import (
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// maxOwnTitle bounds a title made here, in cells.
const maxOwnTitle = 80

// Handover is how a text begins that tells an agent what was said to another one. A session is not
// named after it.
const Handover = "This is what was said so far, in a conversation that you continue:"

// titleOf returns a title for sessions that their agents do not name: the first line of the prompt.
// What only goes with a prompt, such as the output of a command, gives a title if there is nothing else.
func titleOf(content []acp.ContentBlock) string {
	aside := ""
	for _, block := range content {
		text, ok := block.(*acp.TextContent)
		if !ok || strings.HasPrefix(text.Text, Handover) {
			continue
		}
		goesWith := strings.HasPrefix(text.Text, "```")
		for line := range strings.Lines(text.Text) {
			line = strings.TrimSpace(safetext.Line(line, maxOwnTitle))
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

// provisional reports whether a title is only a slash command, which says little about a session.
func provisional(title string) bool { return strings.HasPrefix(title, "/") }

// called returns the name of a session: its title, unless that is missing or provisional and the
// user has said something better.
func called(title, asked string) string {
	if title == "" || provisional(title) && asked != "" && !provisional(asked) {
		return asked
	}
	return title
}
