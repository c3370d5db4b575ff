package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/goacp/acp/internal/pattern"
)

// An MCPProbe is an MCP server that sessions are given, to see whether the agent
// connects to it. [ServeMCPProbe] and [MCPProbeHandler] are what it may run.
type MCPProbe struct {
	// Command is the absolute path of its program, for the transport stdio, with
	// arguments and variables of the form NAME=value.
	Command   string
	Args, Env []string
	// URL is where it listens, for the transport http.
	URL string
	// Connected is closed when an MCP client has initialized it.
	Connected <-chan struct{}
	// Close ends it. It may be nil.
	Close func()
}

// entry returns the probe as an element of mcpServers.
func (m *MCPProbe) entry(transport string, version int) string {
	kind := `"type":` + pattern.Quote(transport) + `,`
	if transport == "http" {
		return `{` + kind + `"name":"acp-check","url":` + pattern.Quote(m.URL) + `,"headers":[]}`
	}
	if version == 1 {
		kind = ""
	}
	var args, env []string
	for _, a := range m.Args {
		args = append(args, pattern.Quote(a))
	}
	for _, e := range m.Env {
		name, value, _ := strings.Cut(e, "=")
		env = append(env, `{"name":`+pattern.Quote(name)+`,"value":`+pattern.Quote(value)+`}`)
	}
	return `{` + kind + `"name":"acp-check","command":` + pattern.Quote(m.Command) +
		`,"args":[` + strings.Join(args, ",") + `],"env":[` + strings.Join(env, ",") + `]}`
}

// probe starts an MCP server; the step's name stands for its entry.
func (h *host) probe(p *player, s *step) error {
	if p.opt.MCPProbe == nil {
		return unseen("there is no MCP server to give to the agent")
	}
	m, err := p.opt.MCPProbe(p.ctx, s.method)
	if err != nil {
		return unseen("there is no MCP server to give to the agent: %s", clip(err.Error(), 300))
	}
	h.closeProbe()
	h.server = m
	v, err := pattern.Parse(m.entry(s.method, h.version))
	if err != nil {
		return broken("line %d: %v", s.line, err)
	}
	p.known[s.name] = v
	return nil
}

func (h *host) closeProbe() {
	if h.server != nil && h.server.Close != nil {
		h.server.Close()
	}
	h.server = nil
}

// connected waits until the agent has initialized the MCP server.
func (h *host) connected(p *player, s *step) error {
	if h.server == nil {
		return broken("line %d: there is no MCP server", s.line)
	}
	there := h.server.Connected
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-there:
			signal(p.link.ready)
		case <-stop:
		}
	}()
	_, due := p.opt.Prompts["mcp"]
	due = due || h.scripted // others may connect when they need a server, and had no need to
	limit := p.limit
	if !due && h.over(p) { // it had a whole turn for that
		limit = min(limit, max(2*settleTime, limit/5))
	}
	err := p.silence(limit, func() bool {
		select {
		case <-there:
			return true
		default:
			return false
		}
	})
	if errors.Is(err, errTimeout) {
		if !due {
			return unseen(noWords+"mcp (%s); it did not connect when it was sent something else", purposes["mcp"].About)
		}
		return overdue("the agent did not connect to the MCP server within %v", limit)
	}
	return p.gap(err)
}

// maxProbeMessage bounds what an MCP probe reads at a time.
const maxProbeMessage = 1 << 20

// ServeMCPProbe is an MCP server on standard input and output, or whatever r and w
// are, that has one tool and can do nothing. It calls connected for each client
// that initializes it, and returns at the end of r or at a line of more than
// 1 MiB, or when ctx is done and r has ended.
func ServeMCPProbe(ctx context.Context, r io.Reader, w io.Writer, connected func()) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxProbeMessage)
	for ctx.Err() == nil && lines.Scan() {
		if reply := probeReply(lines.Bytes(), connected); reply != nil {
			if _, err := w.Write(append(reply, '\n')); err != nil {
				return fmt.Errorf("conformance: MCP probe: %w", err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("conformance: MCP probe: %w", err)
	}
	return nil
}

// MCPProbeHandler is [ServeMCPProbe] over streamable HTTP. It takes bodies of up
// to 1 MiB and opens no streams of its own.
func MCPProbeHandler(connected func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxProbeMessage))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		reply := probeReply(body, connected)
		if reply == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(reply)
	})
}

// probeReply answers a message of an MCP client; nil if nothing is due.
func probeReply(data []byte, connected func()) []byte {
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Version json.RawMessage `json:"protocolVersion"`
		} `json:"params"`
	}
	if json.Unmarshal(bytes.TrimSpace(data), &msg) != nil || msg.Method == "" || len(msg.ID) == 0 {
		return nil
	}
	what := `"error":{"code":-32601,"message":"Method not found"}`
	switch msg.Method {
	case "initialize":
		version := msg.Params.Version
		if len(version) == 0 {
			version = json.RawMessage(`"2025-06-18"`)
		}
		what = `"result":{"protocolVersion":` + string(version) +
			`,"capabilities":{"tools":{}},"serverInfo":{"name":"acp-check","version":"1"}}`
		connected()
	case "ping":
		what = `"result":{}`
	case "tools/list":
		what = `"result":{"tools":[{"name":"acp_check_nothing","description":"Does nothing.","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		what = `"result":{"content":[{"type":"text","text":"nothing was done"}]}`
	}
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), msg.ID, []byte(`,`+what+`}`))
}
