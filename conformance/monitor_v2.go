package conformance

import (
	"fmt"

	"github.com/goacp/acp/acpv2"
)

// askedV2 looks at the params of a request of version 2, and reports whether it
// is one.
func (m *Monitor) askedV2(r *request, p any) bool {
	switch p := p.(type) {
	case *acpv2.InitializeRequest:
		m.initializeV2(r, p)
	case *acpv2.LoginAuthRequest:
		m.authenticate(string(p.MethodID))
	case *acpv2.NewSessionRequest:
		m.directories(p.Cwd, p.AdditionalDirectories)
		m.setupV2(p.MCPServers, p.SystemPrompt)
		m.initial(len(p.ConfigOptions))
		m.openSession(r, "")
	case *acpv2.ResumeSessionRequest:
		m.directories(p.Cwd, p.AdditionalDirectories)
		m.setupV2(p.MCPServers, p.SystemPrompt)
		m.initial(len(p.ConfigOptions))
		m.openSession(r, string(p.SessionID))
		if p.ReplayFrom != nil {
			m.replays(r)
		}
	case *acpv2.ForkSessionRequest:
		m.forksAt(string(p.SessionID), string(p.CursorID))
		m.directories(p.Cwd, p.AdditionalDirectories)
		m.setupV2(p.MCPServers, p.SystemPrompt)
		m.initial(len(p.ConfigOptions))
		m.openSession(r, "")
	case *acpv2.SessionOptionsRequest:
		m.directories(p.Cwd, p.AdditionalDirectories)
	case *acpv2.ProxySuccessorRequest:
		m.wrapped(r, p.Method, p.Params, p.Meta)
	case *acpv2.ListSessionsRequest:
		if p.Cursor != nil {
			m.cursor(string(*p.Cursor))
		}
	case *acpv2.CloseSessionRequest:
		m.named(r, string(p.SessionID), true)
	case *acpv2.DeleteSessionRequest:
		m.named(r, string(p.SessionID), true)
	case *acpv2.ArchiveSessionRequest:
		m.named(r, string(p.SessionID), true)
	case *acpv2.UnarchiveSessionRequest:
		m.named(r, string(p.SessionID), false)
	case *acpv2.SessionStatusRequest:
		m.named(r, string(p.SessionID), false)
	case *acpv2.SetSessionTitleRequest:
		m.named(r, string(p.SessionID), false)
	case *acpv2.PromptRequest:
		m.prompt(r, string(p.SessionID), len(p.Prompt))
		m.skilled(r.s, p.Prompt)
		m.kinds(m.blocksV2("params.prompt", p.Prompt))
	case *acpv2.SetSessionConfigOptionRequest:
		s := m.uses(string(p.SessionID))
		switch v := p.Value.(type) {
		case *acpv2.SessionConfigOptionValueID:
			m.set(r, s, string(p.ConfigID), string(v.Value), false, false)
		case *acpv2.SessionConfigOptionValueBoolean:
			m.set(r, s, string(p.ConfigID), fmt.Sprint(v.Value), true, false)
		default:
			m.set(r, s, string(p.ConfigID), "", false, true)
		}
	case *acpv2.RequestPermissionRequest:
		m.permissionV2(r, p)
	case *acpv2.CancelToolCallRequest:
		if r.s = m.uses(string(p.SessionID)); r.s != nil {
			t, ok := r.s.tools.get(string(p.ToolCallID))
			m.cancelTool(r.s, "params.toolCallId", string(p.ToolCallID), ok, ok && t.cancel)
		}
	case *acpv2.CancelTerminalRequest:
		if r.s = m.uses(string(p.SessionID)); r.s != nil {
			t, ok := r.s.terminals.get(string(p.TerminalID))
			m.cancelTool(r.s, "params.terminalId", string(p.TerminalID), ok, ok && t.cancel)
		}
	case *acpv2.CreateElicitationRequest:
		m.askV2(r, p)
	case *acpv2.MessageMCPRequest:
		m.mcpAsked(r, string(p.ServerID), string(p.RequestID), p.Params)
	default:
		return false
	}
	return true
}

func (m *Monitor) permissionV2(r *request, p *acpv2.RequestPermissionRequest) {
	s := m.names(string(p.SessionID))
	options := make([]optionSeen, len(p.Options))
	for i, o := range p.Options {
		options[i] = optionSeen{string(o.OptionID), string(o.Kind), o.Kind.Known()}
	}
	switch subject := p.Subject.(type) {
	case *acpv2.ToolCallPermissionSubject:
		m.permission(r, s, string(subject.ToolCall.ToolCallID), subject.ToolCall.Title.Or("") != "", options)
		if s != nil {
			m.toolV2(s, &subject.ToolCall, true)
		}
	case *acpv2.CommandPermissionSubject:
		m.permission(r, s, string(subject.ToolCallID), false, options)
	default:
		m.permission(r, s, "", false, options)
	}
}

