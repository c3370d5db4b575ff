package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/detach"
	"github.com/goacp/acp/internal/told"
	"github.com/goacp/acp/jsonrpc"
)

// A PermissionRequest asks whether the agent may do something.
type PermissionRequest struct {
	Session *ClientSession
	// Title is the question; in version 1 it is the title of the tool call. In
	// version 2 it may be as short as “Run this command?”: show Subject, too.
	Title       string
	Description string // more text, or ""
	// Subject is what the permission is about, to be read with a type switch, or
	// nil if the agent gave none. For a tool call it carries the same data as
	// ToolCall.
	Subject RequestPermissionSubject
	// ToolCall is the tool call in question (for a command, the call it belongs
	// to, if known), or nil. Fields that the request leaves out are filled in
	// from earlier updates: name, title, kind, status, content, locations and
	// input. The agent may never have sent any. The kind other and an empty input
	// leave them out, too.
	//
	//	remembered           bound
	//	calls of a session   the last 256, 1 MiB in all
	//	each call            64 KiB; content is dropped first
	//	content              texts and patches up to 4 KiB, terminals, and the
	//	                     names of the files that a diff is about
	ToolCall *ToolCallUpdate
	// Earlier is what messages said about the tool call before a later one, or the
	// request itself, said otherwise: the kind, the name, the files, the input and a
	// text, oldest first, up to 8 times and 64 KiB. Whoever decides must heed it:
	// agents announce a command and then ask about an empty input. What only adds
	// to an input does not count. EarlierMore reports that there was more.
	Earlier     []ToolCallUpdate
	EarlierMore bool
	// Options are the choices, in the agent's order. Choose by kind.
	Options []PermissionOption
	Meta    json.RawMessage // _meta of the request, or nil

	// V2 is the request as it was received. V1 is nil unless the agent speaks
	// version 1: then it is what was received, and V2 its translation, without
	// members that are null.
	V1 *acpv1.RequestPermissionRequest
	V2 *acpv2.RequestPermissionRequest

	asked RequestPermissionSubject // the subject as it was received
}

// A PermissionDecision is a client's answer to a [PermissionRequest]. The zero value
// does not permit anything. Make one with the methods of PermissionRequest, or with
// [SelectPermission] or [CancelPermission].
type PermissionDecision struct {
	// OptionID is the option that was chosen. An empty id, an id that was not
	// offered, and one that two options have, choose nothing: the request is
	// answered as cancelled.
	OptionID PermissionOptionID
	// Cancelled says that none was chosen, whatever OptionID is.
	Cancelled bool
	// Meta is _meta of the outcome: an object, or nil.
	Meta json.RawMessage
}

// SelectPermission is the decision for one of the options that were offered. Prefer
// [PermissionRequest.Allow] and its like, which choose by what an option means.
func SelectPermission(id PermissionOptionID) PermissionDecision {
	return PermissionDecision{OptionID: id}
}

// CancelPermission is the decision for none of the options offered. It does not permit
// anything.
func CancelPermission() PermissionDecision { return PermissionDecision{Cancelled: true} }

// Allow permits the request, this once. If the agent does not offer that, it
// cancels rather than permit more.
func (r *PermissionRequest) Allow() PermissionDecision {
	return r.choose(PermissionOptionKindAllowOnce)
}

// AllowAlways permits the request and similar ones in the future, or this one
// alone if the agent offers only that.
func (r *PermissionRequest) AllowAlways() PermissionDecision {
	return r.choose(PermissionOptionKindAllowAlways, PermissionOptionKindAllowOnce)
}

// Reject refuses the request, this once. If the agent does not offer that, it
// cancels, which refuses as well.
func (r *PermissionRequest) Reject() PermissionDecision {
	return r.choose(PermissionOptionKindRejectOnce)
}

// RejectAlways refuses the request and similar ones in the future, or this one
// alone if the agent offers only that. If it offers neither, it cancels.
func (r *PermissionRequest) RejectAlways() PermissionDecision {
	return r.choose(PermissionOptionKindRejectAlways, PermissionOptionKindRejectOnce)
}

// choose selects the first option of the first kind that is offered: the order
// of the options says nothing.
func (r *PermissionRequest) choose(kinds ...PermissionOptionKind) PermissionDecision {
	for _, k := range kinds {
		if i := slices.IndexFunc(r.Options, func(o PermissionOption) bool { return o.Kind == k }); i >= 0 {
			return SelectPermission(r.Options[i].OptionID)
		}
	}
	return CancelPermission()
}

