package gateway

import (
	"context"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// A nowhere is the place of a session whose owner is gone and which no other node may take yet: its history can be
// read, and that is what clients are sent that come meanwhile. It is gone from the beginning, so their watchers look for
// the next place, and what they ask for waits for that.
type nowhere struct {
	g    *Gateway
	id   string
	gate chan struct{} // closed
}

var _ place = (*nowhere)(nil)

// comeTime is how long a client that comes waits for its session's place, before it gets the history without one.
const comeTime = time.Second

// come is reach for a client that comes to see a session, which need not wait until a dead node's lease has lapsed.
func (g *Gateway) come(ctx context.Context, id string) (place, error) {
	if g.cfg.Nodes == nil {
		return g.reach(ctx, id)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type found struct {
		p   place
		err error
	}
	reached := make(chan found, 1)
	g.work.Go(func() {
		p, err := g.reach(ctx, id)
		reached <- found{p, err}
	})
	late := time.NewTimer(comeTime)
	defer late.Stop()
	select {
	case f := <-reached:
		return f.p, f.err
	case <-late.C:
	}
	if node, err := g.cfg.Log.Owner(ctx, id); err == nil && node != "" && node != g.self().Name {
		gate := make(chan struct{})
		close(gate)
		return &nowhere{g, id, gate}, nil
	}
	f := <-reached // it is on its way here
	return f.p, f.err
}

// greeting returns what the log knows for a client that comes.
func (g *Gateway) greeting(ctx context.Context, id string) (greeting, error) {
	info, err := g.cfg.Log.Session(ctx, id)
	if err != nil {
		return greeting{}, err
	}
	var known attributes
	if err := known.decode(info.Attributes); err != nil {
		return greeting{}, err
	}
	return greeting{Options: known.options, Commands: known.commands, Suggested: known.suggested, Title: known.titleGiven(info.Title), Running: info.State == records.StateRunning}, nil
}

func (n *nowhere) gone() <-chan struct{} { return n.gate }
func (*nowhere) enter(*watcher) error    { return nil }
func (*nowhere) leave(*watcher)          {}

func (n *nowhere) greeting(ctx context.Context) (greeting, error) { return n.g.greeting(ctx, n.id) }

func (n *nowhere) last(ctx context.Context) (uint64, error) {
	head, err := n.g.cfg.Log.Head(ctx, n.id)
	return head.Seq, err
}

func (*nowhere) steer(context.Context, *steering) (acp.SteerOutcome, uint64, error) {
	return "", 0, errGone
}
func (*nowhere) submit(context.Context, *turn) (*turn, error) { return nil, errGone }
func (*nowhere) before(*turn) int                             { return 0 }
func (*nowhere) cancelRunning(string, string, acp.MessageID)  {}
func (*nowhere) change(context.Context, change) error         { return errGone }
func (*nowhere) question(string) *ask                         { return nil }
func (*nowhere) questions(uint64) []*ask                      { return nil }
func (*nowhere) asking(*ask)                                  {}
func (*nowhere) answered(*ask, decision)                      {}
func (*nowhere) unanswered(*ask)                              {}

func (*nowhere) setOption(context.Context, acp.SessionConfigID, acp.SessionConfigOptionValue) error {
	return errGone
}

func (*nowhere) files(context.Context, string, int) ([]string, error) { return nil, errGone }
