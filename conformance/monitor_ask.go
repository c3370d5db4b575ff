package conformance

import (
	"bytes"
	"encoding/json"
	"math"
	"net/url"
	"strconv"

	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

var (
	ckAskComplete = decides("agent/elicitation/complete")
	ckAskURL      = decides("agent/elicitation/url")
	ckAskUnique   = decides("agent/elicitation/unique-ids")
	ckAskScope    = decides("agent/elicitation/scope")
	ckAskRequired = decides("agent/elicitation/required")
	ckAnswerForm  = decides("client/elicitation/content")

	ckMCPNames   = decides("client/mcp/unique-names")
	ckMCPIDs     = decides("client/mcp/unique-ids")
	ckMCPServer  = decides("agent/mcp/known")
	ckMCPActive  = decides("agent/mcp/active-id")
	ckMCPMeta    = decides("agent/mcp/meta")
	ckMCPOutcome = decides("client/mcp/outcome")
	ckMCPNote    = decides("client/mcp/notification")
	ckMCPURL     = decides("client/mcp/url")
)

// connection is what is known beyond sessions.
type connection struct {
	cursors table[bool]   // where lists may continue
	listed  table[bool]   // sessions that are in them
	asked   table[bool]   // elicitations that lead to a page
	servers table[string] // MCP servers behind the connection, with their names
	active  table[bool]   // requests to them
}

func (c *connection) forget() {
	c.cursors.forgot, c.asked.forgot, c.servers.forgot, c.active.forgot = true, true, true, true
}

// askFacts is what the answer to a form is judged by.
type askFacts struct {
	required []string
	fields   map[string]field
}

// A field is one of a form.
type field struct {
	kind   byte // one of "snibl": string, number, integer, boolean, list; 0 if nobody knows
	values map[string]bool
}

// form looks at a form.
func (m *Monitor) form(r *request, required []string, fields map[string]field) {
	m.wanted(ckCapForm, m.client.form, "params.mode", "elicitation.form")
	for _, name := range required {
		_, ok := fields[name]
		if m.breaks(ckAskRequired, !ok) {
			m.add(ckAskRequired, "params.requestedSchema.required", "requires %s, which the form does not have", quote(name))
		}
	}
	if len(fields) <= maxEntries {
		r.facts = &askFacts{required, fields}
	}
}

// page looks at an elicitation that leads to a page.
func (m *Monitor) page(id, address string) {
	m.wanted(ckCapURL, m.client.url, "params.mode", "elicitation.url")
	u, err := url.Parse(address)
	none := err != nil || u.Scheme == "" || u.Host == "" && u.Opaque == "" && u.Path == ""
	if m.breaks(ckAskURL, none && !redacted(address)) {
		m.add(ckAskURL, "params.url", "sent the user to %s, which is not an address", quote(address))
	}
	_, again := m.more.asked.get(id)
	if m.breaks(ckAskUnique, again) {
		m.add(ckAskUnique, "params.elicitationId", "used the elicitation id %s again", quote(id))
	}
	m.more.asked.put(id, true)
}

// scope looks at the request of the client that an elicitation belongs to.
func (m *Monitor) scope(r *request, id jsonrpc.ID) {
	key := idKey([]byte(id.String()))
	r.parent = key
	_, open := m.open[theClient].get(key)
	if m.breaks(ckAskScope, !open && m.open[theClient].lacks(key)) {
		m.add(ckAskScope, "params.requestId", "asked on behalf of the request %s, which is not in flight", quote(key))
	}
}

func (m *Monitor) completed(id string) {
	if m.breaks(ckAskComplete, m.more.asked.lacks(id)) {
		m.add(ckAskComplete, "params.elicitationId", "completed the elicitation %s, which it has not begun", quote(id))
	}
}

// filled looks at a form that was filled in.
func (m *Monitor) filled(r *request, content map[string]json.RawMessage) {
	f, ok := r.facts.(*askFacts)
	if !ok {
		return
	}
	m.breaks(ckAnswerForm, false)
	for _, name := range f.required {
		_, there := content[name]
		_, asked := f.fields[name]
		if asked && !there {
			m.expect(ckAnswerForm, false, "result.content", "left out %s, which is required", quote(name))
		}
	}
	for name, v := range content {
		field, ok := f.fields[name]
		if !ok || field.kind == 0 {
			continue
		}
		if !field.fits(v) {
			m.expect(ckAnswerForm, false, "result.content", "filled in %s with a value that does not fit", quote(name))
		}
	}
}

// fits reports whether a value may be filled in.
func (f field) fits(v json.RawMessage) bool {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return false
	}
	switch f.kind {
	case 's':
		return v[0] == '"' && f.takes(v)
	case 'b':
		return v[0] == 't' || v[0] == 'f'
	case 'n', 'i':
		n, err := strconv.ParseFloat(string(v), 64)
		return err == nil && (f.kind == 'n' || n == math.Trunc(n))
	case 'l':
		if v[0] != '[' || f.values == nil {
			return v[0] == '['
		}
		var d wire.Decoder
		d.Reset(v, false)
		for ok := d.FirstElem(); ok; ok = d.NextElem() {
			if !f.values[d.Str()] {
				return false
			}
		}
	}
	return true
}

