package acp

import (
	"context"
	"errors"
	"sync"

	"github.com/goacp/acp/jsonrpc"
)

// An InProcessTransport is the transport of a client to an agent in the same
// program; see [InProcess]. Its methods may be called from any goroutine.
type InProcessTransport struct {
	agent *Agent

	serving sync.WaitGroup
	mu      sync.Mutex
	failed  error // of the first connection that failed
}

// InProcess returns the transport of a client to an agent in the same program.
// The agent serves each connection as [Agent.Connect] does, until the client
// closes its own. Hooks of the agent see the values of the context that
// [Client.Connect] is called with; its end does not reach them.
//
//	conn, err := client.Connect(ctx, acp.InProcess(agent))
func InProcess(agent *Agent) *InProcessTransport { return &InProcessTransport{agent: agent} }

// Open has the agent serve another connection. It fails if the agent's
// configuration is wrong.
func (t *InProcessTransport) Open(ctx context.Context) (jsonrpc.Stream, error) {
	theirs, ours := jsonrpc.Pipe()
	conn, err := t.agent.Connect(context.WithoutCancel(ctx), Over(theirs))
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	t.serving.Go(func() {
		err := conn.Wait()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.failed == nil {
			t.failed = err
		}
	})
	return ours, nil
}

// Wait waits until the agent has served every connection to its end, hooks that
// are still running included, and returns the error of the first that failed.
// Close the clients first. No connection may be opened while Wait runs.
func (t *InProcessTransport) Wait() error {
	t.serving.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}
