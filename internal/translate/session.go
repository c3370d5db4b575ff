package translate

import (
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// SessionInfoFromV1 converts an entry of the list of sessions.
func SessionInfoFromV1(s acpv1.SessionInfo) acpv2.SessionInfo {
	return acpv2.SessionInfo{SessionID: acpv2.SessionID(s.SessionID), Cwd: s.Cwd, AdditionalDirectories: s.AdditionalDirectories,
		Title: s.Title, UpdatedAt: s.UpdatedAt, Archived: s.Archived, Meta: s.Meta, Unknown: s.Unknown}
}

// SessionInfoToV1 converts an entry of the list of sessions.
func SessionInfoToV1(s acpv2.SessionInfo) acpv1.SessionInfo {
	return acpv1.SessionInfo{SessionID: acpv1.SessionID(s.SessionID), Cwd: s.Cwd, AdditionalDirectories: s.AdditionalDirectories,
		Title: s.Title, UpdatedAt: s.UpdatedAt, Archived: s.Archived, Meta: s.Meta, Unknown: s.Unknown}
}

// ListSessionsFromV1 converts the request session/list.
func ListSessionsFromV1(r acpv1.ListSessionsRequest) acpv2.ListSessionsRequest {
	return acpv2.ListSessionsRequest{Cwd: r.Cwd, Cursor: cursor(r.Cursor), Archived: acpv2.SessionArchiveFilter(r.Archived),
		Meta: r.Meta, Unknown: r.Unknown}
}

// ListSessionsToV1 converts the request session/list. In version 1 an empty
// cursor is none.
func ListSessionsToV1(r acpv2.ListSessionsRequest) acpv1.ListSessionsRequest {
	v := acpv1.ListSessionsRequest{Cwd: r.Cwd, Archived: acpv1.SessionArchiveFilter(r.Archived), Meta: r.Meta, Unknown: r.Unknown}
	if r.Cursor != nil {
		v.Cursor = string(*r.Cursor)
	}
	return v
}

// SessionsFromV1 converts the answer to session/list.
func SessionsFromV1(r acpv1.ListSessionsResponse) acpv2.ListSessionsResponse {
	return acpv2.ListSessionsResponse{Sessions: each(r.Sessions, SessionInfoFromV1), NextCursor: cursor(r.NextCursor),
		Meta: r.Meta, Unknown: r.Unknown}
}

// SessionsToV1 converts the answer to session/list. In version 1 an empty
// cursor is none.
func SessionsToV1(r acpv2.ListSessionsResponse) acpv1.ListSessionsResponse {
	v := acpv1.ListSessionsResponse{Sessions: each(r.Sessions, SessionInfoToV1), Meta: r.Meta, Unknown: r.Unknown}
	if r.NextCursor != nil {
		v.NextCursor = string(*r.NextCursor)
	}
	return v
}

func cursor(s string) *acpv2.SessionListCursor {
	if s == "" {
		return nil
	}
	return new(acpv2.SessionListCursor(s))
}

// SessionStatusFromV1 converts the answer to session/status.
func SessionStatusFromV1(r acpv1.SessionStatusResponse) acpv2.SessionStatusResponse {
	return acpv2.SessionStatusResponse{Status: acpv2.SessionStatus(r.Status), Meta: r.Meta, Unknown: without(r.Unknown, "state")}
}

// SessionStatusToV1 converts the answer to session/status; version 1 has no
// place for what the session is doing.
func SessionStatusToV1(r acpv2.SessionStatusResponse) acpv1.SessionStatusResponse {
	return acpv1.SessionStatusResponse{Status: acpv1.SessionStatus(r.Status), Meta: r.Meta, Unknown: r.Unknown}
}

// SystemPromptFromV1 converts a system prompt; nil stays nil.
func SystemPromptFromV1(p *acpv1.SystemPrompt) *acpv2.SystemPrompt {
	if p == nil {
		return nil
	}
	return &acpv2.SystemPrompt{Mode: acpv2.SystemPromptMode(p.Mode), Content: BlocksFromV1(p.Content), Meta: p.Meta, Unknown: p.Unknown}
}

// SystemPromptToV1 converts a system prompt; nil stays nil.
func SystemPromptToV1(p *acpv2.SystemPrompt) *acpv1.SystemPrompt {
	if p == nil {
		return nil
	}
	return &acpv1.SystemPrompt{Mode: acpv1.SystemPromptMode(p.Mode), Content: BlocksToV1(p.Content), Meta: p.Meta, Unknown: p.Unknown}
}
