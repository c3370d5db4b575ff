package acphttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

const (
	// clientUnread is how much of what was received waits for the connection
	// before the streams wait. It is large enough for the largest message.
	clientUnread = 4 << 20
	// clientUnsent is how much of a session waits to be posted before what it sends
	// waits, and clientUnsentAll the same for all sessions together.
	clientUnsent    = 1 << 20
	clientUnsentAll = 64 << 20
	// errorText is how much of the body of an error is kept.
	errorText = 8 << 10
	// leaveTime is how long closing waits for what is being posted, and again for
	// the server to answer.
	leaveTime = 2 * time.Second
)

// clientStream is the stream of a client.
type clientStream struct {
	t          *Transport
	client     *http.Client
	own        bool // the client's connections are closed with the stream
	retryFor   time.Duration
	maxMessage int
	ctx        context.Context
	cancel     context.CancelCauseFunc
	outage     outage
	in         inbox
	out        peeker // of the goroutine that writes
	work       sync.WaitGroup

	mu       sync.Mutex
	id       string // of the connection; "" before initialize is answered
	numbered bool   // the server recognizes messages that are posted again
	number   uint64 // of the last message
	lanes    map[string]*postLane
	unsent   int
	room     chan struct{} // closed when something was posted; nil unless somebody waits
	sessions map[string]*events
	closing  []string // sessions that are not used and whose streams are still read, by age
	left     leftStreams
	tag      string            // begins the cursors of the connection's streams, if they can be resumed
	live     int               // streams that are read
	ended    error             // why the first of them has ended
	sent     map[string]asked  // our requests without an answer, by id
	asked    map[string]string // the session of each of the agent's, by id
	fences   fences
	broken   error
	closed   bool
}

// postLane is what is to be posted in order.
type postLane struct {
	queue  []outgoing
	unsent int // bytes in queue, and of what is being posted
}

// outgoing is a message to be posted.
type outgoing struct {
	text    []byte
	session string
	id      string // of a request
	opens   bool   // it opens the session
	inside  bool   // it needs an open session
	number  uint64
}

// ReadFrame implements [jsonrpc.Stream].
func (s *clientStream) ReadFrame() (jsonrpc.Frame, error) { return s.in.get() }

// Buffered implements [jsonrpc.EagerStream].
func (s *clientStream) Buffered() bool { return s.in.buffered() }

// BeforeRead implements [jsonrpc.EagerStream].
func (s *clientStream) BeforeRead(f func() error) { s.in.before = f }

// WriteFrame implements [jsonrpc.Stream]. The first message is posted before it
// returns, others are put into the queue of their session.
func (s *clientStream) WriteFrame(data []byte) error {
	h, _ := s.out.peek(data)
	s.mu.Lock()
	if err := s.endErr(); err != nil {
		s.mu.Unlock()
		return err
	}
	if s.id == "" {
		s.mu.Unlock()
		if h.method != methodInitialize {
			return fmt.Errorf("acphttp: %s before the connection is initialized", h.method)
		}
		return s.initialize(data, &h)
	}
	defer s.mu.Unlock()
	o := outgoing{text: append([]byte(nil), data...), session: h.session}
	switch {
	case h.isRequest():
		o.id, o.opens, o.inside = h.id, opensSession(h.method), insideSession(h.method)
		if len(s.sent) < maxRoutes {
			s.sent[h.id] = asked{h.method, h.session}
		}
	case h.isResponse():
		o.session = s.asked[h.id]
		delete(s.asked, h.id)
	case h.method == methodCancelRequest:
		o.session = s.sent[h.cancels].session
	}
	for s.unsent > 0 && s.unsent+len(o.text) > clientUnsentAll {
		_ = s.awaitRoom(s.ctx)
		if err := s.endErr(); err != nil {
			return err
		}
	}
	s.post(o)
	return nil
}

// Pace implements [jsonrpc.Pacer]: what a session sends waits for its own messages.
func (s *clientStream) Pace(ctx context.Context, session string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		lane := s.lanes[session]
		if lane == nil || lane.unsent < clientUnsent || s.endErr() != nil {
			return nil
		}
		if err := s.awaitRoom(ctx); err != nil {
			return err
		}
	}
}

