package backend

import (
	"context"
	"errors"
	"sort"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ids"
	"github.com/goacp/acp/transcript"
)

// lends records how to kill the command of a lent terminal; nil means that it has exited.
func (s *Session) lends(id acp.TerminalID, kill func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kill == nil {
		delete(s.lent, id)
		return
	}
	if s.lent == nil {
		s.lent = map[acp.TerminalID]func(context.Context) error{}
	}
	s.lent[id] = kill
}

// Running returns the terminals whose commands run, in the order of the conversation: those that
// this program lends, and those of which the agent reports that they run in the background.
func (s *Session) Running() []*transcript.Terminal {
	snap := s.Snapshot()
	runs := map[acp.TerminalID]bool{}
	s.mu.Lock()
	for id := range s.lent {
		runs[id] = true
	}
	s.mu.Unlock()
	for _, w := range snap.Session().State.Background {
		if t, ok := w.(*acpv2.BackgroundTerminal); ok {
			runs[t.TerminalID] = true
		}
	}
	var all []*transcript.Terminal
	for id := range runs {
		if t := snap.Terminal(id); t != nil && !t.Exited() {
			all = append(all, t)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Seq() < all[j].Seq() })
	return all
}

// StopTerminal ends the command in a terminal. The error is [errors.ErrUnsupported] if the terminal
// is the agent's own, and the agent does not let others stop it.
func (s *Session) StopTerminal(ctx context.Context, id acp.TerminalID) error {
	s.order.Lock()
	own := acp.TerminalID(s.ids.back(ids.Terminal, string(id)))
	s.order.Unlock()
	s.mu.Lock()
	kill, client := s.lent[id], s.client
	s.mu.Unlock()
	var err error = errors.ErrUnsupported
	switch {
	case kill != nil:
		err = kill(ctx)
	case client != nil:
		err = client.CancelTerminal(ctx, own)
	}
	if err != nil {
		return s.host.coded("stop", err)
	}
	return nil
}
