package gateway

import (
	"encoding/json"
	"reflect"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/told"
)

// This file keeps what the agent asked permission for, and how that was decided, with the tool call in question.

// maxCalls and maxCallBytes bound the tool calls of an agent of which is known what was said, and what that was, in bytes.
// Beyond them all are forgotten, and what a question says of a call is kept once more.
const (
	maxCalls     = 256
	maxCallBytes = 8 << 20
)

// calls are what an agent has said of its tool calls. The zero value is ready for use; it is used with a lock held.
type calls struct {
	by    map[callKey]*acp.ToolCallUpdate
	bytes int
}

// A callKey names a tool call: sessions of subagents have names of their own.
type callKey struct {
	child acp.SessionID // as the agent calls it, or ""
	id    acp.ToolCallID
}

// note notes an update of size bytes.
func (c *calls) note(child acp.SessionID, u *acp.ToolCallUpdate, size int) {
	key := callKey{child, u.ToolCallID}
	if c.by == nil || len(c.by) >= maxCalls && c.by[key] == nil || c.bytes+size > maxCallBytes {
		c.by, c.bytes = make(map[callKey]*acp.ToolCallUpdate), 0
	}
	if size > maxCallBytes {
		return
	}
	known := new(acp.ToolCallUpdate)
	if was := c.by[key]; was != nil {
		*known = *was
	}
	overlay(known, u)
	c.by[key] = known
	c.bytes += size
}

// isNews reports whether an update says anything that is not known.
func (c *calls) isNews(child acp.SessionID, u *acp.ToolCallUpdate) bool {
	known := c.by[callKey{child, u.ToolCallID}]
	if known == nil {
		return true
	}
	after := *known
	overlay(&after, u)
	return !reflect.DeepEqual(&after, known)
}

// overlay adds to what is known of a call what an update says.
func overlay(known, u *acp.ToolCallUpdate) {
	told.Overlay(known, u, true)
	if len(u.RawOutput) > 0 {
		known.RawOutput = u.RawOutput
	}
}

// describes notes which tool call a question is about, and keeps what the question says of that: the log may know less of
// it, or nothing. about is the subject of the question as the log has it.
func (b *backend) describes(a *ask, req *acp.PermissionRequest, about acp.RequestPermissionSubject) error {
	child := childIn(req.Session)
	var said acp.ToolCallUpdate
	switch subject := about.(type) {
	case *acp.ToolCallPermissionSubject:
		said = subject.ToolCall
	case *acp.CommandPermissionSubject:
		a.detail = "$ " + subject.Command
		if subject.ToolCallID == "" {
			return nil
		}
		said.ToolCallID, said.Kind = subject.ToolCallID, acp.Set(acpv2.ToolKindExecute)
		if !b.saidOf(child, subject.ToolCallID) {
			said.Title = acp.Set(subject.Command)
		}
	default:
		return nil
	}
	if said.ToolCallID == "" {
		return nil
	}
	update, ok := withChild(b.s.id, b.session.ID(), b.names, &said).(*acp.ToolCallUpdate)
	if !ok {
		return nil
	}
	a.call = update.ToolCallID
	if child != "" {
		a.child = childOf(b.s.id, child)
	}
	raw, err := json.Marshal(update)
	b.mu.Lock()
	isNews := b.calls.isNews(child, &said)
	b.calls.note(child, &said, len(raw))
	b.mu.Unlock()
	if err != nil || len(raw) > maxRecord || !isNews {
		return err
	}
	a.describes = &engine.Record{Kind: kindUpdate, Data: (&records.Update{Update: raw, Child: a.child}).Encode()}
	if a.child != "" {
		a.describes.Kind = kindChild
	}
	return nil
}

// saidOf reports whether the agent has said anything of a tool call.
func (b *backend) saidOf(child acp.SessionID, id acp.ToolCallID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls.by[callKey{child, id}] != nil
}

// answer returns the record of how a question was decided.
func (a *ask) answer(d *decision) *records.Decided {
	r := &records.Decided{
		ID: a.id, By: d.by, Outcome: d.outcome(), Title: clip(a.title), From: d.From, Key: d.Key,
		Call: a.call, Child: a.child, Rule: a.rule != nil, Detail: clip(a.detail),
	}
	if a.permission != nil {
		for _, o := range a.permission.Options {
			if o.OptionID == d.Option {
				r.Name, r.Kind = clip(o.Name), o.Kind
				break
			}
		}
	}
	return r
}

// answered returns the decision on the question that a record has.
func (a *ask) answered(r *records.Decided) decision {
	d := decision{From: r.From, Key: r.Key, by: r.By, Content: r.Content}
	switch {
	case a.permission != nil && (r.Kind != "" || r.Outcome != d.outcome()):
		d.Option = acp.PermissionOptionID(r.Outcome)
	case a.permission == nil:
		d.Accepted, d.Declined = r.Outcome == records.Accepted, r.Outcome == records.Declined
	}
	return d
}

// sendDecision sends a client how a question was decided.
func sendDecision(as *acp.AgentSession, c *children, r *engine.Record) error {
	var a records.Decided
	if err := json.Unmarshal(r.Data, &a); err != nil {
		return err
	}
	u := a.Update(r)
	if _, ok := u.(*acp.Notice); u == nil || ok && as.Conn().Version() == 1 {
		return nil // a message would look like one of the agent
	}
	if a.Child != "" {
		return c.of(a.Child).Send(u)
	}
	return as.Send(u)
}
