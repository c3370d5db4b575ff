package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/patch"
)

// A ToolCall describes a tool call as it begins. Only Title is needed.
type ToolCall struct {
	ID        ToolCallID     // generated when it is ""
	Name      string         // of the tool, for programs
	Title     string         // for people
	Kind      ToolKind       // ToolKindOther when it is ""
	Status    ToolCallStatus // ToolCallStatusInProgress when it is ""
	Locations []ToolCallLocation
	Content   []ToolCallContent
	Input     any // what the tool is given: encoded by encoding/json, or a json.RawMessage as it is
	Meta      json.RawMessage
	// Cancel, if set, lets the client cancel this call alone. It is called at
	// most once, in a goroutine of its own, and should make the call end. Version
	// 2 only.
	Cancel func()
}

// A ToolCallHandle reports the progress of a tool call. Its methods may be called
// from any goroutine, even after the call has ended: clients show what is added
// then. Their errors are those of [Output.Send], and are kept in the same way.
type ToolCallHandle struct {
	o  *Output
	id ToolCallID

	mu      sync.Mutex
	name    string
	title   string
	kind    ToolKind
	status  ToolCallStatus
	where   []ToolCallLocation
	content []ToolCallContent
	input   json.RawMessage

	cancelled atomic.Bool // by the client, alone
}

func toolCancelKey(id ToolCallID) string     { return "tool_call:" + string(id) }
func terminalCancelKey(id TerminalID) string { return "terminal:" + string(id) }

// ToolCall announces a tool call. If t has the ID of a call that is known,
// ToolCall continues that one. Calls that have not ended when their turn is
// cancelled end as cancelled.
func (o *Output) ToolCall(t ToolCall) *ToolCallHandle {
	if t.ID == "" {
		t.ID = o.s.nextCall()
	}
	if t.Kind == "" {
		t.Kind = ToolKindOther
	}
	if t.Status == "" {
		t.Status = ToolCallStatusInProgress
	}
	h := &ToolCallHandle{
		o: o, id: t.ID, name: t.Name, title: t.Title, kind: t.Kind, status: t.Status,
		where: t.Locations, content: t.Content, input: rawJSON(o, t.Input),
	}
	u := &ToolCallUpdate{
		ToolCallID: t.ID, Title: acpv2.Set(t.Title), Kind: acpv2.Set(t.Kind), Status: acpv2.Set(t.Status),
		RawInput: h.input, Meta: t.Meta,
	}
	if t.Name != "" {
		u.Name = acpv2.Set(t.Name)
	}
	if t.Locations != nil {
		u.Locations = acpv2.Set(t.Locations)
	}
	if t.Content != nil {
		u.Content = acpv2.Set(t.Content)
	}
	if t.Cancel != nil {
		u.Capabilities = acpv2.Set(acpv2.ToolCallCapabilities{Cancel: new(acpv2.ToolCallCancelCapabilities)})
		o.setCancel(toolCancelKey(t.ID), func() {
			h.cancelled.Store(true)
			t.Cancel()
		})
	}
	if o.t != nil {
		o.s.mu.Lock()
		o.t.open = append(o.t.open, h)
		o.s.mu.Unlock()
	}
	_ = o.Send(u) // kept by the output
	return h
}

// setCancel registers how the client can cancel something. What belongs to a turn
// can no longer be cancelled on its own once the turn has ended.
func (o *Output) setCancel(key string, cancel func()) {
	o.s.setCancel(key, cancel)
	if o.t != nil {
		o.s.mu.Lock()
		o.t.cancels = append(o.t.cancels, key)
		o.s.mu.Unlock()
	}
}

// rawJSON encodes what a tool was given or has returned.
func rawJSON(o *Output, v any) json.RawMessage {
	switch v := v.(type) {
	case nil:
		return nil
	case json.RawMessage:
		return v
	}
	data, err := json.Marshal(v)
	if err != nil {
		_ = o.fail(err)
		return nil
	}
	return data
}