func (f field) takes(v []byte) bool {
	if f.values == nil {
		return true
	}
	var d wire.Decoder
	d.Reset(v, false)
	return f.values[d.Str()]
}

// serverSeen is an MCP server as the client gives it, in both versions.
type serverSeen struct {
	name, transport, id, url string
}

// servers looks at the MCP servers of a session.
func (m *Monitor) servers(list []serverSeen) {
	names := make(map[string]bool, len(list))
	a := &m.agent
	for _, s := range list {
		if m.breaks(ckMCPNames, names[s.name]) {
			m.add(ckMCPNames, "params.mcpServers", "named two servers %s", quote(s.name))
		}
		names[s.name] = true
		has := true
		switch s.transport {
		case "stdio":
			has = a.stdio
		case "http":
			has = a.http
		case "sse":
			has = a.sse
		case "acp":
			has = a.mcp
		}
		m.offered1(ckCapMCP, has, "params.mcpServers", "MCP over "+s.transport)
		if s.url != "" {
			u, err := url.Parse(s.url)
			none := err != nil || u.Scheme == "" || u.Host == ""
			if m.breaks(ckMCPURL, none && !redacted(s.url)) {
				m.add(ckMCPURL, "params.mcpServers", "gave %s as the address of a server", quote(s.url))
			}
		}
		if s.transport != "acp" {
			continue
		}
		name, twice := m.more.servers.get(s.id)
		if m.breaks(ckMCPIDs, twice && name != brief(s.name)) {
			m.add(ckMCPIDs, "params.mcpServers", "gave two servers the id %s", quote(s.id))
		}
		m.more.servers.put(s.id, brief(s.name))
	}
}

type mcpFacts struct{ key string }

// mcpAsked looks at a request to an MCP server behind the connection.
func (m *Monitor) mcpAsked(r *request, server, id string, params json.RawMessage) {
	key := brief(server) + "\x00" + brief(id)
	if m.breaks(ckMCPServer, m.more.servers.lacks(server)) {
		m.add(ckMCPServer, "params.serverId", "called the MCP server %s, which does not exist", quote(server))
	}
	_, active := m.more.active.get(key)
	if m.breaks(ckMCPActive, active) {
		m.add(ckMCPActive, "params.requestId", "used the id %s of a request that is not answered yet", quote(id))
	}
	if m.breaks(ckMCPMeta, !bytes.Contains(params, []byte(`protocolVersion"`)) || !bytes.Contains(params, []byte(`clientCapabilities"`))) {
		m.add(ckMCPMeta, "params.params", "did not tell an MCP server the version of MCP and what the client can do")
	}
	m.more.active.put(key, true)
	r.facts = &mcpFacts{key}
}

func (m *Monitor) mcpAnswered(r *request, result, failed bool) {
	if m.breaks(ckMCPOutcome, result == failed) {
		m.add(ckMCPOutcome, "result", "answered for an MCP server with both a result and an error, or with neither")
	}
	m.mcpOver(r)
}

func (m *Monitor) mcpOver(r *request) {
	if f, ok := r.facts.(*mcpFacts); ok {
		m.more.active.drop(f.key)
	}
}

func (m *Monitor) mcpTold(server, id string) {
	key := brief(server) + "\x00" + brief(id)
	if m.breaks(ckMCPNote, m.more.active.lacks(key)) {
		m.add(ckMCPNote, "params.requestId", "sent a notification of an MCP server for %s, which is not in flight", quote(id))
	}
}

// allow adds values that may be chosen.
func (f *field) allow(values []string) {
	for _, v := range values {
		if f.values == nil {
			f.values = map[string]bool{}
		}
		f.values[v] = true
	}
}
