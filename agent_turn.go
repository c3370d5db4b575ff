package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A Turn is the work on one prompt, up to the stop reason. The agent answers
// through the [Output] it embeds: Say, Think, ToolCall, Plan, Permit, Elicit,
// Run, ReadFile, WriteFile and more. All of them may be called from any goroutine
// while the turn runs. After it has ended, sending fails with [ErrTurnEnded].
//
// The first error of sending is kept, as in [bufio.Writer]: it cancels the turn's
// context, later sends fail with it, and [Output.Err] returns it. So an agent
// need not check the errors of single sends.
type Turn struct {
	*Output

	session *AgentSession
	p       *prompt
	ctx     turnContext
	blocks  []ContentBlock
	meta    json.RawMessage
	message MessageID

	steer       steer
	sending     turnContext             // once it is done nothing can be sent any more
	stopSending context.CancelCauseFunc // ends it
	settled     chan struct{}           // closed when the turn has ended
	stop        StopReason              // why, once settled is closed
	stopErr     error                   // what failed

	gaveUp   func(outcome) // gets the outcome where the hook does not return: see run
	ending   sync.Mutex    // guards the following
	returned bool          // the hook has, or has ended its goroutine, before it was given up
	givenUp  chan struct{} // closed when gaveUp has the outcome; nil unless the turn is given up

	usage   *Usage            // guarded by session.mu
	answer  json.RawMessage   // _meta of the message that ends the turn; guarded by session.mu
	cancels []string          // of what the turn has begun; guarded by session.mu
	open    []*ToolCallHandle // calls that have not ended; guarded by session.mu
}

// turnContext is done when one context is, and also has the values of another
// one, the request's.
type turnContext struct {
	context.Context
	values context.Context
}

// Value asks the first context first: package context looks for parents there.
func (c *turnContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}

func newTurn(ctx context.Context, s *AgentSession, p *prompt, blocks []ContentBlock, meta json.RawMessage) *Turn {
	type parts struct { // allocated at once
		Turn
		Output
		output
	}
	all := &parts{
		Turn: Turn{
			session: s, p: p, ctx: turnContext{p.ctx, ctx}, blocks: blocks, meta: meta,
			message: s.nextMessage(), settled: make(chan struct{}),
		},
		output: output{s: s, shut: errNotBegun},
	}
	t := &all.Turn
	if s.c.agent.Load().Busy == BusySteer {
		t.steer = newSteer()
	}
	t.sending.values = ctx
	t.sending.Context, t.stopSending = context.WithCancelCause(s.ctx)
	all.output.sends, all.output.t = &t.sending, t
	all.Output = Output{ctx: &t.ctx, output: &all.output}
	t.Output = &all.Output
	return t
}

// Cancel cancels the turn as a client does that sends session/cancel: the hook's ctx is
// done, with [ErrCancelled] as its cause, and the turn ends as cancelled. A hook that does
// not return within CancelGrace is given up. Cancel does not wait, and does nothing once
// the turn has ended. An agent in which a new prompt takes the place of the turn that
// runs calls it in its [Agent.Received] hook, on [AgentSession.Turn].
func (t *Turn) Cancel() { t.p.cancel(ErrCancelled) }

// Session returns the session the turn is in.
func (t *Turn) Session() *AgentSession { return t.session }

// Context returns the context the hook was given.
func (t *Turn) Context() context.Context { return &t.ctx }

// Blocks returns the prompt's content, which must not be modified.
func (t *Turn) Blocks() []ContentBlock { return t.blocks }

// Text returns the text of the prompt: its text blocks and the URIs of its links,
// joined by line breaks. Empty text blocks are left out.
func (t *Turn) Text() string { return blocksText(t.blocks) }

func blocksText(blocks []ContentBlock) string {
	if len(blocks) == 1 {
		if text, ok := blocks[0].(*TextContent); ok {
			return text.Text
		}
	}
	var parts []string
	for _, b := range blocks {
		switch b := b.(type) {
		case *TextContent:
			if b.Text != "" {
				parts = append(parts, b.Text)
			}
		case *ResourceLink:
			parts = append(parts, b.URI)
		}
	}
	return strings.Join(parts, "\n")
}

// Meta returns _meta of the prompt.
func (t *Turn) Meta() json.RawMessage { return t.meta }

// PromptID returns the id of the prompt as a message of the conversation.
func (t *Turn) PromptID() MessageID { return t.message }

// SetUsage reports the tokens that the turn has used so far; the last report
// counts. It is sent to the client when the turn ends. Experimental.
func (t *Turn) SetUsage(u Usage) {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.usage = &u
}

// SetAnswerMeta sets _meta of the message that ends the turn: an object, or nil.
func (t *Turn) SetAnswerMeta(meta json.RawMessage) {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.answer = meta
}

// begin makes the turn its session's. A client that did not start the turn learns
// of it from the updates; clients of version 1 are sent none. The error is that of
// the Record hook, which keeps the turn from being worked on.
func (t *Turn) begin() error {
	s := t.session
	if s.acquire(t.sends) != nil {
		return nil // the session has ended
	}
	t.shut = nil
	s.releaseSending()
	s.mu.Lock()
	s.turn = t
	s.mu.Unlock()
	if !s.recordsStates() {
		return nil
	}
	if err := t.sendPrompt(); err != nil {
		return err
	}
	_ = t.sendState()
	return nil
}

