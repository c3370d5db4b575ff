package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A Permission asks whether something may be done.
type Permission struct {
	// Title is the question. Under a tool call the default is the call's title;
	// version 1 clients get any other title as part of the call's content.
	Title string
	// Description gives details.
	Description string
	// Command and Cwd, when set, say that the question is about a command.
	// Version 1 has no place for them: a tool call without an input gets them as
	// its input, as members of the same names, and to any other they are added as
	// text. Rules of a client can only allow what is in the input, so a tool call
	// with an input of its own should have a member "command" in it.
	Command, Cwd string
	// Options are the answers to choose from. By default they are allow and
	// reject, once each and, except for Permit, always.
	Options []PermissionOption
	// Subject replaces what the question is about otherwise: the tool call,
	// or the command.
	Subject RequestPermissionSubject
	Meta    json.RawMessage
}

// A PermissionAnswer is what the client answered to a [Permission]. A client answers
// with a [PermissionDecision].
type PermissionAnswer struct {
	// Allowed reports whether an option that allows was chosen. Anything else does
	// not allow, including kinds of options that are unknown.
	Allowed bool
	// Option is what was chosen, zero if nothing was.
	Option PermissionOption
	// Cancelled says that nothing was chosen: the turn was cancelled, the
	// question was dismissed, or a policy declined it.
	Cancelled bool
	Meta      json.RawMessage
}

// DefaultPermissionOptions are the options that [Output.Ask] offers for a
// [Permission] that has none.
func DefaultPermissionOptions() []PermissionOption {
	return []PermissionOption{
		{OptionID: "allow_once", Name: "Allow", Kind: PermissionOptionKindAllowOnce},
		{OptionID: "allow_always", Name: "Always allow", Kind: PermissionOptionKindAllowAlways},
		{OptionID: "reject_once", Name: "Reject", Kind: PermissionOptionKindRejectOnce},
		{OptionID: "reject_always", Name: "Always reject", Kind: PermissionOptionKindRejectAlways},
	}
}

// permissionRequest is a Permission on its way to the client.
type permissionRequest struct {
	acpv2.RequestPermissionRequest
	call *ToolCallUpdate // the whole call, if it is about one and the agent did not say otherwise
}

// Permit asks the user for a permission and reports whether it was given. Anything
// that is not a clear yes is a no. If p has no Options, Permit offers "allow once" and "reject once".
// To offer "always" and learn which was chosen, use [Output.Ask].
func (o *Output) Permit(p Permission) bool { return o.permit(p, nil) }

func (o *Output) permit(p Permission, h *ToolCallHandle) bool {
	if len(p.Options) == 0 {
		p.Options = []PermissionOption{
			{OptionID: "allow_once", Name: "Allow", Kind: PermissionOptionKindAllowOnce},
			{OptionID: "reject_once", Name: "Reject", Kind: PermissionOptionKindRejectOnce},
		}
	}
	d, err := o.ask(p, h)
	return err == nil && d.Allowed
}

// Ask asks the user for a permission. While it waits, the state of the session
// says that the user has to act. When the turn is cancelled, the question is
// withdrawn and the answer is Cancelled.
func (o *Output) Ask(p Permission) (PermissionAnswer, error) { return o.ask(p, nil) }

// Permit asks whether the call may be made: see [Output.Permit].
func (h *ToolCallHandle) Permit(p Permission) bool { return h.o.permit(p, h) }

// Ask asks whether the call may be made: see [Output.Ask].
func (h *ToolCallHandle) Ask(p Permission) (PermissionAnswer, error) { return h.o.ask(p, h) }

func (o *Output) ask(p Permission, h *ToolCallHandle) (PermissionAnswer, error) {
	r := &permissionRequest{RequestPermissionRequest: acpv2.RequestPermissionRequest{
		SessionID: o.s.id, Title: p.Title, Description: p.Description, Subject: p.Subject, Options: p.Options, Meta: p.Meta,
	}}
	if len(r.Options) == 0 {
		r.Options = DefaultPermissionOptions()
	}
	if h != nil {
		call := h.update()
		if r.Title == "" {
			r.Title = call.Title.Or("")
		}
		if r.Subject == nil {
			r.call = call
			if p.Command == "" {
				r.Subject = &ToolCallPermissionSubject{ToolCall: *call}
			}
		}
	}
	if r.Subject == nil && p.Command != "" {
		subject := &CommandPermissionSubject{Command: p.Command, Cwd: p.Cwd}
		if h != nil {
			subject.ToolCallID = h.id
		}
		r.Subject = subject
	}
	if r.Title == "" {
		r.Title = p.Command
	}
	done, err := o.asking()
	if err != nil {
		return PermissionAnswer{Cancelled: true}, err
	}
	defer done()
	res, err := o.s.c.peer.Load().proto.requestPermission(o.ctx, o.s, r)
	if err != nil {
		// The turn was cancelled, or the client answered the withdrawal with
		// an error (S41).
		if o.ctx.Err() != nil || errors.Is(err, jsonrpc.ErrRequestCancelled) {
			return PermissionAnswer{Cancelled: true}, nil
		}
		return PermissionAnswer{}, err
	}
	return decide(res, r.Options), nil
}

func decide(res *acpv2.RequestPermissionResponse, options []PermissionOption) PermissionAnswer {
	d := PermissionAnswer{Meta: res.Meta}
	chosen, ok := res.Outcome.(*acpv2.SelectedPermissionOutcome)
	if !ok {
		d.Cancelled = true
		return d
	}
	i := slices.IndexFunc(options, func(o PermissionOption) bool { return o.OptionID == chosen.OptionID })
	if i < 0 {
		d.Cancelled = true // an option nobody offered is no approval
		return d
	}
	d.Option = options[i]
	d.Allowed = d.Option.Kind == PermissionOptionKindAllowOnce || d.Option.Kind == PermissionOptionKindAllowAlways
	return d
}

