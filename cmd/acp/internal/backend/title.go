package backend

import (
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// maxOwnTitle bounds a title made here, in cells.
const maxOwnTitle = 80

// titleOf returns a title for sessions that their agents do not name: the first line of the prompt.
func titleOf(content []acp.ContentBlock) string {
	for _, block := range content {
		text, ok := block.(*acp.TextContent)
		if !ok {
			continue
		}
		for line := range strings.Lines(text.Text) {
			if line = strings.TrimSpace(safetext.Line(line, maxOwnTitle)); line != "" {
				return line
			}
		}
	}
	return ""
}
