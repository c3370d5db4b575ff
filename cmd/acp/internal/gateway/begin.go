package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// A beginning says whether a turn has begun.
type beginning struct {
	stage   atomic.Int32
	written chan struct{} // closed when it is known whether the log has the prompt
	begun   uint64        // then; a record not before it, or 0 if it never will
}

// Stages of a turn.
const (
	turnWaits int32 = iota
	turnBegun
	turnWithdrawn
	turnDropped // its client has cancelled it
)

// begins is called when the turn is about to run. It reports false if the turn was withdrawn.
func (b *beginning) begins() bool { return b.stage.CompareAndSwap(turnWaits, turnBegun) }

// withdraw keeps a turn from running, unless it has begun. When it returns, the log has the prompt, or it never will.
func (s *session) withdraw(t *turn) {
	s.mu.Lock()
	waits := t.stage.CompareAndSwap(turnWaits, turnWithdrawn)
	if waits {
		s.unqueue(t)
	}
	s.mu.Unlock()
	if waits {
		t.cancel(errGone)
		t.settle(turnEnd{err: errGone, refused: true})
		return
	}
	select {
	case <-t.written:
	case <-t.ran:
	case <-s.ctx.Done():
	}
}

// drop is called when the context with which a turn waits is done. One that waits behind others ends at once: it must not
// keep its place until they have ended.
func (s *session) drop(ctx context.Context, t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !errors.Is(context.Cause(ctx), errCancelled) || slices.Index(s.queue, t) <= 0 || !t.stage.CompareAndSwap(turnWaits, turnDropped) {
		return // runTurns deals with the first one
	}
	s.g.work.Go(func() { // which runTurns still keeps from ending
		end := turnEnd{stop: acp.StopCancelled, refused: true}
		t.settle(s.finish(t, end)) // a client that sends it again meanwhile must find it in the queue
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unqueue(t)
	})
}

// unqueue takes a turn that will not run from the queue, unless it is the first one, which runTurns removes. The caller
// holds mu.
func (s *session) unqueue(t *turn) {
	if i := slices.Index(s.queue, t); i > 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		close(t.ran)
	}
}

// runPrompt keeps a prompt and has the agent handle it. An error says that it is not kept. If an agent that outlives the
// gateway is ready, the prompt is kept with the frame in which the agent gets it; otherwise before anything else.
func (s *session) runPrompt(t *turn, ctx context.Context) (end records.End, err error) {
	if t.adopted {
		t.has(s.own.Head().Seq)
		t.ctx = ctx
		return s.prompt(t, t.agent), nil
	}
	raw, err := records.RawPrompt(t.content)
	var data []byte
	if err == nil {
		data, err = json.Marshal(records.Prompt{ID: string(t.id), By: t.by, From: t.from, Rank: t.rank, Operation: t.operation, Raw: raw})
	}
	if err == nil && len(data) > maxRecord {
		err = tooLarge("prompt", len(data))
	}
	if err != nil {
		t.has(0)
		return records.End{}, err
	}
	p := &keptPrompt{s: s, t: t, record: engine.Record{Kind: kindPrompt, Data: data}}
	b := s.ready(t)
	if b == nil {
		if err := p.commit(); err != nil {
			return records.End{}, err
		}
		t.ctx = ctx
		return s.prompt(t, nil), nil
	}
	b.stream.begins(p)
	t.ctx = ctx
	end = s.prompt(t, b)
	if !b.stream.sends(p) {
		<-t.written // it may be under way still, on a disk that does not answer
		return end, p.err
	}
	if err := p.commit(); err != nil { // it was not sent, since the agent is gone or the turn is cancelled
		return records.End{}, err
	}
	if t.ctx.Err() == nil {
		end = s.prompt(t, nil)
	}
	return end, nil
}

// ready returns the agent if it outlives the gateway and the prompt can be sent to it at once, or nil.
func (s *session) ready(t *turn) *backend {
	s.mu.Lock()
	b := s.agent
	s.mu.Unlock()
	if b == nil || b.stream == nil || b.ends() || !s.allows(t, b) {
		return nil
	}
	if _, name := s.names(t.content); name != "" {
		return nil
	}
	return b
}

// has is called once it is known whether the log has the prompt, with a record that is not before it, or 0.
func (t *turn) has(seq uint64) {
	t.begun = seq
	close(t.written)
}

// A keptPrompt is a prompt on its way into the log. commit is called once.
type keptPrompt struct {
	s      *session
	t      *turn
	record engine.Record
	err    error // of commit
}

// commit keeps the prompt, with what follows it.
func (p *keptPrompt) commit(more ...engine.Record) error {
	p.s.bounds() // here, too: what comes before the prompt is in the log must not be continued after it
	seq, err := p.s.log.commitState(p.s.ctx, records.StateRunning, append([]engine.Record{p.record}, more...)...)
	if p.err = err; err != nil {
		p.t.has(0)
		return err
	}
	seq -= uint64(len(more))
	p.s.begunAt.Store(seq)
	p.s.bounds()
	if len(more) == 0 { // otherwise it needs none: see ready
		if err := p.s.name(p.s.ctx, p.t.content); err != nil && !p.s.given() {
			p.s.logger().Warn("gateway: a title cannot be kept", "error", err)
		}
	}
	p.t.has(seq)
	return nil
}

// prompt has the agent handle a prompt: the one that is given, or else one that is started if there is none.
func (s *session) prompt(t *turn, b *backend) records.End {
	var err error
	if b == nil {
		b, err = s.backend(t.ctx, 0)
	}
	if err != nil {
		if t.ctx.Err() != nil {
			return stopped(t.ctx)
		}
		return records.End{Error: "the agent cannot be started: " + reasonOf(err)}
	}
	if err := s.allowMode(t, b); err != nil {
		if t.ctx.Err() != nil {
			return stopped(t.ctx)
		}
		return records.End{Error: err.Error()}
	}
	ctx, cancel := t.ctx, context.CancelCauseFunc(nil)
	if t.agent != nil { // which has the prompt, so the request must exist before it can be cancelled
		ctx, cancel = context.WithCancelCause(context.WithoutCancel(t.ctx))
		defer cancel(nil)
	}
	reply := b.session.PromptRequest(ctx, &acpv2.PromptRequest{Prompt: b.handover(b.session.UseSkills(t.content)), Meta: b.rankMeta(t)})
	if t.agent != nil {
		defer context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })()
	}
	res, err := reply.Wait()
	if b.conn.Conn().Err() == nil {
		b.heard(s.ctx)
	}
	b.missing(s.ctx)
	if errors.Is(context.Cause(t.ctx), ErrClosed) { // which stops the agent: see closeWith
		_ = b.conn.Wait()
	}
	switch {
	case b.conn.Conn().Err() != nil && (err != nil || res == nil): // it has ended in the turn
		_ = b.conn.Wait() // what it has said before must not come behind the end
		end := records.End{Lost: true}
		if t.ctx.Err() != nil {
			end = stopped(t.ctx)
			end.Lost = true
		} else {
			end.Error = b.left(err)
		}
		return end
	case t.ctx.Err() != nil:
		return stopped(t.ctx)
	case err != nil:
		return records.End{Error: reasonOf(err)}
	}
	end := records.End{Stop: cmp.Or(res.StopReason, acp.StopEndTurn)}
	if len(res.Meta) <= maxEndMeta {
		end.Meta = res.Meta
	}
	return end
}
