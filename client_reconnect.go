package acp

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/goacp/acp/jsonrpc"
)

// ErrOutcomeUnknown is wrapped by the error of a call, and of a prompt, that the agent
// may have carried out although no answer came, because the connection ended: see
// [ClientConn.Reconnect]. Repeating it may have it carried out twice.
var ErrOutcomeUnknown = jsonrpc.ErrOutcomeUnknown

// cutOffError is the error of a prompt whose turn had not ended when the connection
// did.
type cutOffError struct{ error }

// Unwrap returns why the connection ended, and ErrOutcomeUnknown.
func (e *cutOffError) Unwrap() []error { return []error{e.error, ErrOutcomeUnknown} }

// A Restoration is a session of a connection that has ended, on the connection that
// took its place.
type Restoration struct {
	Old     *ClientSession
	Session *ClientSession // nil if Err is not
	How     Restored       // RestoredResumed or RestoredLoaded
	Err     error          // why the session could not be restored
	// Interrupted are the prompts that were in flight when the connection ended,
	// by age. What [Reply.Wait] returns wraps [ErrOutcomeUnknown] if their turns
	// may have run, or be running still.
	Interrupted []*Reply
}

// Reconnect opens the transport of a connection again, after it has ended, and
// restores the sessions that were open, apart from those of subagents: resumed if the
// agent can do that, or loaded otherwise, with the history as replayed updates. With
// replay, loading comes first. Sessions, replies and hooks of the new connection are
// new ones; the old ones keep what they had. No prompt is repeated: that is for the
// caller to decide, who finds them in the restorations.
//
// What a broken connection means for what was under way:
//
//	what                         then
//	a call without its answer    fails, wrapping ErrOutcomeUnknown, unless it certainly
//	                             did not arrive
//	a prompt                     likewise; the agent ends its turn, or keeps it running
//	                             if it can
//	a request of the agent       its hook's ctx is done; the agent asks again or gives up
//	an update                    was delivered, or comes with the history
//	a session                    is what the agent makes of it: see Restoration.Err
//
// A connection that has not ended is closed first. Reconnect fails with [ErrReopen] if
// the transport cannot be opened again, as the error of the new connection if that
// cannot be made, and otherwise returns it even if no session could be restored. The
// new connection speaks the version of the old one, or there is none. ctx bounds what is done on the new
// connection. Reconnect must not be called inside a hook of the old one.
func (c *ClientConn) Reconnect(ctx context.Context, replay bool) (*ClientConn, []Restoration, error) {
	if c.transport == nil || !clientReopens(c.transport) {
		return nil, nil, fmt.Errorf("acp: reconnect: %w", ErrReopen)
	}
	_ = c.Close()
	<-c.ranOut
	c.awaitIdle()
	client := *c.client
	client.MinVersion, client.MaxVersion, client.FirstVersion = c.Version(), c.Version(), c.Version()
	conn, err := client.Connect(ctx, c.transport)
	if err != nil {
		return nil, nil, err
	}
	left := slices.Clone(c.left)
	sort.Slice(left, func(i, j int) bool { return left[i].Old.id < left[j].Old.id })
	for i := range left {
		r := &left[i]
		r.Interrupted = r.Old.interrupted()
		r.Session, r.How, r.Err = conn.restore(ctx, r.Old, replay)
	}
	return conn, left, nil
}

// restore opens a session of another connection.
func (c *ClientConn) restore(ctx context.Context, old *ClientSession, replay bool) (*ClientSession, Restored, error) {
	old.mu.Lock()
	cfg := old.cfg
	old.mu.Unlock()
	ways := []struct {
		how clientOpening
		as  Restored
	}{{clientOpenResume, RestoredResumed}, {clientOpenLoad, RestoredLoaded}}
	if replay {
		slices.Reverse(ways)
	}
	for _, way := range ways {
		if c.proto().canOpen(way.how) != nil {
			continue
		}
		s, err := c.openAgain(ctx, way.how, old.id, &cfg)
		if err != nil {
			return nil, 0, err
		}
		return s, way.as, nil
	}
	return nil, 0, unsupported("resuming and loading sessions")
}

// leave records the sessions that are open as the connection ends. They cannot change
// any more.
func (c *ClientConn) leave(open []*ClientSession) {
	for _, s := range open {
		if s.parent != nil {
			continue
		}
		s.mu.Lock()
		usable := s.opened && s.closed == nil
		s.mu.Unlock()
		if usable {
			c.left = append(c.left, Restoration{Old: s})
		}
	}
	close(c.ranOut)
}

// interrupt records a prompt that was in flight when the connection broke.
func (s *ClientSession) interrupt(r *Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = append(s.cut, r)
}

// interrupted returns the prompts that were in flight when the connection broke, by
// age.
func (s *ClientSession) interrupted() []*Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	cut := slices.Clone(s.cut)
	sort.Slice(cut, func(i, j int) bool { return cut[i].stop.number < cut[j].stop.number })
	return cut
}
