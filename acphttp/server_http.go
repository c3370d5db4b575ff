package acphttp

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
)

const (
	methodInitialize    = "initialize"
	methodCancelRequest = "$/cancel_request"
	methodLoad          = "session/load"
	methodClose         = "session/close"
	methodDelete        = "session/delete"
	methodResume        = "stream/resume"
	methodResumed       = "stream/resumed"
	methodResumeFailed  = "stream/resume_failed"

	// headerCursor is, in a request, the last event that a client has got and, in
	// an answer, the one before the first event of the answer.
	headerCursor = "Last-Event-ID"

	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// sessionMethods are those whose messages belong to a session even if they do not
// name one.
var sessionMethods = map[string]bool{
	"session/cancel": true, methodClose: true, methodDelete: true, "session/fork": true,
	methodLoad: true, "session/prompt": true, "session/resume": true,
	"session/set_config_option": true, "session/set_mode": true, "session/set_model": true,
}

// statusClientGone is what a request is answered with that its client has given up.
const statusClientGone = 499

// holdTime is how long a request waits for an agent that does not read. It is short,
// because a client that posts one message at a time cannot cancel anything meanwhile.
const holdTime = time.Second

// bodyTime is how long a client may take to send a message.
const bodyTime = time.Minute

var peekers = sync.Pool{New: func() any { return new(peeker) }}

func peek(text []byte) (head, bool) {
	p := peekers.Get().(*peeker)
	defer peekers.Put(p)
	h, ok := p.peek(text)
	p.d.Reset(nil, false) // does not keep the text
	return h, ok
}

// isType reports whether a header names a media type, whatever its parameters.
func isType(header, want string) bool {
	t, _, err := mime.ParseMediaType(header)
	return (err == nil || errors.Is(err, mime.ErrInvalidMediaParameter)) && t == want
}

// accepts reports whether an Accept header has a media type.
func accepts(r *http.Request, want string) bool {
	for _, line := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			if isType(part, want) {
				return true
			}
		}
	}
	return false
}

// post takes a message of a client.
func (s *Server) post(w http.ResponseWriter, r *http.Request, principal string) error {
	if !isType(r.Header.Get("Content-Type"), typeJSON) {
		return status(http.StatusUnsupportedMediaType, "the body must be application/json")
	}
	var c *conn
	var err error
	if r.Header.Get(HeaderConnectionID) != "" { // of one that is unknown nothing is read
		if c, err = s.find(r, principal); err != nil {
			return err
		}
	}
	body, err := s.body(w, r)
	if err != nil {
		return err
	}
	if c != nil {
		w.Header().Set(HeaderConnectionID, c.id) // what is answered from here on is about the message
	}
	h, ok := peek(body)
	switch {
	case !ok:
		return status(http.StatusBadRequest, "the body is not JSON")
	case h.batch:
		writeJSON(w, http.StatusNotImplemented, []byte(batchRefused))
		return nil
	case !h.object:
		return status(http.StatusBadRequest, "the body is not a JSON-RPC message")
	}
	if h.method == methodInitialize {
		if c != nil {
			return status(http.StatusBadRequest, "initialize is not allowed on an existing connection")
		}
		return s.initialize(w, r, principal, body, &h)
	}
	if c == nil {
		return status(http.StatusBadRequest, "missing "+HeaderConnectionID)
	}
	if err := c.opened(); err != nil {
		return err
	}
	defer c.closed()
	if err := c.accept(r, body, &h); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// body reads the body of a request.
func (s *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limit := int64(s.limits.MaxMessage)
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close")
		return nil, status(http.StatusRequestEntityTooLarge, "the message is too large")
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // where that is possible
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	if r.ContentLength > 0 {
		body := make([]byte, 0, min(r.ContentLength, 64<<10))
		return readBody(r.Body, body, limit)
	}
	return readBody(http.MaxBytesReader(w, r.Body, limit), nil, limit)
}

// readBody reads to the end. Memory grows with what arrives, not with what was
// announced.
func readBody(r io.Reader, body []byte, limit int64) ([]byte, error) {
	for {
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if big := (*http.MaxBytesError)(nil); errors.As(err, &big) || int64(len(body)) > limit {
			return nil, status(http.StatusRequestEntityTooLarge, "the message is too large")
		}
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, status(http.StatusBadRequest, "the body could not be read")
		}
	}
}

