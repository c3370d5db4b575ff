package translate

import (
	"encoding/json"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// PermissionOptionsFromV1 converts the choices of a permission request.
func PermissionOptionsFromV1(list []acpv1.PermissionOption) []acpv2.PermissionOption {
	return each(list, func(o acpv1.PermissionOption) acpv2.PermissionOption {
		return acpv2.PermissionOption{OptionID: acpv2.PermissionOptionID(o.OptionID), Name: o.Name,
			Kind: acpv2.PermissionOptionKind(o.Kind), Meta: o.Meta, Unknown: o.Unknown}
	})
}

// PermissionOptionsToV1 converts the choices of a permission request. One of a
// kind that version 1 does not have is left out, because its clients refuse the
// whole request for it (S79).
func PermissionOptionsToV1(list []acpv2.PermissionOption) []acpv1.PermissionOption {
	return some(list, func(o acpv2.PermissionOption) (acpv1.PermissionOption, bool) {
		kind := acpv1.PermissionOptionKind(o.Kind)
		return acpv1.PermissionOption{OptionID: acpv1.PermissionOptionID(o.OptionID), Name: o.Name,
			Kind: kind, Meta: o.Meta, Unknown: o.Unknown}, kind.Known()
	})
}

// PermissionOutcomeFromV1 converts the answer to a permission request; nil
// stays nil.
func PermissionOutcomeFromV1(o acpv1.RequestPermissionOutcome) acpv2.RequestPermissionOutcome {
	switch o := o.(type) {
	case *acpv1.SelectedPermissionOutcome:
		return &acpv2.SelectedPermissionOutcome{OptionID: acpv2.PermissionOptionID(o.OptionID), Meta: o.Meta, Unknown: o.Unknown}
	case *acpv1.CancelledPermissionOutcome:
		// In version 1 this one has no metadata, so it is an unknown member there.
		meta, rest := take(o.Unknown, "_meta")
		if len(meta) == 0 || meta[0] != '{' {
			meta = nil
		}
		return &acpv2.CancelledPermissionOutcome{Meta: meta, Unknown: rest}
	case *acpv1.UnknownRequestPermissionOutcome:
		return &acpv2.UnknownRequestPermissionOutcome{Type: o.Type, Raw: o.Raw}
	}
	return nil
}

// PermissionOutcomeToV1 converts the answer to a permission request; nil stays
// nil.
func PermissionOutcomeToV1(o acpv2.RequestPermissionOutcome) acpv1.RequestPermissionOutcome {
	switch o := o.(type) {
	case *acpv2.SelectedPermissionOutcome:
		return &acpv1.SelectedPermissionOutcome{OptionID: acpv1.PermissionOptionID(o.OptionID), Meta: o.Meta, Unknown: o.Unknown}
	case *acpv2.CancelledPermissionOutcome:
		v := &acpv1.CancelledPermissionOutcome{Unknown: o.Unknown}
		if o.Meta != nil {
			v.Unknown = put(o.Unknown, "_meta", o.Meta)
		}
		return v
	case *acpv2.UnknownRequestPermissionOutcome:
		return &acpv1.UnknownRequestPermissionOutcome{Type: o.Type, Raw: o.Raw}
	}
	return nil
}

// PermissionFromV1 converts a permission request. Its title, which version 1
// does not have, is the tool call's title, name or id, whichever comes first.
func PermissionFromV1(r acpv1.RequestPermissionRequest) acpv2.RequestPermissionRequest {
	title := r.ToolCall.Title.Or("")
	if title == "" {
		title = r.ToolCall.Name
	}
	if title == "" {
		title = string(r.ToolCall.ToolCallID)
	}
	return acpv2.RequestPermissionRequest{
		SessionID: acpv2.SessionID(r.SessionID),
		Title:     title,
		Subject:   &acpv2.ToolCallPermissionSubject{ToolCall: ToolUpdateFromV1(r.ToolCall)},
		Options:   PermissionOptionsFromV1(r.Options),
		Meta:      r.Meta,
		Unknown:   without(r.Unknown, "title", "description", "subject"),
	}
}

// Permission converts a permission request. What it asks about becomes a tool
// call, synthesized for a command that belongs to none, and for anything else; the
// title becomes that of a tool call without one, the description is lost. A
// request of which no option has a form in version 1 is an error that wraps
// [errors.ErrUnsupported]. The tool call does not count as announced by this:
// its first update is still sent as tool_call.
func (t *ToV1) Permission(r acpv2.RequestPermissionRequest) (acpv1.RequestPermissionRequest, error) {
	v := acpv1.RequestPermissionRequest{
		SessionID: acpv1.SessionID(r.SessionID),
		Options:   PermissionOptionsToV1(r.Options),
		Meta:      r.Meta,
		Unknown:   without(r.Unknown, "toolCall"),
	}
	if len(v.Options) == 0 {
		return acpv1.RequestPermissionRequest{}, unsupported("a permission request without a known kind of option")
	}
	switch s := r.Subject.(type) {
	case *acpv2.ToolCallPermissionSubject:
		v.ToolCall = t.toolUpdate(&s.ToolCall)
		if content, ok := s.ToolCall.Content.Get(); ok {
			v.ToolCall.Content = acpv1.Set(t.contents(content))
		}
		if v.ToolCall.Title.IsZero() && t.calls.get(s.ToolCall.ToolCallID) == nil {
			v.ToolCall.Title = acpv1.Set(r.Title)
		}
	case *acpv2.CommandPermissionSubject:
		input, err := json.Marshal(struct {
			Command string `json:"command"`
			Cwd     string `json:"cwd,omitempty"`
		}{s.Command, s.Cwd})
		if err != nil {
			return acpv1.RequestPermissionRequest{}, err
		}
		v.ToolCall = acpv1.ToolCallUpdate{ToolCallID: acpv1.ToolCallID(s.ToolCallID), Title: acpv1.Set(r.Title),
			Kind: acpv1.Set(acpv1.ToolKindExecute), Status: acpv1.Set(acpv1.ToolCallStatusPending), RawInput: input, Meta: s.Meta}
	default:
		v.ToolCall.Title = acpv1.Set(r.Title)
	}
	if v.ToolCall.ToolCallID == "" {
		v.ToolCall.ToolCallID = t.newID()
	}
	return v, nil
}
