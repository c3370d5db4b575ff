package acphttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// events is the stream of a session.
type events struct {
	ready  chan struct{} // closed when it is open, or has failed
	err    error         // why it has failed
	none   error         // the server has no such stream; for a session that is not open yet that is as it should be
	stop   context.CancelFunc
	left   bool // it is ended from here
	closed bool // the session is, or was, closed at the agent: nothing more will be answered

	last string        // the id of the last event, once over is closed
	over chan struct{} // closed when it is not read any more
}

// clientClosed bounds the streams that are read although their sessions are not used:
// they were closed, or could not be opened, or were only asked about. An agent may say
// something after the answer to session/close, and a session may be opened again.
const clientClosed = 16

// errNoStream is why nothing can be sent in a session whose stream cannot be had.
var errNoStream = errors.New("acphttp: the session has no stream")

// isFieldValue reports whether a session's id can be sent in a header.
func isFieldValue(id string) bool {
	for i := range len(id) {
		if c := id[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return strings.Trim(id, " \t") == id
}

// beginSession opens the stream of a session, unless it is open. opens says that the
// session is opened, too, and so not closed any more. The caller holds s.mu.
func (s *clientStream) beginSession(session string, opens bool) *events {
	if e := s.sessions[session]; e != nil {
		if i := slices.Index(s.closing, session); i >= 0 && opens {
			s.closing = slices.Delete(s.closing, i, i+1)
			e.closed = false
		}
		return e
	}
	e := &events{ready: make(chan struct{}), over: make(chan struct{})}
	switch {
	case s.closed || s.broken != nil:
		e.err = errNotSent
	case !isFieldValue(session):
		e.err = fmt.Errorf("%w: its id is no value of a header", errNoStream)
	default:
		ctx, cancel := context.WithCancel(s.ctx)
		e.stop = cancel
		s.sessions[session] = e
		s.live++
		before := s.left.take(session)
		s.work.Go(func() { s.readSession(ctx, session, e, before) })
		return e
	}
	close(e.ready)
	return e
}

// Forget implements [jsonrpc.Forgetter]: the stream of a session that is not used is
// ended, once some more have been forgotten. Calls still get their answers.
func (s *clientStream) Forget(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveSession(session)
}

// closeSession notes that a session was closed. The caller holds s.mu.
func (s *clientStream) closeSession(session string) {
	if e := s.sessions[session]; e != nil {
		e.closed = true
	}
	s.leaveSession(session)
}

// leaveSession notes that a session is not used any more, and ends the streams of those
// that have not been for long, apart from those on which a call may get its answer. The
// caller holds s.mu.
func (s *clientStream) leaveSession(session string) {
	if s.sessions[session] == nil || slices.Contains(s.closing, session) {
		return
	}
	s.closing = append(s.closing, session)
	for i := 0; len(s.closing) > clientClosed && i < len(s.closing)-1; {
		oldest := s.closing[i]
		e := s.sessions[oldest]
		if e != nil && !e.closed && s.calls(oldest) {
			i++
			continue
		}
		s.closing = slices.Delete(s.closing, i, i+1)
		if e != nil {
			e.left = true
			e.stop()
			delete(s.sessions, oldest)
			s.left.add(oldest, e)
			if e.closed {
				s.work.Go(func() { s.failSession(oldest, errClosedSession, "") }) // needs the lock
			}
		}
	}
}

// calls reports whether a call of a session waits for its answer, or to be posted. The
// caller holds s.mu.
func (s *clientStream) calls(session string) bool {
	if s.lanes[session] != nil {
		return true
	}
	for _, a := range s.sent {
		if a.session == session {
			return true
		}
	}
	return false
}

// maxLeft bounds the streams of which it is remembered how far they were read.
const maxLeft = 1024

// leftStreams are streams that were ended from here, by session. A stream that is
// opened again continues there: the server cannot know that what came before has been
// dealt with.
type leftStreams struct {
	by    map[string]*events
	order []string // by age
}

func (l *leftStreams) add(session string, e *events) {
	if l.by == nil {
		l.by = make(map[string]*events)
	}
	l.by[session] = e
	if l.order = append(l.order, session); len(l.order) > maxLeft {
		delete(l.by, l.order[0])
		l.order = slices.Delete(l.order, 0, 1)
	}
}

// take returns the stream that a session had, or nil, and forgets it.
func (l *leftStreams) take(session string) *events {
	e := l.by[session]
	if e != nil {
		delete(l.by, session)
		l.order = slices.DeleteFunc(l.order, func(s string) bool { return s == session })
	}
	return e
}

// errClosedSession is why a call has no answer whose session was closed long ago.
var errClosedSession = errors.New("acphttp: the session was closed")

// openSession waits until the stream of a session is open, for a message. What needs
// an open session fails without one: what comes of it could not be received.
func (s *clientStream) openSession(session string, o *outgoing) error {
	s.mu.Lock()
	e := s.beginSession(session, o.opens)
	s.mu.Unlock()
	select {
	case <-e.ready:
		if e.none != nil && o.inside {
			return fmt.Errorf("%w: %w", errNoStream, e.none)
		}
		return e.err
	case <-s.ctx.Done():
		return errNotSent
	}
}

// readConnection reads the stream of the connection, whose end is the connection's.
func (s *clientStream) readConnection() {
	s.streamEnded(s.readEvents(s.ctx, &eventReader{last: s.tag, opened: func() {}}))
}

// streamTime is how long the other streams are read once one has ended: an agent that
// ends has perhaps said something on each.
const streamTime = 2 * time.Second

// streamEnded ends the connection, because what a stream would have brought will not
// come. Nothing says that what is unanswered was not handled.
func (s *clientStream) streamEnded(err error) {
	orderly := errors.Is(err, io.EOF)
	if orderly {
		err = fmt.Errorf("the server has ended it: %w", err)
	}
	s.mu.Lock()
	s.live--
	last := s.live == 0 || !orderly
	if s.ended == nil {
		s.ended = err
	}
	err = s.ended
	s.mu.Unlock()
	if !last {
		timer := time.NewTimer(streamTime)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.ctx.Done():
		}
	}
	s.fail(&BrokenError{err})
}

// readSession reads the stream of a session. Its end is the connection's, since
// updates may be missing, unless it was refused before it brought anything.
// before is the stream that the session had, which may still be ending, or nil.
func (s *clientStream) readSession(ctx context.Context, session string, e, before *events) {
	defer e.stop()
	opened := false
	r := eventReader{session: session, last: s.tag, opened: func() {
		opened = true
		close(e.ready)
	}}
	if before != nil {
		<-before.over
		r.last, r.resumes = before.last, before.last != s.tag
	}
	err := s.readEvents(ctx, &r)
	e.last = r.last
	close(e.over)
	s.mu.Lock()
	left := e.left
	if s.sessions[session] == e {
		delete(s.sessions, session)
	}
	i := slices.Index(s.closing, session)
	closed := i >= 0 && !left
	if closed {
		s.closing = slices.Delete(s.closing, i, i+1)
	}
	s.mu.Unlock()
	said := (*StatusError)(nil)
	refused := errors.As(err, &said)
	if closed && opened && (refused || errors.Is(err, io.EOF)) && s.ctx.Err() == nil {
		// The server has done with the session, or has forgotten it.
		s.failSession(session, errClosedSession, "")
		left = true
	}
	switch {
	case left:
	case opened:
		s.streamEnded(err)
		return
	case refused && said.Status == http.StatusNotFound:
		// Some servers know a session only once it is loaded, and send its
		// history on the stream of the connection. If it is the connection
		// that is unknown, the message that follows will show it.
		e.none, err = err, nil
	case refused && said.Status == http.StatusConflict: // for the message that wanted it
	case refused && isBusy(said.Status): // likewise: what the agent says waits at the server
		err = fmt.Errorf("%w: %w", errNoStream, err)
	default:
		s.streamEnded(err)
		e.err = err
		close(e.ready)
		return
	}
	s.mu.Lock()
	s.live--
	s.mu.Unlock()
	if !opened {
		e.err = err
		close(e.ready)
	}
}

// readEvents reads a stream to its end, over as many requests as it takes. It returns
// io.EOF if the server has ended it.
func (s *clientStream) readEvents(ctx context.Context, r *eventReader) error {
	var again pause
	silent := 0 // attempts that brought nothing at all
	failed := 0 // attempts without an answer
	for {
		before := r.count
		answered := false
		err := s.readOnce(ctx, r, func() { answered = true; s.outage.set(nil) })
		var down error
		if answered && !errors.Is(err, errSilent) {
			failed = 0
		} else {
			down = outageOf(err, failed)
			failed++
		}
		switch {
		case r.count > before:
			again, silent = pause{}, 0
		case errors.Is(err, errSilent):
			if silent++; silent < maxSilent {
				again = pause{} // it has taken long enough
			}
		}
		said := (*StatusError)(nil)
		refused := errors.As(err, &said)
		if refused && down == nil {
			s.outage.set(nil) // the network has brought that
		}
		busy := refused && isBusy(said.Status)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case refused && said.Status == http.StatusNoContent: // nothing more will come
			return io.EOF
		case refused && said.Status == http.StatusConflict && r.resumes:
			// The server has forgotten what the session's stream was.
			r.last, r.resumes = s.tag, false
			continue
		case errors.Is(err, errTooLarge), refused && !busy:
			return err
		case r.last == "" && !(r.opened != nil && (busy || nothingSent(err))): // something may be lost
			return err
		}
		var atLeast time.Duration
		if busy {
			atLeast = said.RetryAfter
		}
		if !again.wait(ctx, s.retryFor, atLeast, &s.outage, down) {
			return err
		}
	}
}

