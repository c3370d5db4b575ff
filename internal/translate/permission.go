package translate

import (
	"encoding/json"
	"slices"
	"strings"

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
// call, synthesized for a command that belongs to none, and for anything else. A
// command becomes the title of a call without one. What version 1 has no place
// for becomes text behind the content of the call: the command with its
// directory, a title that is not the call's, and the description. whole is the
// tool call that the request is about, if the caller knows all of it; nil means
// what was converted before. A request of which no option has a form in version
// 1 is an error that wraps [errors.ErrUnsupported]. The tool call does not count
// as announced by this: its first update is still sent as tool_call.
func (t *ToV1) Permission(r acpv2.RequestPermissionRequest, whole *acpv2.ToolCallUpdate) (acpv1.RequestPermissionRequest, error) {
	v := acpv1.RequestPermissionRequest{
		SessionID: acpv1.SessionID(r.SessionID),
		Options:   PermissionOptionsToV1(r.Options),
		Meta:      r.Meta,
		Unknown:   without(r.Unknown, "toolCall"),
	}
	if len(v.Options) == 0 {
		return acpv1.RequestPermissionRequest{}, unsupported("a permission request without a known kind of option")
	}
	var about acpv2.ToolCallUpdate
	command, isCommand := r.Subject.(*acpv2.CommandPermissionSubject)
	subject, isCall := r.Subject.(*acpv2.ToolCallPermissionSubject)
	switch {
	case whole != nil:
		about = *whole
	case isCall:
		about = subject.ToolCall
	case isCommand:
		about = acpv2.ToolCallUpdate{ToolCallID: command.ToolCallID, Kind: acpv2.Set(acpv2.ToolKindExecute),
			Status: acpv2.Set(acpv2.ToolCallStatusPending), Meta: command.Meta}
	}
	known := t.calls.get(about.ToolCallID)
	title, line := about.Title.Or(""), ""
	if known != nil && about.Title.IsZero() {
		title = known.title
	}
	if isCommand {
		if line = "$ " + command.Command; command.Cwd != "" {
			line += "\nin " + command.Cwd
		}
		if whole == nil && !strings.Contains(title, command.Command) {
			title = command.Command
		}
		if about.Kind.Or(acpv2.ToolKindOther) == acpv2.ToolKindOther {
			about.Kind = acpv2.Set(acpv2.ToolKindExecute)
		}
		if about.RawInput == nil {
			input, err := json.Marshal(struct {
				Command string `json:"command"`
				Cwd     string `json:"cwd,omitempty"`
			}{command.Command, command.Cwd})
			if err != nil {
				return acpv1.RequestPermissionRequest{}, err
			}
			about.RawInput = input
		}
	}
	v.ToolCall = t.toolUpdate(&about)
	switch {
	case isCommand && title != "":
		v.ToolCall.Title = acpv1.Set(title)
	case v.ToolCall.Title.IsZero() && known == nil:
		title = r.Title
		v.ToolCall.Title = acpv1.Set(title)
	}
	var parts []string
	if r.Title != title && r.Title != about.Name.Or("") && r.Title != string(about.ToolCallID) {
		parts = append(parts, r.Title)
	}
	text := strings.Join(slices.DeleteFunc(append(parts, line, r.Description), func(s string) bool { return s == "" }), "\n\n")
	content, has := about.Content.Get()
	if has || text != "" {
		shown := t.contents(content)
		if !has && known != nil {
			shown = t.render(known.parts)
		}
		if text != "" {
			shown = append(shown[:len(shown):len(shown)], &acpv1.Content{Content: &acpv1.TextContent{Text: text}})
		}
		v.ToolCall.Content = acpv1.Set(shown)
	}
	if v.ToolCall.ToolCallID == "" {
		v.ToolCall.ToolCallID = t.newID()
	}
	return v, nil
}
