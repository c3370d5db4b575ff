package acphttp

import (
	"strconv"
	"time"

	"github.com/goacp/acp/internal/wire"
)

// The TypeScript SDK's server sends the answer to session/load on the stream of the
// connection, and the history before it on that of the session. Which of them arrives
// first is chance, so a client that gets the answer first asks something more in the
// session, something that no agent knows. Its answer comes on the stream of the session,
// after the history; that to session/load waits for it.

// methodFence is what no agent knows.
const methodFence = "_github.com/goacp/acp/fence"

// fenceTime is how long an answer waits for an agent that does not say that it does not
// know a method.
const fenceTime = 5 * time.Second

// fences are answers to session/load that wait, by the id of what was asked. The zero
// value has none.
type fences struct {
	last int
	held map[string]fence
}

type fence struct {
	answer []byte
	timer  *time.Timer
}

// fence holds an answer back until the history has arrived. It reports false if there
// is nothing to wait for. The caller holds s.mu.
func (s *clientStream) fence(session string, answer []byte) bool {
	e := s.sessions[session]
	if e == nil || s.numbered || s.endErr() != nil { // our own server orders them
		return false
	}
	select {
	case <-e.ready:
	default:
		return false
	}
	f := &s.fences
	f.last++
	id := strconv.Quote("fence-" + strconv.Itoa(f.last))
	if f.held == nil {
		f.held = make(map[string]fence)
	}
	f.held[id] = fence{answer, time.AfterFunc(fenceTime, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fenced(id)
	})}
	text := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	text = append(text, `,"method":"`+methodFence+`","params":{"sessionId":`...)
	text = append(wire.AppendString(text, session), `}}`...)
	s.post(outgoing{text: text, session: session, id: id})
	return true
}

// fenced lets an answer go that waited for the answer to id. It reports whether there
// was one. The caller holds s.mu.
func (s *clientStream) fenced(id string) bool {
	held, ok := s.fences.held[id]
	if !ok {
		return false
	}
	delete(s.fences.held, id)
	held.timer.Stop()
	s.in.push(held.answer)
	return true
}

// releaseFences lets all answers go that wait. The caller holds s.mu.
func (s *clientStream) releaseFences() {
	for id := range s.fences.held {
		s.fenced(id)
	}
}
