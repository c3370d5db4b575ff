package check

import (
	"context"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/jsonrpc"
)

// checkRemote checks an agent that runs already, over a connection of its own for each conversation.
// Rules about bytes between messages and about processes cannot be checked. reached is the reason why
// the agent cannot be reached, or nil.
func (o *Options) checkRemote(ctx context.Context, agent roster.Agent, opt conformance.Options) (r *conformance.Report, reached, err error) {
	way, err := launch.Transport(agent, launch.Options{})
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	note := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		reached = remote.Explain(agent.Name, err)
	}
	r, err = conformance.CheckAgent(ctx, func(ctx context.Context) (*conformance.Peer, error) {
		stream, err := way.Open(ctx)
		if err != nil {
			note(err)
			return nil, err
		}
		return &conformance.Peer{Stream: &noting{stream, note}}, nil
	}, opt)
	mu.Lock()
	defer mu.Unlock()
	if r != nil && r.Broken != "" && reached != nil { // it says more
		return nil, nil, reached
	}
	return r, nil, err
}

// A noting stream calls note with why the first message could not be sent, or with nil: HTTP connects
// no earlier.
type noting struct {
	jsonrpc.Stream
	note func(error)
}

// WriteFrame implements [jsonrpc.Stream].
func (n *noting) WriteFrame(data []byte) error {
	err := n.Stream.WriteFrame(data)
	if n.note != nil {
		n.note(err)
		n.note = nil
	}
	return err
}
