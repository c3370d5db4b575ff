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
	ready chan struct{} // closed when it is open, or has failed
	err   error         // why it has failed
	stop  context.CancelFunc
	left  bool // it is ended from here
}

// clientClosed bounds the streams that are read although their sessions were closed.
// An agent may say something after the answer to session/close, and a session may be
// opened again.
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
		}
		return e
	}
	e := &events{ready: make(chan struct{})}
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
		s.work.Go(func() { s.readSession(ctx, session, e) })
		return e
	}
	close(e.ready)
	return e
}

// closeSession notes that a session was closed, and ends the stream of one that was
// closed long before. The caller holds s.mu.
func (s *clientStream) closeSession(session string) {
	if s.sessions[session] == nil || slices.Contains(s.closing, session) {
		return
	}
	s.closing = append(s.closing, session)
	if len(s.closing) <= clientClosed {
		return
	}
	oldest := s.closing[0]
	s.closing = slices.Delete(s.closing, 0, 1)
	if e := s.sessions[oldest]; e != nil {
		e.left = true
		e.stop()
		delete(s.sessions, oldest)
		s.work.Go(func() { s.failSession(oldest, errClosedSession, "") }) // needs the lock
	}
}

// errClosedSession is why a call has no answer whose session was closed long ago.
var errClosedSession = errors.New("acphttp: the session was closed")

// openSession waits until the stream of a session is open.
func (s *clientStream) openSession(session string, opens bool) error {
	s.mu.Lock()
	e := s.beginSession(session, opens)
	s.mu.Unlock()
	select {
	case <-e.ready:
		return e.err
	case <-s.ctx.Done():
		return errNotSent
	}
}

// readConnection reads the stream of the connection, whose end is the connection's.
func (s *clientStream) readConnection() {
	s.streamEnded(s.readEvents(s.ctx, "", func() {}))
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
func (s *clientStream) readSession(ctx context.Context, session string, e *events) {
	defer e.stop()
	opened := false
	err := s.readEvents(ctx, session, func() {
		opened = true
		close(e.ready)
	})
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
		err = nil
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
// io.EOF if the server has ended it. opened is called once.
func (s *clientStream) readEvents(ctx context.Context, session string, opened func()) error {
	var again pause
	silent := 0 // attempts that brought nothing at all
	failed := 0 // attempts without an answer
	r := eventReader{session: session, opened: opened}
	r.last = s.tag // everything: nobody but us has read it
	for {
		before := r.count
		answered := false
		err := s.readOnce(ctx, &r, func() { answered = true; s.outage.set(nil) })
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
	opened  func() // nil once it has been called
	last    string // the id of the last event
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
		r.opened = nil
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
