package conformance

import (
	"strconv"

	"github.com/goacp/acp/acpv2"
)

// toldV2 looks at a notification of version 2.
func (m *Monitor) toldV2(p any) bool {
	switch p := p.(type) {
	case *acpv2.UpdateSessionNotification:
		if u, ok := p.Update.(*acpv2.SessionInfoUpdate); ok && m.onlyListed(string(p.SessionID)) {
			m.timestamp("params.update.updatedAt", u.UpdatedAt.Or(""))
		} else if s := m.names(string(p.SessionID)); s != nil {
			m.updateV2(s, p.Update)
		}
	case *acpv2.CancelSessionNotification:
		s := m.uses(string(p.SessionID))
		m.cancelsChild(s)
		m.cancelSession(s, true)
	case *acpv2.ProxySuccessorNotification:
		m.wrapped(nil, p.Method, p.Params, p.Meta)
	case *acpv2.CancelRequestNotification:
		m.withdraw(p.RequestID)
	case *acpv2.CompleteElicitationNotification:
		m.completed(string(p.ElicitationID))
	case *acpv2.MessageMCPNotification:
		m.mcpTold(string(p.ServerID), string(p.RequestID))
	default:
		return false
	}
	return true
}

// saysV2 reports whether an update tells what comes of a turn.
func saysV2(u acpv2.SessionUpdate) bool {
	switch u.(type) {
	case *acpv2.UserMessageChunk, *acpv2.UserMessage, *acpv2.UsageUpdate, *acpv2.SessionInfoUpdate,
		*acpv2.AvailableCommandsUpdate, *acpv2.RunningStateUpdate, *acpv2.RequiresActionStateUpdate,
		*acpv2.StateUnknownUpdate, *acpv2.UnknownStateUpdate, *acpv2.IdleStateUpdate,
		*acpv2.PromptSuggestionsUpdate, *acpv2.CursorUpdate, *acpv2.ReplayComplete:
		return false
	}
	return true
}

// updateV2 follows an update of a session.
func (m *Monitor) updateV2(s *session, u acpv2.SessionUpdate) {
	s.said = s.said || saysV2(u)
	if m.messageV2(s, u) || m.workV2(s, u) {
		m.replayedLate(s)
		return
	}
	_ = m.stateV2(s, u) || m.aboutV2(s, u)
}

// messageV2 follows an update that is part of a message.
func (m *Monitor) messageV2(s *session, u acpv2.SessionUpdate) bool {
	switch u := u.(type) {
	case *acpv2.AgentMessageChunk:
		m.works(s, "a message")
		m.chunk(s, string(u.MessageID), agentMessage, true)
		m.blockV2("params.update.content", u.Content)
	case *acpv2.AgentThoughtChunk:
		m.works(s, "a thought")
		m.chunk(s, string(u.MessageID), thought, true)
		m.blockV2("params.update.content", u.Content)
	case *acpv2.UserMessageChunk:
		m.replayed(s)
		m.chunk(s, string(u.MessageID), userMessage, true)
		m.blockV2("params.update.content", u.Content)
	case *acpv2.UserMessage:
		m.replayed(s)
		m.chunk(s, string(u.MessageID), userMessage, false)
		m.blocksV2("params.update.content", u.Content.Or(nil))
	case *acpv2.AgentMessage:
		m.chunk(s, string(u.MessageID), agentMessage, false)
		m.blocksV2("params.update.content", u.Content.Or(nil))
	case *acpv2.AgentThought:
		m.chunk(s, string(u.MessageID), thought, false)
		m.blocksV2("params.update.content", u.Content.Or(nil))
	case *acpv2.SessionMessage:
		m.chunk(s, string(u.MessageID), sessionMessage, false)
	case *acpv2.SessionMessageChunk:
		m.chunk(s, string(u.MessageID), sessionMessage, true)
	default:
		return false
	}
	return true
}

// stateV2 follows an update of the state.
func (m *Monitor) stateV2(s *session, u acpv2.SessionUpdate) bool {
	switch u := u.(type) {
	case *acpv2.RunningStateUpdate:
		reported, work := background(u.Background)
		m.inBackground(s, u.Background)
		m.stateOf(s, "running", "", false, reported, work)
	case *acpv2.RequiresActionStateUpdate:
		reported, work := background(u.Background)
		m.inBackground(s, u.Background)
		m.stateOf(s, "requires_action", "", false, reported, work)
	case *acpv2.StateUnknownUpdate:
		m.stateOf(s, "unknown", "", false, false, true)
	case *acpv2.UnknownStateUpdate:
		m.stateOf(s, "unknown", "", false, false, true)
	case *acpv2.IdleStateUpdate:
		reported, work := background(u.Background)
		m.inBackground(s, u.Background)
		r := u.StopReason
		m.expect(ckStopReason, r == "" || r.Known() || r[0] == '_', "params.update.stopReason", "stopped for the unknown reason %s", quote(string(r)))
		if t := u.Usage; t != nil {
			m.tokens("params.update.usage.totalTokens", t.TotalTokens, t.InputTokens, t.OutputTokens)
		}
		m.stateOf(s, "idle", string(r), u.Error != nil, reported, work)
	default:
		return false
	}
	return true
}

