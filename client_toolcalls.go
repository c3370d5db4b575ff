package acp

import (
	"slices"
	"strings"
	"sync"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
)

// Bounds of what is remembered about the tool calls of a session.
const (
	maxKnownCalls     = 256     // the latest
	maxKnownCallBytes = 1 << 20 // of all of them; beyond it the oldest are forgotten
	maxKnownCall      = 64 << 10
	maxKnownContent   = 4 << 10 // of a part of what a call shows
)

// clientCalls remembers what updates have said about tool calls. Agents ask about
// a call by its id, and whoever decides must know what it is about. So updates
// are recorded as they arrive, on the reader, where no request can overtake them.
type clientCalls struct {
	mu    sync.Mutex
	calls map[ToolCallID]*clientCall
	order []ToolCallID // by the latest update, the most recent last
	bytes int
}

type clientCall struct {
	told    ToolCallUpdate // only what set keeps
	head    int            // bytes of all but the content
	content int            // bytes of the content
}

// see records what a message says about a tool call.
func (k *clientCalls) see(params any) {
	switch p := params.(type) {
	case *acpv1.SessionNotification:
		switch u := p.Update.(type) {
		case *acpv1.ToolCall:
			head := *u
			head.Content = nil
			call := translate.ToolCallFromV1(head)
			call.Content = acpv2.Set(clientContentV1(u.Content))
			k.tell(&call, false)
		case *acpv1.ToolCallUpdate:
			k.tellV1(u)
		}
	case *acpv2.UpdateSessionNotification:
		switch u := p.Update.(type) {
		case *acpv2.ToolCallUpdate:
			k.tell(u, true)
		case *acpv2.ToolCallContentChunk:
			k.mu.Lock()
			if call := k.calls[u.ToolCallID]; call != nil {
				k.bytes -= call.content
				call.addContent(call.told.Content.Or(nil), u.Content)
				k.bytes += call.content
				k.used(u.ToolCallID)
			}
			k.mu.Unlock()
		}
	case *acpv1.RequestPermissionRequest:
		k.tellV1(&p.ToolCall)
	case *acpv2.RequestPermissionRequest:
		if subject, ok := p.Subject.(*acpv2.ToolCallPermissionSubject); ok {
			k.tell(&subject.ToolCall, true)
		}
	}
}

func (k *clientCalls) tellV1(u *acpv1.ToolCallUpdate) {
	head := *u
	head.Content = acpv1.Patch[[]acpv1.ToolCallContent]{}
	call := translate.ToolUpdateFromV1(head)
	if content, ok := u.Content.Get(); ok {
		call.Content = acpv2.Set(clientContentV1(content))
	}
	k.tell(&call, false)
}

func (k *clientCalls) tell(u *ToolCallUpdate, nulls bool) {
	k.mu.Lock()
	k.set(u.ToolCallID, u, nulls)
	k.mu.Unlock()
}

// set is tell with mu held.
func (k *clientCalls) set(id ToolCallID, u *ToolCallUpdate, nulls bool) {
	call := k.calls[id]
	if call == nil {
		if k.calls == nil {
			k.calls = map[ToolCallID]*clientCall{}
		}
		id = ToolCallID(strings.Clone(string(id)))
		call = &clientCall{told: ToolCallUpdate{ToolCallID: id}}
		k.calls[id] = call
	}
	k.bytes -= call.head + call.content
	clientOverlay(&call.told, clientOwn(u), nulls)
	call.shorten()
	if content, ok := u.Content.Get(); ok || u.Content.IsClear() && nulls {
		call.content = 0
		call.addContent(nil, content...)
	}
	if call.head+call.content > maxKnownCall {
		call.content = 0
		call.told.Content = acpv2.Patch[[]ToolCallContent]{}
	}
	k.bytes += call.head + call.content
	k.used(id)
}

// used makes a call the latest one, and drops the oldest ones beyond the bounds.
func (k *clientCalls) used(id ToolCallID) {
	if i := slices.Index(k.order, id); i >= 0 {
		k.order = slices.Delete(k.order, i, i+1)
	}
	k.order = append(k.order, id)
	for len(k.order) > maxKnownCalls || k.bytes > maxKnownCallBytes {
		oldest := k.calls[k.order[0]]
		k.bytes -= oldest.head + oldest.content
		delete(k.calls, k.order[0])
		k.order = slices.Delete(k.order, 0, 1)
	}
}

// known returns a copy of what is known about a call, or nil.
func (k *clientCalls) known(id ToolCallID) *ToolCallUpdate {
	k.mu.Lock()
	defer k.mu.Unlock()
	call := k.calls[id]
	if call == nil {
		return nil
	}
	told := call.told
	if list, ok := told.Content.Get(); ok {
		told.Content = acpv2.Set(slices.Clone(list))
	}
	if list, ok := told.Locations.Get(); ok {
		told.Locations = acpv2.Set(slices.Clone(list))
	}
	told.RawInput = slices.Clone(told.RawInput)
	return &told
}

// under returns what is known about a call, overlaid with what u says.
func (k *clientCalls) under(u *ToolCallUpdate, nulls bool) *ToolCallUpdate {
	known := k.known(u.ToolCallID)
	if known == nil {
		return u
	}
	both := *u
	both.Name, both.Title, both.Kind, both.Status = known.Name, known.Title, known.Kind, known.Status
	both.Content, both.Locations, both.RawInput = known.Content, known.Locations, known.RawInput
	clientOverlay(&both, u, nulls)
	return &both
}

