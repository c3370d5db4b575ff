package conformance

import (
	"encoding/json"
	"strings"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

var (
	ckFirst         = decides("client/handshake/first")
	ckAgentRequests = decides("agent/handshake/requests")
	ckAgentNotes    = decides("agent/handshake/notifications")
	ckAgain         = decides("client/handshake/again")
	ckAnswer        = decides("agent/handshake/version")
	ckUnsupported   = decides("agent/handshake/unsupported")
	ckAgentInfo     = decides("agent/handshake/info")
	ckClientInfo    = decides("client/handshake/info")
	ckAuthUnique    = decides("agent/auth/unique-ids")
	ckAuthEnv       = decides("agent/auth/unique-env")
	ckAuthTerminal  = decides("agent/capability/auth-terminal")
	ckAuthKnown     = decides("client/auth/known")
	ckAuthOffered   = decides("agent/auth/offered")
	ckAuthStatus    = decides("agent/auth/status")
)

// agentCaps is what an agent has advertised, in both versions.
type agentCaps struct {
	unknown bool // it was not seen

	session                       bool // at all (v2)
	load, list, resume, close     bool
	delete, fork, archive         bool
	status, title                 bool
	directories, system, override bool
	image, audio, embedded        bool
	options, skill, inline        bool
	stdio, http, sse, mcp         bool
	logout, authStatus, providers bool
	steering                      bool
	auth                          map[string]bool // ids of methods
}

// clientCaps is what a client has advertised, in both versions.
type clientCaps struct {
	unknown bool

	read, write, terminal    bool
	form, url                bool
	notices, compaction      bool
	plan, subagents, boolean bool
	authTerminal             bool
	reports                  bool // it shows terminals that the agent reports in metadata of tool calls
	cursors, skills          bool

	suggestions, suggestImage, suggestAudio, suggestEmbedded bool
}

// suggested notes that prompts may be suggested, and with which content.
func (c *clientCaps) suggested(image, audio, embedded bool) {
	c.suggestions, c.suggestImage, c.suggestAudio, c.suggestEmbedded = true, image, audio, embedded
}

// initFacts is what the answer to initialize is judged by.
type initFacts struct {
	requested int
	client    clientCaps
}

// early checks that nothing is sent before initialize was answered.
func (m *Monitor) early(name string, asked bool) {
	if name == "initialize" || name == "proxy/initialize" {
		if m.breaks(ckAgain, m.ready && m.others && m.from == theClient && !m.gap) {
			m.add(ckAgain, "method", "sent initialize again after other requests")
		}
		return
	}
	if strings.HasPrefix(name, "_") || strings.HasPrefix(name, "proxy/") || strings.HasPrefix(name, "$/") {
		return
	}
	switch {
	case m.from == theClient && asked:
		if m.breaks(ckFirst, !m.ready) {
			m.add(ckFirst, "method", "sent %s before initialize was answered", quote(name))
		}
	case m.from == theAgent && asked:
		if m.breaks(ckAgentRequests, !m.ready) {
			m.add(ckAgentRequests, "method", "sent %s before it answered initialize", quote(name))
		}
	case m.from == theAgent:
		if m.breaks(ckAgentNotes, !m.ready) {
			m.add(ckAgentNotes, "method", "sent %s before it answered initialize", quote(name))
		}
	}
	m.others = m.others || asked && m.ready
	if m.from == theClient && asked {
		m.breaks(ckAgain, false)
	}
}

// peekVersion reads the protocolVersion of the object at pos, or 0.
func (m *Monitor) peekVersion(pos int) (v int) {
	d := &m.d
	d.Seek(pos)
	if d.Peek() != '{' {
		return 0
	}
	var o wire.Decoder
	o.Reset(d.Raw(), false)
	for k, ok := o.FirstKey(); ok; k, ok = o.NextKey() {
		if string(k) == "protocolVersion" {
			v = int(o.Uint16())
		} else {
			o.Skip()
		}
	}
	return v
}

// offer is called before initialize is decoded.
func (m *Monitor) offer(e *envelope) {
	m.later = false
	if e.has&hasParams != 0 {
		v := m.peekVersion(e.params)
		m.later = v > 2
		if m.version == 0 {
			m.offered = min(v, 2)
		}
	}
}

// greeted looks at an initialize that asks for a later version: nobody knows what
// its params are like (S57).
func (m *Monitor) greeted(r *request, e *envelope, c *codec) {
	d := &m.d
	requested := m.peekVersion(e.params)
	d.Seek(e.params)
	v := c.params(d)
	m.watch.Notes = m.watch.Notes[:0]
	if d.FieldErr() == nil {
		m.asked(r, v)
		return
	}
	r.facts = &initFacts{requested: requested, client: clientCaps{unknown: true}}
}

// agree is called before what answers initialize is decoded.
func (m *Monitor) agree(v int) {
	if v = min(v, 2); v < 1 || v == m.version {
		return
	}
	m.version = v
	m.stats.Version = v
}

func (m *Monitor) initializeV1(r *request, p *acpv1.InitializeRequest) {
	m.breaks(ckClientInfo, false)
	m.expect(ckClientInfo, p.ClientInfo != nil, "params.clientInfo", "did not say which client it is")
	c := p.ClientCapabilities
	f := &initFacts{requested: int(p.ProtocolVersion), client: clientCaps{
		read: c.FS.ReadTextFile, write: c.FS.WriteTextFile, terminal: c.Terminal,
		plan: c.Plan != nil, subagents: c.Subagents != nil, authTerminal: c.Auth.Terminal,
	}}
	if s := c.Session; s != nil {
		f.client.notices, f.client.compaction = s.Notices != nil, s.Compaction != nil
		f.client.boolean = s.ConfigOptions != nil && s.ConfigOptions.Boolean != nil
		f.client.cursors = s.Cursors != nil
		if p := s.PromptSuggestions; p != nil {
			f.client.suggested(p.Image != nil, p.Audio != nil, p.EmbeddedContext != nil)
		}
	}
	if e := c.Elicitation; e != nil {
		f.client.form, f.client.url = e.Form != nil, e.URL != nil
	}
	var meta struct {
		Output any `json:"terminal_output"`
		Delta  any `json:"terminal_output_delta"`
	}
	_ = json.Unmarshal(c.Meta, &meta) // anything else declares nothing
	f.client.reports = meta.Output == true || meta.Delta == true
	r.facts = f
	m.vendors(p.Meta, c.Meta)
}

func (m *Monitor) initializeV2(r *request, p *acpv2.InitializeRequest) {
	c := p.Capabilities
	f := &initFacts{requested: int(p.ProtocolVersion)}
	f.client.authTerminal = c.Auth != nil && c.Auth.Terminal != nil
	if s := c.Session; s != nil {
		f.client.skills = s.Commands != nil && s.Commands.Skill != nil
		if p := s.PromptSuggestions; p != nil {
			f.client.suggested(p.Image != nil, p.Audio != nil, p.EmbeddedContext != nil)
		}
	}
	if e := c.Elicitation; e != nil {
		f.client.form, f.client.url = e.Form != nil, e.URL != nil
	}
	r.facts = f
	m.vendors(p.Meta, c.Meta)
}

func (m *Monitor) initializedV1(r *request, p *acpv1.InitializeResponse) {
	c, s := p.AgentCapabilities, p.AgentCapabilities.SessionCapabilities
	m.agent = agentCaps{
		session: true, load: c.LoadSession, list: s.List != nil, resume: s.Resume != nil, close: s.Close != nil,
		delete: s.Delete != nil, fork: s.Fork != nil, archive: s.Archive != nil, status: s.Status != nil, title: s.Title != nil,
		directories: s.AdditionalDirectories != nil, system: s.SystemPrompt != nil, options: s.Options != nil,
		image: c.PromptCapabilities.Image, audio: c.PromptCapabilities.Audio, embedded: c.PromptCapabilities.EmbeddedContext,
		stdio: true, http: c.MCPCapabilities.HTTP, sse: c.MCPCapabilities.SSE, mcp: c.MCPCapabilities.ACP,
		logout: c.Auth.Logout != nil, authStatus: c.Auth.Status != nil, providers: c.Providers != nil,
	}
	if s.SystemPrompt != nil && s.SystemPrompt.Mode != nil {
		m.agent.override = s.SystemPrompt.Mode.Override != nil
	}
	m.agent.steering = steerable(p.Meta)
	m.initialized(r, int(p.ProtocolVersion))
	m.expect(ckAgentInfo, p.AgentInfo != nil, "result.agentInfo", "did not say which agent it is")
	for _, a := range p.AuthMethods {
		switch a := a.(type) {
		case *acpv1.AuthMethodAgent:
			m.authMethod(string(a.ID), false)
		case *acpv1.AuthMethodTerminal:
			m.authMethod(string(a.ID), true)
		case *acpv1.UnknownAuthMethod: // readers take it for one of the agent (S80)
			var d wire.Decoder
			d.Reset(a.Raw, false)
			m.authMethod(d.Member("id"), false)
		}
	}
}

func (m *Monitor) initializedV2(r *request, p *acpv2.InitializeResponse) {
	c := p.Capabilities
	m.agent = agentCaps{session: c.Session != nil, providers: c.Providers != nil, logout: len(p.AuthMethods) > 0}
	m.agent.authStatus = c.Auth != nil && c.Auth.Status != nil
	if s := c.Session; s != nil {
		a := &m.agent
		a.list, a.resume, a.close = true, true, true
		a.delete, a.fork, a.archive, a.options = s.Delete != nil, s.Fork != nil, s.Archive != nil, s.Options != nil
		a.status, a.title, a.directories, a.system = s.Status != nil, s.Title != nil, s.AdditionalDirectories != nil, s.SystemPrompt != nil
		a.override = s.SystemPrompt != nil && s.SystemPrompt.Mode != nil && s.SystemPrompt.Mode.Override != nil
		if p := s.Prompt; p != nil {
			a.image, a.audio, a.embedded = p.Image != nil, p.Audio != nil, p.EmbeddedContext != nil
			a.skill, a.inline = p.Skill != nil, p.Skill != nil && p.Skill.Inline != nil
		}
		if p := s.MCP; p != nil {
			a.stdio, a.http, a.mcp = p.Stdio != nil, p.HTTP != nil, p.ACP != nil
		}
	}
	m.agent.steering = steerable(p.Meta)
	m.initialized(r, int(p.ProtocolVersion))
	for _, a := range p.AuthMethods {
		switch a := a.(type) {
		case *acpv2.AuthMethodAgent:
			m.authMethod(string(a.MethodID), false)
		case *acpv2.AuthMethodTerminal:
			m.authMethod(string(a.MethodID), true)
			m.authEnv(a)
		case *acpv2.UnknownAuthMethod:
			m.authMethod(string(a.MethodID), false)
		}
	}
}

func (m *Monitor) initialized(r *request, version int) {
	m.ready = true
	m.proxyAnswered(r, version)
	m.agent.auth = map[string]bool{}
	f, ok := r.facts.(*initFacts)
	if !ok {
		m.client.unknown = true
		return
	}
	m.client = f.client
	if m.breaks(ckAnswer, version > max(f.requested, 1)) {
		m.add(ckAnswer, "result.protocolVersion", "answered version %d to a client that asked for %d", version, f.requested)
	}
}

func (m *Monitor) authMethod(id string, terminal bool) {
	if m.breaks(ckAuthUnique, m.agent.auth[brief(id)]) {
		m.add(ckAuthUnique, "result.authMethods", "offered two ways to sign in with the id %s", quote(id))
	}
	if terminal && m.breaks(ckAuthTerminal, !m.client.authTerminal && !m.client.unknown) {
		m.add(ckAuthTerminal, "result.authMethods", "offered to sign in in a terminal to a client that has not advertised auth.terminal")
	}
	if len(m.agent.auth) < maxEntries {
		m.agent.auth[brief(id)] = true
	}
}

// authEnv looks at the variables of a way to sign in in a terminal (v2).
func (m *Monitor) authEnv(a *acpv2.AuthMethodTerminal) {
	seen := make(map[string]bool, len(a.Env))
	for _, v := range a.Env {
		if m.breaks(ckAuthEnv, seen[v.Name]) {
			m.add(ckAuthEnv, "result.authMethods", "sets the variable %s twice for the way to sign in %s", quote(v.Name), quote(string(a.MethodID)))
		}
		seen[v.Name] = true
	}
}

// authenticate looks at a request to sign in.
func (m *Monitor) authenticate(id string) {
	if m.agent.unknown || len(m.agent.auth) >= maxEntries {
		return
	}
	m.breaks(ckAuthKnown, false)
	m.expect(ckAuthKnown, m.agent.auth[brief(id)], "params.methodId", "chose the way to sign in %s, which was not offered", quote(id))
}

// initializeFailed looks at an error that answers initialize.
func (m *Monitor) initializeFailed(we *jsonrpc.Error) {
	if we.Code != jsonrpc.CodeUnsupportedVersion {
		return
	}
	var data struct{ requested, supported bool }
	var d wire.Decoder
	if len(we.Data) > 0 && we.Data[0] == '{' {
		d.Reset(we.Data, false)
		for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
			switch string(k) {
			case "requested":
				data.requested = true
			case "supported":
				data.supported = d.Peek() == '['
			}
			d.Skip()
		}
	}
	m.expect(ckUnsupported, data.requested && data.supported, "error.data", "did not say which versions are supported")
}

// authErrors looks at what errors say about signing in.
func (m *Monitor) authErrors(r *request, we *jsonrpc.Error) {
	required := we.Code == jsonrpc.CodeAuthRequired
	if r.name == "auth/status" {
		m.expect(ckAuthStatus, !required, "error.code", "asked to sign in before it tells whether one is signed in")
	}
	if required && m.from == theAgent && m.ready && !m.agent.unknown {
		m.expect(ckAuthOffered, len(m.agent.auth) > 0, "error.code", "asked to sign in, and offered no way to")
	}
}
