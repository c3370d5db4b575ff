package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

// prompt runs the Prompt hook.
func (n *proxyNode) prompt(ctx context.Context, m proxied) (json.RawMessage, error) {
	m.holds()
	p, err := n.readPrompt(m)
	if err != nil {
		return nil, err
	}
	blocks, meta := p.Blocks, p.Meta
	was, err := n.encodeBlocks(blocks)
	if err != nil {
		return nil, err
	}
	var result json.RawMessage
	hookCtx, held := n.held.add(ctx, m.session, m.req)
	defer n.held.remove(m.session, held)
	called, err := n.hooked(hookCtx, m.method, func(ctx context.Context) error {
		if n.held.pass(held, true) {
			return ErrCancelled
		}
		defer n.held.pass(held, false)
		params, err := n.writePrompt(p, was, meta)
		if err != nil {
			return err
		}
		m.params, m.checked = &params, false
		if result, err = n.down.request(ctx, m); err != nil {
			return err
		}
		p.StopReason, p.answer = StopReason(memberOf(result, "stopReason")), result
		return nil
	}, func(ctx context.Context, next func(context.Context) error) error { return n.p.Prompt(ctx, p, next) })
	cancelled := hookCtx.Err() != nil && ctx.Err() == nil
	switch {
	case err != nil && cancelled && !isSaid(err):
		if called = false; n.version.Load() != 1 {
			return nil, jsonrpc.ErrRequestCancelled
		}
		p.StopReason = StopCancelled
	case err != nil:
		return nil, err
	}
	if called {
		if stop := StopReason(memberOf(result, "stopReason")); stop != p.StopReason && n.version.Load() == 1 {
			return withMember(result, "stopReason", wire.AppendString(nil, string(p.StopReason)))
		}
		return result, nil
	}
	return n.answered(m, p)
}

// isSaid reports whether an error is one for the peer.
func isSaid(err error) bool {
	var said *jsonrpc.Error
	return errors.As(err, &said)
}

// answered is the answer to a prompt that the hook has answered itself.
func (n *proxyNode) answered(m proxied, p *ProxyPrompt) (json.RawMessage, error) {
	if p.StopReason == "" {
		p.StopReason = StopEndTurn
	}
	if n.version.Load() == 1 {
		return encoded(&acpv1.PromptResponse{StopReason: acpv1.StopReason(p.StopReason), Meta: n.mark(nil)}), nil
	}
	if m.req != nil {
		// The turn ends behind the answer, where it begins as well.
		m.req.AfterAnswer(func() {
			_ = p.Session.Update(context.WithoutCancel(m.req.Context()), &acpv2.IdleStateUpdate{StopReason: p.StopReason})
		})
	}
	return encoded(&acpv2.PromptResponse{MessageID: p.Session.ownMessage(), Meta: n.mark(nil)}), nil
}

// readPrompt decodes a prompt in the words of version 2.
func (n *proxyNode) readPrompt(m proxied) (*ProxyPrompt, error) {
	p := &ProxyPrompt{Session: n.session(m.session), raw: m.raw()}
	if p.Session == nil {
		return nil, invalidParams("sessionId", "missing")
	}
	if n.version.Load() == 1 {
		var r acpv1.PromptRequest
		if err := r.UnmarshalJSON(m.raw()); err != nil {
			return nil, decodeError(err)
		}
		p.Blocks, p.Meta = translate.BlocksFromV1(r.Prompt), r.Meta
		return p, nil
	}
	var r acpv2.PromptRequest
	if err := r.UnmarshalJSON(m.raw()); err != nil {
		return nil, decodeError(err)
	}
	p.Blocks, p.Meta = r.Prompt, r.Meta
	return p, nil
}

// writePrompt returns the params with what was changed.
func (n *proxyNode) writePrompt(p *ProxyPrompt, was, meta json.RawMessage) (json.RawMessage, error) {
	params := p.raw
	is, err := n.encodeBlocks(p.Blocks)
	if err == nil && !bytes.Equal(was, is) {
		params, err = withMember(params, "prompt", is)
	}
	if err == nil && !bytes.Equal(meta, p.Meta) {
		params, err = withMember(params, "_meta", p.Meta)
	}
	return params, err
}

// permission runs the Permission hook.
func (n *proxyNode) permission(ctx context.Context, m proxied) (json.RawMessage, error) {
	m.holds()
	q, err := n.readPermission(m)
	if err != nil {
		return nil, err
	}
	var result json.RawMessage
	var said PermissionDecision
	called, err := n.hooked(ctx, m.method, func(ctx context.Context) (err error) {
		if result, err = n.up.request(ctx, m); err != nil {
			return err
		}
		said = n.readDecision(result)
		q.Decision = said
		return nil
	}, func(ctx context.Context, next func(context.Context) error) error { return n.p.Permission(ctx, q, next) })
	if err != nil {
		return nil, err
	}
	d := q.Decision
	if called && d.OptionID == said.OptionID && d.Cancelled == said.Cancelled && bytes.Equal(d.Meta, said.Meta) {
		return result, nil
	}
	outcome := q.Request.outcome(d)
	var raw json.RawMessage
	if n.version.Load() == 1 {
		raw = encoded(translate.PermissionOutcomeToV1(outcome))
	} else {
		raw = encoded(outcome)
	}
	if called {
		return withMember(result, "outcome", raw)
	}
	return withMember(json.RawMessage("{}"), "outcome", raw)
}

// readPermission decodes a question in the words of version 2.
func (n *proxyNode) readPermission(m proxied) (*ProxyPermission, error) {
	q := &ProxyPermission{Session: n.session(m.session), raw: m.raw()}
	if q.Session == nil {
		return nil, invalidParams("sessionId", "missing")
	}
	v2 := new(acpv2.RequestPermissionRequest)
	var v1 *acpv1.RequestPermissionRequest
	if n.version.Load() == 1 {
		v1 = new(acpv1.RequestPermissionRequest)
		if err := v1.UnmarshalJSON(m.raw()); err != nil {
			return nil, decodeError(err)
		}
		*v2 = translate.PermissionFromV1(*v1)
	} else if err := v2.UnmarshalJSON(m.raw()); err != nil {
		return nil, decodeError(err)
	}
	if v1 != nil {
		q.Session.calls.See(v1)
	} else {
		q.Session.calls.See(v2)
	}
	q.Request = &PermissionRequest{
		Title: v2.Title, Description: v2.Description, Subject: v2.Subject, Options: v2.Options, Meta: v2.Meta, V1: v1, V2: v2, asked: v2.Subject,
	}
	q.Request.recall(&q.Session.calls)
	return q, nil
}

// readDecision returns what the client has decided. What it cannot read permits nothing.
func (n *proxyNode) readDecision(result json.RawMessage) PermissionDecision {
	var outcome acpv2.RequestPermissionOutcome
	if n.version.Load() == 1 {
		var r acpv1.RequestPermissionResponse
		if r.UnmarshalJSON(result) == nil {
			outcome = translate.PermissionOutcomeFromV1(r.Outcome)
		}
	} else {
		var r acpv2.RequestPermissionResponse
		if r.UnmarshalJSON(result) == nil {
			outcome = r.Outcome
		}
	}
	switch o := outcome.(type) {
	case *acpv2.SelectedPermissionOutcome:
		return PermissionDecision{OptionID: o.OptionID, Meta: o.Meta}
	case *acpv2.CancelledPermissionOutcome:
		return PermissionDecision{Cancelled: true, Meta: o.Meta}
	}
	return CancelPermission()
}
