package transcript

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/told"
	"github.com/goacp/acp/internal/translate"
)

// This file folds tool calls, plans and permissions.

func (c *Conversation) toolCall(id acpv2.ToolCallID) (*ToolCall, Op) {
	t, op := upsert(c, key{spaceToolCall, string(id)}, func() *ToolCall {
		return &ToolCall{ID: id, Kind: acpv2.ToolKindOther, Status: acpv2.ToolCallStatusPending}
	})
	if t != nil {
		t.turn = c.turns
	}
	return t, op
}

// Abandoned reports whether a tool call of the snapshot will never end: it has not
// ended, the turn of its last update has, and the agent does not work in the
// background. Agents that are cancelled, or denied a permission, often send no further
// update for the call. Turns end when the session becomes idle, and when the user sends
// a message to an idle session.
func (s *Snapshot) Abandoned(t *ToolCall) bool {
	if t.Ended() || t.turn >= s.turns {
		return false
	}
	for _, work := range s.Session().State.Background {
		switch work := work.(type) {
		case *acpv2.BackgroundToolCall:
			if work.ToolCallID == t.ID {
				return false
			}
		case *acpv2.BackgroundTerminal:
			for _, content := range t.Content {
				if shown, ok := content.(*acpv2.Terminal); ok && shown.TerminalID == work.TerminalID {
					return false
				}
			}
		}
	}
	return true
}

func (c *Conversation) applyToolCall(u *acpv2.ToolCallUpdate) Change {
	t, op := c.toolCall(u.ToolCallID)
	if t == nil {
		return Change{}
	}
	patchShort(c, &t.core, u.Name, &t.Name)
	patchShort(c, &t.core, u.Title, &t.Title)
	patchShort(c, &t.core, orDefault(u.Kind, acpv2.ToolKindOther), &t.Kind)
	patchShort(c, &t.core, orDefault(u.Status, acpv2.ToolCallStatusPending), &t.Status)
	if !u.Content.IsZero() {
		t.Content, t.run = fit(c, &t.core, partContent, u.Content.Or(nil), c.toolContentSize), nil
	}
	if !u.Locations.IsZero() {
		t.Locations = fit(c, &t.core, partLocations, u.Locations.Or(nil),
			func(l *acpv2.ToolCallLocation) int { return c.size(l) })
	}
	if len(u.RawInput) > 0 {
		t.RawInput = c.fitRaw(&t.core, partInput, notNull(u.RawInput))
	}
	if len(u.RawOutput) > 0 {
		t.RawOutput = c.fitRaw(&t.core, partOutput, notNull(u.RawOutput))
	}
	patchCapabilities(c, &t.core, u.Capabilities, &t.Capabilities)
	c.applyMeta(&t.core, &t.Meta, u.Meta)
	return changed(t, op)
}

func (c *Conversation) toolContentSize(v *acpv2.ToolCallContent) int { return c.size(*v) }

// orDefault returns a patch in which null sets the initial value.
func orDefault[T any](p acpv2.Patch[T], v T) acpv2.Patch[T] {
	if p.IsClear() {
		return acpv2.Set(v)
	}
	return p
}

func (c *Conversation) applyToolCallChunk(u *acpv2.ToolCallContentChunk) Change {
	t, op := c.toolCall(u.ToolCallID)
	if t == nil {
		return Change{}
	}
	n, size := t.sizes[partContent], c.size(u.Content)
	if n+size > c.room(&t.core, partContent) {
		c.dropped(&t.core, size)
		return appended(t, op)
	}
	if t.run == nil || t.run.owner != c {
		t.run = &contentRun{owner: c, parts: slices.Clip(t.Content)}
	}
	t.run.parts = append(t.run.parts, u.Content)
	t.Content = slices.Clip(t.run.parts)
	c.charge(&t.core, partContent, n+size)
	return appended(t, op)
}

