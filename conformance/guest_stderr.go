package conformance

import "errors"

// noise writes to the standard error of the agent that we are. A client that does not
// read it lets its agent wait.
func (p *player) noise(data []byte) error {
	done := make(chan error, 1)
	go func() {
		_, err := p.link.peer.Stderr.Write(data)
		done <- err
		signal(p.link.ready)
	}()
	written := false
	var werr error
	err := p.until(p.limit, func() bool {
		if !written {
			select {
			case werr = <-done:
				written = true
			default:
			}
		}
		return written
	})
	if !written { // it ends with the connection
		p.link.close()
		await(done)
	}
	switch {
	case errors.Is(err, errTimeout):
		return failed("the client did not read what its agent wrote to standard error within %v", p.limit)
	case err == nil && werr != nil:
		return broken("the agent's standard error: %s", clip(werr.Error(), 200))
	}
	return p.gap(err)
}