// workV2 follows an update of a tool call, a terminal or a plan.
func (m *Monitor) workV2(s *session, u acpv2.SessionUpdate) bool {
	switch u := u.(type) {
	case *acpv2.ToolCallUpdate:
		if st := u.Status.Or(""); st == acpv2.ToolCallStatusInProgress || st == acpv2.ToolCallStatusPending {
			m.works(s, "a tool call")
		}
		m.toolV2(s, u, false)
	case *acpv2.ToolCallContentChunk:
		if m.breaks(ckToolChunk, s.tools.lacks(string(u.ToolCallID)) && s.opening == 0) {
			m.add(ckToolChunk, "params.update.toolCallId", "added to the tool call %s, which it has not shown", quote(string(u.ToolCallID)))
		}
		m.toolPartsV2(s, "params.update", []acpv2.ToolCallContent{u.Content}, nil)
	case *acpv2.TerminalUpdate:
		_, exits := u.ExitStatus.Get()
		t := m.terminalUpdate(s, string(u.TerminalID), false, exits, u.ExitStatus.IsClear())
		if c, ok := u.Capabilities.Get(); ok {
			t.cancel = c.Cancel != nil
		} else if u.Capabilities.IsClear() {
			t.cancel = false
		}
		if o, ok := u.Output.Get(); ok {
			m.base64("params.update.output.data", o.Data)
		}
		if c := u.Cwd.Or(""); c != "" {
			m.runsIn(s, t, string(u.TerminalID), c)
		}
	case *acpv2.TerminalOutputChunk:
		m.terminalUpdate(s, string(u.TerminalID), true, false, false)
		m.base64("params.update.data", u.Data)
	case *acpv2.PlanUpdate:
		switch p := u.Plan.(type) {
		case *acpv2.PlanItems:
			s.plans.put(string(p.PlanID), true)
			m.entriesV2("params.update.plan.entries", p.Entries)
		case *acpv2.PlanFile:
			s.plans.put(string(p.PlanID), true)
			m.uri("params.update.plan.uri", p.URI)
		case *acpv2.PlanMarkdown:
			s.plans.put(string(p.PlanID), true)
		case *acpv2.UnknownPlanUpdateContent:
			s.plans.put(string(p.PlanID), true)
		}
	case *acpv2.PlanRemoved:
		m.planRemoved(s, string(u.PlanID))
	default:
		return false
	}
	return true
}

// aboutV2 follows an update that is about the session.
func (m *Monitor) aboutV2(s *session, u acpv2.SessionUpdate) bool {
	switch u := u.(type) {
	case *acpv2.AvailableCommandsUpdate:
		m.commandsV2(s, "params.update.availableCommands", u.AvailableCommands)
	case *acpv2.ConfigOptionUpdate:
		m.settings(s, "params.update.configOptions", settingsV2(u.ConfigOptions))
	case *acpv2.SessionInfoUpdate:
		m.timestamp("params.update.updatedAt", u.UpdatedAt.Or(""))
	case *acpv2.UsageUpdate:
		if c, ok := u.Cost.Get(); ok {
			m.usage(s, u.Used, u.Size, &c.Amount, c.Currency)
		} else {
			m.usage(s, u.Used, u.Size, nil, "")
		}
	case *acpv2.PromptSuggestionsUpdate:
		m.suggestsV2(s, u.Suggestions)
	case *acpv2.CursorUpdate:
		m.movesV2(s, u)
	case *acpv2.ReplayComplete:
		m.replayComplete(s)
	case *acpv2.Notice:
		m.notice(string(u.Severity), u.Title, u.Severity.Known())
	case *acpv2.CompactionSummaryChunk:
		m.blockV2("params.update.content", u.Content)
	case *acpv2.SubagentUpdate:
		c, told := u.Capabilities.Get()
		m.subagent(s, subagentSeen{id: string(u.SessionID), cwd: u.Cwd.Or(""), directories: u.AdditionalDirectories.Or(nil),
			told: told || u.Capabilities.IsClear(), cancel: told && c.Cancel != nil})
	default:
		return false
	}
	return true
}

func (m *Monitor) entriesV2(path string, entries []acpv2.PlanEntry) {
	for _, e := range entries {
		m.planEntry(path, e.Content, string(e.Priority), string(e.Status), e.Priority.Known() && e.Status.Known())
	}
}

// toolV2 follows a change of a tool call.
func (m *Monitor) toolV2(s *session, u *acpv2.ToolCallUpdate, asked bool) {
	path := "params.update"
	if asked {
		path = "params.subject.toolCall"
	}
	status, kind := u.Status.Or(""), u.Kind.Or("")
	t := m.toolCall(s, toolSeen{
		id: string(u.ToolCallID), name: u.Name.Or(""), asked: asked, path: path, title: u.Title.Or("") != "",
		status: string(status), statusKnown: status.Known(), kind: string(kind), kindKnown: kind.Known(),
	})
	if c, ok := u.Capabilities.Get(); ok {
		t.cancel = c.Cancel != nil
	} else if u.Capabilities.IsClear() {
		t.cancel = false
	}
	m.toolPartsV2(s, path, u.Content.Or(nil), u.Locations.Or(nil))
}