// emptyPlan returns an empty plan of the same form.
func emptyPlan(p acpv2.PlanUpdateContent, id acpv2.PlanID) acpv2.PlanUpdateContent {
	switch p := p.(type) {
	case *acpv2.PlanMarkdown:
		return &acpv2.PlanMarkdown{PlanID: id}
	case *acpv2.PlanFile:
		return &acpv2.PlanFile{PlanID: id}
	case *acpv2.UnknownPlanUpdateContent:
		if len(p.Type) <= idBytes {
			return &acpv2.UnknownPlanUpdateContent{Type: p.Type, PlanID: id, Raw: taggedOnly("type", p.Type, "planId", string(id))}
		}
	}
	return &acpv2.PlanItems{PlanID: id}
}

func (c *Conversation) applyPlan(u *acpv2.PlanUpdate) Change {
	id := translate.PlanIDOf(u.Plan)
	p, op := upsert(c, key{spacePlan, string(id)}, func() *Plan { return &Plan{ID: id} })
	if p == nil {
		return Change{}
	}
	p.Removed = false
	n, room := c.size(u.Plan), c.room(&p.core, partContent)
	if n > room {
		small := emptyPlan(u.Plan, id)
		switch v := u.Plan.(type) {
		case *acpv2.PlanItems:
			entries := fit(c, &p.core, partContent, v.Entries, func(e *acpv2.PlanEntry) int { return c.size(e) })
			small = &acpv2.PlanItems{PlanID: id, Entries: entries}
		case *acpv2.PlanMarkdown:
			text := cut(v.Content, max(room-itemCost-len(id), 0))
			c.dropped(&p.core, len(v.Content)-len(text))
			small = &acpv2.PlanMarkdown{PlanID: id, Content: text}
		default:
			c.dropped(&p.core, n)
		}
		u.Plan, n = small, c.size(small)
	}
	p.Content = u.Plan
	c.charge(&p.core, partContent, n)
	return changed(p, op)
}

func (c *Conversation) applyPlanRemoved(u *acpv2.PlanRemoved) Change {
	seq, ok := c.index.seqs[key{spacePlan, string(u.PlanID)}]
	if !ok {
		return Change{}
	}
	p := edit(c, c.list.get(seq).(*Plan))
	p.Removed = true
	return changed(p, OpUpdated)
}

// A Permission is a question that the agent asked the user.
type Permission struct {
	core
	Title       string
	Description string

	// Subject is what the question is about, or nil if the agent did not say. For a
	// tool call it has only the id: the rest is in the [ToolCall] entry.
	Subject acpv2.RequestPermissionSubject

	Options []acpv2.PermissionOption
	Meta    json.RawMessage

	// Outcome is the answer, or nil as long as there is none.
	Outcome acpv2.RequestPermissionOutcome
}

// Selected returns the option that the user chose. ok is false if there is no answer
// yet, if the answer chooses nothing, and if the option was not offered.
func (p *Permission) Selected() (option acpv2.PermissionOption, ok bool) {
	chosen, _ := p.Outcome.(*acpv2.SelectedPermissionOutcome)
	if chosen == nil {
		return option, false
	}
	for _, o := range p.Options {
		if o.OptionID == chosen.OptionID {
			return o, true
		}
	}
	return option, false
}

// EntryKind implements [Entry].
func (*Permission) EntryKind() EntryKind { return KindPermission }

// EntryID implements [Entry].
func (*Permission) EntryID() string { return "" }

// Update implements [Entry].
func (*Permission) Update() acpv2.SessionUpdate { return nil }

func (*Permission) key() key                       { return key{} }
func (p *Permission) edited(c *Conversation) Entry { return edit(c, p) }
func (p *Permission) strip() {
	// The options and the answer say what was allowed. They are kept with the entry.
	p.Description, p.Meta, p.Subject = "", nil, nil
}

