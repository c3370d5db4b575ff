package conformance

import (
	"strconv"

	"github.com/goacp/acp/acpv1"
)

// toldV1 looks at a notification of version 1.
func (m *Monitor) toldV1(p any) bool {
	switch p := p.(type) {
	case *acpv1.SessionNotification:
		if u, ok := p.Update.(*acpv1.SessionInfoUpdate); ok && m.onlyListed(string(p.SessionID)) {
			m.timestamp("params.update.updatedAt", u.UpdatedAt.Or(""))
		} else if s := m.names(string(p.SessionID)); s != nil {
			m.updateV1(s, p.Update)
		}
	case *acpv1.CancelNotification:
		s := m.uses(string(p.SessionID))
		m.cancelsChild(s)
		m.cancelSession(s, true)
	case *acpv1.ProxySuccessorNotification:
		m.wrapped(nil, p.Method, p.Params, p.Meta)
	case *acpv1.CancelRequestNotification:
		m.withdraw(p.RequestID)
	case *acpv1.CompleteElicitationNotification:
		m.completed(string(p.ElicitationID))
	case *acpv1.MessageMCPNotification:
		m.mcpTold(string(p.ServerID), string(p.RequestID))
	default:
		return false
	}
	return true
}

// saysV1 reports whether an update tells what comes of a turn.
func saysV1(u acpv1.SessionUpdate) bool {
	switch u.(type) {
	case *acpv1.UserMessageChunk, *acpv1.UsageUpdate, *acpv1.SessionInfoUpdate, *acpv1.AvailableCommandsUpdate,
		*acpv1.PromptSuggestionsUpdate, *acpv1.CursorUpdate:
		return false
	}
	return true
}

