package main

import "strings"

// initialisms are written in capitals in Go names.
var initialisms = map[string]string{
	"id": "ID", "ids": "IDs", "uri": "URI", "url": "URL", "mcp": "MCP", "acp": "ACP", "http": "HTTP",
	"sse": "SSE", "json": "JSON", "llm": "LLM", "api": "API", "mime": "MIME", "fs": "FS",
}

// words splits camelCase, PascalCase, snake_case and paths.
func words(s string) []string {
	var out []string
	start := 0
	flush := func(i int) {
		if i > start {
			out = append(out, s[start:i])
		}
		start = i
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '_' || c == '/' || c == '-' || c == '$' || c == '.':
			flush(i)
			start = i + 1
		case c >= 'A' && c <= 'Z':
			flush(i)
		}
	}
	flush(len(s))
	return out
}

// goName turns a schema name into an exported Go name.
func goName(s string) string {
	var b strings.Builder
	for _, w := range words(s) {
		w = strings.ToLower(w)
		if in, ok := initialisms[w]; ok {
			b.WriteString(in)
		} else {
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
	}
	return b.String()
}

// lowerFirst makes a name unexported: ContentBlock becomes contentBlock.
func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