// outcome returns the answer for a decision.
func (r *PermissionRequest) outcome(d PermissionDecision) acpv2.RequestPermissionOutcome {
	offered := 0
	for _, o := range r.Options {
		if o.OptionID == d.OptionID {
			offered++
		}
	}
	if d.Cancelled || d.OptionID == "" || offered != 1 {
		return &acpv2.CancelledPermissionOutcome{Meta: d.Meta}
	}
	return &acpv2.SelectedPermissionOutcome{OptionID: d.OptionID, Meta: d.Meta}
}

// requestPermission is the handler of session/request_permission.
func (c *ClientConn) requestPermission(ctx context.Context, p *acpv2.RequestPermissionRequest, v1 *acpv1.RequestPermissionRequest) (*acpv2.RequestPermissionResponse, error) {
	s, err := c.requestSession(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	req := &PermissionRequest{
		Session: s, Title: p.Title, Description: p.Description, Subject: p.Subject, Options: p.Options, Meta: p.Meta, V1: v1, V2: p,
		asked: p.Subject,
	}
	req.recall(s.calls)
	if v1 != nil {
		s.boundary()
		req.V2 = req.receivedV1(p)
	}
	decision := CancelPermission()
	if hook := c.client.RequestPermission; hook != nil {
		decision, err = clientAskHook(ctx, s, "RequestPermission", CancelPermission(), func(ctx context.Context) (PermissionDecision, error) {
			return hook(ctx, req)
		})
		if err != nil {
			return nil, err
		}
	}
	return &acpv2.RequestPermissionResponse{Outcome: req.outcome(decision)}, nil
}

// boundary makes the text that follows begin a new message: version 1 does not say that another one begins, and what was
// asked stands between them.
func (s *ClientSession) boundary() {
	s.line.Post(clientItem{do: func(context.Context) { s.v1.Boundary() }})
	s.line.Kick()
}

// recall adds what earlier updates said about the tool call the request is about.
func (r *PermissionRequest) recall(calls *told.Calls) {
	switch subject := r.Subject.(type) {
	case *ToolCallPermissionSubject:
		about := *subject
		about.ToolCall = *calls.Asked(&subject.ToolCall, r.V1 == nil)
		r.Earlier, r.EarlierMore = calls.Earlier(subject.ToolCall.ToolCallID)
		r.Subject, r.ToolCall = &about, &about.ToolCall
		if r.V1 != nil || r.Title == "" {
			r.Title = cmp.Or(about.ToolCall.Title.Or(""), about.ToolCall.Name.Or(""), string(about.ToolCall.ToolCallID))
		}
	case *CommandPermissionSubject:
		r.ToolCall = calls.Known(subject.ToolCallID)
		r.Earlier, r.EarlierMore = calls.Earlier(subject.ToolCallID)
	}
}

// receivedV1 returns the translation of a request of version 1. Its title is the tool
// call's, and what is null in it says nothing.
func (r *PermissionRequest) receivedV1(p *acpv2.RequestPermissionRequest) *acpv2.RequestPermissionRequest {
	v2 := *p
	v2.Title = r.Title
	if subject, ok := p.Subject.(*ToolCallPermissionSubject); ok {
		said := *subject
		call := &said.ToolCall
		call.Name, call.Title, call.Kind, call.Status = acpv2.Patch[string]{}, acpv2.Patch[string]{}, acpv2.Patch[ToolKind]{}, acpv2.Patch[ToolCallStatus]{}
		call.Content, call.Locations = acpv2.Patch[[]ToolCallContent]{}, acpv2.Patch[[]ToolCallLocation]{}
		told.Overlay(call, &subject.ToolCall, false)
		v2.Subject = &said
	}
	return &v2
}

// clientAsk is a question to the user that waits for its answer.
type clientAsk struct {
	cancel context.CancelFunc
}

// clientAskHook runs a hook that asks the user. As soon as ctx is done, or the
// session, which may be nil, is cancelled, the answer is that the request was
// cancelled, whether the hook has returned or not; what it returns later is
// dropped. While too many hooks run, that is also the answer, so that hooks that
// ignore their ctx do not accumulate.
func clientAskHook[T any](ctx context.Context, s *ClientSession, name string, cancelled T, hook func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s != nil {
		ask := &clientAsk{cancel}
		if !s.enterAsk(ask) {
			return cancelled, nil
		}
		defer s.leaveAsk(ask)
	}
	c := ClientConnFrom(ctx)
	answer, err := detach.Do(ctx, &c.asking, func() (answer T, err error) {
		err = errHookPanicked
		c.hook(name, func() { answer, err = hook(ctx) })
		return answer, err
	})
	switch {
	case errors.Is(err, detach.ErrBusy):
		c.client.Logger.Warn("acp: too many hooks run; request refused", "hook", name)
		return cancelled, nil
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return cancelled, nil
	}
	return answer, err
}

// enterAsk enters a question, unless the session is being cancelled or is gone.
func (s *ClientSession) enterAsk(ask *clientAsk) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return false
	}
	// A user who prompts again wants to be asked again; and a prompt that is never
	// answered must not refuse for ever.
	if n := len(s.replies); s.conn.Version() == 1 && n > 0 && s.replies[n-1].stop.cancelling.Load() &&
		time.Since(s.withdrawn) < s.conn.client.CancelGrace {
		return false
	}
	if s.asked == nil {
		s.asked = map[*clientAsk]struct{}{}
	}
	s.asked[ask] = struct{}{}
	return true
}