// updateV1 follows an update of a session.
func (m *Monitor) updateV1(s *session, u acpv1.SessionUpdate) {
	s.said = s.said || saysV1(u)
	switch u := u.(type) {
	case *acpv1.AgentMessageChunk:
		m.works(s, "a message")
		m.chunk(s, string(u.MessageID), agentMessage, true)
		m.blockV1("params.update.content", u.Content)
	case *acpv1.AgentThoughtChunk:
		m.works(s, "a thought")
		m.chunk(s, string(u.MessageID), thought, true)
		m.blockV1("params.update.content", u.Content)
	case *acpv1.UserMessageChunk:
		m.replayed(s)
		m.chunk(s, string(u.MessageID), userMessage, true)
		m.blockV1("params.update.content", u.Content)
	case *acpv1.ToolCall:
		m.works(s, "a tool call")
		m.toolCall(s, toolSeen{
			id: string(u.ToolCallID), name: u.Name, creates: true, title: true, path: "params.update",
			status: string(u.Status), statusKnown: u.Status.Known(), kind: string(u.Kind), kindKnown: u.Kind.Known(),
		})
		m.toolPartsV1(s, "params.update", u.Content, u.Locations)
	case *acpv1.ToolCallUpdate:
		m.works(s, "a change of a tool call")
		m.toolV1(s, u, false)
	case *acpv1.Plan:
		m.works(s, "a plan")
		m.entriesV1("params.update.entries", u.Entries)
	case *acpv1.PlanUpdate:
		m.wanted(ckCapPlan, m.client.plan, "params.update", "plan_update")
		switch p := u.Plan.(type) {
		case *acpv1.PlanItems:
			s.plans.put(string(p.PlanID), true)
			m.entriesV1("params.update.plan.entries", p.Entries)
		case *acpv1.PlanFile:
			s.plans.put(string(p.PlanID), true)
			m.uri("params.update.plan.uri", p.URI)
		case *acpv1.PlanMarkdown:
			s.plans.put(string(p.PlanID), true)
		default:
			s.plans.forgot = true // it may be one of those removed later
		}
	case *acpv1.PlanRemoved:
		m.wanted(ckCapPlan, m.client.plan, "params.update", "plan_removed")
		m.planRemoved(s, string(u.PlanID))
	case *acpv1.AvailableCommandsUpdate:
		commands := make([]commandSeen, len(u.AvailableCommands))
		for i, c := range u.AvailableCommands {
			commands[i] = commandSeen{c.Name, c.Description}
		}
		m.commands("params.update.availableCommands", commands)
	case *acpv1.CurrentModeUpdate:
		if m.breaks(ckModeUpdate, !s.knowsMode(string(u.CurrentModeID)) && s.opening == 0) {
			m.add(ckModeUpdate, "params.update.currentModeId", "went into the mode %s, which it does not offer", quote(string(u.CurrentModeID)))
		}
	case *acpv1.ConfigOptionUpdate:
		m.settings(s, "params.update.configOptions", settingsV1(u.ConfigOptions))
	case *acpv1.SessionInfoUpdate:
		m.timestamp("params.update.updatedAt", u.UpdatedAt.Or(""))
	case *acpv1.UsageUpdate:
		if u.Cost == nil {
			m.usage(s, u.Used, u.Size, nil, "")
		} else {
			m.usage(s, u.Used, u.Size, &u.Cost.Amount, u.Cost.Currency)
		}
	case *acpv1.PromptSuggestionsUpdate:
		m.suggestsV1(s, u.Suggestions)
	case *acpv1.CursorUpdate:
		m.movesV1(s, u)
	case *acpv1.Notice:
		m.wanted(ckCapNotice, m.client.notices, "params.update", "notices")
		m.notice(string(u.Severity), u.Title, u.Severity.Known())
	case *acpv1.CompactionUpdate:
		m.wanted(ckCapCompaction, m.client.compaction, "params.update", "compaction")
	case *acpv1.CompactionSummaryChunk:
		m.wanted(ckCapCompaction, m.client.compaction, "params.update", "compaction")
		m.blockV1("params.update.content", u.Content)
	case *acpv1.SubagentUpdate:
		m.wanted(ckCapSubagents, m.client.subagents, "params.update", "subagents")
		c, told := u.Capabilities.Get()
		m.subagent(s, subagentSeen{id: string(u.SessionID), cwd: u.Cwd.Or(""), directories: u.AdditionalDirectories.Or(nil),
			told: told || u.Capabilities.IsClear(), cancel: told && c.Cancel != nil})
	case *acpv1.SessionMessage:
		m.wanted(ckCapSubagents, m.client.subagents, "params.update", "subagents")
		m.chunk(s, string(u.MessageID), sessionMessage, false)
	case *acpv1.SessionMessageChunk:
		m.wanted(ckCapSubagents, m.client.subagents, "params.update", "subagents")
		m.chunk(s, string(u.MessageID), sessionMessage, true)
	}
}

func (m *Monitor) entriesV1(path string, entries []acpv1.PlanEntry) {
	for _, e := range entries {
		m.planEntry(path, e.Content, string(e.Priority), string(e.Status), e.Priority.Known() && e.Status.Known())
	}
}

// toolV1 follows a change of a tool call.
func (m *Monitor) toolV1(s *session, u *acpv1.ToolCallUpdate, asked bool) {
	path := "params.update"
	if asked {
		path = "params.toolCall"
	}
	status, kind := u.Status.Or(""), u.Kind.Or("")
	m.toolCall(s, toolSeen{
		id: string(u.ToolCallID), name: u.Name, asked: asked, path: path,
		status: string(status), statusKnown: status.Known(), kind: string(kind), kindKnown: kind.Known(),
	})
	m.toolPartsV1(s, path, u.Content.Or(nil), u.Locations.Or(nil))
}

