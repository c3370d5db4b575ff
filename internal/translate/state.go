package translate

import (
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// UsageFromV1 converts a count of tokens; nil stays nil.
func UsageFromV1(u *acpv1.Usage) *acpv2.Usage { return (*acpv2.Usage)(u) }

// UsageToV1 converts a count of tokens; nil stays nil.
func UsageToV1(u *acpv2.Usage) *acpv1.Usage { return (*acpv1.Usage)(u) }

// StopReasonFromV1 converts the reason why a turn ended. All of version 1 occur
// in version 2.
func StopReasonFromV1(r acpv1.StopReason) acpv2.StopReason { return acpv2.StopReason(r) }

// StopReasonToV1 converts the reason why foreground work ended. The reason
// error and those this library does not know have no form in version 1, where a
// failed prompt is answered with an error.
func StopReasonToV1(r acpv2.StopReason) (acpv1.StopReason, bool) {
	v := acpv1.StopReason(r)
	if !v.Known() {
		return "", false
	}
	return v, true
}

// ErrorFromV1 converts an error object; nil stays nil.
func ErrorFromV1(e *acpv1.Error) *acpv2.Error {
	if e == nil {
		return nil
	}
	return &acpv2.Error{Code: acpv2.ErrorCode(e.Code), Message: e.Message, Data: e.Data, Unknown: e.Unknown}
}

// ErrorToV1 converts an error object; nil stays nil.
func ErrorToV1(e *acpv2.Error) *acpv1.Error {
	if e == nil {
		return nil
	}
	return &acpv1.Error{Code: acpv1.ErrorCode(e.Code), Message: e.Message, Data: e.Data, Unknown: e.Unknown}
}

// stateMembers are members of states in version 2 only; there a state is an
// update of its own as well, with a second discriminator.
var stateMembers = []string{"background", "sessionUpdate"}

// StateFromV1 converts the state of a child session; nil stays nil.
func StateFromV1(s acpv1.StateUpdate) acpv2.StateUpdate {
	switch s := s.(type) {
	case *acpv1.RunningStateUpdate:
		return &acpv2.RunningStateUpdate{Meta: s.Meta, Unknown: without(s.Unknown, stateMembers...)}
	case *acpv1.RequiresActionStateUpdate:
		return &acpv2.RequiresActionStateUpdate{Meta: s.Meta, Unknown: without(s.Unknown, stateMembers...)}
	case *acpv1.StateUnknownUpdate:
		return &acpv2.StateUnknownUpdate{Meta: s.Meta, Unknown: without(s.Unknown, stateMembers...)}
	case *acpv1.IdleStateUpdate:
		return &acpv2.IdleStateUpdate{Usage: UsageFromV1(s.Usage), StopReason: acpv2.StopReason(s.StopReason), Error: ErrorFromV1(s.Error),
			Meta: s.Meta, Unknown: without(s.Unknown, stateMembers...)}
	case *acpv1.UnknownStateUpdate:
		return &acpv2.UnknownStateUpdate{Type: s.Type, Raw: without(s.Raw, "sessionUpdate")}
	}
	return nil
}

// StateToV1 converts the state of a child session; nil stays nil. Work in the
// background has no form in version 1.
func StateToV1(s acpv2.StateUpdate) acpv1.StateUpdate {
	switch s := s.(type) {
	case *acpv2.RunningStateUpdate:
		return &acpv1.RunningStateUpdate{Meta: s.Meta, Unknown: s.Unknown}
	case *acpv2.RequiresActionStateUpdate:
		return &acpv1.RequiresActionStateUpdate{Meta: s.Meta, Unknown: s.Unknown}
	case *acpv2.StateUnknownUpdate:
		return &acpv1.StateUnknownUpdate{Meta: s.Meta, Unknown: s.Unknown}
	case *acpv2.IdleStateUpdate:
		return &acpv1.IdleStateUpdate{Usage: UsageToV1(s.Usage), StopReason: acpv1.IdleStopReason(s.StopReason), Error: ErrorToV1(s.Error),
			Meta: s.Meta, Unknown: s.Unknown}
	case *acpv2.UnknownStateUpdate:
		return &acpv1.UnknownStateUpdate{Type: s.Type, Raw: s.Raw}
	}
	return nil
}

// SubagentFromV1 converts an update of a child session. In version 1 its
// metadata replaces what is stored, in version 2 it is merged by key; it is
// carried as it is, and so for compactions and session messages.
func SubagentFromV1(u acpv1.SubagentUpdate) acpv2.SubagentUpdate {
	return acpv2.SubagentUpdate{SessionID: acpv2.SessionID(u.SessionID), Title: patchFromV1(u.Title, same[string]), Description: patchFromV1(u.Description, same[string]),
		Capabilities: patchFromV1(u.Capabilities, func(c acpv1.SubagentSessionCapabilities) acpv2.SubagentSessionCapabilities {
			return acpv2.SubagentSessionCapabilities{Cancel: (*acpv2.SessionCancelCapabilities)(c.Cancel), Meta: c.Meta, Unknown: c.Unknown}
		}),
		State: patchFromV1(u.State, StateFromV1), Cwd: patchFromV1(u.Cwd, same[string]), AdditionalDirectories: patchFromV1(u.AdditionalDirectories, same[[]string]), Meta: u.Meta, Unknown: u.Unknown}
}

// SubagentToV1 converts an update of a child session; see [StateToV1].
func SubagentToV1(u acpv2.SubagentUpdate) acpv1.SubagentUpdate {
	return acpv1.SubagentUpdate{SessionID: acpv1.SessionID(u.SessionID), Title: patchToV1(u.Title, same[string]), Description: patchToV1(u.Description, same[string]),
		Capabilities: patchToV1(u.Capabilities, func(c acpv2.SubagentSessionCapabilities) acpv1.SubagentSessionCapabilities {
			return acpv1.SubagentSessionCapabilities{Cancel: (*acpv1.SessionCancelCapabilities)(c.Cancel), Meta: c.Meta, Unknown: c.Unknown}
		}),
		State: patchToV1(u.State, StateToV1), Cwd: patchToV1(u.Cwd, same[string]), AdditionalDirectories: patchToV1(u.AdditionalDirectories, same[[]string]), Meta: u.Meta, Unknown: u.Unknown}
}

// SessionMessageFromV1 converts a message between sessions.
func SessionMessageFromV1(m acpv1.SessionMessage) acpv2.SessionMessage {
	return acpv2.SessionMessage{MessageID: acpv2.MessageID(m.MessageID),
		SenderSessionID:    patchFromV1(m.SenderSessionID, text[acpv2.SessionID, acpv1.SessionID]),
		RecipientSessionID: patchFromV1(m.RecipientSessionID, text[acpv2.SessionID, acpv1.SessionID]),
		SenderMessageID:    patchFromV1(m.SenderMessageID, text[acpv2.MessageID, acpv1.MessageID]),
		RecipientMessageID: patchFromV1(m.RecipientMessageID, text[acpv2.MessageID, acpv1.MessageID]),
		Content:            patchFromV1(m.Content, BlocksFromV1), Meta: m.Meta, Unknown: m.Unknown}
}

// SessionMessageToV1 converts a message between sessions.
func SessionMessageToV1(m acpv2.SessionMessage) acpv1.SessionMessage {
	return acpv1.SessionMessage{MessageID: acpv1.MessageID(m.MessageID),
		SenderSessionID:    patchToV1(m.SenderSessionID, text[acpv1.SessionID, acpv2.SessionID]),
		RecipientSessionID: patchToV1(m.RecipientSessionID, text[acpv1.SessionID, acpv2.SessionID]),
		SenderMessageID:    patchToV1(m.SenderMessageID, text[acpv1.MessageID, acpv2.MessageID]),
		RecipientMessageID: patchToV1(m.RecipientMessageID, text[acpv1.MessageID, acpv2.MessageID]),
		Content:            patchToV1(m.Content, BlocksToV1), Meta: m.Meta, Unknown: m.Unknown}
}

// SessionMessageChunkFromV1 converts a piece of a message between sessions.
func SessionMessageChunkFromV1(c acpv1.SessionMessageChunk) acpv2.SessionMessageChunk {
	return acpv2.SessionMessageChunk{MessageID: acpv2.MessageID(c.MessageID), Content: ContentFromV1(c.Content), Meta: c.Meta, Unknown: c.Unknown}
}

// SessionMessageChunkToV1 converts a piece of a message between sessions.
func SessionMessageChunkToV1(c acpv2.SessionMessageChunk) acpv1.SessionMessageChunk {
	return acpv1.SessionMessageChunk{MessageID: acpv1.MessageID(c.MessageID), Content: ContentToV1(c.Content), Meta: c.Meta, Unknown: c.Unknown}
}

// CompactionFromV1 converts an update of a compaction.
func CompactionFromV1(u acpv1.CompactionUpdate) acpv2.CompactionUpdate {
	return acpv2.CompactionUpdate{CompactionID: acpv2.CompactionID(u.CompactionID), Status: acpv2.CompactionStatus(u.Status),
		Summary: patchFromV1(u.Summary, BlocksFromV1), Error: patchFromV1(u.Error, same[string]), Meta: u.Meta, Unknown: u.Unknown}
}

// CompactionToV1 converts an update of a compaction.
func CompactionToV1(u acpv2.CompactionUpdate) acpv1.CompactionUpdate {
	return acpv1.CompactionUpdate{CompactionID: acpv1.CompactionID(u.CompactionID), Status: acpv1.CompactionStatus(u.Status),
		Summary: patchToV1(u.Summary, BlocksToV1), Error: patchToV1(u.Error, same[string]), Meta: u.Meta, Unknown: u.Unknown}
}

// CompactionChunkFromV1 converts a piece of a summary.
func CompactionChunkFromV1(c acpv1.CompactionSummaryChunk) acpv2.CompactionSummaryChunk {
	return acpv2.CompactionSummaryChunk{CompactionID: acpv2.CompactionID(c.CompactionID), Content: ContentFromV1(c.Content), Meta: c.Meta, Unknown: c.Unknown}
}

// CompactionChunkToV1 converts a piece of a summary.
func CompactionChunkToV1(c acpv2.CompactionSummaryChunk) acpv1.CompactionSummaryChunk {
	return acpv1.CompactionSummaryChunk{CompactionID: acpv1.CompactionID(c.CompactionID), Content: ContentToV1(c.Content), Meta: c.Meta, Unknown: c.Unknown}
}

// NoticeFromV1 converts a notice.
func NoticeFromV1(n acpv1.Notice) acpv2.Notice {
	return acpv2.Notice{Severity: acpv2.NoticeSeverity(n.Severity), Title: n.Title, Description: n.Description, Meta: n.Meta, Unknown: n.Unknown}
}

// NoticeToV1 converts a notice.
func NoticeToV1(n acpv2.Notice) acpv1.Notice {
	return acpv1.Notice{Severity: acpv1.NoticeSeverity(n.Severity), Title: n.Title, Description: n.Description, Meta: n.Meta, Unknown: n.Unknown}
}

// SessionInfoUpdateFromV1 converts a change of the title or time of a session.
func SessionInfoUpdateFromV1(u acpv1.SessionInfoUpdate) acpv2.SessionInfoUpdate {
	return acpv2.SessionInfoUpdate{Title: patchFromV1(u.Title, same[string]), UpdatedAt: patchFromV1(u.UpdatedAt, same[string]),
		Meta: u.Meta, Unknown: u.Unknown}
}

// SessionInfoUpdateToV1 converts a change of the title or time of a session.
// Version 1 has no way to clear the metadata.
func SessionInfoUpdateToV1(u acpv2.SessionInfoUpdate) acpv1.SessionInfoUpdate {
	return acpv1.SessionInfoUpdate{Title: patchToV1(u.Title, same[string]), UpdatedAt: patchToV1(u.UpdatedAt, same[string]),
		Meta: object(u.Meta), Unknown: u.Unknown}
}

// UsageUpdateFromV1 converts a report on the context window and the cost. A
// report without cost leaves the cost as it was.
func UsageUpdateFromV1(u acpv1.UsageUpdate) acpv2.UsageUpdate {
	v := acpv2.UsageUpdate{Used: u.Used, Size: u.Size, Meta: u.Meta, Unknown: u.Unknown}
	if u.Cost != nil {
		v.Cost = acpv2.Set(acpv2.Cost(*u.Cost))
	}
	return v
}

// UsageUpdateToV1 converts a report on the context window and the cost. Version
// 1 has no way to take back a cost.
func UsageUpdateToV1(u acpv2.UsageUpdate) acpv1.UsageUpdate {
	v := acpv1.UsageUpdate{Used: u.Used, Size: u.Size, Meta: u.Meta, Unknown: u.Unknown}
	if c, ok := u.Cost.Get(); ok {
		v.Cost = new(acpv1.Cost(c))
	}
	return v
}
