// Package foreign tells programs that speak another protocol than agents do from agents that are
// only slow or noisy.
package foreign

import "strings"

// Of says what a program speaks whose first line on standard output, of those that are no messages,
// is the given one: some words that follow "it", or "" if it may be an agent all the same.
func Of(line string) string {
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
