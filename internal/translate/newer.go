package translate

import (
	"slices"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// SuggestionsFromV1 converts a list of suggested prompts.
func SuggestionsFromV1(u acpv1.PromptSuggestionsUpdate) acpv2.PromptSuggestionsUpdate {
	return acpv2.PromptSuggestionsUpdate{
		Suggestions: each(u.Suggestions, func(s acpv1.PromptSuggestion) acpv2.PromptSuggestion {
			return acpv2.PromptSuggestion{Prompt: BlocksFromV1(s.Prompt), Meta: s.Meta, Unknown: s.Unknown}
		}),
		Meta: u.Meta, Unknown: u.Unknown,
	}
}

// SuggestionsToV1 converts a list of suggested prompts. A suggestion with content that
// version 1 does not have is left out: it could not be sent as it is.
func SuggestionsToV1(u acpv2.PromptSuggestionsUpdate) acpv1.PromptSuggestionsUpdate {
	return acpv1.PromptSuggestionsUpdate{
		Suggestions: some(u.Suggestions, func(s acpv2.PromptSuggestion) (acpv1.PromptSuggestion, bool) {
			if slices.ContainsFunc(s.Prompt, func(b acpv2.ContentBlock) bool { return closed(b) != b }) {
				return acpv1.PromptSuggestion{}, false
			}
			return acpv1.PromptSuggestion{Prompt: BlocksToV1(s.Prompt), Meta: s.Meta, Unknown: s.Unknown}, true
		}),
		Meta: u.Meta, Unknown: u.Unknown,
	}
}

// CursorFromV1 converts an update of a cursor. Its metadata is carried as that of subagents is.
func CursorFromV1(u acpv1.CursorUpdate) acpv2.CursorUpdate {
	return acpv2.CursorUpdate{CursorID: acpv2.CursorID(u.CursorID), Anchor: anchorFromV1(u.Anchor),
		Capabilities: patchFromV1(u.Capabilities, func(c acpv1.CursorCapabilities) acpv2.CursorCapabilities {
			return acpv2.CursorCapabilities{Fork: (*acpv2.CursorForkCapabilities)(c.Fork), Meta: c.Meta, Unknown: c.Unknown}
		}),
		Meta: u.Meta, Unknown: u.Unknown}
}

// CursorToV1 converts an update of a cursor.
func CursorToV1(u acpv2.CursorUpdate) acpv1.CursorUpdate {
	return acpv1.CursorUpdate{CursorID: acpv1.CursorID(u.CursorID), Anchor: anchorToV1(u.Anchor),
		Capabilities: patchToV1(u.Capabilities, func(c acpv2.CursorCapabilities) acpv1.CursorCapabilities {
			return acpv1.CursorCapabilities{Fork: (*acpv1.CursorForkCapabilities)(c.Fork), Meta: c.Meta, Unknown: c.Unknown}
		}),
		Meta: u.Meta, Unknown: u.Unknown}
}

func anchorFromV1(a acpv1.CursorAnchor) acpv2.CursorAnchor {
	message := func(m acpv1.CursorMessageAnchor) *acpv2.CursorMessageAnchor {
		return &acpv2.CursorMessageAnchor{MessageID: acpv2.MessageID(m.MessageID), Position: acpv2.CursorAnchorPosition(m.Position),
			Meta: m.Meta, Unknown: m.Unknown}
	}
	switch a := a.(type) {
	case *acpv1.CursorUserMessageAnchor:
		return (*acpv2.CursorUserMessageAnchor)(message(acpv1.CursorMessageAnchor(*a)))
	case *acpv1.CursorAgentMessageAnchor:
		return (*acpv2.CursorAgentMessageAnchor)(message(acpv1.CursorMessageAnchor(*a)))
	case *acpv1.CursorAgentThoughtAnchor:
		return (*acpv2.CursorAgentThoughtAnchor)(message(acpv1.CursorMessageAnchor(*a)))
	case *acpv1.CursorSessionMessageAnchor:
		return (*acpv2.CursorSessionMessageAnchor)(message(acpv1.CursorMessageAnchor(*a)))
	case *acpv1.CursorToolCallAnchor:
		return &acpv2.CursorToolCallAnchor{ToolCallID: acpv2.ToolCallID(a.ToolCallID), Position: acpv2.CursorAnchorPosition(a.Position),
			Meta: a.Meta, Unknown: a.Unknown}
	case *acpv1.CursorCompactionAnchor:
		return &acpv2.CursorCompactionAnchor{CompactionID: acpv2.CompactionID(a.CompactionID), Position: acpv2.CursorAnchorPosition(a.Position),
			Meta: a.Meta, Unknown: a.Unknown}
	case *acpv1.UnknownCursorAnchor:
		return &acpv2.UnknownCursorAnchor{Type: a.Type, Raw: a.Raw}
	}
	return nil
}

func anchorToV1(a acpv2.CursorAnchor) acpv1.CursorAnchor {
	message := func(m acpv2.CursorMessageAnchor) *acpv1.CursorMessageAnchor {
		return &acpv1.CursorMessageAnchor{MessageID: acpv1.MessageID(m.MessageID), Position: acpv1.CursorAnchorPosition(m.Position),
			Meta: m.Meta, Unknown: m.Unknown}
	}
	switch a := a.(type) {
	case *acpv2.CursorUserMessageAnchor:
		return (*acpv1.CursorUserMessageAnchor)(message(acpv2.CursorMessageAnchor(*a)))
	case *acpv2.CursorAgentMessageAnchor:
		return (*acpv1.CursorAgentMessageAnchor)(message(acpv2.CursorMessageAnchor(*a)))
	case *acpv2.CursorAgentThoughtAnchor:
		return (*acpv1.CursorAgentThoughtAnchor)(message(acpv2.CursorMessageAnchor(*a)))
	case *acpv2.CursorSessionMessageAnchor:
		return (*acpv1.CursorSessionMessageAnchor)(message(acpv2.CursorMessageAnchor(*a)))
	case *acpv2.CursorToolCallAnchor:
		return &acpv1.CursorToolCallAnchor{ToolCallID: acpv1.ToolCallID(a.ToolCallID), Position: acpv1.CursorAnchorPosition(a.Position),
			Meta: a.Meta, Unknown: a.Unknown}
	case *acpv2.CursorCompactionAnchor:
		return &acpv1.CursorCompactionAnchor{CompactionID: acpv1.CompactionID(a.CompactionID), Position: acpv1.CursorAnchorPosition(a.Position),
			Meta: a.Meta, Unknown: a.Unknown}
	case *acpv2.UnknownCursorAnchor:
		return &acpv1.UnknownCursorAnchor{Type: a.Type, Raw: a.Raw}
	}
	return nil
}

// placed reports whether a client of version 1 can place a cursor that an agent tells: it
// knows the kind of its anchor, or that is an extension.
func placed(u *acpv2.CursorUpdate) bool {
	a, unknown := u.Anchor.(*acpv2.UnknownCursorAnchor)
	return !unknown || isOwn(a.Type)
}

// OptionsRequestFromV1 converts the request session/options.
func OptionsRequestFromV1(r acpv1.SessionOptionsRequest) acpv2.SessionOptionsRequest {
	return acpv2.SessionOptionsRequest{Cwd: r.Cwd, AdditionalDirectories: r.AdditionalDirectories,
		SessionID: acpv2.SessionID(r.SessionID), Meta: r.Meta, Unknown: r.Unknown}
}

// OptionsRequestToV1 converts the request session/options.
func OptionsRequestToV1(r acpv2.SessionOptionsRequest) acpv1.SessionOptionsRequest {
	return acpv1.SessionOptionsRequest{Cwd: r.Cwd, AdditionalDirectories: r.AdditionalDirectories,
		SessionID: acpv1.SessionID(r.SessionID), Meta: r.Meta, Unknown: r.Unknown}
}

// InitialOptionsFromV1 converts the values that settings are to begin with.
func InitialOptionsFromV1(list []acpv1.InitialSessionConfigOption) []acpv2.InitialSessionConfigOption {
	return some(list, func(o acpv1.InitialSessionConfigOption) (acpv2.InitialSessionConfigOption, bool) {
		v := OptionValueFromV1(o.Value)
		return acpv2.InitialSessionConfigOption{ConfigID: acpv2.SessionConfigID(o.ConfigID), Value: v, Meta: o.Meta,
			Unknown: without(o.Unknown, "type")}, v != nil
	})
}

// InitialOptionsToV1 converts the values that settings are to begin with. Those of a kind that
// version 1 does not have are left out.
func InitialOptionsToV1(list []acpv2.InitialSessionConfigOption) []acpv1.InitialSessionConfigOption {
	return some(list, func(o acpv2.InitialSessionConfigOption) (acpv1.InitialSessionConfigOption, bool) {
		v, err := OptionValueToV1(o.Value)
		return acpv1.InitialSessionConfigOption{ConfigID: acpv1.SessionConfigID(o.ConfigID), Value: v, Meta: o.Meta,
			Unknown: o.Unknown}, err == nil
	})
}

func suggestionCapabilitiesFromV1(c acpv1.PromptSuggestionsCapabilities) acpv2.PromptSuggestionsCapabilities {
	return acpv2.PromptSuggestionsCapabilities{Image: (*acpv2.PromptSuggestionsImageCapabilities)(c.Image),
		Audio:           (*acpv2.PromptSuggestionsAudioCapabilities)(c.Audio),
		EmbeddedContext: (*acpv2.PromptSuggestionsEmbeddedContextCapabilities)(c.EmbeddedContext), Meta: c.Meta, Unknown: c.Unknown}
}

func suggestionCapabilitiesToV1(c acpv2.PromptSuggestionsCapabilities) acpv1.PromptSuggestionsCapabilities {
	return acpv1.PromptSuggestionsCapabilities{Image: (*acpv1.PromptSuggestionsImageCapabilities)(c.Image),
		Audio:           (*acpv1.PromptSuggestionsAudioCapabilities)(c.Audio),
		EmbeddedContext: (*acpv1.PromptSuggestionsEmbeddedContextCapabilities)(c.EmbeddedContext), Meta: c.Meta, Unknown: c.Unknown}
}
