// Package mcp reads which MCP servers sessions are to have, and makes those that an agent
// cannot reach by itself reachable.
package mcp

// A Server is an MCP server as the user has named it.
type Server struct {
	Name    string
	Source  string // a file or a flag, for messages
	Command string // of a stdio server
	Args    []string
	Env     map[string]string
	Type    string // stdio, http or sse
	URL     string
	Headers map[string]string
}
