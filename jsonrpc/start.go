package jsonrpc

import (
	"context"
	"sync"
)

// Pending is for protocol layers. It is a call that [Method.Start] has sent.
type Pending[R any] struct {
	conn   *Conn
	ctx    context.Context
	opt    callOptions
	call   *call
	result any
	err    error
	done   chan struct{} // closed when result and err are there; nil without middleware
}

// Start is for protocol layers. It is the first half of [Method.Call]: it sends the
// request and returns when that is in the output buffer, like [Conn.Notify].
// [Pending.Wait] waits for the response; any goroutine must call it, once. An error
// means that nothing was sent, and that there is nothing to wait for. Outgoing
// middleware, if there is any, runs in a goroutine of its own; then all errors are
// returned by Wait.
func (m Method[P, R]) Start(ctx context.Context, c *Conn, params *P, opts ...CallOption) (*Pending[R], error) {
	p := &Pending[R]{conn: c, ctx: ctx, result: new(R)}
	for _, opt := range opts { // as optionsOf, which would allocate them once more
		opt(&p.opt)
	}
	if c.outgoing == nil {
		var err error
		p.call, err = c.begin(ctx, m.Name, paramsOf(params), p.result, p.opt)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	sent := make(chan struct{})
	p.done = make(chan struct{})
	p.opt.onSent = sync.OnceFunc(func() { close(sent) }) // middleware may send again
	go func() {
		defer close(p.done)
		survive(func() {
			p.result, p.err = c.do(ctx, m.Name, paramsOf(params), p.result, p.opt)
		}, func() { p.err = errGoexit })
	}()
	select {
	case <-sent:
	case <-p.done:
	}
	return p, nil
}

// Wait is for protocol layers. It waits for the response under the ctx of Start:
// see [Conn.Call] for how that ends.
func (p *Pending[R]) Wait() (*R, error) {
	if p.done != nil {
		<-p.done
	} else {
		p.err = p.conn.await(p.ctx, p.call, p.opt)
	}
	if p.err != nil {
		return nil, p.err
	}
	r, ok := p.result.(*R)
	if !ok {
		return nil, typeError((*R)(nil), p.result)
	}
	return r, nil
}
