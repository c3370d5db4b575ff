package conformance

import (
	"fmt"

	"github.com/goacp/acp/acpv1"
)

// askedV1 looks at the params of a request of version 1, and reports whether it
// is one.
func (m *Monitor) askedV1(r *request, p any) bool {
	switch p := p.(type) {
	case *acpv1.InitializeRequest:
		m.initializeV1(r, p)
	case *acpv1.AuthenticateRequest:
		m.authenticate(string(p.MethodID))
	case *acpv1.NewSessionRequest:
		m.directories(p.Cwd, p.AdditionalDirectories)
		m.setupV1(p.MCPServers, p.SystemPrompt)
		m.initial(len(p.ConfigOptions))
		m.openSession(r, "")
	case *acpv1.LoadSessionRequest:
		m.directories(p.Cwd, p.AdditionalDirectories)
		m.setupV1(p.MCPServers, p.SystemPrompt)
		m.initial(len(p.ConfigOptions))
		m.openSession(r, string(p.SessionID))
		m.replays(r)
	case *acpv1.ResumeSessionRequest:
		m.directories(p.Cwd, p.AdditionalDirectories)
		m.setupV1(p.MCPServers, p.SystemPrompt)
		m.initial(len(p.ConfigOptions))
		m.openSession(r, string(p.SessionID))
	case *acpv1.ForkSessionRequest:
		m.forksAt(string(p.SessionID), string(p.CursorID))
		m.directories(p.Cwd, p.AdditionalDirectories)
		m.setupV1(p.MCPServers, p.SystemPrompt)
		m.initial(len(p.ConfigOptions))
		m.openSession(r, "")
	case *acpv1.SessionOptionsRequest:
		m.directories(p.Cwd, p.AdditionalDirectories)
	case *acpv1.ProxySuccessorRequest:
		m.wrapped(r, p.Method, p.Params, p.Meta)
	case *acpv1.ListSessionsRequest:
		m.cursor(p.Cursor)
	case *acpv1.CloseSessionRequest:
		m.named(r, string(p.SessionID), true)
	case *acpv1.DeleteSessionRequest:
		m.named(r, string(p.SessionID), true)
	case *acpv1.ArchiveSessionRequest:
		m.named(r, string(p.SessionID), true)
	case *acpv1.UnarchiveSessionRequest:
		m.named(r, string(p.SessionID), false)
	case *acpv1.SessionStatusRequest:
		m.named(r, string(p.SessionID), false)
	case *acpv1.SetSessionTitleRequest:
		m.named(r, string(p.SessionID), false)
	case *acpv1.PromptRequest:
		m.prompt(r, string(p.SessionID), len(p.Prompt))
		m.kinds(m.blocksV1("params.prompt", p.Prompt))
	case *acpv1.SetSessionModeRequest:
		if r.s = m.uses(string(p.SessionID)); r.s != nil {
			if m.breaks(ckModeOffered, !r.s.knowsMode(string(p.ModeID))) {
				m.add(ckModeOffered, "params.modeId", "chose the mode %s, which was not offered", quote(string(p.ModeID)))
			}
		}
	case *acpv1.SetSessionConfigOptionRequest:
		s := m.uses(string(p.SessionID))
		switch v := p.Value.(type) {
		case *acpv1.SessionConfigOptionValueID:
			m.set(r, s, string(p.ConfigID), string(v.Value), false, false)
		case *acpv1.SessionConfigOptionValueBoolean:
			m.set(r, s, string(p.ConfigID), fmt.Sprint(v.Value), true, false)
		}
	default:
		return m.askedClientV1(r, p)
	}
	return true
}

// askedClientV1 looks at the params of a request of version 1 that agents send.
func (m *Monitor) askedClientV1(r *request, p any) bool {
	switch p := p.(type) {
	case *acpv1.RequestPermissionRequest:
		s := m.names(string(p.SessionID))
		options := make([]optionSeen, len(p.Options))
		for i, o := range p.Options {
			options[i] = optionSeen{string(o.OptionID), string(o.Kind), o.Kind.Known()}
		}
		m.permission(r, s, string(p.ToolCall.ToolCallID), p.ToolCall.Title.Or("") != "", options)
		if s != nil {
			m.toolV1(s, &p.ToolCall, true)
		}
	case *acpv1.CreateElicitationRequest:
		m.askV1(r, p)
	case *acpv1.ReadTextFileRequest:
		m.wanted(ckCapRead, m.client.read, "method", "fs.readTextFile")
		r.s = m.names(string(p.SessionID))
		m.file(p.Path, p.Line)
		if p.Limit != nil {
			r.facts = &readFacts{*p.Limit}
		}
	case *acpv1.WriteTextFileRequest:
		m.wanted(ckCapWrite, m.client.write, "method", "fs.writeTextFile")
		r.s = m.names(string(p.SessionID))
		m.file(p.Path, nil)
	case *acpv1.CreateTerminalRequest:
		m.wanted(ckCapTerminal, m.client.terminal, "method", "terminal")
		r.s = m.names(string(p.SessionID))
		if p.Cwd != "" && m.breaks(ckTermCwd, !absolute(p.Cwd)) {
			m.add(ckTermCwd, "params.cwd", "started a command in %s, which is not absolute", quote(p.Cwd))
		}
		f := &terminalFacts{limited: p.OutputByteLimit != nil}
		if f.limited {
			f.limit = *p.OutputByteLimit
		}
		r.facts = f
	case *acpv1.TerminalOutputRequest:
		m.terminalV1(r, p.SessionID, p.TerminalID)
	case *acpv1.WaitForTerminalExitRequest:
		m.terminalV1(r, p.SessionID, p.TerminalID)
	case *acpv1.KillTerminalRequest:
		m.terminalV1(r, p.SessionID, p.TerminalID)
	case *acpv1.ReleaseTerminalRequest:
		m.terminalV1(r, p.SessionID, p.TerminalID)
		m.released(r.s, string(p.TerminalID))
	case *acpv1.MessageMCPRequest:
		m.mcpAsked(r, string(p.ServerID), string(p.RequestID), p.Params)
	default:
		return false
	}
	return true
}