// isBusy reports whether a status means that the same request may succeed later.
func isBusy(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// eventReader is how far a stream has been read.
type eventReader struct {
	session string
	opened  func() // called once, and nil after that
	last    string // the id of the last event; at first, a cursor before everything: nobody but us has read that
	resumes bool   // last is that of an earlier stream of the session
	count   int    // of events
}

// readOnce makes one request for a stream. It calls answered once the server sends the stream.
func (s *clientStream) readOnce(parent context.Context, r *eventReader, answered func()) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	req, err := s.request(ctx, http.MethodGet, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", typeEvents)
	req.Header.Set("Cache-Control", "no-store")
	if r.session != "" {
		req.Header.Set(HeaderSessionID, r.session)
	}
	if r.last != "" {
		req.Header.Set(headerCursor, r.last)
	}
	// A server that numbers messages is one of ours, which answers at once and keeps
	// its streams alive.
	body := &watched{alive: s.numbered, timer: time.AfterFunc(silence, func() { cancel(errSilent) })}
	defer body.timer.Stop()
	if !body.alive {
		body.timer.Stop()
	}
	resp, err := s.client.Do(req)
	switch {
	case err != nil && context.Cause(ctx) == errSilent:
		return errSilent
	case err != nil:
		return plainURLError(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return s.refusal(resp)
	}
	if !isType(resp.Header.Get("Content-Type"), typeEvents) {
		return fmt.Errorf("acphttp: the stream is of type %q", resp.Header.Get("Content-Type"))
	}
	answered()
	if cursor := resp.Header.Get(headerCursor); cursor != "" {
		r.last = cursor // for the case that not even the first event arrives
	}
	if r.opened != nil {
		r.opened()
		r.opened, r.resumes = nil, false
	}
	body.r = resp.Body
	err = readStream(body, s.maxMessage, func(id string, data []byte) error {
		if data != nil {
			r.count++
			if err := s.received(data, r.session); err != nil {
				return err
			}
		}
		if id != "" {
			r.last = id
		}
		return nil
	})
	if context.Cause(ctx) == errSilent {
		return errSilent
	}
	return err
}

// silence is how long a stream may send nothing whose server is known to keep it
// alive: five of the intervals that servers use.
const silence = 75 * time.Second

// maxSilent is how often in succession a stream may be silent for so long.
const maxSilent = 4

var errSilent = errors.New("the server has been silent for too long")

// watched is the body of a stream. Once it is known that something is sent only to keep
// it alive, its timer runs while nothing is.
type watched struct {
	r     io.Reader
	timer *time.Timer
	alive bool
}

func (w *watched) Read(p []byte) (int, error) {
	if w.alive {
		w.timer.Reset(silence)
	}
	n, err := w.r.Read(p)
	if n > 0 && n < 8 && p[0] == ':' {
		w.alive = true
	}
	w.timer.Stop()
	return n, err
}

// plainURLError takes method and URL from an error, which everybody has seen.
func plainURLError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
