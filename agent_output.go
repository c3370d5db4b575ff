package acp

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/goacp/acp/acpv2"
)

// An Output sends updates of a session. A [Turn] has one that ends with the
// turn, an [AgentSession] one that lasts as long as the session. All methods may
// be called from any goroutine; what one goroutine sends arrives in that order.
//
// Sending waits while the client does not read, until the turn or the session
// has ended; a turn that was cancelled can still send what is left to say.
// Errors may be checked now or once at the end: see [Output.Err].
//
// Updates are in the vocabulary of version 2. For a version 1 client they are
// put into its words; what it has no word for, such as a state, is not sent, and
// what it has not said it understands (notices, compactions, subagents) neither.
type Output struct {
	*output
	ctx context.Context // of questions, commands and files
}

// output is what an Output shares with those that have another context.
type output struct {
	s     *AgentSession
	sends context.Context // of updates; goes on when the turn was cancelled, until it has ended
	t     *Turn           // nil for the session's own

	// Guarded by the session's right to send:
	shut    error       // why nothing can be sent, before a turn begins and after it has ended
	kind    messageKind // of the message that is being written
	message MessageID

	failed atomic.Bool // err is not nil
	mu     sync.Mutex
	err    error // the first failure
}

// WithContext returns an Output for the same turn or session whose questions,
// commands and files use another context, so that one of them can be given up
// alone. ctx should derive from the one the hook was given; in any case what
// waits is given up when the turn or the session is over.
func (o *Output) WithContext(ctx context.Context) *Output {
	both, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(o.ctx, func() { cancel(context.Cause(o.ctx)) })
	context.AfterFunc(both, func() { forget() })
	return &Output{output: o.output, ctx: both}
}

// Err returns the first failure of a turn to send, or nil. A session's own output
// keeps none.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// fail keeps the first failure of a turn, which is over by that. A session's own
// output goes on: what cannot be sent is one thing, and its end shows by itself.
func (o *Output) fail(err error) error {
	if o.t == nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
		o.failed.Store(true)
		o.t.p.cancel(err)
	}
	return o.err
}

// acquire waits for the right to send and checks that there still is one.
func (o *Output) acquire() error {
	if err := o.s.acquire(o.sends); err != nil {
		if o.t != nil && isClosed(o.t.settled) {
			return ErrTurnEnded
		}
		return o.fail(err)
	}
	if o.shut != nil {
		defer o.s.releaseSending()
		return o.shut
	}
	if o.failed.Load() {
		defer o.s.releaseSending()
		return o.Err()
	}
	return nil
}

// Send sends an update as it is. It must not be changed afterwards. Messages,
// thoughts, tool calls and the like have methods of their own, which also keep
// track of ids.
func (o *Output) Send(u SessionUpdate) error {
	if err := o.acquire(); err != nil {
		return err
	}
	defer o.s.releaseSending()
	return o.sendLocked(u)
}

func (o *Output) sendLocked(u SessionUpdate) error {
	switch u.(type) {
	case *ToolCallUpdate, *AgentMessage, *AgentMessageChunk, *AgentThought, *AgentThoughtChunk, *UserMessage, *UserMessageChunk:
		o.kind = noMessage // text after it is another message
	}
	if err := o.s.send(o.sends, u); err != nil {
		return o.fail(err)
	}
	return nil
}

// sendState sends the state the session is in when it is sent.
func (o *Output) sendState() error {
	if err := o.acquire(); err != nil {
		return err
	}
	defer o.s.releaseSending()
	return o.sendLocked(o.s.state())
}

// Say sends text of the agent's answer. Text that follows text is one message,
// until a tool call, a thought or [Output.EndMessage] comes between.
func (o *Output) Say(text string) error { return o.write(agentMessage, text) }

// Think sends text of the agent's thoughts, in the same way.
func (o *Output) Think(text string) error { return o.write(agentThought, text) }

// MessageID returns the id of the message that [Output.Say] or [Output.Think]
// has written to last, or "" if the next text begins one.
func (o *Output) MessageID() MessageID {
	if o.s.acquire(o.sends) != nil {
		return ""
	}
	defer o.s.releaseSending()
	if o.kind == noMessage {
		return ""
	}
	return o.message
}

// EndMessage makes the next text begin a message of its own.
func (o *Output) EndMessage() {
	if o.acquire() == nil {
		o.kind = noMessage
		o.s.releaseSending()
	}
}

// write is Send for text, the commonest update by far.
func (o *Output) write(kind messageKind, text string) error {
	if text == "" {
		return nil
	}
	if err := o.acquire(); err != nil {
		return err
	}
	defer o.s.releaseSending()
	s := o.s
	if s.held != nil {
		return o.sendContent(kind, acpv2.Text(text))
	}
	o.begin(kind)
	if s.keepsHistory() {
		s.history.addText(kind, o.message, text)
	}
	if err := s.c.peer.Load().proto.chunk(o.sends, s, kind, o.message, text); err != nil {
		return o.fail(err)
	}
	return nil
}