func (m *Monitor) terminalV1(r *request, s acpv1.SessionID, id acpv1.TerminalID) {
	m.wanted(ckCapTerminal, m.client.terminal, "method", "terminal")
	m.usesTerminal(r, m.names(string(s)), string(id))
}

func (m *Monitor) setupV1(servers []acpv1.MCPServer, system *acpv1.SystemPrompt) {
	list := make([]serverSeen, 0, len(servers))
	for _, s := range servers {
		switch s := s.(type) {
		case *acpv1.MCPServerStdio:
			list = append(list, serverSeen{s.Name, "stdio", "", ""})
		case *acpv1.MCPServerHTTP:
			list = append(list, serverSeen{s.Name, "http", "", s.URL})
		case *acpv1.MCPServerSSE:
			list = append(list, serverSeen{s.Name, "sse", "", s.URL})
		case *acpv1.MCPServerACP:
			list = append(list, serverSeen{s.Name, "acp", string(s.ServerID), ""})
		}
	}
	m.servers(list)
	m.systemPrompt(system != nil, system != nil && system.Mode == acpv1.SystemPromptModeOverride)
}

// answeredV1 looks at the result of a request of version 1.
func (m *Monitor) answeredV1(r *request, p any) bool {
	switch p := p.(type) {
	case *acpv1.InitializeResponse:
		m.initializedV1(r, p)
	case *acpv1.NewSessionResponse:
		m.configV1(m.opened(r, string(p.SessionID)), p.Modes, p.ConfigOptions)
	case *acpv1.LoadSessionResponse:
		m.configV1(m.opened(r, ""), p.Modes, p.ConfigOptions)
	case *acpv1.ResumeSessionResponse:
		m.configV1(m.opened(r, ""), p.Modes, p.ConfigOptions)
	case *acpv1.ForkSessionResponse:
		m.configV1(m.opened(r, string(p.SessionID)), p.Modes, p.ConfigOptions)
	case *acpv1.SessionOptionsResponse:
		m.configV1(newSession(""), p.Modes, p.ConfigOptions)
	case *acpv1.ListSessionsResponse:
		seen := map[string]bool{}
		for _, s := range p.Sessions {
			m.listed(seen, string(s.SessionID), s.Cwd, s.UpdatedAt)
		}
		if p.NextCursor != "" {
			m.more.cursors.put(p.NextCursor, true)
		}
	case *acpv1.PromptResponse:
		m.turned(r, string(p.StopReason), p.StopReason.Known())
		if u := p.Usage; u != nil {
			m.tokens("result.usage.totalTokens", u.TotalTokens, u.InputTokens, u.OutputTokens)
		}
	case *acpv1.SetSessionConfigOptionResponse:
		if r.s != nil {
			m.settings(r.s, "result.configOptions", settingsV1(p.ConfigOptions))
			m.applied(r)
		}
	case *acpv1.RequestPermissionResponse:
		if o, ok := p.Outcome.(*acpv1.SelectedPermissionOutcome); ok {
			m.selected(r, string(o.OptionID))
		} else {
			m.dismissed(r)
		}
	case *acpv1.CreateElicitationResponse:
		if a, ok := p.Action.(*acpv1.ElicitationAcceptAction); ok {
			m.filled(r, a.Content)
		} else {
			m.dismissed(r)
		}
	case *acpv1.ReadTextFileResponse:
		m.fileRead(r, p.Content)
	case *acpv1.CreateTerminalResponse:
		m.terminalCreated(r, string(p.TerminalID))
	case *acpv1.TerminalOutputResponse:
		m.terminalOutput(r, p.Output, p.ExitStatus != nil)
	case *acpv1.WaitForTerminalExitResponse:
		m.terminalExited(r)
	case *acpv1.MessageMCPResponse:
		m.mcpAnswered(r, p.Result != nil, p.Error != nil)
	default:
		return false
	}
	return true
}

// configV1 looks at the modes and settings of a session that was opened.
func (m *Monitor) configV1(s *session, modes *acpv1.SessionModeState, options []acpv1.SessionConfigOption) {
	if modes == nil {
		m.noModes(s)
	} else {
		ids := make([]string, len(modes.AvailableModes))
		for i, o := range modes.AvailableModes {
			ids[i] = string(o.ID)
		}
		m.modes(s, "result.modes", string(modes.CurrentModeID), ids)
	}
	m.settings(s, "result.configOptions", settingsV1(options))
}

func settingsV1(options []acpv1.SessionConfigOption) []settingSeen {
	list := make([]settingSeen, len(options))
	for i := range options {
		o, l := &options[i], &list[i]
		l.id, l.category, l.known = string(o.ID), string(o.Category), o.Category == "" || o.Category.Known()
		switch k := o.Kind.(type) {
		case *acpv1.SessionConfigBoolean:
			l.boolean, l.current = true, fmt.Sprint(k.CurrentValue)
		case *acpv1.SessionConfigSelect:
			l.current = string(k.CurrentValue)
			switch v := k.Options.(type) {
			case acpv1.SessionConfigSelectOptionList:
				for _, x := range v {
					l.list = append(l.list, string(x.Value))
				}
			case acpv1.SessionConfigSelectGroupList:
				for _, g := range v {
					for _, x := range g.Options {
						l.list = append(l.list, string(x.Value))
					}
				}
			}
		default:
			l.other = true
		}
	}
	return list
}
