package conformance

// Who uses what the other side has not advertised.
var (
	ckCapLoad        = decides("client/capability/load")
	ckCapList        = decides("client/capability/list")
	ckCapResume      = decides("client/capability/resume")
	ckCapClose       = decides("client/capability/close")
	ckCapDelete      = decides("client/capability/delete")
	ckCapFork        = decides("client/capability/fork")
	ckCapArchive     = decides("client/capability/archive")
	ckCapStatus      = decides("client/capability/status")
	ckCapTitle       = decides("client/capability/title")
	ckCapSession     = decides("client/capability/session")
	ckCapDirectories = decides("client/capability/directories")
	ckCapSystem      = decides("client/capability/system-prompt")
	ckCapImage       = decides("client/capability/image")
	ckCapAudio       = decides("client/capability/audio")
	ckCapEmbedded    = decides("client/capability/embedded-context")
	ckCapMCP         = decides("client/capability/mcp-transport")
	ckCapLogout      = decides("client/capability/logout")
	ckCapAuthStatus  = decides("client/capability/auth-status")
	ckCapProviders   = decides("client/capability/providers")
	ckCapOptions     = decides("client/capability/options")
	ckCapInitial     = decides("client/capability/initial-options")

	ckCapRead       = decides("agent/capability/read-file")
	ckCapWrite      = decides("agent/capability/write-file")
	ckCapTerminal   = decides("agent/capability/terminal")
	ckCapForm       = decides("agent/capability/elicitation-form")
	ckCapURL        = decides("agent/capability/elicitation-url")
	ckCapNotice     = decides("agent/capability/notice")
	ckCapCompaction = decides("agent/capability/compaction")
	ckCapPlan       = decides("agent/capability/plan-update")
	ckCapSubagents  = decides("agent/capability/subagents")
	ckCapBoolean    = decides("agent/capability/boolean-option")
)

// offered1 checks that an agent has advertised what the client uses.
func (m *Monitor) offered1(c check, has bool, path, name string) {
	if m.agent.unknown || !m.ready {
		return
	}
	if m.breaks(c, !has) {
		m.add(c, path, "used %s, which the agent has not advertised", name)
	}
}

// wanted checks that a client has advertised what the agent uses.
func (m *Monitor) wanted(c check, has bool, path, name string) {
	if m.client.unknown || !m.ready {
		return
	}
	if m.breaks(c, !has) {
		m.add(c, path, "used %s, which the client has not advertised", name)
	}
}

// gate checks requests of clients that an agent need not have.
func (m *Monitor) gate(method string) {
	a := &m.agent
	if m.version == 2 && len(method) > 8 && method[:8] == "session/" {
		m.offered1(ckCapSession, a.session, "method", "sessions")
		if !a.session {
			return
		}
	}
	switch method {
	case "session/load":
		m.offered1(ckCapLoad, a.load, "method", "loadSession")
	case "session/list":
		m.offered1(ckCapList, a.list, "method", "session list")
	case "session/resume":
		m.offered1(ckCapResume, a.resume, "method", "session resume")
	case "session/close":
		m.offered1(ckCapClose, a.close, "method", "session close")
	case "session/delete":
		m.offered1(ckCapDelete, a.delete, "method", "session delete")
	case "session/fork":
		m.offered1(ckCapFork, a.fork, "method", "session fork")
	case "session/archive", "session/unarchive":
		m.offered1(ckCapArchive, a.archive, "method", "session archive")
	case "session/status":
		m.offered1(ckCapStatus, a.status, "method", "session status")
	case "session/set_title":
		m.offered1(ckCapTitle, a.title, "method", "session title")
	case "session/options":
		m.offered1(ckCapOptions, a.options, "method", "session options")
	case "logout", "auth/logout":
		m.offered1(ckCapLogout, a.logout, "method", "logout")
	case "auth/status":
		m.offered1(ckCapAuthStatus, a.authStatus, "method", "auth.status")
	case "providers/list", "providers/set", "providers/disable":
		m.offered1(ckCapProviders, a.providers, "method", "providers")
	}
}

// initial looks at how many settings a request that opens a session gives a value.
func (m *Monitor) initial(values int) {
	if values > 0 {
		m.offered1(ckCapInitial, m.agent.options, "params.configOptions", "values of settings for a session that is opened")
	}
}

// systemPrompt looks at instructions for a session.
func (m *Monitor) systemPrompt(there, override bool) {
	if !there {
		return
	}
	has := m.agent.system && (!override || m.agent.override)
	m.offered1(ckCapSystem, has, "params.systemPrompt", "a system prompt of this kind")
}