// ID returns the call's id.
func (h *ToolCallHandle) ID() ToolCallID { return h.id }

// Status returns the status that was last reported.
func (h *ToolCallHandle) Status() ToolCallStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

// Update sends any change; Update sets its ToolCallID.
func (h *ToolCallHandle) Update(u ToolCallUpdate) error {
	u.ToolCallID = h.id
	h.mu.Lock()
	u.Name.Apply(&h.name)
	u.Title.Apply(&h.title)
	u.Kind.Apply(&h.kind)
	u.Status.Apply(&h.status)
	u.Locations.Apply(&h.where)
	u.Content.Apply(&h.content)
	if u.RawInput != nil {
		h.input = u.RawInput
	}
	final := finalStatus(h.status)
	h.mu.Unlock()
	if final {
		h.close()
		if u.Capabilities.IsZero() && h.o.s.setCancel(toolCancelKey(h.id), nil) {
			u.Capabilities = acpv2.Clear[acpv2.ToolCallCapabilities]()
		}
	}
	return h.o.Send(&u)
}

func finalStatus(s ToolCallStatus) bool {
	return s == ToolCallStatusCompleted || s == ToolCallStatusFailed || s == ToolCallStatusCancelled
}

// close removes the call from those that its turn would have to cancel.
func (h *ToolCallHandle) close() {
	s, t := h.o.s, h.o.t
	if t == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range t.open {
		if other == h {
			t.open = append(t.open[:i:i], t.open[i+1:]...)
			return
		}
	}
}

// SetStatus reports a status.
func (h *ToolCallHandle) SetStatus(s ToolCallStatus) error {
	return h.Update(ToolCallUpdate{Status: acpv2.Set(s)})
}

// SetTitle changes the title.
func (h *ToolCallHandle) SetTitle(title string) error {
	return h.Update(ToolCallUpdate{Title: acpv2.Set(title)})
}

// SetLocations replaces the files the call works on.
func (h *ToolCallHandle) SetLocations(where ...ToolCallLocation) error {
	return h.Update(ToolCallUpdate{Locations: acpv2.Set(where)})
}

// SetInput reports the tool's input: see [ToolCall.Input].
func (h *ToolCallHandle) SetInput(v any) error {
	return h.Update(ToolCallUpdate{RawInput: rawJSON(h.o, v)})
}

// SetOutput reports the tool's output for programs. It is encoded like
// [ToolCall.Input].
func (h *ToolCallHandle) SetOutput(v any) error {
	return h.Update(ToolCallUpdate{RawOutput: rawJSON(h.o, v)})
}

// Append adds to what the call shows.
func (h *ToolCallHandle) Append(content ...ToolCallContent) error {
	for _, c := range content {
		h.mu.Lock()
		h.content = append(h.content, c)
		h.mu.Unlock()
		if err := h.o.Send(&ToolCallContentChunk{ToolCallID: h.id, Content: c}); err != nil {
			return err
		}
	}
	return nil
}

// Text adds text to what the call shows.
func (h *ToolCallHandle) Text(text string) error {
	return h.Append(&BlockContent{Content: Text(text)})
}

// A FileChange is what a tool did to a file, or is about to do. Path is
// absolute. Version 1 clients are shown the texts, version 2 clients a patch.
type FileChange struct {
	Path      string
	MovedFrom string // the absolute path it had before, if it is another
	Before    string
	After     string
	Created   bool // there was no file; Before is ignored
	Deleted   bool // there is no file now; After is ignored
}

// Change adds file changes to what the call shows. They are one diff.
func (h *ToolCallHandle) Change(changes ...FileChange) error {
	diff, err := h.diff(changes)
	if err != nil {
		return err
	}
	return h.Append(diff)
}