func (s *ClientSession) leaveAsk(ask *clientAsk) {
	s.mu.Lock()
	delete(s.asked, ask)
	s.mu.Unlock()
}

// An ElicitationRequest asks the user for input.
type ElicitationRequest struct {
	Session    *ClientSession // nil if it belongs to none
	ToolCallID ToolCallID     // the tool call it belongs to, or ""
	// RequestID is the id of the client's request it belongs to, if it belongs to
	// no session.
	RequestID jsonrpc.ID
	Message   string // what the user is asked
	// Form describes the fields to fill in; nil if the user is to visit URL.
	Form *ElicitationSchema
	URL  string
	// ElicitationID names a request with a URL: see [Client.ElicitationComplete].
	ElicitationID ElicitationID
	Meta          json.RawMessage // _meta of the request, or nil

	// V1 or V2 is the request as it was received.
	V1 *acpv1.CreateElicitationRequest
	V2 *acpv2.CreateElicitationRequest
}

// An ElicitationResponse is the answer to an [ElicitationRequest].
type ElicitationResponse = acpv2.CreateElicitationResponse

// AcceptElicitation is the answer of a user who filled in the form, with the
// values by field, or, without values, agreed to visit the URL.
func AcceptElicitation(values map[string]json.RawMessage) *ElicitationResponse {
	return &ElicitationResponse{Action: &ElicitationAcceptAction{Content: values}}
}

// DeclineElicitation is the answer of a user who refuses.
func DeclineElicitation() *ElicitationResponse {
	return &ElicitationResponse{Action: &ElicitationDeclineAction{}}
}

// CancelElicitation is the answer of a user who made no choice. It is also the
// answer if a hook returns nil.
func CancelElicitation() *ElicitationResponse {
	return &ElicitationResponse{Action: &ElicitationCancelAction{}}
}

// elicit is the handler of elicitation/create.
func (c *ClientConn) elicit(ctx context.Context, p *acpv2.CreateElicitationRequest, v1 *acpv1.CreateElicitationRequest) (*ElicitationResponse, error) {
	req := &ElicitationRequest{Message: p.Message, Meta: p.Meta, V1: v1}
	if v1 == nil {
		req.V2 = p
	}
	var scope acpv2.ElicitationScope
	switch m := p.Mode.(type) {
	case *acpv2.ElicitationFormMode:
		if !c.client.Elicits.Form {
			return nil, invalidParams("mode", "not advertised")
		}
		req.Form, scope = &m.RequestedSchema, m.Scope
	case *acpv2.ElicitationURLMode:
		if !c.client.Elicits.URL {
			return nil, invalidParams("mode", "not advertised")
		}
		req.URL, req.ElicitationID, scope = m.URL, m.ElicitationID, m.Scope
	default:
		return nil, invalidParams("mode", "not advertised")
	}
	switch scope := scope.(type) {
	case *acpv2.ElicitationSessionScope:
		s, err := c.requestSession(ctx, scope.SessionID)
		if err != nil {
			return nil, err
		}
		req.Session, req.ToolCallID = s, scope.ToolCallID
	case *acpv2.ElicitationRequestScope:
		req.RequestID = scope.RequestID
	}
	res, err := clientAskHook(ctx, req.Session, "Elicit", CancelElicitation(), func(ctx context.Context) (*ElicitationResponse, error) {
		return c.client.Elicit(ctx, req)
	})
	if err == nil && (res == nil || res.Action == nil) {
		res = CancelElicitation()
	}
	return res, err
}

func clientTerminalAuth() *acpv2.ClientAuthCapabilities {
	return &acpv2.ClientAuthCapabilities{Terminal: &acpv2.TerminalAuthCapabilities{}}
}

func clientElicitation(k ElicitationKinds) *acpv2.ElicitationCapabilities {
	if k == (ElicitationKinds{}) {
		return nil
	}
	caps := new(acpv2.ElicitationCapabilities)
	if k.Form {
		caps.Form = &acpv2.ElicitationFormCapabilities{}
	}
	if k.URL {
		caps.URL = &acpv2.ElicitationURLCapabilities{}
	}
	return caps
}
