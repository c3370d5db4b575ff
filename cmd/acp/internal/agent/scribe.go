package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/patch"
)

// A scribe writes down what a turn says, and then says it. Its methods may be
// called from any goroutine; what they send is kept in the order in which it is
// sent. Failures to send are kept by the turn.
type scribe struct {
	s   *session
	out *acp.Output
	ctx context.Context

	mu      sync.Mutex
	message acp.MessageID // that is being written, or ""
	thought bool
	open    map[acp.ToolCallID]bool // calls that have not ended
}

// send keeps and sends an update.
func (w *scribe) send(u acp.SessionUpdate) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.message = ""
	w.s.keep(u)
	return w.out.Send(u)
}

// tell sends an update that is not kept.
func (w *scribe) tell(u acp.SessionUpdate) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.message = ""
	return w.out.Send(u)
}

// output is all output of a terminal.
func output(text string) acpv2.TerminalOutput {
	return acpv2.TerminalOutput{Data: base64.StdEncoding.EncodeToString([]byte(text))}
}

// say sends text of the answer, think a thought; each goes on with the message
// before it, if that was of its kind.
func (w *scribe) say(text string)   { w.write(text, false) }
func (w *scribe) think(text string) { w.write(text, true) }

func (w *scribe) write(text string, thought bool) {
	if text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.message == "" || w.thought != thought {
		w.message, w.thought = acp.MessageID(w.s.nextID("msg")), thought
	}
	block := acp.Text(text)
	var u acp.SessionUpdate = &acp.AgentMessageChunk{MessageID: w.message, Content: block}
	if thought {
		u = &acp.AgentThoughtChunk{MessageID: w.message, Content: block}
	}
	w.s.keep(u)
	_ = w.out.Send(u)
}

// finish notes how calls end that the turn has left open: as the library tells the
// client.
func (w *scribe) finish(cancelled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !cancelled {
		return
	}
	for id := range w.open {
		w.s.keep(&acp.ToolCallUpdate{ToolCallID: id, Status: acp.Set(acp.ToolCallStatus(acp.ToolCallStatusCancelled))})
	}
}

// A call is a tool call that is written down as well.
type call struct {
	w   *scribe
	h   *acp.ToolCallHandle
	id  acp.ToolCallID
	out *acp.Output // its own, for what can be cancelled alone
}

// call announces a tool call. It has to end by complete or fail.
func (w *scribe) call(t acp.ToolCall) *call { return w.callIn(w.out, t) }

// callIn is call with an output that has a context of its own.
func (w *scribe) callIn(out *acp.Output, t acp.ToolCall) *call {
	t.ID = acp.ToolCallID(w.s.nextID("call"))
	if t.Kind == "" {
		t.Kind = acp.ToolKindOther
	}
	if t.Status == "" {
		t.Status = acp.ToolCallStatusInProgress
	}
	u := &acp.ToolCallUpdate{ToolCallID: t.ID, Title: acp.Set(t.Title), Kind: acp.Set(t.Kind), Status: acp.Set(t.Status)}
	if t.Name != "" {
		u.Name = acp.Set(t.Name)
	}
	if t.Locations != nil {
		u.Locations = acp.Set(t.Locations)
	}
	if t.Content != nil {
		u.Content = acp.Set(t.Content)
	}
	if t.Input != nil {
		if input, err := json.Marshal(t.Input); err == nil {
			u.RawInput = input
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.message = ""
	w.open[t.ID] = true
	w.s.keep(u)
	return &call{w: w, id: t.ID, out: out, h: out.ToolCall(t)}
}

func (c *call) update(u acp.ToolCallUpdate) {
	u.ToolCallID = c.id
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if status, ok := u.Status.Get(); ok && ended(status) {
		delete(c.w.open, c.id)
	}
	kept := u
	c.w.s.keep(&kept)
	_ = c.h.Update(u)
}

func (c *call) status(s acp.ToolCallStatus) { c.update(acp.ToolCallUpdate{Status: acp.Set(s)}) }
func (c *call) complete()                   { c.status(acp.ToolCallStatusCompleted) }

// locations replaces the places the call works on.
func (c *call) locations(where []acp.ToolCallLocation) {
	c.update(acp.ToolCallUpdate{Locations: acp.Set(where)})
}

// fail ends the call with what went wrong.
func (c *call) fail(err error) {
	c.text(plainError(err))
	c.status(acp.ToolCallStatusFailed)
}

// text adds text to what the call shows.
func (c *call) text(text string) { c.show(&acp.BlockContent{Content: acp.Text(text)}) }

func (c *call) show(content acp.ToolCallContent) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.s.keep(&acp.ToolCallContentChunk{ToolCallID: c.id, Content: content})
	_ = c.h.Append(content)
}

// change shows what a file was and is.
func (c *call) change(f acp.FileChange) {
	file := patch.File{OldPath: f.Path, NewPath: f.Path, Old: f.Before, New: f.After}
	var op acpv2.DiffOperation = &acpv2.DiffModify{Path: f.Path}
	switch {
	case f.Created:
		file.OldPath, file.Old = "", ""
		op = &acpv2.DiffAdd{Path: f.Path}
	case f.Deleted:
		file.NewPath, file.New = "", ""
		op = &acpv2.DiffDelete{Path: f.Path}
	}
	diff := &acp.Diff{
		Changes: []acp.DiffChange{{Operation: op}},
		Patch:   &acp.DiffPatch{Format: acpv2.DiffPatchFormatGitPatch, Text: patch.Git(file)},
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.s.keep(&acp.ToolCallContentChunk{ToolCallID: c.id, Content: diff})
	_ = c.h.Change(f) // in the form the client's version has
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
