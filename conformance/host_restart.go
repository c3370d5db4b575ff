package conformance

import (
	"errors"
)

// restart ends the agent and connects to another one, initialized, that is the
// same program. An agent whose input can be closed gets a moment to end by itself.
func (h *host) restart(p *player, s *step) error {
	if p.reconnect == nil {
		return broken("line %d: the agent cannot be started again here", s.line)
	}
	old := p.link
	if old.peer.CloseWrite != nil && old.peer.CloseWrite() == nil {
		err := p.until(min(p.limit, closeGrace), func() bool { return false })
		if err != nil && !errors.Is(err, errClosed) && !errors.Is(err, errTimeout) {
			return err
		}
	}
	old.close()
	l, err := p.reconnect()
	if err != nil {
		return err
	}
	l.nextID += old.nextID // ids are of one scenario
	p.link, p.gone = l, nil
	h.session, h.turns = nil, nil
	return nil
}
