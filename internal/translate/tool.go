package translate

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/patch"
)

// ToolCallFromV1 converts the announcement of a tool call: an update that sets
// all members. Without a kind it is other, without a status pending.
func ToolCallFromV1(c acpv1.ToolCall) acpv2.ToolCallUpdate {
	v := acpv2.ToolCallUpdate{
		ToolCallID: acpv2.ToolCallID(c.ToolCallID),
		Title:      acpv2.Set(c.Title),
		Name:       acpv2.Set(c.Name),
		Kind:       acpv2.Set(acpv2.ToolKind(c.Kind)),
		Status:     acpv2.Set(acpv2.ToolCallStatus(c.Status)),
		Content:    acpv2.Set(ToolContentFromV1(c.Content)),
		Locations:  acpv2.Set(LocationsFromV1(c.Locations)),
		RawInput:   c.RawInput,
		RawOutput:  c.RawOutput,
		Meta:       c.Meta,
		Unknown:    without(c.Unknown, "capabilities"),
	}
	if c.Name == "" {
		v.Name = acpv2.Clear[string]()
		if name := nameIn(c.Meta); name != "" {
			v.Name = acpv2.Set(name)
		}
	}
	if c.Kind == "" {
		v.Kind = acpv2.Set(acpv2.ToolKindOther)
	}
	if c.Status == "" {
		v.Status = acpv2.Set(acpv2.ToolCallStatusPending)
	}
	if c.Content == nil {
		v.Content = acpv2.Set([]acpv2.ToolCallContent{})
	}
	if c.Locations == nil {
		v.Locations = acpv2.Set([]acpv2.ToolCallLocation{})
	}
	return v
}

// ToolUpdateFromV1 converts an update of a tool call: what it does not mention
// stays, what it sets to null is cleared (S78).
func ToolUpdateFromV1(u acpv1.ToolCallUpdate) acpv2.ToolCallUpdate {
	v := acpv2.ToolCallUpdate{
		ToolCallID: acpv2.ToolCallID(u.ToolCallID),
		Title:      patchFromV1(u.Title, same[string]),
		Kind:       patchFromV1(u.Kind, text[acpv2.ToolKind, acpv1.ToolKind]),
		Status:     patchFromV1(u.Status, text[acpv2.ToolCallStatus, acpv1.ToolCallStatus]),
		Content:    patchFromV1(u.Content, ToolContentFromV1),
		Locations:  patchFromV1(u.Locations, LocationsFromV1),
		RawInput:   u.RawInput,
		RawOutput:  u.RawOutput,
		Meta:       u.Meta,
		Unknown:    without(u.Unknown, "capabilities"),
	}
	if name := cmp.Or(u.Name, nameIn(u.Meta)); name != "" {
		v.Name = acpv2.Set(name)
	}
	return v
}

// nameIn returns the name of a tool that Claude gives in metadata, or "". In version 2 the same
// agent gives it as the name.
func nameIn(meta json.RawMessage) (name string) {
	if !bytes.Contains(meta, []byte(`"claudeCode"`)) {
		return ""
	}
	of, _ := take(meta, "claudeCode")
	raw, _ := take(of, "toolName")
	if json.Unmarshal(raw, &name) != nil {
		return ""
	}
	return name
}

// ToolContentFromV1 converts the content of a tool call. An edit becomes a
// change with a patch in git's format.
func ToolContentFromV1(list []acpv1.ToolCallContent) []acpv2.ToolCallContent {
	return each(list, func(c acpv1.ToolCallContent) acpv2.ToolCallContent {
		switch c := c.(type) {
		case *acpv1.Content:
			return &acpv2.Content{Content: ContentFromV1(c.Content), Meta: c.Meta, Unknown: c.Unknown}
		case *acpv1.Diff:
			return DiffFromV1(c)
		case *acpv1.Terminal:
			return &acpv2.Terminal{TerminalID: acpv2.TerminalID(c.TerminalID), Meta: c.Meta, Unknown: c.Unknown}
		case *acpv1.SessionReference:
			return &acpv2.SessionReference{SessionID: acpv2.SessionID(c.SessionID), Meta: c.Meta, Unknown: c.Unknown}
		case *acpv1.UnknownToolCallContent:
			return &acpv2.UnknownToolCallContent{Type: c.Type, Raw: c.Raw}
		}
		return nil
	})
}

// ToolContentToV1 converts the content of a tool call without knowing the
// session: texts of edits come from their patches, terminals are the client's.
// See [ToV1] for the rest.
func ToolContentToV1(list []acpv2.ToolCallContent) []acpv1.ToolCallContent {
	if list == nil {
		return nil
	}
	t := ToV1{allTerminals: true}
	return t.contents(list)
}

// DiffFromV1 converts an edit of one file: an addition when there was no file,
// else a modification.
func DiffFromV1(d *acpv1.Diff) *acpv2.Diff {
	f := patch.File{OldPath: d.Path, NewPath: d.Path, New: d.NewText}
	change := acpv2.DiffChange{FileType: acpv2.DiffFileTypeText}
	if d.OldText == nil {
		f.OldPath = ""
		change.Operation = &acpv2.DiffAdd{Path: d.Path}
	} else {
		f.Old = *d.OldText
		change.Operation = &acpv2.DiffModify{Path: d.Path}
	}
	v := &acpv2.Diff{Changes: []acpv2.DiffChange{change}, Meta: d.Meta, Unknown: without(d.Unknown, "changes", "patch")}
	if d.Path != "" {
		v.Patch = &acpv2.DiffPatch{Format: acpv2.DiffPatchFormatGitPatch, Text: patch.Git(f)}
	}
	return v
}

// LocationsFromV1 converts the places a tool call works on. Lines begin at 1 in
// version 2; line 0 is left out.
func LocationsFromV1(list []acpv1.ToolCallLocation) []acpv2.ToolCallLocation {
	return each(list, func(l acpv1.ToolCallLocation) acpv2.ToolCallLocation {
		v := acpv2.ToolCallLocation(l)
		if v.Line != nil && *v.Line == 0 {
			v.Line = nil
		}
		return v
	})
}

// LocationsToV1 converts the places a tool call works on.
func LocationsToV1(list []acpv2.ToolCallLocation) []acpv1.ToolCallLocation {
	return each(list, func(l acpv2.ToolCallLocation) acpv1.ToolCallLocation { return acpv1.ToolCallLocation(l) })
}

// ToolStatusToV1 converts the status of a tool call: paused is still in
// progress, cancelled has failed, and a status this library does not know is
// taken for in progress (S85).
func ToolStatusToV1(s acpv2.ToolCallStatus) acpv1.ToolCallStatus {
	switch v := acpv1.ToolCallStatus(s); {
	case s == acpv2.ToolCallStatusCancelled:
		return acpv1.ToolCallStatusFailed
	case v.Known():
		return v
	}
	return acpv1.ToolCallStatusInProgress
}
