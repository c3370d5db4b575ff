package told

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/goacp/acp/acpv2"
)

// maxEarlier bounds what is kept of what was said about a call and taken back.
const maxEarlier = 8

// past is what messages have said about a tool call and later ones took back. Whoever decides about
// the call has to know it: an agent that announces a command and then asks about a tool of the kind other
// with an empty input runs that command all the same.
type past struct {
	said  []acpv2.ToolCallUpdate // kind, name, locations, input and, of the content, a text; oldest first
	bytes int
	more  bool // more was said than is kept
	text  bool // a text is kept
}

// keep keeps what was said of a call, if what is said now takes something away from it.
func (p *past) keep(was, now *acpv2.ToolCallUpdate) {
	said := acpv2.ToolCallUpdate{ToolCallID: was.ToolCallID, Kind: was.Kind, Name: was.Name, RawInput: was.RawInput}
	size := 2*itemBytes + len(was.RawInput) + len(was.Name.Or(""))
	kind, name := was.Kind.Or(""), was.Name.Or("")
	lost := kind != "" && kind != acpv2.ToolKindOther && kind != now.Kind.Or("") || name != "" && name != now.Name.Or("") ||
		!saysAll(was.RawInput, now.RawInput)
	files := Files(now)
	var paths []acpv2.ToolCallLocation
	for _, path := range Files(was) {
		lost = lost || !slices.Contains(files, path)
		paths = append(paths, acpv2.ToolCallLocation{Path: path})
		size += itemBytes + len(path)
	}
	if len(paths) > 0 {
		said.Locations = acpv2.Set(paths)
	}
	text := textOf(was)
	forgotten := text != "" && !strings.HasPrefix(textOf(now), text) && !p.text
	if !lost && !forgotten {
		return
	}
	if text != "" {
		p.text = true
		said.Content = acpv2.Set([]acpv2.ToolCallContent{&acpv2.Content{Content: &acpv2.TextContent{Text: text}}})
		size += itemBytes + len(text)
	}
	if len(p.said) >= maxEarlier || p.bytes+size > maxKnownCall {
		p.more = true
		return
	}
	p.said, p.bytes = append(p.said, said), p.bytes+size
}

// Files returns the files that a call is about: those where it is, and those that it changes.
func Files(call *acpv2.ToolCallUpdate) (paths []string) {
	for _, l := range call.Locations.Or(nil) {
		paths = append(paths, l.Path)
	}
	for _, c := range call.Content.Or(nil) {
		d, ok := c.(*acpv2.Diff)
		if !ok {
			continue
		}
		for _, c := range d.Changes {
			switch op := c.Operation.(type) {
			case *acpv2.DiffAdd:
				paths = append(paths, op.Path)
			case *acpv2.DiffDelete:
				paths = append(paths, op.Path)
			case *acpv2.DiffModify:
				paths = append(paths, op.Path)
			case *acpv2.DiffMove:
				paths = append(paths, op.OldPath, op.Path)
			case *acpv2.DiffCopy:
				paths = append(paths, op.OldPath, op.Path)
			}
		}
	}
	return paths
}

// textOf returns the first text that a call shows.
func textOf(call *acpv2.ToolCallUpdate) string {
	for _, c := range call.Content.Or(nil) {
		if block, ok := c.(*acpv2.Content); ok {
			if text, ok := block.Content.(*acpv2.TextContent); ok {
				return text.Text
			}
		}
	}
	return ""
}

// maxSays bounds how deep inputs are compared.
const maxSays = 16

// saysAll reports whether an input says all that another one does: agents send the input of a call in
// pieces, each of which begins like the whole.
func saysAll(was, now json.RawMessage) bool {
	if len(was) == 0 || bytes.Equal(was, now) {
		return true
	}
	var a, b any
	if json.Unmarshal(was, &a) != nil {
		return false
	}
	_ = json.Unmarshal(now, &b)
	return begins(a, b, maxSays)
}

// begins reports whether a value is what another one becomes when more is said.
func begins(a, b any, depth int) bool {
	if depth == 0 {
		return false
	}
	switch a := a.(type) {
	case nil:
		return true
	case string:
		b, ok := b.(string)
		return a == "" || ok && strings.HasPrefix(b, a)
	case []any:
		b, _ := b.([]any)
		for i, v := range a {
			if i >= len(b) || !begins(v, b[i], depth-1) {
				return false
			}
		}
		return true
	case map[string]any:
		b, _ := b.(map[string]any)
		for name, v := range a {
			if !begins(v, b[name], depth-1) {
				return false
			}
		}
		return true
	}
	return a == b
}