func (m *Monitor) toolPartsV1(s *session, path string, content []acpv1.ToolCallContent, locations []acpv1.ToolCallLocation) {
	for _, c := range content {
		_, linked := c.(*acpv1.SessionReference)
		m.expect(ckToolSession, !linked, path+".content", "linked a tool call to a session, which no client of version 1 can advertise")
		switch c := c.(type) {
		case *acpv1.Content:
			m.blockV1(path+".content", c.Content)
		case *acpv1.Diff:
			m.diffPath(path+".content", c.Path)
		case *acpv1.Terminal:
			if !m.client.reports { // or it may be the agent's own
				m.toolTerminal(s, path+".content", string(c.TerminalID))
			}
		}
	}
	for _, l := range locations {
		m.location(path+".locations", l.Path, l.Line)
	}
}

// blocksV1 looks at content, and returns the kinds it is of.
func (m *Monitor) blocksV1(path string, blocks []acpv1.ContentBlock) (kinds int) {
	for i, b := range blocks {
		kinds |= m.blockV1(path+"["+strconv.Itoa(i)+"]", b)
	}
	return kinds
}

func (m *Monitor) blockV1(path string, b acpv1.ContentBlock) (kind int) {
	var a *acpv1.Annotations
	switch b := b.(type) {
	case *acpv1.TextContent:
		a = b.Annotations
	case *acpv1.ImageContent:
		a, kind = b.Annotations, image
		m.base64(path+".data", b.Data)
		m.mime(path+".mimeType", b.MIMEType)
	case *acpv1.AudioContent:
		a, kind = b.Annotations, audio
		m.base64(path+".data", b.Data)
		m.mime(path+".mimeType", b.MIMEType)
	case *acpv1.ResourceLink:
		a = b.Annotations
		m.uri(path+".uri", b.URI)
	case *acpv1.EmbeddedResource:
		a, kind = b.Annotations, embedded
		switch r := b.Resource.(type) {
		case *acpv1.TextResourceContents:
			m.uri(path+".resource.uri", r.URI)
		case *acpv1.BlobResourceContents:
			m.uri(path+".resource.uri", r.URI)
			m.base64(path+".resource.blob", r.Blob)
		}
	}
	if a != nil {
		m.priority(path+".annotations.priority", a.Priority)
		for _, r := range a.Audience {
			m.audience(path+".annotations.audience", string(r), r.Known())
		}
	}
	return kind
}

// askV1 looks at an elicitation.
func (m *Monitor) askV1(r *request, p *acpv1.CreateElicitationRequest) {
	var scope acpv1.ElicitationScope
	switch e := p.Mode.(type) {
	case *acpv1.ElicitationFormMode:
		scope = e.Scope
		fields := make(map[string]field, len(e.RequestedSchema.Properties))
		for _, f := range e.RequestedSchema.Properties {
			fields[f.Name] = fieldV1(f.Schema)
		}
		m.form(r, e.RequestedSchema.Required, fields)
	case *acpv1.ElicitationURLMode:
		scope = e.Scope
		m.page(string(e.ElicitationID), e.URL)
	case *acpv1.UnknownElicitationMode:
		scope = e.Scope
	}
	switch s := scope.(type) {
	case *acpv1.ElicitationSessionScope:
		r.s = m.names(string(s.SessionID))
	case *acpv1.ElicitationRequestScope:
		m.scope(r, s.RequestID)
	}
}

func fieldV1(s acpv1.ElicitationPropertySchema) field {
	switch s := s.(type) {
	case *acpv1.StringPropertySchema:
		f := field{kind: 's'}
		f.allow(s.Enum)
		for _, o := range s.OneOf {
			f.allow([]string{o.Const})
		}
		return f
	case *acpv1.NumberPropertySchema:
		return field{kind: 'n'}
	case *acpv1.IntegerPropertySchema:
		return field{kind: 'i'}
	case *acpv1.BooleanPropertySchema:
		return field{kind: 'b'}
	case *acpv1.MultiSelectPropertySchema:
		f := field{kind: 'l'}
		switch i := s.Items.(type) {
		case *acpv1.StringMultiSelectItems:
			f.allow(i.Enum)
		case *acpv1.TitledMultiSelectItems:
			for _, o := range i.AnyOf {
				f.allow([]string{o.Const})
			}
		}
		return f
	}
	return field{}
}
