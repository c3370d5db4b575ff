package acp

import (
	"context"
	"sync"

	"github.com/goacp/acp/jsonrpc"
)

// chainTransport is the transport of an agent behind a conductor in this process.
type chainTransport struct{ c *Conductor }

// Open opens the agent's transport, and with it the chain.
func (t *chainTransport) Open(ctx context.Context) (jsonrpc.Stream, error) {
	agent, err := openTransport(ctx, t.c.Agent.Transport)
	if err != nil {
		return nil, err
	}
	theirs, ours := framePipe()
	s := &chainStream{framePipeEnd: ours, done: make(chan struct{})}
	if p := processOf(agent); p != nil {
		processes.Store(s, p)
	}
	run := newChain(context.WithoutCancel(ctx), t.c, agent)
	go func() {
		defer close(s.done)
		s.err = run.serve(theirs)
	}()
	return s, nil
}

// chainStream is the client's end of a chain.
type chainStream struct {
	*framePipeEnd
	once sync.Once
	done chan struct{} // closed when the chain has ended and err is set
	err  error
}

// Close ends the chain and returns when it has ended.
func (s *chainStream) Close() error {
	err := s.framePipeEnd.Close()
	<-s.done
	s.once.Do(func() { processes.Delete(s) })
	return err
}

// ExitErr returns how the chain ended, or nil if it has not.
func (s *chainStream) ExitErr() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}