// Asked adds an entry for a request for permission and returns its number, for
// [Conversation.Answered]. If the subject is a tool call, that is updated or created
// first, as the protocol demands; the kind other and an empty input change nothing of a
// call that has others. changes describes both. The request is copied; options
// and subjects that cannot be encoded are left out.
func (c *Conversation) Asked(req *acpv2.RequestPermissionRequest) (seq uint64, changes []Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	loss := c.loss.Bytes
	subject := req.Subject
	if t, ok := subject.(*acpv2.ToolCallPermissionSubject); ok && t != nil {
		u := &t.ToolCall
		if seq, ok := c.index.seqs[key{spaceToolCall, string(u.ToolCallID)}]; ok {
			if known, ok := c.list.get(seq).(*ToolCall); ok {
				u = told.Said(u, known.Kind, known.RawInput)
			}
		}
		changes = append(changes, c.apply(u))
		subject = &acpv2.ToolCallPermissionSubject{ToolCall: acpv2.ToolCallUpdate{ToolCallID: t.ToolCall.ToolCallID}}
	}
	p := &Permission{}
	c.add(p, 0)
	c.setPermission(p, req, subject)
	ch := changed(p, OpCreated)
	ch.Trimmed = c.enforce() || c.loss.Bytes != loss
	return p.seq, append(changes, ch)
}

func (c *Conversation) setPermission(p *Permission, req *acpv2.RequestPermissionRequest, subject acpv2.RequestPermissionSubject) {
	p.Title = strings.Clone(short(c, &p.core, req.Title))
	var options []acpv2.PermissionOption
	for i := range req.Options {
		if o := clone(c, &req.Options[i], unmarshalObject[acpv2.PermissionOption]); o != nil {
			options = append(options, *o)
		}
	}
	p.Options = fit(c, &p.core, partContent, options, func(o *acpv2.PermissionOption) int { return c.size(o) })
	c.charge(&p.core, partFixed, p.sizes[partFixed]+len(p.Title)+p.sizes[partContent])
	c.charge(&p.core, partContent, 0)

	p.Description = strings.Clone(short(c, &p.core, req.Description))
	c.charge(&p.core, partOther, len(p.Description))
	if subject != nil {
		subject = clone(c, subject, acpv2.UnmarshalRequestPermissionSubject)
	}
	if n := c.size(subject); n > c.room(&p.core, partContent) {
		c.dropped(&p.core, n)
	} else if subject != nil {
		p.Subject = subject
		c.charge(&p.core, partContent, n)
	}
	// Any type with metadata copies and checks it.
	if o := clone(c, &acpv2.PermissionOption{Meta: req.Meta}, unmarshalObject[acpv2.PermissionOption]); o != nil {
		c.applyMeta(&p.core, &p.Meta, o.Meta)
	}
}

// Answered adds the answer to the entry with the number that [Conversation.Asked]
// returned. It changes nothing if there is no such entry any more, or if the outcome
// cannot be encoded.
func (c *Conversation) Answered(seq uint64, outcome acpv2.RequestPermissionOutcome) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.list.get(seq).(*Permission)
	if !ok || outcome == nil {
		return Change{}
	}
	if outcome = clone(c, outcome, acpv2.UnmarshalRequestPermissionOutcome); outcome == nil {
		return Change{}
	}
	p = edit(c, p)
	loss := c.loss.Bytes
	if n := c.size(outcome); n > min(shortBytes, c.cfg.EntryBytes) {
		c.dropped(&p.core, n)
		outcome = &acpv2.CancelledPermissionOutcome{} // an answer that is not kept must not allow anything
	}
	c.charge(&p.core, partFixed, p.sizes[partFixed]-c.size(p.Outcome)+c.size(outcome))
	p.Outcome = outcome
	ch := changed(p, OpUpdated)
	ch.Trimmed = c.enforce() || c.loss.Bytes != loss
	return ch
}

func unmarshalObject[T any, P interface {
	*T
	UnmarshalJSON([]byte) error
}](data []byte) (P, error) {
	v := P(new(T))
	if err := v.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	return v, nil
}