// awaitRoom waits until something was posted, or nothing will be. The caller holds
// s.mu, which is released meanwhile.
func (s *clientStream) awaitRoom(ctx context.Context) error {
	if s.room == nil {
		s.room = make(chan struct{})
	}
	room := s.room
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-room:
	case <-s.ctx.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// post numbers a message and puts it into its queue. The caller holds s.mu.
func (s *clientStream) post(o outgoing) {
	s.number++
	o.number = s.number
	s.unsent += len(o.text)
	lane := s.lanes[o.session]
	if lane == nil {
		lane = new(postLane)
		s.lanes[o.session] = lane
		defer s.work.Go(func() { s.runLane(o.session, lane) })
	}
	lane.unsent += len(o.text)
	lane.queue = append(lane.queue, o)
}

// endErr returns why nothing can be written any more. The caller holds s.mu.
func (s *clientStream) endErr() error {
	if s.closed {
		return os.ErrClosed
	}
	return s.broken
}

// runLane posts the messages of a session, one after the other.
func (s *clientStream) runLane(session string, lane *postLane) {
	for {
		s.mu.Lock()
		if len(lane.queue) == 0 || s.broken != nil {
			delete(s.lanes, session)
			s.roused()
			s.mu.Unlock()
			return
		}
		o := lane.queue[0]
		lane.queue[0] = outgoing{}
		lane.queue = lane.queue[1:]
		s.mu.Unlock()
		s.deliver(o)
		s.mu.Lock()
		s.unsent -= len(o.text)
		lane.unsent -= len(o.text)
		s.roused()
		s.mu.Unlock()
	}
}

// roused lets those continue who wait for what is posted. The caller holds s.mu.
func (s *clientStream) roused() {
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}

// deliver posts a message, and deals with what goes wrong.
func (s *clientStream) deliver(o outgoing) {
	err := s.tryDeliver(o)
	if err == nil || s.ctx.Err() != nil {
		return
	}
	said := (*StatusError)(nil)
	switch {
	case errors.As(err, &said) && said.Status == http.StatusConflict && o.session != "":
		// The session's stream or the session itself is the trouble, so what
		// belongs to it fails and nothing else.
		s.failSession(o.session, err, o.id)
	case errors.Is(err, errNoStream):
		if o.id == "" {
			s.log().Warn("acphttp: a message cannot be sent", "error", err)
		}
		s.failSession(o.session, err, o.id) // what waits would wait for the same
	case errors.As(err, &said) && endsConnection(said.Status):
		// The agent may have ended, and have said something before.
		s.work.Go(func() { s.failLater(&BrokenError{err}) })
		return
	case o.id == "" && said != nil && faultOfMessage(said.Status):
		// There is nobody to tell but the log.
		s.log().Warn("acphttp: the server refused a message", "error", err)
	case o.id == "":
		s.fail(&BrokenError{err})
		return
	}
	if o.id != "" {
		s.failCall(o.id, err)
	}
}

// endsConnection reports whether a status means that the connection cannot be used.
func endsConnection(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return true
	}
	return false
}

// initialize posts the first message and reads its answer.
func (s *clientStream) initialize(data []byte, h *head) error {
	text, resp, err := s.postInitialize(data)
	if err != nil {
		if s.ctx.Err() != nil {
			return os.ErrClosed
		}
		if said := (*StatusError)(nil); !errors.As(err, &said) {
			err = fmt.Errorf("acphttp: %w", err)
		}
		s.in.close(err, false)
		return err
	}
	answer, ok := peek(text)
	if !ok || !answer.isResponse() || answer.id != h.id {
		err := errors.New("acphttp: the answer to initialize is not a response to it")
		s.in.close(err, false)
		return err
	}
	id := resp.Header.Get(HeaderConnectionID)
	if id == "" && !answer.failed {
		err := fmt.Errorf("acphttp: the answer to initialize has no %s", HeaderConnectionID)
		s.in.close(err, false)
		return err
	}
	if err := s.in.put(s.ctx, text, true); err != nil || answer.failed { // that has no connection
		return err
	}
	s.mu.Lock()
	s.id, s.numbered = id, resp.Header.Get(HeaderMessage) != ""
	if tag, first, ok := strings.Cut(resp.Header.Get(headerCursor), "-"); ok && first == "0" {
		s.tag = tag
	}
	closed := s.closed
	if !closed {
		s.live++
		s.work.Go(s.readConnection)
	}
	s.mu.Unlock()
	if closed { // meanwhile
		s.leave()
		return os.ErrClosed
	}
	return nil
}

func (s *clientStream) postInitialize(data []byte) ([]byte, *http.Response, error) {
	req, err := s.request(s.ctx, http.MethodPost, data)
	if err != nil {
		return nil, nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, nil, plainURLError(err)
	}
	defer drain(resp)
	if resp.StatusCode != http.StatusOK && !(resp.StatusCode == http.StatusInternalServerError && isType(resp.Header.Get("Content-Type"), typeJSON)) {
		return nil, nil, statusOf(resp)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, int64(s.maxMessage)+1))
	switch {
	case err != nil:
		return nil, nil, err
	case len(text) > s.maxMessage:
		return nil, nil, errors.New("the answer to initialize is too large")
	}
	return text, resp, nil
}

