package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/internal/process"
)

// Offers are the transports that an agent can use.
type Offers struct{ Stdio, HTTP, SSE bool }

// OffersOf returns the transports that the agent of a connection can use. In version 1 every agent
// must accept stdio.
func OffersOf(c *acp.ClientConn) Offers {
	if v1 := c.CapabilitiesV1(); v1 != nil {
		return Offers{Stdio: true, HTTP: v1.MCPCapabilities.HTTP, SSE: v1.MCPCapabilities.SSE}
	}
	caps := c.Capabilities().Session
	if caps == nil || caps.MCP == nil {
		return Offers{}
	}
	return Offers{Stdio: caps.MCP.Stdio != nil, HTTP: caps.MCP.HTTP != nil}
}

// String names the transports.
func (o Offers) String() string {
	var list []string
	for _, t := range []struct {
		name string
		has  bool
	}{{Stdio, o.Stdio}, {HTTP, o.HTTP}, {SSE, o.SSE}} {
		if t.has {
			list = append(list, t.name)
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// A Bridged says that a server is reached through a bridge.
type Bridged struct {
	Server Server
	Via    string // the transport that the agent uses
}

// String says so for people.
func (b Bridged) String() string {
	return fmt.Sprintf("MCP server %s (%s) is bridged to %s for the agent", b.Server.Name, b.Server.Type, b.Via)
}

// Variables that name the server to connect to for the command of [Options.Connect].
const (
	EnvURL     = "ACP_MCP_URL"
	EnvType    = "ACP_MCP_TYPE"
	EnvHeaders = "ACP_MCP_HEADERS" // a JSON object
)

// Options say how servers are planned.
type Options struct {
	Agent string // its name, for messages
	Dir   string // of the session, absolute: the working directory of bridged stdio servers, and the base of relative commands
	// Connect is the command, a program and its arguments, that connects its standard streams with
	// the server that the variables name. Empty means this program with the argument mcp-connect.
	Connect []string
	// Loops serves what is bridged to HTTP. It is needed for that only.
	Loops *Loops
}

// A Route is the way from an agent to a server.
type Route struct {
	Server Server
	Via    string // the transport that the agent uses; "" if it cannot use the server
	Err    error  // why it cannot, without the server's name
}

// Bridged reports whether the server is reached through a bridge.
func (r Route) Bridged() bool { return r.Via != "" && r.Via != r.Server.Type }

// Routes returns how an agent would reach each of the servers. It starts nothing and listens at no
// address: a server that has a route may still fail.
func Routes(servers []Server, can Offers, o Options) []Route {
	out := make([]Route, len(servers))
	for i, s := range servers {
		out[i] = Route{Server: s, Via: via(s, can)}
		switch {
		case out[i].Via == "":
			out[i].Err = noWay(s, can, o)
		case s.Type == Stdio:
			if _, err := lookPath(s, o.Dir); err != nil {
				out[i].Via, out[i].Err = "", err
			}
		}
	}
	return out
}

// via returns the transport that an agent uses for a server, or "" if there is none.
func via(s Server, can Offers) string {
	switch {
	case s.Type == Stdio && can.Stdio, s.Type == HTTP && can.HTTP, s.Type == SSE && can.SSE:
		return s.Type
	case can.Stdio:
		return Stdio
	case can.HTTP:
		return HTTP
	}
	return ""
}

func noWay(s Server, can Offers, o Options) error {
	return fmt.Errorf("its transport is %s, and %s takes %s", s.Type, o.Agent, can)
}

// Plan returns the servers in the form in which an agent is sent them. A server whose transport the
// agent cannot use is bridged: to a stdio server if the agent accepts those, and otherwise to an
// HTTP server at the loopback address of this machine. If a server cannot be reached either way,
// Plan fails: none is left out.
func Plan(servers []Server, can Offers, o Options) (list []acp.MCPServer, bridged []Bridged, err error) {
	for _, s := range servers {
		var m acp.MCPServer
		switch by := via(s, can); {
		case by == Stdio && s.Type == Stdio:
			m, err = stdioServer(s, o.Dir)
		case by == HTTP && s.Type == HTTP:
			m = &acp.MCPServerHTTP{Name: s.Name, URL: s.URL, Headers: headerList(s.Headers)}
		case by == SSE:
			m, err = sseServer(s)
		case by == Stdio:
			m, err = connectServer(s, o)
			bridged = append(bridged, Bridged{s, Stdio})
		case by == HTTP && o.Loops != nil:
			m, err = o.Loops.add(s, o.Dir)
			bridged = append(bridged, Bridged{s, HTTP})
		default:
			err = noWay(s, can, o)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("MCP server %s (%s): %w", s.Name, s.Source, err)
		}
		list = append(list, m)
	}
	return list, bridged, nil
}

// stdioServer is a server that the agent starts. Its path is absolute.
func stdioServer(s Server, dir string) (acp.MCPServer, error) {
	path, err := lookPath(s, dir)
	if err != nil {
		return nil, err
	}
	return &acp.MCPServerStdio{Name: s.Name, Command: path, Args: s.Args, Env: envList(s.Env)}, nil
}

// lookPath finds the program of a server.
func lookPath(s Server, dir string) (string, error) {
	path := s.Command
	if strings.ContainsRune(path, '/') || strings.ContainsRune(path, filepath.Separator) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
	}
	found, err := process.LookPath(path, environ(s.Env))
	if err != nil {
		return "", fmt.Errorf("its command cannot be run: %w", err)
	}
	return filepath.Abs(found)
}

// connectServer is a stdio server that connects to another server.
func connectServer(s Server, o Options) (acp.MCPServer, error) {
	command := o.Connect
	if len(command) == 0 {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding this program: %w", err)
		}
		command = []string{exe, "mcp-connect"}
	}
	env := map[string]string{EnvURL: s.URL, EnvType: s.Type}
	if len(s.Headers) > 0 {
		h, err := json.Marshal(s.Headers)
		if err != nil {
			return nil, err
		}
		env[EnvHeaders] = string(h)
	}
	return &acp.MCPServerStdio{Name: s.Name, Command: command[0], Args: command[1:], Env: envList(env)}, nil
}

// sseServer is a server that version 2 of the protocol has no type for.
func sseServer(s Server) (acp.MCPServer, error) {
	v1 := acpv1.MCPServerSSE{Name: s.Name, URL: s.URL, Headers: []acpv1.HTTPHeader{}}
	for _, k := range slices.Sorted(maps.Keys(s.Headers)) {
		v1.Headers = append(v1.Headers, acpv1.HTTPHeader{Name: k, Value: s.Headers[k]})
	}
	raw, err := v1.AppendJSON(nil)
	return &acp.UnknownMCPServer{Type: SSE, Raw: raw}, err
}

func envList(env map[string]string) []acp.EnvVariable {
	list := []acp.EnvVariable{}
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, acp.EnvVariable{Name: k, Value: env[k]})
	}
	return list
}

func headerList(headers map[string]string) []acp.HTTPHeader {
	list := []acp.HTTPHeader{}
	for _, k := range slices.Sorted(maps.Keys(headers)) {
		list = append(list, acp.HTTPHeader{Name: k, Value: headers[k]})
	}
	return list
}

// environ is the environment of a server.
func environ(env map[string]string) []string {
	all := os.Environ()
	for _, k := range slices.Sorted(maps.Keys(env)) {
		all = append(all, k+"="+env[k])
	}
	return all
}
