package acp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A bridgedTurn is a prompt on its way from the client to the agent, and then its
// turn.
type bridgedTurn struct {
	t     *Turn
	reply *Reply
	begun chan struct{} // closed when the client knows of the turn

	once  sync.Once
	shown chan struct{} // closed when the agent has shown that it accepted the prompt
	id    MessageID     // of the prompt as the agent gave it then; set before
}

// bridgeRefusal is how long a version 1 agent has to refuse a prompt. It does not
// report that it has accepted one.
const bridgeRefusal = time.Second

// accept passes a prompt on and holds it until the agent has accepted or refused
// it. A version 2 agent reports which. A version 1 agent has accepted it once it
// reports some work, or once it has had bridgeRefusal to refuse it.
func (l *bridgeLink) accept(ctx context.Context, t *Turn) error {
	blocks, err := l.blocks(ctx, t)
	if err != nil {
		return err
	}
	b := l.session(t.session.ID())
	p := &bridgedTurn{t: t, begun: make(chan struct{}), shown: make(chan struct{})}
	l.mu.Lock()
	d := b.down
	if d != nil {
		p.reply = d.newReply(ctx)
		p.reply.buffer.leave(false) // update gets them
		b.turn = p
	}
	l.mu.Unlock()
	if d == nil {
		return SessionNotFound(t.session.ID())
	}
	p.reply.send(&acpv2.PromptRequest{Prompt: blocks, Meta: t.Meta()})
	var late <-chan time.Time
	if d.conn.Version() == 1 {
		timer := time.NewTimer(bridgeRefusal)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-p.reply.done:
	case <-p.reply.takenUp():
	case <-p.shown:
	case <-late:
	}
	select {
	case <-p.shown:
		if p.id != "" {
			t.message = p.id
		}
		return nil
	case <-p.reply.takenUp():
		if id := p.reply.MessageID(); id != "" {
			t.message = id // one message has one id
		}
		return nil
	default:
	}
	select {
	case <-p.reply.done:
		_, err := p.reply.Wait()
		return err
	default:
		return nil
	}
}

// prompt waits for the end of a turn. Its updates come through update, in order
// and before the reply ends.
func (l *bridgeLink) prompt(_ context.Context, t *Turn) (StopReason, error) {
	b := l.session(t.session.ID())
	l.mu.Lock()
	p := b.turn
	l.mu.Unlock()
	if p == nil || p.t != t {
		return "", SessionNotFound(t.session.ID()) // it was closed
	}
	close(p.begun)
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if b.turn == p {
			b.turn = nil
		}
	}()
	res, err := p.reply.Wait()
	if res != nil {
		t.SetAnswerMeta(res.Meta)
		if res.Usage != nil {
			t.SetUsage(*res.Usage)
		}
	}
	if errors.Is(err, jsonrpc.ErrClosed) {
		err = jsonrpc.Errorf(jsonrpc.CodeInternalError, "the agent behind the bridge has ended")
	}
	if err != nil {
		return "", err
	}
	return res.StopReason, nil
}
