// Package mcp reads which MCP servers sessions use, and makes servers that an agent cannot reach
// itself reachable by a bridge: a process of this program, or an HTTP server at the loopback
// address. Files have at most 1 MiB and 256 servers; what a bridge may hold is bounded in [Loops].
package mcp

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"
)

// The transports of MCP servers.
const (
	Stdio = "stdio"
	HTTP  = "http" // streamable HTTP
	SSE   = "sse"  // HTTP with server-sent events, which is deprecated
)

// Where servers are named, other than in files: see [Server.Source].
const (
	SourceFlag     = "--mcp"
	SourceSettings = "settings"
)

// A Server is an MCP server as the user has named it.
type Server struct {
	Name    string
	Source  string // a file, SourceFlag or SourceSettings; for messages
	Line    int    // in the file, from 1; 0 elsewhere
	Command string // of a stdio server
	Args    []string
	Env     map[string]string
	Type    string // stdio, http or sse
	URL     string
	Headers map[string]string
}

// check fills in the type, and returns what is wrong with a server.
func (s *Server) check() error {
	if s.Name == "" {
		return errors.New("an MCP server needs a name")
	}
	if s.Type == "" {
		if s.Type = Stdio; s.URL != "" {
			s.Type = HTTP
		}
	}
	switch s.Type {
	case "streamable-http", "streamable_http", "streamableHttp":
		s.Type = HTTP
	case Stdio, HTTP, SSE:
	default:
		return fmt.Errorf("unknown type %q: stdio, http or sse", s.Type)
	}
	if s.Type == Stdio {
		switch {
		case s.Command == "":
			return errors.New("a stdio server needs a command")
		case s.URL != "":
			return errors.New("it has a command and a url")
		case len(s.Headers) > 0:
			return errors.New("headers are for http and sse servers")
		}
		return nil
	}
	if s.Command != "" {
		return fmt.Errorf("it is of type %s and has a command", s.Type)
	}
	u, err := url.Parse(s.URL)
	switch {
	case s.URL == "":
		return fmt.Errorf("a server of type %s needs a url", s.Type)
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("its url is not an http or https address")
	}
	for name, value := range s.Headers {
		if !validHeader(name) || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("%q is no header that can be sent", name)
		}
	}
	return nil
}

func validHeader(name string) bool {
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}

// Where names a server in messages, without secrets.
func (s Server) Where() string {
	if s.Type == Stdio {
		return s.Command
	}
	return redactURL(s.URL)
}

// secrets returns the values that must not be shown.
func (s Server) secrets() (list []string) {
	for _, v := range s.Env {
		list = append(list, v)
	}
	for _, v := range s.Headers {
		list = append(list, v)
		if _, token, ok := strings.Cut(v, " "); ok {
			list = append(list, token)
		}
	}
	if u, err := url.Parse(s.URL); err == nil {
		if p, ok := u.User.Password(); ok {
			list = append(list, p)
		}
		for _, values := range u.Query() {
			list = append(list, values...)
		}
	}
	return list
}

// Hide removes the secrets of a server from a text.
func (s Server) Hide(text string) string { return hide(text, s.secrets()) }

// hide removes secrets from a text. Values of fewer than four characters are not treated as
// secrets.
func hide(text string, secrets []string) string {
	secrets = slices.Clone(secrets)
	sort.Slice(secrets, func(i, j int) bool { return len(secrets[i]) > len(secrets[j]) })
	for _, s := range secrets {
		if len(s) >= 4 {
			text = strings.ReplaceAll(text, s, "***")
		}
	}
	return text
}

// redactURL returns an address without what may be secret in it.
func redactURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	if u.User != nil {
		u.User = url.User("***")
	}
	if u.RawQuery != "" {
		u.RawQuery = "***"
	}
	u.Fragment, u.RawFragment = "", ""
	return strings.ReplaceAll(u.String(), "%2A%2A%2A", "***")
}

// Merge joins lists of servers, the most important last: of servers with the same name the last one
// counts. Their order is that in which names occur first.
func Merge(lists ...[]Server) []Server {
	var out []Server
	for _, list := range lists {
		for _, s := range list {
			if i := slices.IndexFunc(out, func(o Server) bool { return o.Name == s.Name }); i >= 0 {
				out[i] = s
			} else {
				out = append(out, s)
			}
		}
	}
	return out
}