// SetChange shows file changes in place of whatever the call shows. It is for a
// change that grows while the user watches, such as one that a model still writes.
func (h *ToolCallHandle) SetChange(changes ...FileChange) error {
	diff, err := h.diff(changes)
	if err != nil {
		return err
	}
	return h.Update(ToolCallUpdate{Content: acpv2.Set([]ToolCallContent{diff})})
}

// diff puts file changes into a diff that can be sent in both versions.
func (h *ToolCallHandle) diff(changes []FileChange) (*Diff, error) {
	diff, files := diffOf(changes)
	s := h.o.s
	if err := h.o.acquire(); err != nil {
		return nil, err
	}
	if !s.c.peer.Load().proto.states() {
		s.toV1.Texts(diff, files)
	}
	s.releaseSending()
	return diff, nil
}

// diffOf puts file changes into a diff.
func diffOf(changes []FileChange) (*Diff, []patch.File) {
	files := make([]patch.File, len(changes))
	d := &Diff{Changes: make([]DiffChange, len(changes))}
	for i, c := range changes {
		f := patch.File{OldPath: c.Path, NewPath: c.Path, Old: c.Before, New: c.After}
		var op acpv2.DiffOperation = &acpv2.DiffModify{Path: c.Path}
		switch {
		case c.Created:
			f.OldPath, f.Old = "", ""
			op = &acpv2.DiffAdd{Path: c.Path}
		case c.Deleted:
			f.NewPath, f.New = "", ""
			op = &acpv2.DiffDelete{Path: c.Path}
		case c.MovedFrom != "":
			f.OldPath = c.MovedFrom
			op = &acpv2.DiffMove{OldPath: c.MovedFrom, Path: c.Path}
		}
		files[i] = f
		d.Changes[i] = DiffChange{Operation: op}
	}
	d.Patch = &DiffPatch{Format: acpv2.DiffPatchFormatGitPatch, Text: patch.Git(files...)}
	return d, files
}

// Complete ends the call as completed. It returns the first error that occurred
// when the turn sent something.
func (h *ToolCallHandle) Complete() error {
	if err := h.SetStatus(ToolCallStatusCompleted); err != nil {
		return err
	}
	return h.o.Err()
}

// Fail ends the call as failed and shows the text of err, unless err is nil. If
// err is or wraps the error or the cause of the turn's cancelled context, the
// call ends as cancelled instead and no text is shown; so it does after the
// client has cancelled this call alone. Version 1 clients have no such status and
// see a failed call. Fail returns an error of sending, not err.
func (h *ToolCallHandle) Fail(err error) error {
	if h.wasCancelled(err) {
		if err := h.SetStatus(ToolCallStatusCancelled); err != nil {
			return err
		}
		return h.o.Err()
	}
	if err != nil {
		if err := h.Text(err.Error()); err != nil {
			return err
		}
	}
	if err := h.SetStatus(ToolCallStatusFailed); err != nil {
		return err
	}
	return h.o.Err()
}

// wasCancelled reports whether err, which ended the call early, is nothing but a
// cancellation.
func (h *ToolCallHandle) wasCancelled(err error) bool {
	if err == nil {
		return false
	}
	if h.cancelled.Load() && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(h.o.ctx))) {
		return true
	}
	t := h.o.t
	if t == nil {
		return false
	}
	cause := context.Cause(t.p.ctx)
	return cause != nil && (errors.Is(err, cause) || errors.Is(err, context.Canceled))
}

// update returns the whole call as it is known.
func (h *ToolCallHandle) update() *ToolCallUpdate {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := &ToolCallUpdate{
		ToolCallID: h.id, Title: acpv2.Set(h.title), Kind: acpv2.Set(h.kind), Status: acpv2.Set(h.status), RawInput: h.input,
	}
	if h.name != "" {
		u.Name = acpv2.Set(h.name)
	}
	if len(h.where) > 0 {
		u.Locations = acpv2.Set(h.where)
	}
	if len(h.content) > 0 {
		u.Content = acpv2.Set(slices.Clone(h.content))
	}
	return u
}
