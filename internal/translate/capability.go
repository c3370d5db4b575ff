package translate

import (
	"encoding/json"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// unnamed is what an implementation of version 1 that does not introduce
// itself is called (S57).
const unnamed = "unknown"

// ImplementationFromV1 converts the name of an implementation. Version 2
// requires one: nil becomes "unknown".
func ImplementationFromV1(i *acpv1.Implementation) acpv2.Implementation {
	if i == nil {
		return acpv2.Implementation{Name: unnamed, Version: unnamed}
	}
	return acpv2.Implementation(*i)
}

// ImplementationToV1 converts the name of an implementation. The result is not
// nil.
func ImplementationToV1(i acpv2.Implementation) *acpv1.Implementation {
	return new(acpv1.Implementation(i))
}

// AgentCapabilitiesFromV1 converts the capabilities of an agent. Session is
// never nil, because version 1 has no agent without sessions, and local MCP
// servers are always allowed. Version 2 cannot say that an agent lacks
// session/list, resume, close or load, which it takes for granted, nor that it
// takes MCP servers over sse or answers logout: callers that need those look at
// what the agent sent.
func AgentCapabilitiesFromV1(c acpv1.AgentCapabilities) acpv2.AgentCapabilities {
	s := c.SessionCapabilities
	v := acpv2.AgentCapabilities{
		Session: &acpv2.SessionCapabilities{
			Prompt:                promptFromV1(c.PromptCapabilities),
			MCP:                   mcpFromV1(c.MCPCapabilities),
			Delete:                (*acpv2.SessionDeleteCapabilities)(s.Delete),
			AdditionalDirectories: (*acpv2.SessionAdditionalDirectoriesCapabilities)(s.AdditionalDirectories),
			SystemPrompt:          pointed(s.SystemPrompt, systemPromptCapabilitiesFromV1),
			Fork:                  (*acpv2.SessionForkCapabilities)(s.Fork),
			Archive:               (*acpv2.SessionArchiveCapabilities)(s.Archive),
			Status:                (*acpv2.SessionStatusCapabilities)(s.Status),
			Title:                 (*acpv2.SessionTitleCapabilities)(s.Title),
			Options:               (*acpv2.SessionOptionsCapabilities)(s.Options),
			Meta:                  s.Meta,
			Unknown:               without(s.Unknown, "mcp", "prompt"),
		},
		Providers: (*acpv2.ProvidersCapabilities)(c.Providers),
		Meta:      c.Meta,
		Unknown:   without(c.Unknown, "session"),
	}
	if a := c.Auth; a.Status != nil || hasMembers(a.Meta, a.Unknown) {
		v.Auth = &acpv2.AgentAuthCapabilities{Status: (*acpv2.AuthStatusCapabilities)(a.Status), Meta: a.Meta, Unknown: a.Unknown}
	}
	return v
}

// AgentCapabilitiesToV1 converts the capabilities of an agent. With sessions
// come session/load, list, resume and close. Auth.Logout stays nil: in
// version 2 it follows from the list of ways to sign in, which the caller has.
func AgentCapabilitiesToV1(c acpv2.AgentCapabilities) acpv1.AgentCapabilities {
	v := acpv1.AgentCapabilities{
		Providers: (*acpv1.ProvidersCapabilities)(c.Providers),
		Meta:      c.Meta,
		Unknown:   without(c.Unknown, "loadSession", "promptCapabilities", "mcpCapabilities", "sessionCapabilities"),
	}
	if a := c.Auth; a != nil {
		v.Auth = acpv1.AgentAuthCapabilities{Status: (*acpv1.AuthStatusCapabilities)(a.Status), Meta: a.Meta, Unknown: without(a.Unknown, "logout")}
	}
	s := c.Session
	if s == nil {
		return v
	}
	v.LoadSession = true
	if p := s.Prompt; p != nil {
		v.PromptCapabilities = acpv1.PromptCapabilities{Image: p.Image != nil, Audio: p.Audio != nil,
			EmbeddedContext: p.EmbeddedContext != nil, Meta: p.Meta, Unknown: p.Unknown}
	}
	if m := s.MCP; m != nil {
		v.MCPCapabilities = acpv1.MCPCapabilities{HTTP: m.HTTP != nil, ACP: m.ACP != nil, Meta: m.Meta, Unknown: without(m.Unknown, "sse")}
	}
	v.SessionCapabilities = acpv1.SessionCapabilities{
		List:                  &acpv1.SessionListCapabilities{},
		Resume:                &acpv1.SessionResumeCapabilities{},
		Close:                 &acpv1.SessionCloseCapabilities{},
		Delete:                (*acpv1.SessionDeleteCapabilities)(s.Delete),
		AdditionalDirectories: (*acpv1.SessionAdditionalDirectoriesCapabilities)(s.AdditionalDirectories),
		SystemPrompt:          pointed(s.SystemPrompt, systemPromptCapabilitiesToV1),
		Fork:                  (*acpv1.SessionForkCapabilities)(s.Fork),
		Archive:               (*acpv1.SessionArchiveCapabilities)(s.Archive),
		Status:                (*acpv1.SessionStatusCapabilities)(s.Status),
		Title:                 (*acpv1.SessionTitleCapabilities)(s.Title),
		Options:               (*acpv1.SessionOptionsCapabilities)(s.Options),
		Meta:                  s.Meta,
		Unknown:               without(s.Unknown, "list", "resume", "close"),
	}
	return v
}

func promptFromV1(p acpv1.PromptCapabilities) *acpv2.PromptCapabilities {
	if !p.Image && !p.Audio && !p.EmbeddedContext && !hasMembers(p.Meta, p.Unknown) {
		return nil
	}
	v := &acpv2.PromptCapabilities{Meta: p.Meta, Unknown: without(p.Unknown, "skill")}
	if p.Image {
		v.Image = &acpv2.PromptImageCapabilities{}
	}
	if p.Audio {
		v.Audio = &acpv2.PromptAudioCapabilities{}
	}
	if p.EmbeddedContext {
		v.EmbeddedContext = &acpv2.PromptEmbeddedContextCapabilities{}
	}
	return v
}

func mcpFromV1(m acpv1.MCPCapabilities) *acpv2.MCPCapabilities {
	v := &acpv2.MCPCapabilities{Stdio: &acpv2.MCPStdioCapabilities{}, Meta: m.Meta, Unknown: without(m.Unknown, "stdio")}
	if m.HTTP {
		v.HTTP = &acpv2.MCPHTTPCapabilities{}
	}
	if m.ACP {
		v.ACP = &acpv2.MCPACPCapabilities{}
	}
	return v
}

func systemPromptCapabilitiesFromV1(c acpv1.SessionSystemPromptCapabilities) acpv2.SessionSystemPromptCapabilities {
	v := acpv2.SessionSystemPromptCapabilities{Meta: c.Meta, Unknown: c.Unknown}
	if m := c.Mode; m != nil {
		v.Mode = &acpv2.SessionSystemPromptModeCapabilities{Override: (*acpv2.SessionSystemPromptOverrideCapabilities)(m.Override),
			Meta: m.Meta, Unknown: m.Unknown}
	}
	return v
}

func systemPromptCapabilitiesToV1(c acpv2.SessionSystemPromptCapabilities) acpv1.SessionSystemPromptCapabilities {
	v := acpv1.SessionSystemPromptCapabilities{Meta: c.Meta, Unknown: c.Unknown}
	if m := c.Mode; m != nil {
		v.Mode = &acpv1.SessionSystemPromptModeCapabilities{Override: (*acpv1.SessionSystemPromptOverrideCapabilities)(m.Override),
			Meta: m.Meta, Unknown: m.Unknown}
	}
	return v
}

// ClientCapabilitiesFromV1 converts the capabilities of a client. Files,
// terminals, plans with ids, subagents and most session extras of version 1 are
// not negotiated in version 2 and are left out; suggested prompts are.
func ClientCapabilitiesFromV1(c acpv1.ClientCapabilities) acpv2.ClientCapabilities {
	v := acpv2.ClientCapabilities{Meta: c.Meta, Unknown: c.Unknown}
	if s := c.Session; s != nil && s.PromptSuggestions != nil {
		v.Session = &acpv2.ClientSessionCapabilities{PromptSuggestions: pointed(s.PromptSuggestions, suggestionCapabilitiesFromV1)}
	}
	if a := c.Auth; a.Terminal || hasMembers(a.Meta, a.Unknown) {
		v.Auth = &acpv2.ClientAuthCapabilities{Meta: a.Meta, Unknown: a.Unknown}
		if a.Terminal {
			v.Auth.Terminal = &acpv2.TerminalAuthCapabilities{}
		}
	}
	if e := c.Elicitation; e != nil {
		v.Elicitation = &acpv2.ElicitationCapabilities{Form: (*acpv2.ElicitationFormCapabilities)(e.Form),
			URL: (*acpv2.ElicitationURLCapabilities)(e.URL), Meta: e.Meta, Unknown: e.Unknown}
	}
	return v
}

// ClientCapabilitiesToV1 converts the capabilities of a client. What every
// client of version 2 understands is advertised: compactions, notices, boolean
// options, plans with ids and subagents (compare S64). Files and terminals,
// which version 2 does not have, are not; the caller adds them.
func ClientCapabilitiesToV1(c acpv2.ClientCapabilities) acpv1.ClientCapabilities {
	v := acpv1.ClientCapabilities{
		Session: &acpv1.ClientSessionCapabilities{
			Compaction:    &acpv1.CompactionCapabilities{},
			ConfigOptions: &acpv1.SessionConfigOptionsCapabilities{Boolean: &acpv1.BooleanConfigOptionCapabilities{}},
			Notices:       &acpv1.NoticeCapabilities{},
		},
		Subagents: &acpv1.SubagentCapabilities{},
		Plan:      &acpv1.PlanCapabilities{},
		Meta:      c.Meta,
		Unknown:   without(c.Unknown, "fs", "terminal", "subagents", "plan"),
	}
	if s := c.Session; s != nil {
		v.Session.PromptSuggestions = pointed(s.PromptSuggestions, suggestionCapabilitiesToV1)
	}
	if a := c.Auth; a != nil {
		v.Auth = acpv1.AuthCapabilities{Terminal: a.Terminal != nil, Meta: a.Meta, Unknown: a.Unknown}
	}
	if e := c.Elicitation; e != nil {
		v.Elicitation = &acpv1.ElicitationCapabilities{Form: (*acpv1.ElicitationFormCapabilities)(e.Form),
			URL: (*acpv1.ElicitationURLCapabilities)(e.URL), Meta: e.Meta, Unknown: e.Unknown}
	}
	return v
}

func hasMembers(meta, unknown json.RawMessage) bool { return len(meta) > 0 || len(unknown) > 0 }
