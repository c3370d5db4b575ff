package gateway

import (
	"fmt"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// Bounds of a session, beyond those of package engine. What is refused says why.
const (
	// maxOwnTurns bounds the prompts of one client that wait in a session; see maxTurns for those of all.
	maxOwnTurns = 16
	// maxWatchers bounds the clients of a session that are connected to one node.
	maxWatchers = 1000
	// maxQuestions bounds the questions of the agent that are open.
	maxQuestions = 64
)

// errWatchers is why a client cannot join a session.
func errWatchers(n int) error {
	return &jsonrpc.Failure{Message: fmt.Sprintf("%d clients have the session open, which is the most", n), Reason: "clients", RetryAfter: time.Minute}
}

// deals notes that a question is dealt with, until over is called. It fails if the agent may not ask anything more, unless the
// question is known.
func (s *session) deals(id string, known bool) (over func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.dealing); n >= maxQuestions && !known {
		return nil, &jsonrpc.Failure{Message: fmt.Sprintf("%d questions are open, which is the most", n), Reason: "questions"}
	}
	s.dealing[id] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.dealing, id)
		s.touch()
	}, nil
}

// late notes an answer that came when there was a decision.
func (s *session) late(a *ask, d decision) {
	if d.dismissed() {
		return
	}
	s.logger().Info("gateway: an answer came too late", "by", d.by)
	_ = s.log.put(s.ctx, kindLate, encode(records.Decided{ID: a.id, By: d.by, From: d.From, Outcome: d.outcome()}), nil) // the code that closed the log has reported it
}

// cut ends the connection of a client that does not read what it is sent, which would miss a record otherwise. It
// resumes from the position it has.
func (w *watcher) cut() {
	w.cancel()
	conn := w.session.Conn().Conn()
	w.g.work.Go(func() { _ = conn.Close() })
}