func writeJSON(w http.ResponseWriter, code int, text []byte) {
	h := w.Header()
	h.Set("Content-Type", typeJSON)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

// initialize makes a connection and answers with what its agent says to the first
// message.
func (s *Server) initialize(w http.ResponseWriter, r *http.Request, principal string, body []byte, h *head) error {
	if h.id == "" {
		return status(http.StatusBadRequest, "initialize must have an id")
	}
	if len(h.id) > s.limits.MaxID {
		return status(http.StatusBadRequest, "the id is too long")
	}
	c := s.newConn(principal, true)
	if err := s.register(c); err != nil {
		return err
	}
	defer c.closed()
	answer := make(chan []byte, 1)
	c.initial, c.first = answer, h.id
	_ = c.in.put(c.ctx, body, false) // the first
	go func() {
		defer c.finish()
		s.serve(c, acp.Over(c))
	}()
	timer := time.NewTimer(s.limits.InitializeTimeout)
	defer timer.Stop()
	var text []byte
	select {
	case text = <-answer:
	case <-c.served:
		select { // it may have answered and ended
		case text = <-answer:
		default:
			c.shut(errIdle)
			id := append([]byte(`{"jsonrpc":"2.0","id":`), h.id...)
			writeJSON(w, http.StatusInternalServerError, append(id, `,"error":{"code":-32603,"message":"Initialize failed"}}`...))
			return nil
		}
	case <-timer.C:
		c.shut(context.DeadlineExceeded)
		return status(http.StatusGatewayTimeout, "the agent does not answer")
	case <-r.Context().Done():
		c.shut(context.Cause(r.Context()))
		return status(statusClientGone, "")
	}
	if answered, _ := peek(text); answered.failed {
		c.leave()
	} else {
		w.Header().Set(HeaderConnectionID, c.id)
		w.Header().Set(HeaderMessage, "0")
		if s.resumable() {
			w.Header().Set(headerCursor, string(c.cursorOf(nil, 0)))
		}
	}
	writeJSON(w, http.StatusOK, text)
	return nil
}

// accept gives a message to the agent.
func (c *conn) accept(r *http.Request, body []byte, h *head) error {
	header, named := r.Header.Get(HeaderSessionID), len(r.Header.Values(HeaderSessionID)) > 0
	if len(header) > c.s.limits.MaxID || len(h.session) > c.s.limits.MaxID || len(h.id) > c.s.limits.MaxID+2 {
		return status(http.StatusBadRequest, "an id is too long")
	}
	number, settle, err := c.number(r)
	if err != nil || settle == nil && number != 0 {
		return err // or it was accepted before
	}
	err = c.acceptOnce(r, body, h, header, named)
	if settle != nil {
		settle(err == nil)
	}
	return err
}

// number reads the number of a message, if it has one. settle must be called once it
// has been decided whether the message is accepted; it is nil if the message was
// accepted before.
func (c *conn) number(r *http.Request) (n uint64, settle func(accepted bool), err error) {
	text := r.Header.Get(HeaderMessage)
	if text == "" {
		return 0, nil, nil
	}
	if n, err = strconv.ParseUint(text, 10, 63); err != nil || n == 0 {
		return 0, nil, status(http.StatusBadRequest, "malformed "+HeaderMessage)
	}
	for {
		c.mu.Lock()
		if c.numbers.has(n) {
			c.mu.Unlock()
			return n, nil, nil
		}
		p, under := c.posting[n]
		if !under {
			p = posting{make(chan struct{})}
			c.posting[n] = p
			c.mu.Unlock()
			return n, func(accepted bool) {
				c.mu.Lock()
				defer c.mu.Unlock()
				delete(c.posting, n)
				if accepted {
					c.numbers.add(n)
				}
				close(p.done)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-p.done:
		case <-r.Context().Done():
			return 0, nil, status(statusClientGone, "")
		}
	}
}

func (c *conn) acceptOnce(r *http.Request, body []byte, h *head, header string, named bool) error {
	if h.isResponse() {
		c.mu.Lock()
		asked := c.routes.asks[h.id]
		// The client may name the stream on which it was asked, which knows nothing of subagents.
		wrong := asked.session != "" && header != asked.session && header != asked.stream
		if !wrong {
			delete(c.routes.asks, h.id)
		}
		c.mu.Unlock()
		if wrong {
			return mismatch(header)
		}
	} else if (sessionMethods[h.method] || h.session != "") && !named && !opensSession(h.method) {
		return mismatch("")
	} else if named && h.session != "" && header != h.session {
		return mismatch(header)
	}
	routed := false
	if h.isRequest() {
		session := header // without one the client reads the connection's stream
		c.mu.Lock()
		if _, twice := c.asked[h.id]; !twice && len(c.asked) < maxRoutes {
			c.asked[h.id] = asked{h.method, session}
			routed = true
		}
		if st := c.streams[h.session]; st != nil && opensSession(h.method) {
			st.closed = st.deleted // otherwise it is open again
		}
		c.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(r.Context(), holdTime)
	defer cancel()
	err := c.in.put(ctx, body, h.isRequest())
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errInboxFull):
		c.shut(errLimit)
	case r.Context().Err() != nil:
		err = status(statusClientGone, "")
	case ctx.Err() != nil:
		err = &StatusError{Status: http.StatusServiceUnavailable, Text: "the agent is busy", RetryAfter: time.Second}
	}
	if routed { // otherwise there may be another one in flight with that id
		c.mu.Lock()
		delete(c.asked, h.id)
		c.mu.Unlock()
	}
	if said := (*StatusError)(nil); errors.As(err, &said) {
		return said
	}
	return status(http.StatusNotFound, "unknown "+HeaderConnectionID)
}

// opensSession reports whether a method opens a session that the client need not read
// before. Clients of the Python SDK do not name the session then.
func opensSession(method string) bool { return method == methodLoad || method == "session/resume" }

// insideSession reports whether a method is about a session that is open: what a client
// does with it shows on the session's stream.
func insideSession(method string) bool {
	switch method {
	case "session/prompt", "session/set_mode", "session/set_model", "session/set_config_option":
		return true
	}
	return false
}

func mismatch(header string) error {
	if header == "" {
		return status(http.StatusBadRequest, "missing "+HeaderSessionID)
	}
	return status(http.StatusBadRequest, "mismatched "+HeaderSessionID)
}