// begin begins a message unless one of its kind is being written.
func (o *Output) begin(kind messageKind) {
	if o.kind != kind {
		o.kind, o.message = kind, o.s.nextMessage()
	}
}

// sendContent sends a block as a piece of a message. The caller has the right to
// send.
func (o *Output) sendContent(kind messageKind, b ContentBlock) error {
	o.begin(kind)
	chunk := ContentChunk{MessageID: o.message, Content: b}
	var u SessionUpdate = (*AgentMessageChunk)(&chunk)
	switch kind {
	case agentThought:
		u = (*AgentThoughtChunk)(&chunk)
	case userMessage:
		u = (*UserMessageChunk)(&chunk)
	}
	if err := o.s.send(o.sends, u); err != nil {
		return o.fail(err)
	}
	return nil
}

// Show sends content other than text as a part of the agent's answer.
func (o *Output) Show(blocks ...ContentBlock) error {
	if err := o.acquire(); err != nil {
		return err
	}
	defer o.s.releaseSending()
	for _, b := range blocks {
		if err := o.sendContent(agentMessage, b); err != nil {
			return err
		}
	}
	return nil
}

// User sends a message of the user. Agents replay history with it; those that
// have kept the message's id send a [UserMessage] instead. The prompt of a turn
// is sent by itself.
func (o *Output) User(blocks ...ContentBlock) error {
	return o.Send(&UserMessage{MessageID: o.s.nextMessage(), Content: acpv2.Set(blocks)})
}

// defaultPlan is the id of the plan of [Output.Plan].
const defaultPlan PlanID = "plan"

// Plan sends the whole plan of the session, each time it changes.
func (o *Output) Plan(entries ...PlanEntry) error {
	if entries == nil {
		entries = []PlanEntry{}
	}
	return o.UpdatePlan(&PlanItems{PlanID: defaultPlan, Entries: entries})
}

// UpdatePlan sends a plan with an id of its own, or of another form than a list.
// Version 1 clients know one plan only, unless they say more.
func (o *Output) UpdatePlan(plan PlanUpdateContent) error {
	return o.Send(&PlanUpdate{Plan: plan})
}

// RemovePlan removes a plan. Experimental.
func (o *Output) RemovePlan(id PlanID) error { return o.Send(&PlanRemoved{PlanID: id}) }

// Notice tells the user something that is not part of the conversation. It is
// shown now and never replayed.
func (o *Output) Notice(severity NoticeSeverity, title, description string) error {
	return o.Send(&Notice{Severity: severity, Title: title, Description: description})
}

// SetTitle names the session.
func (o *Output) SetTitle(title string) error {
	o.s.mu.Lock()
	o.s.title = title
	o.s.mu.Unlock()
	return o.Send(&SessionInfoUpdate{Title: acpv2.Set(title)})
}

// Usage tells how much of the context window is used, in tokens, and what the
// session has cost so far; cost may be nil.
func (o *Output) Usage(used, size uint64, cost *Cost) error {
	u := &UsageUpdate{Used: used, Size: size}
	if cost != nil {
		u.Cost = acpv2.Set(*cost)
	}
	return o.Send(u)
}

// Subagent tells about a session that works for this one. Experimental.
func (o *Output) Subagent(u *SubagentUpdate) error { return o.Send(u) }

// A Compaction is a summary that takes the place of a part of the conversation.
type Compaction struct {
	o  *Output
	id CompactionID
}

// Compact tells that the conversation is being summarized. One of the methods
// Complete, Fail or Cancel has to follow.
func (o *Output) Compact() *Compaction {
	c := &Compaction{o: o, id: CompactionID(o.s.nextMessage())}
	_ = o.Send(&CompactionUpdate{CompactionID: c.id, Status: CompactionStatusInProgress})
	return c
}

// ID returns the compaction's id.
func (c *Compaction) ID() CompactionID { return c.id }

// Say sends a piece of the summary.
func (c *Compaction) Say(text string) error {
	return c.o.Send(&CompactionSummaryChunk{CompactionID: c.id, Content: acpv2.Text(text)})
}

// Complete ends the compaction. A summary replaces what Say has sent; none
// leaves it.
func (c *Compaction) Complete(summary ...ContentBlock) error {
	u := &CompactionUpdate{CompactionID: c.id, Status: CompactionStatusCompleted}
	if len(summary) > 0 {
		u.Summary = acpv2.Set(summary)
	}
	return c.o.Send(u)
}

// Fail ends the compaction with the text of an error.
func (c *Compaction) Fail(err error) error {
	return c.o.Send(&CompactionUpdate{
		CompactionID: c.id, Status: CompactionStatusFailed, Error: acpv2.Set(err.Error()),
	})
}

// Cancel ends the compaction without a result.
func (c *Compaction) Cancel() error {
	return c.o.Send(&CompactionUpdate{CompactionID: c.id, Status: CompactionStatusCancelled})
}