func (m *Monitor) toolPartsV2(s *session, path string, content []acpv2.ToolCallContent, locations []acpv2.ToolCallLocation) {
	for _, c := range content {
		switch c := c.(type) {
		case *acpv2.Content:
			m.blockV2(path+".content", c.Content)
		case *acpv2.Diff:
			for _, x := range c.Changes {
				switch o := x.Operation.(type) {
				case *acpv2.DiffAdd:
					m.diffPath(path+".content", o.Path)
				case *acpv2.DiffDelete:
					m.diffPath(path+".content", o.Path)
				case *acpv2.DiffModify:
					m.diffPath(path+".content", o.Path)
				case *acpv2.DiffMove:
					m.diffPath(path+".content", o.OldPath)
					m.diffPath(path+".content", o.Path)
				case *acpv2.DiffCopy:
					m.diffPath(path+".content", o.OldPath)
					m.diffPath(path+".content", o.Path)
				}
			}
		case *acpv2.Terminal:
			m.toolTerminal(s, path+".content", string(c.TerminalID))
		}
	}
	for _, l := range locations {
		m.location(path+".locations", l.Path, l.Line)
	}
}

// blocksV2 looks at content, and returns the kinds it is of.
func (m *Monitor) blocksV2(path string, blocks []acpv2.ContentBlock) (kinds int) {
	for i, b := range blocks {
		kinds |= m.blockV2(path+"["+strconv.Itoa(i)+"]", b)
	}
	return kinds
}

func (m *Monitor) blockV2(path string, b acpv2.ContentBlock) (kind int) {
	var a *acpv2.Annotations
	switch b := b.(type) {
	case *acpv2.TextContent:
		a = b.Annotations
	case *acpv2.ImageContent:
		a, kind = b.Annotations, image
		m.base64(path+".data", b.Data)
		m.mime(path+".mimeType", b.MIMEType)
	case *acpv2.AudioContent:
		a, kind = b.Annotations, audio
		m.base64(path+".data", b.Data)
		m.mime(path+".mimeType", b.MIMEType)
	case *acpv2.ResourceLink:
		a = b.Annotations
		m.uri(path+".uri", b.URI)
	case *acpv2.EmbeddedResource:
		a, kind = b.Annotations, embedded
		switch r := b.Resource.(type) {
		case *acpv2.TextResourceContents:
			m.uri(path+".resource.uri", r.URI)
		case *acpv2.BlobResourceContents:
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

// askV2 looks at an elicitation.
func (m *Monitor) askV2(r *request, p *acpv2.CreateElicitationRequest) {
	var scope acpv2.ElicitationScope
	switch e := p.Mode.(type) {
	case *acpv2.ElicitationFormMode:
		scope = e.Scope
		fields := make(map[string]field, len(e.RequestedSchema.Properties))
		for _, f := range e.RequestedSchema.Properties {
			fields[f.Name] = fieldV2(f.Schema)
		}
		m.form(r, e.RequestedSchema.Required, fields)
	case *acpv2.ElicitationURLMode:
		scope = e.Scope
		m.page(string(e.ElicitationID), e.URL)
	case *acpv2.UnknownElicitationMode:
		scope = e.Scope
	}
	switch s := scope.(type) {
	case *acpv2.ElicitationSessionScope:
		r.s = m.names(string(s.SessionID))
	case *acpv2.ElicitationRequestScope:
		m.scope(r, s.RequestID)
	}
}

func fieldV2(s acpv2.ElicitationPropertySchema) field {
	switch s := s.(type) {
	case *acpv2.StringPropertySchema:
		f := field{kind: 's'}
		f.allow(s.Enum)
		for _, o := range s.OneOf {
			f.allow([]string{o.Const})
		}
		return f
	case *acpv2.NumberPropertySchema:
		return field{kind: 'n'}
	case *acpv2.IntegerPropertySchema:
		return field{kind: 'i'}
	case *acpv2.BooleanPropertySchema:
		return field{kind: 'b'}
	case *acpv2.MultiSelectPropertySchema:
		f := field{kind: 'l'}
		switch i := s.Items.(type) {
		case *acpv2.StringMultiSelectItems:
			f.allow(i.Enum)
		case *acpv2.TitledMultiSelectItems:
			for _, o := range i.AnyOf {
				f.allow([]string{o.Const})
			}
		}
		return f
	}
	return field{}
}

// background reports whether an agent has said what runs in the background, and whether
// something does, or may.
func background(list []acpv2.BackgroundWork) (reported, work bool) {
	return list != nil, list == nil || len(list) > 0
}
