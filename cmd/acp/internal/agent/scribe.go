package agent

import (
	"context"
	"errors"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
)

// A scribe speaks in a turn. What it sends is recorded by the hook of that name, in the
// order in which it is sent; failures to send are kept by the turn. Its methods may be
// called from any goroutine.
type scribe struct {
	s   *session
	out *acp.Output
	ctx context.Context
}

// send sends an update. Text that follows begins a new message.
func (w *scribe) send(u acp.SessionUpdate) {
	w.out.EndMessage()
	_ = w.out.Send(u)
}

// say sends text of the answer, think a thought. Consecutive texts are one message.
func (w *scribe) say(text string)   { _ = w.out.Say(text) }
func (w *scribe) think(text string) { _ = w.out.Think(text) }

// A call is a tool call that may need permission.
type call struct {
	w *scribe
	h *acp.ToolCallHandle
}

// call announces a tool call. It has to end by complete or fail.
func (w *scribe) call(t acp.ToolCall) *call { return w.callIn(w.out, t) }

// callIn is call with an output that has a context of its own.
func (w *scribe) callIn(out *acp.Output, t acp.ToolCall) *call {
	return &call{w: w, h: out.ToolCall(t)}
}

func (c *call) status(s acp.ToolCallStatus)            { _ = c.h.SetStatus(s) }
func (c *call) complete()                              { c.status(acp.ToolCallStatusCompleted) }
func (c *call) show(content acp.ToolCallContent)       { _ = c.h.Append(content) }
func (c *call) text(text string)                       { _ = c.h.Text(text) }
func (c *call) change(f acp.FileChange)                { _ = c.h.Change(f) }
func (c *call) locations(where []acp.ToolCallLocation) { _ = c.h.SetLocations(where...) }

// fail ends the call with what went wrong.
func (c *call) fail(err error) {
	c.text(plainError(err))
	c.status(acp.ToolCallStatusFailed)
}

// What was asked, for answers that are to hold for the rest of the session.
const (
	askRead   = "read outside"
	askSearch = "search"
	askEdit   = "edit"
	askWrite  = "edit outside"
	askRun    = "run"
	askMCP    = "mcp"
)

// A refusal says why a tool was not used.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

var errCancelled = errors.New("cancelled")

// permit asks whether the call may be made, unless the mode or an earlier answer
// says so and no rule wants it asked. It returns nil or why not. p says what is
// asked; rest says what "always" is about; req is the call in the words of rules.
func (c *call) permit(asked, rest string, p acp.Permission, req acphost.Request) error {
	s := c.w.s
	v := s.judge(req)
	if v.Effect == acphost.EffectDeny && !s.agent.told {
		return forbidden(v)
	}
	s.mu.Lock()
	mode := s.mode
	answer, known := s.answers[asked]
	s.mu.Unlock()
	switch {
	case mode == modeReadOnly && asked != askRead && asked != askSearch:
		return &refusal{"Not done: the session is in read-only mode. Change that with /mode ask."}
	case says(v):
	case mode == modeAutoEdit && asked == askEdit:
		return nil
	case known && answer:
		return nil
	case known:
		return &refusal{"Not done: you said to always reject this in the session. Choosing a mode, for example with /mode ask, forgets that."}
	}
	p.Options = []acp.PermissionOption{
		{OptionID: "allow_once", Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
		{OptionID: "allow_always", Name: "Always allow " + rest + " in this session", Kind: acp.PermissionOptionKindAllowAlways},
		{OptionID: "reject_once", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
		{OptionID: "reject_always", Name: "Always reject " + rest + " in this session", Kind: acp.PermissionOptionKindRejectAlways},
	}
	if says(v) { // the next time it has to be asked again
		p.Options = []acp.PermissionOption{p.Options[0], p.Options[2]}
	}
	d, err := c.h.Ask(p)
	switch {
	case v.Effect == acphost.EffectDeny && c.w.ctx.Err() == nil:
		return forbidden(v)
	case c.w.ctx.Err() != nil:
		return errCancelled
	case err != nil:
		return &refusal{"Not done: the question whether it may be done could not be asked: " + plainError(err)}
	case d.Option.Kind == acp.PermissionOptionKindAllowAlways, d.Option.Kind == acp.PermissionOptionKindRejectAlways:
		s.mu.Lock()
		if s.mode == mode { // a new mode has forgotten the answers
			s.answers[asked] = d.Allowed
		}
		s.mu.Unlock()
	}
	switch {
	case d.Allowed:
		return nil
	case d.Cancelled:
		return &refusal{"Not done: the question was dismissed without an answer."}
	}
	return &refusal{"Not done: you rejected it."}
}

// plainError is the text of an error as it is shown: one line of bounded length.
func plainError(err error) string { return oneLine(err.Error(), 500) }