// sendPrompt records the prompt and sends it where there are updates for that. The
// error is that of the Record hook.
func (t *Turn) sendPrompt() error {
	s := t.session
	if t.acquired(s.acquireBehind(t.sends, true)) != nil {
		return nil
	}
	defer s.releaseSending()
	u := &UserMessage{MessageID: t.message, Content: acpv2.Set(t.blocks)}
	if err := s.record(t.sends, u); err != nil {
		return t.fail(err)
	}
	if proto := s.c.peer.Load().proto; proto.states() {
		if err := proto.update(t.sends, s, u); err != nil {
			_ = t.fail(err) // the hook learns of it
		}
	}
	return nil
}

// runLater runs a turn once the request that has begun it is answered: its end is an update, if anything.
func (c *AgentConn) runLater(ctx context.Context, t *Turn) error {
	c.mu.Lock()
	t.p.answer()
	c.mu.Unlock()
	started := make(chan struct{})
	release, ok := c.hold()
	if !ok {
		t.leave()
		return jsonrpc.ErrClosed
	}
	req := jsonrpc.RequestFrom(ctx)
	// A client that closes its end still reads: the turn has the grace of version 1,
	// where it is a request.
	over := req.Continue(t.p.cancel)
	go func() {
		defer release()
		defer over()
		<-started
		// Updates report the outcome to the client.
		_ = c.run(t, func(outcome) { over(); release() })
	}()
	req.AfterAnswer(func() { close(started) })
	return nil
}

// finish ends the turn, and returns how. Nothing can be sent through it any more, and
// tool calls that it left open are reported as cancelled.
func (t *Turn) finish(o outcome) outcome {
	t.endSteering()
	s := t.session
	t.stop, t.stopErr = o.stop, o.err
	if s.acquireBehind(s.ctx, true) != nil { // what it said may be held back
		t.leave() // the session has ended before it
		return o
	}
	defer s.releaseSending()
	if o.stop == StopCancelled {
		t.cancelOpen()
	}
	t.shut = ErrTurnEnded
	s.mu.Lock()
	for _, key := range t.cancels {
		delete(s.cancels, key)
	}
	s.turn, s.waited = nil, 0
	s.mu.Unlock()
	if !s.recordsStates() {
		t.leave()
		return o
	}
	idle := t.endOf(o.stop, o.err)
	if err := s.record(s.ctx, idle); err != nil {
		if o.stop == StopCancelled { // S40: whatever happens, that is the answer
			s.c.agent.Load().Logger.Error("acp: the end of a turn was not recorded", "error", err)
		} else if o.err == nil {
			o = outcome{err: err}
			t.stop, t.stopErr = "", err
			idle = t.endOf("", err)
		}
	}
	// The next prompt may arrive as soon as the client sees the end. It waits for the right to
	// send before it is answered, so its answer comes after the end.
	t.leave()
	if proto := s.c.peer.Load().proto; proto.states() {
		_ = proto.update(s.ctx, s, idle) // a connection that has failed reports that itself
	}
	return o
}

// leave marks the prompt's turn as settled, which lets the next one begin. If the
// end of the turn is an answer, the prompt leaves the queue when that has been
// sent.
func (t *Turn) leave() {
	close(t.settled)
	t.stopSending(ErrTurnEnded)
	c := t.session.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.p.settle() {
		c.leave(t.session.id, t.p)
	}
}

// cancelOpen marks the tool calls of a cancelled turn as cancelled. The caller
// has the right to send.
func (t *Turn) cancelOpen() {
	s := t.session
	s.mu.Lock()
	open := t.open
	t.open = nil
	s.mu.Unlock()
	for _, call := range open {
		s.setCancel(toolCancelKey(call.id), nil)
		_ = s.send(s.ctx, &ToolCallUpdate{ToolCallID: call.id, Status: acpv2.Set(ToolCallStatusCancelled)})
	}
}

// turnError is what is sent to a client about a turn that failed, if there is no
// answer that could carry the error.
func (c *AgentConn) turnError(err error) *acpv2.Error {
	if we, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return &acpv2.Error{Code: acpv2.ErrorCode(we.Code), Message: we.Message, Data: we.Data}
	}
	a := c.agent.Load()
	id := correlationID()
	a.Logger.Error("acp: turn failed", "error", err, "correlationId", id)
	data := map[string]string{"correlationId": id}
	if a.Engine.ExposeErrors {
		data["details"] = err.Error()
	}
	e := jsonrpc.ErrInternal.WithData(data)
	return &acpv2.Error{Code: acpv2.ErrorCode(e.Code), Message: e.Message, Data: e.Data}
}

// Command splits a slash command into its name and the rest of the prompt; ok is
// false for any other prompt. It does not check that [AgentSession.SetCommands]
// has announced such a command.
func (t *Turn) Command() (name, rest string, ok bool) {
	var first *TextContent
	for _, b := range t.blocks { // an empty text is as good as none
		if first, ok = b.(*TextContent); !ok {
			return "", "", false
		}
		if strings.TrimSpace(first.Text) != "" {
			break
		}
	}
	if first == nil {
		return "", "", false
	}
	line, ok := strings.CutPrefix(strings.TrimSpace(first.Text), "/")
	if !ok {
		return "", "", false
	}
	name, rest, _ = strings.Cut(line, " ")
	return name, strings.TrimSpace(rest), name != ""
}
