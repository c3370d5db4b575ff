package conformance

import (
	"errors"
	"fmt"
	"time"

	"github.com/goacp/acp/internal/pattern"
)

// Usage is what the processes of a peer take.
type Usage struct {
	Memory    int64 // resident, in bytes
	Processes int   // the peer's own and all that are below it
}

// usage measures the peer.
func (p *player) usage() (Usage, error) {
	peer := p.link.peer
	measure := peer.Usage
	switch {
	case measure == nil && peer.PID == 0:
		return Usage{}, unseen("the peer's process is not known")
	case measure == nil:
		measure = func() (Usage, error) { return processUsage(peer.PID) }
	}
	u, err := measure()
	if err != nil {
		return Usage{}, unseen("the peer's process cannot be measured: %s", clip(err.Error(), 200))
	}
	return u, nil
}

// measure keeps what the peer takes now.
func (p *player) measure(s *step) error {
	u, err := p.usage()
	if err != nil {
		return err
	}
	v, err := pattern.Parse(fmt.Sprintf(`{"memory":%d,"processes":%d}`, u.Memory, u.Processes))
	if err != nil {
		return broken("line %d: %v", s.line, err)
	}
	p.known[s.name], p.taken = v, u
	return nil
}

// spare waits until the peer takes no more than it did when it was measured: as
// many processes, and s.n MiB more memory at most.
func (p *player) spare(s *step) error {
	timer := time.NewTimer(p.limit)
	defer timer.Stop()
	for {
		u, err := p.usage()
		if err != nil {
			return err
		}
		more := (u.Memory - p.taken.Memory) >> 20
		if u.Processes <= p.taken.Processes && more <= int64(s.n) {
			return nil
		}
		select {
		case <-timer.C:
			*p.expired = true
			if u.Processes > p.taken.Processes {
				return failed("the %s has %d processes, %d more than before", p.side, u.Processes, u.Processes-p.taken.Processes)
			}
			return failed("the %s takes %d MiB more than before, expected %d at most", p.side, more, s.n)
		default:
		}
		if err := p.listenFor(100 * time.Millisecond); err != nil && !errors.Is(err, errClosed) {
			return err
		} else if err != nil {
			return p.gap(err)
		}
	}
}