func (m *Monitor) setupV2(servers []acpv2.MCPServer, system *acpv2.SystemPrompt) {
	list := make([]serverSeen, 0, len(servers))
	for _, s := range servers {
		switch s := s.(type) {
		case *acpv2.MCPServerStdio:
			list = append(list, serverSeen{s.Name, "stdio", "", ""})
		case *acpv2.MCPServerHTTP:
			list = append(list, serverSeen{s.Name, "http", "", s.URL})
		case *acpv2.MCPServerACP:
			list = append(list, serverSeen{s.Name, "acp", string(s.ServerID), ""})
		}
	}
	m.servers(list)
	m.systemPrompt(system != nil, system != nil && system.Mode == acpv2.SystemPromptModeOverride)
}

// answeredV2 looks at the result of a request of version 2.
func (m *Monitor) answeredV2(r *request, p any) bool {
	switch p := p.(type) {
	case *acpv2.InitializeResponse:
		m.initializedV2(r, p)
	case *acpv2.NewSessionResponse:
		m.configV2(m.opened(r, string(p.SessionID)), p.ConfigOptions, p.AvailableCommands)
	case *acpv2.ResumeSessionResponse:
		m.configV2(m.opened(r, ""), p.ConfigOptions, p.AvailableCommands)
		m.replayAnswered(r)
	case *acpv2.ForkSessionResponse:
		m.configV2(m.opened(r, string(p.SessionID)), p.ConfigOptions, p.AvailableCommands)
	case *acpv2.SessionOptionsResponse:
		m.configV2(newSession(""), p.ConfigOptions, p.AvailableCommands)
	case *acpv2.ListSessionsResponse:
		seen := map[string]bool{}
		for _, s := range p.Sessions {
			m.listed(seen, string(s.SessionID), s.Cwd, s.UpdatedAt)
		}
		if p.NextCursor != nil {
			m.more.cursors.put(string(*p.NextCursor), true)
		}
	case *acpv2.PromptResponse:
		m.receipt(r, string(p.MessageID))
	case *acpv2.SetSessionConfigOptionResponse:
		if r.s != nil {
			m.settings(r.s, "result.configOptions", settingsV2(p.ConfigOptions))
			m.applied(r)
		}
	case *acpv2.RequestPermissionResponse:
		if o, ok := p.Outcome.(*acpv2.SelectedPermissionOutcome); ok {
			m.selected(r, string(o.OptionID))
		} else {
			m.dismissed(r)
		}
	case *acpv2.CreateElicitationResponse:
		if a, ok := p.Action.(*acpv2.ElicitationAcceptAction); ok {
			m.filled(r, a.Content)
		} else {
			m.dismissed(r)
		}
	case *acpv2.MessageMCPResponse:
		m.mcpAnswered(r, p.Result != nil, p.Error != nil)
	default:
		return false
	}
	return true
}

// configV2 looks at the settings and commands of a session that was opened.
func (m *Monitor) configV2(s *session, options []acpv2.SessionConfigOption, commands []acpv2.AvailableCommand) {
	m.settings(s, "result.configOptions", settingsV2(options))
	m.commandsV2(s, "result.availableCommands", commands)
}

func (m *Monitor) commandsV2(s *session, path string, commands []acpv2.AvailableCommand) {
	list := make([]commandSeen, 0, len(commands))
	s.skills = map[string]bool{}
	for _, c := range commands {
		switch c := c.(type) {
		case *acpv2.Command:
			list = append(list, commandSeen{c.Name, c.Description})
		case *acpv2.Skill:
			list = append(list, commandSeen{c.Name, c.Description})
			m.skill(path, c)
			if len(s.skills) < maxEntries {
				s.skills[brief(c.Name)] = true
			}
		case *acpv2.UnknownAvailableCommand:
			list = append(list, commandSeen{c.Name, c.Description})
		}
	}
	m.commands(path, list)
}

func settingsV2(options []acpv2.SessionConfigOption) []settingSeen {
	list := make([]settingSeen, len(options))
	for i := range options {
		o, l := &options[i], &list[i]
		l.id, l.category, l.known = string(o.ConfigID), string(o.Category), o.Category == "" || o.Category.Known()
		switch k := o.Kind.(type) {
		case *acpv2.SessionConfigBoolean:
			l.boolean, l.current = true, fmt.Sprint(k.CurrentValue)
		case *acpv2.SessionConfigSelect:
			l.current = string(k.CurrentValue)
			switch v := k.Options.(type) {
			case acpv2.SessionConfigSelectOptionList:
				for _, x := range v {
					l.list = append(l.list, string(x.Value))
				}
			case acpv2.SessionConfigSelectGroupList:
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
