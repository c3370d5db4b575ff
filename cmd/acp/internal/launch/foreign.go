package launch

import "strings"

// Speaks returns what a program speaks, in words that follow "it". line is the first line on the
// program's standard output that is not a message. It returns "" for a program that may be an agent
// all the same.
func Speaks(line string) string {
	line = strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(line, "HTTP/"):
		return "speaks HTTP"
	case len(line) >= len(lsp) && strings.EqualFold(line[:len(lsp)], lsp):
		return "frames messages like a language server"
	}
	return ""
}

const lsp = "content-length:"
