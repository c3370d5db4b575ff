// Package told remembers what messages have said about tool calls, for those who decide about a call.
package told

import (
	"bytes"
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

// Calls remembers what updates have said about tool calls. Agents ask about
// a call by its id, and whoever decides must know what it is about. So updates
// are recorded as they arrive, on the reader, where no request can overtake them.
type Calls struct {
	mu    sync.Mutex
	calls map[acpv2.ToolCallID]*call
	order []acpv2.ToolCallID // by the latest update, the most recent last
	bytes int
	turn  int // how many there were
}

type call struct {
	turn    int                  // in which it was announced
	told    acpv2.ToolCallUpdate // only what set keeps
	head    int                  // bytes of all but the content
	content int                  // bytes of the content
	past    past                 // what was said and is not told anymore
}

func (c *call) size() int { return c.head + c.content + c.past.bytes }

// See records what a message says about a tool call.
func (k *Calls) See(params any) {
	switch p := params.(type) {
	case *acpv1.SessionNotification:
		switch u := p.Update.(type) {
		case *acpv1.ToolCall:
			head := *u
			head.Content = nil
			call := translate.ToolCallFromV1(head)
			call.Content = acpv2.Set(contentV1(u.Content))
			k.begin(acpv2.ToolCallID(u.ToolCallID), true)
			k.tell(&call, false)
		case *acpv1.ToolCallUpdate:
			k.tell(updateOf(u), false)
		}
	case *acpv2.UpdateSessionNotification:
		switch u := p.Update.(type) {
		case *acpv2.ToolCallUpdate:
			if _, says := u.Status.Get(); says && !ends(u.Status) {
				k.begin(u.ToolCallID, false)
			}
			k.tell(u, true)
		case *acpv2.ToolCallContentChunk:
			k.mu.Lock()
			if call := k.calls[u.ToolCallID]; call != nil {
				k.bytes -= call.size()
				call.addContent(call.told.Content.Or(nil), u.Content)
				k.bytes += call.size()
				k.used(u.ToolCallID)
			}
			k.mu.Unlock()
		}
	case *acpv1.RequestPermissionRequest:
		k.tell(k.asked(updateOf(&p.ToolCall)), false)
	case *acpv2.RequestPermissionRequest:
		if subject, ok := p.Subject.(*acpv2.ToolCallPermissionSubject); ok {
			k.tell(k.asked(&subject.ToolCall), true)
		}
	}
}

// updateOf translates an update of version 1.
func updateOf(u *acpv1.ToolCallUpdate) *acpv2.ToolCallUpdate {
	head := *u
	head.Content = acpv1.Patch[[]acpv1.ToolCallContent]{}
	call := translate.ToolUpdateFromV1(head)
	if content, ok := u.Content.Get(); ok {
		call.Content = acpv2.Set(contentV1(content))
	}
	return &call
}

// asked is Said with what is known.
func (k *Calls) asked(u *acpv2.ToolCallUpdate) *acpv2.ToolCallUpdate {
	if known := k.Known(u.ToolCallID); known != nil {
		return Said(u, known.Kind.Or(""), known.RawInput)
	}
	return u
}

// Said returns what a permission request says about its tool call, whose kind and input are known, without what
// says nothing: the kind other, and an empty input. Some agents send these with each request.
func Said(u *acpv2.ToolCallUpdate, kind acpv2.ToolKind, input []byte) *acpv2.ToolCallUpdate {
	said := *u
	if said.Kind.Or("") == acpv2.ToolKindOther && kind != "" {
		said.Kind = acpv2.Patch[acpv2.ToolKind]{}
	}
	if isEmpty(said.RawInput) && len(input) > 0 {
		said.RawInput = nil
	}
	return &said
}

// isEmpty reports whether an input is an empty value.
func isEmpty(input []byte) bool {
	switch string(bytes.TrimSpace(input)) {
	case "{}", "[]", `""`:
		return true
	}
	return false
}

func (k *Calls) tell(u *acpv2.ToolCallUpdate, nulls bool) {
	k.mu.Lock()
	k.set(u.ToolCallID, u, nulls)
	k.mu.Unlock()
}

// set is tell with mu held.
func (k *Calls) set(id acpv2.ToolCallID, u *acpv2.ToolCallUpdate, nulls bool) {
	c := k.calls[id]
	if c == nil {
		if k.calls == nil {
			k.calls = map[acpv2.ToolCallID]*call{}
		}
		id = acpv2.ToolCallID(strings.Clone(string(id)))
		c = &call{turn: k.turn, told: acpv2.ToolCallUpdate{ToolCallID: id}}
		k.calls[id] = c
	}
	k.bytes -= c.size()
	was := c.told
	Overlay(&c.told, own(u), nulls)
	c.shorten()
	if content, ok := u.Content.Get(); ok || u.Content.IsClear() && nulls {
		c.content = 0
		c.addContent(nil, content...)
	}
	if c.head+c.content > maxKnownCall {
		c.content = 0
		c.told.Content = acpv2.Patch[[]acpv2.ToolCallContent]{}
	}
	c.past.keep(&was, &c.told)
	k.bytes += c.size()
	k.used(id)
}

// Turn is called when a prompt is sent: agents may number their calls anew.
func (k *Calls) Turn() {
	k.mu.Lock()
	k.turn++
	k.mu.Unlock()
}

// begin forgets a call that has ended or, if announced is set, is of an earlier turn: agents that number the
// calls of each turn anew announce another one under its id.
func (k *Calls) begin(id acpv2.ToolCallID, announced bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if call := k.calls[id]; call != nil && (call.ended() || announced && call.turn != k.turn) {
		k.bytes -= call.size()
		delete(k.calls, id)
		k.order = slices.DeleteFunc(k.order, func(o acpv2.ToolCallID) bool { return o == id })
	}
}

func (c *call) ended() bool { return ends(c.told.Status) }

func ends(status acpv2.Patch[acpv2.ToolCallStatus]) bool {
	switch status.Or("") {
	case acpv2.ToolCallStatusCompleted, acpv2.ToolCallStatusFailed, acpv2.ToolCallStatusCancelled:
		return true
	}
	return false
}

// used makes a call the latest one, and drops the oldest ones beyond the bounds.
func (k *Calls) used(id acpv2.ToolCallID) {
	if i := slices.Index(k.order, id); i >= 0 {
		k.order = slices.Delete(k.order, i, i+1)
	}
	k.order = append(k.order, id)
	for len(k.order) > maxKnownCalls || k.bytes > maxKnownCallBytes {
		oldest := k.calls[k.order[0]]
		k.bytes -= oldest.size()
		delete(k.calls, k.order[0])
		k.order = slices.Delete(k.order, 0, 1)
	}
}

// Known returns a copy of what is known about a call, or nil.
func (k *Calls) Known(id acpv2.ToolCallID) *acpv2.ToolCallUpdate {
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

// Earlier returns what was said about a call and is not told anymore, and whether more was.
func (k *Calls) Earlier(id acpv2.ToolCallID) (list []acpv2.ToolCallUpdate, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if call := k.calls[id]; call != nil {
		return slices.Clone(call.past.said), call.past.more
	}
	return nil, false
}

// Under returns what is known about a call, overlaid with what u says.
func (k *Calls) Under(u *acpv2.ToolCallUpdate, nulls bool) *acpv2.ToolCallUpdate {
	known := k.Known(u.ToolCallID)
	if known == nil {
		return u
	}
	both := *u
	both.Name, both.Title, both.Kind, both.Status = known.Name, known.Title, known.Kind, known.Status
	both.Content, both.Locations, both.RawInput = known.Content, known.Locations, known.RawInput
	Overlay(&both, u, nulls)
	return &both
}

// Asked is Under for what a permission request says: see Said.
func (k *Calls) Asked(u *acpv2.ToolCallUpdate, nulls bool) *acpv2.ToolCallUpdate {
	return k.Under(k.asked(u), nulls)
}

// Overlay changes what is known about a call to what u says. In version 1
// many agents write null for what they do not mention: unless nulls is set, null
// says nothing.
func Overlay(call, u *acpv2.ToolCallUpdate, nulls bool) {
	patchOf(&call.Name, u.Name, nulls)
	patchOf(&call.Title, u.Title, nulls)
	patchOf(&call.Kind, u.Kind, nulls)
	patchOf(&call.Status, u.Status, nulls)
	patchOf(&call.Content, u.Content, nulls)
	patchOf(&call.Locations, u.Locations, nulls)
	if u.RawInput != nil && (nulls || string(u.RawInput) != "null") {
		call.RawInput = u.RawInput
	}
}

func patchOf[T any](old *acpv2.Patch[T], p acpv2.Patch[T], nulls bool) {
	if !p.IsZero() && (nulls || !p.IsClear()) {
		*old = p
	}
}

// own copies the parts of an update that are kept, except its content: what
// was received may share the memory of a message of any size.
func own(u *acpv2.ToolCallUpdate) *acpv2.ToolCallUpdate {
	own := &acpv2.ToolCallUpdate{
		Name: ownText(u.Name), Title: ownText(u.Title), Kind: ownText(u.Kind), Status: ownText(u.Status),
		Locations: u.Locations, RawInput: slices.Clone(u.RawInput),
	}
	if list, ok := u.Locations.Get(); ok {
		copied := make([]acpv2.ToolCallLocation, len(list))
		for i, l := range list {
			copied[i] = acpv2.ToolCallLocation{Path: strings.Clone(l.Path), Line: l.Line}
		}
		own.Locations = acpv2.Set(copied)
	}
	return own
}

func ownText[T ~string](p acpv2.Patch[T]) acpv2.Patch[T] {
	if s, ok := p.Get(); ok {
		return acpv2.Set(T(strings.Clone(string(s))))
	}
	return p
}

// itemBytes is what a part of a call counts in addition to its text.
const itemBytes = 64

// shorten drops what is too large to be kept, except the content.
func (c *call) shorten() {
	t := &c.told
	c.head = 2*itemBytes + len(t.ToolCallID)
	fits := func(n int) bool {
		if c.head+n > maxKnownCall {
			return false
		}
		c.head += n
		return true
	}
	// What matters most to whoever decides comes first.
	if !fits(len(t.Kind.Or("")) + len(t.Name.Or("")) + len(t.Status.Or(""))) {
		t.Kind, t.Name, t.Status = acpv2.Patch[acpv2.ToolKind]{}, acpv2.Patch[string]{}, acpv2.Patch[acpv2.ToolCallStatus]{}
	}
	locations := 0
	for _, l := range t.Locations.Or(nil) {
		locations += itemBytes + len(l.Path)
	}
	if !fits(locations) {
		t.Locations = acpv2.Patch[[]acpv2.ToolCallLocation]{}
	}
	if !fits(len(t.RawInput)) {
		t.RawInput = nil
	}
	if !fits(len(t.Title.Or(""))) {
		t.Title = acpv2.Patch[string]{}
	}
}

// addContent adds as much content as fits to a list of the call's own. It adds
// copies, for the reason given at own.
func (c *call) addContent(list []acpv2.ToolCallContent, content ...acpv2.ToolCallContent) {
	for _, item := range content {
		if item = shortContent(item); item == nil {
			continue
		}
		data, err := item.AppendJSON(nil)
		n := itemBytes + len(data)
		if err != nil || c.head+c.content+n > maxKnownCall {
			continue
		}
		if item, err = acpv2.UnmarshalToolCallContent(data); err == nil {
			c.content += n
			list = append(list, item)
		}
	}
	c.told.Content = acpv2.Set(list)
}

// shortContent returns c if it is a short text, a terminal or a diff; of a
// large diff it returns only the files it is about. For anything else it returns
// nil.
func shortContent(c acpv2.ToolCallContent) acpv2.ToolCallContent {
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

// contentV1 translates what a call shows. Large edits are not made into
// patches, since those are not kept.
func contentV1(list []acpv1.ToolCallContent) []acpv2.ToolCallContent {
	out := make([]acpv2.ToolCallContent, 0, len(list))
	for _, c := range list {
		large := false
		if d, ok := c.(*acpv1.Diff); ok && len(d.NewText)+len(deref(d.OldText)) > maxKnownContent {
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

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
