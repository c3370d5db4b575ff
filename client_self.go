package acp

import (
	"errors"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// errAwaitsItself is returned by waiting, in an Update hook, for the end of a
// turn that is reported only after that hook has returned.
var errAwaitsItself = errors.New("acp: an Update hook would wait for itself: the turn of a prompt of its own session ends behind it; wait in another goroutine")

// selfWait is how long an Update hook may still run when somebody waits for a
// prompt that was sent with its ctx. A goroutine that the hook has started may
// wait: the hook then returns soon.
const selfWait = 100 * time.Millisecond

// awaitsItself reports whether the reply's turn cannot end while the caller waits
// for it: the prompt was sent in a hook of its session that does not return. In
// version 1 the answer ends the reply and waits for no hook.
func (r *Reply) awaitsItself() bool {
	s := r.s
	if s.conn.Version() == 1 || !s.toldIn(r) {
		return false
	}
	at, busy := s.line.Position()
	if !busy {
		return false
	}
	timer := time.NewTimer(selfWait)
	defer timer.Stop()
	select {
	case <-r.done:
		return false
	case <-timer.C:
	}
	now, busy := s.line.Position()
	return busy && now == at
}

// toldIn reports whether a prompt was sent with the ctx of an Update hook of the
// session.
func (s *ClientSession) toldIn(r *Reply) bool {
	if h, of := hookFrom(r.ctx); h != nil {
		return of == s
	}
	in := jsonrpc.RequestFrom(r.ctx)
	return in != nil && in.IsNotification() && in.Conn() == s.conn.conn && in.Method == methodSessionUpdate && SessionID(in.Lane) == s.id
}