// asking records that the session waits for the user, until done is called.
func (o *Output) asking() (done func(), err error) {
	// The client sees what the question is about before.
	if err := o.acquireBehind(true); err != nil {
		return nil, err
	}
	defer o.s.releaseSending()
	o.s.ask(o, 1)
	return func() {
		if o.acquire() == nil {
			defer o.s.releaseSending()
			o.s.ask(o, -1)
		}
	}, nil
}

// ask counts the questions of the turn that runs and reports the state when it
// changes. The caller has the right to send.
func (s *AgentSession) ask(o *Output, n int) {
	s.mu.Lock()
	before := s.waited
	s.waited = max(0, s.waited+n)
	change := (s.turn != nil || s.running) && (before == 0) != (s.waited == 0)
	s.mu.Unlock()
	if change && s.held == nil && s.recordsStates() {
		_ = o.sendLocked(s.state())
	}
}

// A FormRequest asks the user for data: see [Output.Elicit].
type FormRequest struct {
	Message    string            // what the user is asked
	Schema     ElicitationSchema // the fields to fill in
	ToolCallID ToolCallID        // of the call it is for, if there is one
	Meta       json.RawMessage
}

// An ElicitationAnswer is what the client answered to a [FormRequest] or a
// [LinkRequest].
type ElicitationAnswer struct {
	// Accepted says that the user agreed; then Content has the fields of the
	// form. Otherwise Declined distinguishes a refusal from a dismissal.
	Accepted, Declined bool
	Content            map[string]json.RawMessage
	Meta               json.RawMessage
}

// Elicit asks the user for data. It fails with an error that wraps
// [errors.ErrUnsupported] if the client has no forms.
func (o *Output) Elicit(f FormRequest) (*ElicitationAnswer, error) {
	if c := o.s.c.Capabilities().Elicitation; c == nil || c.Form == nil {
		return nil, clientLacks("elicitation forms")
	}
	return o.elicit(&acpv2.CreateElicitationRequest{Message: f.Message, Meta: f.Meta, Mode: &acpv2.ElicitationFormMode{
		RequestedSchema: f.Schema,
		Scope:           &acpv2.ElicitationSessionScope{SessionID: o.s.id, ToolCallID: f.ToolCallID},
	}})
}

// A LinkRequest asks the user to visit a URL, for example to authorize something: see
// [Output.ElicitURL].
type LinkRequest struct {
	Message    string        // why the user is to visit URL
	URL        string        // where; absolute
	ID         ElicitationID // generated when it is ""
	ToolCallID ToolCallID    // of the call it is for, if there is one
	Meta       json.RawMessage
}

// ElicitURL asks the user to visit a URL. Acceptance does not mean that the user
// has finished there: call done when the agent knows that. ElicitURL fails with
// an error that wraps [errors.ErrUnsupported] if the client does not open URLs.
func (o *Output) ElicitURL(l LinkRequest) (answer *ElicitationAnswer, done func() error, err error) {
	if c := o.s.c.Capabilities().Elicitation; c == nil || c.URL == nil {
		return nil, nil, clientLacks("elicitation of addresses")
	}
	if l.ID == "" {
		l.ID = ElicitationID(o.s.nextMessage())
	}
	answer, err = o.elicit(&acpv2.CreateElicitationRequest{Message: l.Message, Meta: l.Meta, Mode: &acpv2.ElicitationURLMode{
		ElicitationID: l.ID, URL: l.URL,
		Scope: &acpv2.ElicitationSessionScope{SessionID: o.s.id, ToolCallID: l.ToolCallID},
	}})
	if err != nil {
		return nil, nil, err
	}
	return answer, func() error { return o.s.c.peer.Load().proto.elicited(o.ctx, l.ID) }, nil
}

func (o *Output) elicit(r *acpv2.CreateElicitationRequest) (*ElicitationAnswer, error) {
	done, err := o.asking()
	if err != nil {
		return nil, err
	}
	defer done()
	return elicited(o.s.c.peer.Load().proto.elicit(o.ctx, o.s, r))
}

func elicited(res *acpv2.CreateElicitationResponse, err error) (*ElicitationAnswer, error) {
	if err != nil {
		return nil, err
	}
	e := &ElicitationAnswer{Meta: res.Meta}
	switch a := res.Action.(type) {
	case *ElicitationAcceptAction:
		e.Accepted, e.Content = true, a.Content
	case *ElicitationDeclineAction:
		e.Declined = true
	}
	return e, nil
}

// Elicit asks the user for data outside of any session, on behalf of the request
// that ctx belongs to, for example a login.
func (c *AgentConn) Elicit(ctx context.Context, f FormRequest) (*ElicitationAnswer, error) {
	if e := c.Capabilities().Elicitation; e == nil || e.Form == nil {
		return nil, clientLacks("elicitation forms")
	}
	req := jsonrpc.RequestFrom(ctx)
	if req == nil || req.IsNotification() {
		return nil, errors.New("acp: elicit outside of a session: the context belongs to no request of the client")
	}
	return elicited(c.peer.Load().proto.elicit(ctx, nil, &acpv2.CreateElicitationRequest{
		Message: f.Message, Meta: f.Meta,
		Mode: &acpv2.ElicitationFormMode{RequestedSchema: f.Schema, Scope: &acpv2.ElicitationRequestScope{RequestID: req.ID}},
	}))
}