// clientOverlay changes what is known about a call to what u says. In version 1
// many agents write null for what they do not mention: unless nulls is set, null
// says nothing.
func clientOverlay(call, u *ToolCallUpdate, nulls bool) {
	clientPatch(&call.Name, u.Name, nulls)
	clientPatch(&call.Title, u.Title, nulls)
	clientPatch(&call.Kind, u.Kind, nulls)
	clientPatch(&call.Status, u.Status, nulls)
	clientPatch(&call.Content, u.Content, nulls)
	clientPatch(&call.Locations, u.Locations, nulls)
	if u.RawInput != nil && (nulls || string(u.RawInput) != "null") {
		call.RawInput = u.RawInput
	}
}

func clientPatch[T any](old *acpv2.Patch[T], p acpv2.Patch[T], nulls bool) {
	if !p.IsZero() && (nulls || !p.IsClear()) {
		*old = p
	}
}

// clientOwn copies the parts of an update that are kept, except its content: what
// was received may share the memory of a message of any size.
func clientOwn(u *ToolCallUpdate) *ToolCallUpdate {
	own := &ToolCallUpdate{
		Name: clientOwnText(u.Name), Title: clientOwnText(u.Title), Kind: clientOwnText(u.Kind), Status: clientOwnText(u.Status),
		Locations: u.Locations, RawInput: slices.Clone(u.RawInput),
	}
	if list, ok := u.Locations.Get(); ok {
		copied := make([]ToolCallLocation, len(list))
		for i, l := range list {
			copied[i] = ToolCallLocation{Path: strings.Clone(l.Path), Line: l.Line}
		}
		own.Locations = acpv2.Set(copied)
	}
	return own
}

func clientOwnText[T ~string](p acpv2.Patch[T]) acpv2.Patch[T] {
	if s, ok := p.Get(); ok {
		return acpv2.Set(T(strings.Clone(string(s))))
	}
	return p
}

// clientItemBytes is what a part of a call counts in addition to its text.
const clientItemBytes = 64

// shorten drops what is too large to be kept, except the content.
func (call *clientCall) shorten() {
	t := &call.told
	call.head = 2*clientItemBytes + len(t.ToolCallID)
	fits := func(n int) bool {
		if call.head+n > maxKnownCall {
			return false
		}
		call.head += n
		return true
	}
	// What matters most to whoever decides comes first.
	if !fits(len(t.Kind.Or("")) + len(t.Name.Or("")) + len(t.Status.Or(""))) {
		t.Kind, t.Name, t.Status = acpv2.Patch[ToolKind]{}, acpv2.Patch[string]{}, acpv2.Patch[ToolCallStatus]{}
	}
	locations := 0
	for _, l := range t.Locations.Or(nil) {
		locations += clientItemBytes + len(l.Path)
	}
	if !fits(locations) {
		t.Locations = acpv2.Patch[[]ToolCallLocation]{}
	}
	if !fits(len(t.RawInput)) {
		t.RawInput = nil
	}
	if !fits(len(t.Title.Or(""))) {
		t.Title = acpv2.Patch[string]{}
	}
}

// addContent adds as much content as fits to a list of the call's own. It adds
// copies, for the reason given at clientOwn.
func (call *clientCall) addContent(list []ToolCallContent, content ...ToolCallContent) {
	for _, c := range content {
		if c = clientShortContent(c); c == nil {
			continue
		}
		data, err := c.AppendJSON(nil)
		n := clientItemBytes + len(data)
		if err != nil || call.head+call.content+n > maxKnownCall {
			continue
		}
		if c, err = acpv2.UnmarshalToolCallContent(data); err == nil {
			call.content += n
			list = append(list, c)
		}
	}
	call.told.Content = acpv2.Set(list)
}

// clientShortContent returns c if it is a short text, a terminal or a diff; of a
// large diff it returns only the files it is about. For anything else it returns
// nil.
func clientShortContent(c ToolCallContent) ToolCallContent {
	switch c := c.(type) {
	case *acpv2.Diff:
		if c.Patch != nil && len(c.Patch.Text) > maxKnownContent {
			return &acpv2.Diff{Changes: c.Changes}
		}
		return c // its files are what matters
	case *acpv2.Content:
		if text, ok := c.Content.(*acpv2.TextContent); ok && len(text.Text) <= maxKnownContent {
			return c
		}
	case *acpv2.Terminal:
		return c
	}
	return nil
}

// clientContentV1 translates what a call shows. Large edits are not made into
// patches, since those are not kept.
func clientContentV1(list []acpv1.ToolCallContent) []ToolCallContent {
	out := make([]ToolCallContent, 0, len(list))
	for _, c := range list {
		large := false
		if d, ok := c.(*acpv1.Diff); ok && len(d.NewText)+len(clientDeref(d.OldText)) > maxKnownContent {
			large = true
			files := &acpv1.Diff{Path: d.Path}
			if d.OldText != nil {
				files.OldText = new(string)
			}
			c = files
		}
		for _, v := range translate.ToolContentFromV1([]acpv1.ToolCallContent{c}) {
			if d, ok := v.(*acpv2.Diff); ok && large {
				d.Patch = nil
			}
			if v != nil {
				out = append(out, v)
			}
		}
	}
	return out
}

func clientDeref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
