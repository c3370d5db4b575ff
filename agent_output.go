package acp

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/goacp/acp/acpv2"
)

// An Output sends updates of a session. A [Turn] has one that ends with the turn;
// an [AgentSession] has one that lasts as long as the session. All methods may be
// called from any goroutine. What one goroutine sends arrives in that order.
//
// Sending blocks while the client does not read, until the turn or the session
// has ended. A turn that was cancelled can still send. Errors may be checked at
// every call or once at the end: see [Output.Err].
//
// Updates are in the vocabulary of version 2 and are translated for version 1
// clients. An update that version 1 has no form for, such as a state, is not
// sent; neither is one that the client has not said it understands (notices,
// compactions, subagents).
type Output struct {
	*output
	ctx context.Context // of questions, commands and files
}

// output is what an Output shares with those that have another context.
type output struct {
	s     *AgentSession
	sends context.Context // of updates; a cancelled turn ends it only when it has ended
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
// commands and files use ctx, so that they can be cancelled on their own. ctx
// should derive from the context the hook was given. In any case they are
// cancelled when the turn or the session ends. The Output costs nothing once it is
// not used any more, unless it has asked, run or read something: then it costs some
// memory until ctx is done or the turn or the session has ended. In a session that
// lives for long, give it a ctx that ends.
func (o *Output) WithContext(ctx context.Context) *Output {
	return &Output{output: o.output, ctx: &eitherContext{Context: ctx, owner: o.ctx}}
}

// An eitherContext ends when one of two contexts ends. Values and the deadline are those of the embedded one. It is
// registered with the two when its end is first waited for, since that costs memory as long as they live.
type eitherContext struct {
	context.Context
	owner context.Context

	mu   sync.Mutex
	made context.Context // the underlying context; nil until it is created
}

// make returns the underlying context.
func (e *eitherContext) make() context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.made != nil {
		return e.made
	}
	both, cancel := context.WithCancelCause(e.Context)
	e.made = both
	if e.owner.Err() != nil {
		cancel(context.Cause(e.owner))
		return both
	}
	forget := context.AfterFunc(e.owner, func() { cancel(context.Cause(e.owner)) })
	context.AfterFunc(both, func() { forget() })
	return both
}

// Done implements [context.Context].
func (e *eitherContext) Done() <-chan struct{} { return e.make().Done() }

// Err implements [context.Context].
func (e *eitherContext) Err() error {
	if e.Context.Err() == nil && e.owner.Err() == nil {
		return nil
	}
	return e.make().Err()
}

// Value implements [context.Context]. The keys of package context, with which it looks for a parent, need the
// underlying context.
func (e *eitherContext) Value(key any) any { return e.make().Value(key) }

// Err returns the first error that occurred when the turn sent something, or nil.
// It is always nil for a session's own output.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// fail keeps the first failure of a turn and ends its context. A session's own
// output continues: the failure concerns one update, and the end of the session
// is noticed anyway.
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

// acquire waits for the right to send and checks that the output may still send.
func (o *Output) acquire() error { return o.acquireBehind(false) }

// acquireBehind is acquire behind the prompts that the turn has taken and, if all is set, behind a replay.
func (o *Output) acquireBehind(all bool) error {
	err := o.s.afterOffers(o.sends)
	if err == nil {
		err = o.s.acquireBehind(o.sends, all)
	}
	return o.acquired(err)
}

