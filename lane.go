package acp

import (
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// SessionParams are params of an extension that belong to a session. The message is
// handled in its place among the updates and the questions of the session. Messages
// with other params of extensions have no order among those. InSession is called when
// a message arrives and must be quick.
type SessionParams interface {
	InSession() SessionID
}

// laneMCP begins the lanes of MCP requests, so that none is a session's.
const laneMCP = "\x00mcp/"

// laneOf names the timeline that a message belongs to, in either version and on
// either side: that of its session, that of the MCP request it is part of, or
// that of the connection. Everything with a session's id keeps its place among
// the session's updates. A call has the lane of its request.
func laneOf(_ string, params any) string {
	switch p := params.(type) {
	case *acpv1.SessionNotification:
		return string(p.SessionID)
	case *acpv2.UpdateSessionNotification:
		return string(p.SessionID)
	}
	if p, ok := params.(SessionParams); ok {
		return string(p.InSession())
	}
	if lane := laneOfV1(params); lane != "" {
		return lane
	}
	return laneOfV2(params)
}

// laneOfV1 is laneOf for the rarer messages of version 1.
func laneOfV1(params any) string {
	switch p := params.(type) {
	case *acpv1.SetSessionModeRequest:
		return string(p.SessionID)
	case *acpv1.SetSessionConfigOptionRequest:
		return string(p.SessionID)
	case *acpv1.WriteTextFileRequest:
		return string(p.SessionID)
	case *acpv1.ReadTextFileRequest:
		return string(p.SessionID)
	case *acpv1.RequestPermissionRequest:
		return string(p.SessionID)
	case *acpv1.PromptRequest:
		return string(p.SessionID)
	case *acpv1.CancelNotification:
		return string(p.SessionID)
	case *acpv1.DeleteSessionRequest:
		return string(p.SessionID)
	case *acpv1.ArchiveSessionRequest:
		return string(p.SessionID)
	case *acpv1.UnarchiveSessionRequest:
		return string(p.SessionID)
	case *acpv1.SessionOptionsRequest:
		return string(p.SessionID)
	case *acpv1.SessionStatusRequest:
		return string(p.SessionID)
	case *acpv1.SetSessionTitleRequest:
		return string(p.SessionID)
	case *acpv1.CloseSessionRequest:
		return string(p.SessionID)
	case *acpv1.LoadSessionRequest:
		return string(p.SessionID)
	case *acpv1.ForkSessionRequest:
		return string(p.SessionID)
	case *acpv1.ResumeSessionRequest:
		return string(p.SessionID)
	case *acpv1.CreateTerminalRequest:
		return string(p.SessionID)
	case *acpv1.TerminalOutputRequest:
		return string(p.SessionID)
	case *acpv1.ReleaseTerminalRequest:
		return string(p.SessionID)
	case *acpv1.WaitForTerminalExitRequest:
		return string(p.SessionID)
	case *acpv1.KillTerminalRequest:
		return string(p.SessionID)
	case *acpv1.CreateElicitationRequest:
		switch m := p.Mode.(type) {
		case *acpv1.ElicitationFormMode:
			return laneOfScopeV1(m.Scope)
		case *acpv1.ElicitationURLMode:
			return laneOfScopeV1(m.Scope)
		}
	case *acpv1.MessageMCPRequest:
		return laneMCP + string(p.RequestID)
	case *acpv1.MessageMCPNotification:
		return laneMCP + string(p.RequestID)
	}
	return ""
}

func laneOfScopeV1(s acpv1.ElicitationScope) string {
	if s, ok := s.(*acpv1.ElicitationSessionScope); ok {
		return string(s.SessionID)
	}
	return ""
}

// laneOfV2 is laneOf for the rarer messages of version 2.
func laneOfV2(params any) string {
	switch p := params.(type) {
	case *acpv2.SetSessionConfigOptionRequest:
		return string(p.SessionID)
	case *acpv2.RequestPermissionRequest:
		return string(p.SessionID)
	case *acpv2.PromptRequest:
		return string(p.SessionID)
	case *acpv2.CancelSessionNotification:
		return string(p.SessionID)
	case *acpv2.DeleteSessionRequest:
		return string(p.SessionID)
	case *acpv2.ArchiveSessionRequest:
		return string(p.SessionID)
	case *acpv2.UnarchiveSessionRequest:
		return string(p.SessionID)
	case *acpv2.SessionOptionsRequest:
		return string(p.SessionID)
	case *acpv2.SessionStatusRequest:
		return string(p.SessionID)
	case *acpv2.SetSessionTitleRequest:
		return string(p.SessionID)
	case *acpv2.CloseSessionRequest:
		return string(p.SessionID)
	case *acpv2.ForkSessionRequest:
		return string(p.SessionID)
	case *acpv2.ResumeSessionRequest:
		return string(p.SessionID)
	case *acpv2.CancelTerminalRequest:
		return string(p.SessionID)
	case *acpv2.CancelToolCallRequest:
		return string(p.SessionID)
	case *acpv2.CreateElicitationRequest:
		switch m := p.Mode.(type) {
		case *acpv2.ElicitationFormMode:
			return laneOfScopeV2(m.Scope)
		case *acpv2.ElicitationURLMode:
			return laneOfScopeV2(m.Scope)
		}
	case *acpv2.MessageMCPRequest:
		return laneMCP + string(p.RequestID)
	case *acpv2.MessageMCPNotification:
		return laneMCP + string(p.RequestID)
	}
	return ""
}

func laneOfScopeV2(s acpv2.ElicitationScope) string {
	if s, ok := s.(*acpv2.ElicitationSessionScope); ok {
		return string(s.SessionID)
	}
	return ""
}

// openedSession returns the id of the new session a response is about.
func openedSession(result any) (SessionID, bool) {
	switch r := result.(type) {
	case *acpv1.NewSessionResponse:
		return SessionID(r.SessionID), true
	case *acpv1.ForkSessionResponse:
		return SessionID(r.SessionID), true
	case *acpv2.NewSessionResponse:
		return r.SessionID, true
	case *acpv2.ForkSessionResponse:
		return r.SessionID, true
	}
	return "", false
}