// received takes a message of the agent. It waits while too much is unread.
func (s *clientStream) received(text []byte, session string) error {
	if bytes.Contains(text, idMember) && s.note(text, session) { // otherwise it is a notification
		return nil
	}
	return s.in.put(s.ctx, text, true)
}

// note remembers what a message with an id says about those to come. It reports
// whether the message is dealt with.
func (s *clientStream) note(text []byte, session string) (done bool) {
	h, ok := peek(text)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case h.isRequest():
		if session == "" {
			session = h.session
		}
		if session != "" && len(s.asked) < maxRoutes {
			s.asked[h.id] = session
		}
	case h.isResponse():
		if s.fenced(h.id) {
			return true
		}
		a, ours := s.sent[h.id]
		delete(s.sent, h.id)
		switch {
		case !ours:
		case h.opened != "":
			s.beginSession(h.opened, true)
		case h.failed:
		case a.method == methodDelete, a.method == methodClose:
			s.closeSession(a.session)
		case a.method == methodLoad && session == "":
			return s.fence(a.session, text)
		}
	}
	return false
}

// failCall fails one call. The engine ignores it if that has an answer.
func (s *clientStream) failCall(id string, err error) {
	s.mu.Lock()
	delete(s.sent, id)
	fence := s.fenced(id)
	s.mu.Unlock()
	if !fence {
		s.in.fail(&jsonrpc.UnansweredError{ID: []byte(id), Err: err})
	}
}

// failSession fails the calls of a session apart from one: those that were sent, and
// those that wait to be.
func (s *clientStream) failSession(session string, err error, apart string) {
	s.mu.Lock()
	failed := make(map[string]error)
	for id, a := range s.sent {
		if a.session == session {
			failed[id] = errors.Join(err, jsonrpc.ErrOutcomeUnknown)
		}
	}
	notes := 0
	if lane := s.lanes[session]; lane != nil {
		for _, o := range lane.queue {
			s.unsent -= len(o.text)
			lane.unsent -= len(o.text)
			if o.id == "" {
				notes++
			} else {
				failed[o.id] = err
			}
		}
		lane.queue = nil
		s.roused()
	}
	s.mu.Unlock()
	if notes > 0 {
		s.log().Warn("acphttp: messages were not sent", "count", notes, "error", err)
	}
	delete(failed, apart)
	for id, err := range failed {
		s.failCall(id, err)
	}
}

// fail ends the connection. Calls that were not sent fail as such.
func (s *clientStream) fail(err error) {
	s.mu.Lock()
	if s.broken != nil || s.closed {
		s.mu.Unlock()
		return
	}
	s.broken = err
	s.outage.end()
	var unsent []string
	for _, lane := range s.lanes {
		for _, o := range lane.queue {
			if o.id != "" {
				unsent = append(unsent, o.id)
			}
		}
	}
	s.releaseFences()
	s.mu.Unlock()
	for _, id := range unsent {
		s.failCall(id, errNotSent)
	}
	s.in.close(err, false)
	s.cancel(err)
}

// failLater ends the connection once its streams had time to bring what there is.
func (s *clientStream) failLater(err error) {
	if s.tag != "" {
		timer := time.NewTimer(streamTime)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.ctx.Done():
		}
	}
	s.fail(err)
}

var errNotSent = errors.New("the connection broke before the request was sent")

// Close implements [jsonrpc.Stream]. It tells the server.
func (s *clientStream) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.outage.end()
	s.releaseFences()
	idle := make(chan struct{})
	busy := len(s.lanes) > 0 && s.broken == nil
	s.mu.Unlock()
	s.in.close(os.ErrClosed, true)
	if busy { // what was written is to arrive
		go func() {
			s.awaitLanes()
			close(idle)
		}()
		timer := time.NewTimer(leaveTime)
		select {
		case <-idle:
		case <-timer.C:
		}
		timer.Stop()
	}
	s.cancel(os.ErrClosed)
	s.work.Wait()
	s.leave()
	if s.own {
		s.client.CloseIdleConnections()
	}
	s.outage.wait()
	return nil
}

// awaitLanes waits until everything is posted, or nothing will be.
func (s *clientStream) awaitLanes() {
	for {
		s.mu.Lock()
		if len(s.lanes) == 0 || s.ctx.Err() != nil {
			s.mu.Unlock()
			return
		}
		_ = s.awaitRoom(s.ctx)
		s.mu.Unlock()
	}
}

// leave tells the server that the client has left.
func (s *clientStream) leave() {
	s.mu.Lock()
	id := s.id
	s.mu.Unlock()
	if id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	req, err := s.request(ctx, http.MethodDelete, nil)
	if err != nil {
		return
	}
	if resp, err := s.client.Do(req); err == nil {
		drain(resp)
	}
}

// ResponseError returns what a response says that refuses a request, of whose body it
// reads up to 8 kB.
func ResponseError(resp *http.Response) *StatusError { return statusOf(resp) }