// acquired is what acquire returns once the session has the right to send, or err.
func (o *Output) acquired(err error) error {
	if err != nil {
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

// Send sends an update unchanged. The update must not be modified afterwards.
// Messages, thoughts, tool calls and the like have methods of their own, which
// also generate ids.
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

// sendState sends the state that the session is in at that moment.
func (o *Output) sendState() error {
	if err := o.acquire(); err != nil {
		return err
	}
	defer o.s.releaseSending()
	return o.sendLocked(o.s.state())
}

// Say sends text of the agent's answer. Consecutive texts form one message, until
// a tool call, a thought or [Output.EndMessage] comes between them.
func (o *Output) Say(text string) error { return o.write(agentMessage, text) }

// Think sends text of the agent's thoughts. They form messages as with [Output.Say].
func (o *Output) Think(text string) error { return o.write(agentThought, text) }

// MessageID returns the id of the message that [Output.Say] or [Output.Think]
// last wrote to, or "" if the next text begins a new one.
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

// EndMessage makes the next text begin a new message.
func (o *Output) EndMessage() {
	if o.acquire() == nil {
		o.kind = noMessage
		o.s.releaseSending()
	}
}

// write is Send for text, by far the commonest update.
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
	if err := s.recordText(o.sends, kind, o.message, text); err != nil {
		return o.fail(err)
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
	if err := o.s.send(o.sends, chunkUpdate(kind, o.message, b)); err != nil {
		return o.fail(err)
	}
	return nil
}

// Show sends content other than text as part of the agent's answer.
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

// User sends a message of the user. Agents use it to replay history; agents that
// have kept the message's id send a [UserMessage] instead. The prompt of a turn
// is sent automatically.
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

// UpdatePlan sends a plan that has its own id, or that is not a list. Version 1
// clients know one plan only, unless they say otherwise.
func (o *Output) UpdatePlan(plan PlanUpdateContent) error {
	return o.Send(&PlanUpdate{Plan: plan})
}

// RemovePlan removes a plan. Experimental.
func (o *Output) RemovePlan(id PlanID) error { return o.Send(&PlanRemoved{PlanID: id}) }

// Notice shows the user something that is not part of the conversation. It is
// shown when it arrives and never replayed.
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

// Usage reports how many tokens of the context window are used, and what the
// session has cost so far; cost may be nil.
func (o *Output) Usage(used, size uint64, cost *Cost) error {
	u := &UsageUpdate{Used: used, Size: size}
	if cost != nil {
		u.Cost = acpv2.Set(*cost)
	}
	return o.Send(u)
}

// Subagent reports on a session that works for this one. Experimental.
func (o *Output) Subagent(u *SubagentUpdate) error { return o.Send(u) }

// A Compaction is a summary that replaces part of the conversation.
type Compaction struct {
	o  *Output
	id CompactionID
}

// Compact reports that the conversation is being summarized. Call Complete, Fail
// or Cancel when that ends.
func (o *Output) Compact() *Compaction {
	c := &Compaction{o: o, id: CompactionID(o.s.nextMessage())}
	_ = o.Send(&CompactionUpdate{CompactionID: c.id, Status: acpv2.CompactionStatusInProgress})
	return c
}

// ID returns the compaction's id.
func (c *Compaction) ID() CompactionID { return c.id }

// Say sends a piece of the summary.
func (c *Compaction) Say(text string) error {
	return c.o.Send(&CompactionSummaryChunk{CompactionID: c.id, Content: acpv2.Text(text)})
}

// Complete ends the compaction. A summary replaces what Say has sent; without
// one, that remains.
func (c *Compaction) Complete(summary ...ContentBlock) error {
	u := &CompactionUpdate{CompactionID: c.id, Status: acpv2.CompactionStatusCompleted}
	if len(summary) > 0 {
		u.Summary = acpv2.Set(summary)
	}
	return c.o.Send(u)
}

// Fail ends the compaction with the text of an error.
func (c *Compaction) Fail(err error) error {
	return c.o.Send(&CompactionUpdate{
		CompactionID: c.id, Status: acpv2.CompactionStatusFailed, Error: acpv2.Set(err.Error()),
	})
}

// Cancel ends the compaction without a result.
func (c *Compaction) Cancel() error {
	return c.o.Send(&CompactionUpdate{CompactionID: c.id, Status: acpv2.CompactionStatusCancelled})
}
