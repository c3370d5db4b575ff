package acphttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/goacp/acp/internal/sleep"
	"github.com/goacp/acp/jsonrpc"
)

// faultOfMessage reports whether a status means that the server finds fault with the
// message itself, so that the connection is well.
func faultOfMessage(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity, http.StatusNotImplemented:
		return true
	}
	return false
}

func (s *clientStream) log() *slog.Logger {
	if s.t.Logger != nil {
		return s.t.Logger
	}
	return slog.Default()
}

// tryDeliver posts a message until it is delivered or certainly not going to be.
func (s *clientStream) tryDeliver(o outgoing) error {
	switch {
	case o.session == "":
	case !isFieldValue(o.session):
		return fmt.Errorf("%w: its id is no value of a header", errNoStream)
	case o.id != "": // what has no answer needs no stream
		if err := s.openSession(o.session, &o); err != nil {
			return err // nothing was sent
		}
	}
	var again pause
	arrived := false // perhaps, in some attempt
	for failed := 0; ; failed++ {
		err := s.postOnce(o)
		if err == nil {
			s.outage.set(nil)
			return nil
		}
		said := (*StatusError)(nil)
		refused := errors.As(err, &said)
		// What a server in between says does not show whether the message went
		// through. 503 with a time is from one that did not want it.
		unsure := !refused && !nothingSent(err) || refused && (said.Status == http.StatusBadGateway ||
			said.Status == http.StatusGatewayTimeout || said.Status == http.StatusServiceUnavailable && said.RetryAfter == 0)
		repeat := nothingSent(err) || refused && !unsure && isBusy(said.Status) || unsure && s.numbered
		if arrived = arrived || unsure; arrived {
			err = errors.Join(err, jsonrpc.ErrOutcomeUnknown)
		}
		down := outageOf(err, failed)
		if refused && down == nil {
			s.outage.set(nil) // the network has brought that
		}
		if !repeat {
			return err
		}
		var atLeast time.Duration
		if refused {
			atLeast = said.RetryAfter
		}
		if !again.wait(s.ctx, s.retryFor, atLeast, &s.outage, down) {
			return err
		}
	}
}

// nothingSent reports whether an error came before anything was sent.
func nothingSent(err error) bool {
	op := (*net.OpError)(nil)
	return errors.Is(err, errNoRequest) || errors.As(err, &op) && op.Op == "dial"
}

// errNoRequest is why no request could be made.
var errNoRequest = errors.New("acphttp: the request could not be made")

// postTime bounds a POST: servers hold one for a minute at most.
const postTime = 90 * time.Second

var errPostTime = errors.New("the server does not answer")

// pause is what is waited between attempts.
type pause struct {
	began time.Time
	next  time.Duration
}

const (
	pauseMin = 50 * time.Millisecond
	pauseMax = 2 * time.Second
)

// wait waits before the next attempt, and tells o of the outage that is the reason for it, if one is. It reports false if
// there must be none.
func (p *pause) wait(ctx context.Context, most, atLeast time.Duration, o *outage, down error) bool {
	now := time.Now()
	if p.began.IsZero() {
		p.began = now
	}
	d := max(p.next, atLeast) // the first time at once
	p.next = min(max(2*p.next, pauseMin), pauseMax)
	if now.Add(d).Sub(p.began) > most {
		return false
	}
	if down != nil {
		o.set(down)
	}
	return sleep.For(ctx, d)
}

// request makes a request with what every one has.
func (s *clientStream) request(ctx context.Context, method string, body []byte) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.t.URL, r)
	if err != nil {
		return nil, errors.Join(err, errNoRequest)
	}
	for k, v := range s.t.Header {
		req.Header[http.CanonicalHeaderKey(k)] = v
	}
	if s.t.Token != nil {
		token, err := s.t.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: token: %w", errNoRequest, err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	if body != nil {
		req.Header.Set("Content-Type", typeJSON)
	}
	if s.id != "" {
		req.Header.Set(HeaderConnectionID, s.id)
	}
	return req, nil
}

// postOnce posts a message.
func (s *clientStream) postOnce(o outgoing) error {
	ctx, cancel := context.WithTimeoutCause(s.ctx, postTime, errPostTime)
	defer cancel()
	req, err := s.request(ctx, http.MethodPost, o.text)
	if err != nil {
		return err
	}
	if o.session != "" {
		req.Header.Set(HeaderSessionID, o.session)
	}
	if s.numbered {
		req.Header.Set(HeaderMessage, strconv.FormatUint(o.number, 10))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		if context.Cause(ctx) == errPostTime {
			return errPostTime
		}
		return plainURLError(err)
	}
	defer drain(resp)
	if resp.StatusCode/100 == 2 {
		return nil
	}
	return s.refusal(resp)
}

// refusal returns why a response refuses a request. One that our own server has read has the connection's id in its
// answer. Any other 400 or 408 comes from HTTP itself, which a request did not reach whole.
func (s *clientStream) refusal(resp *http.Response) error {
	said := statusOf(resp)
	torn := said.Status == statusClientGone || // so says our own server when it gives up a request
		isTorn(said.Status) && resp.Header.Get(HeaderConnectionID) == ""
	if s.numbered && torn {
		return &tornError{said}
	}
	return said
}

// isTorn reports whether a status may be that of a request that ended early.
func isTorn(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusRequestTimeout
}

// A tornError says that a request has broken off on its way. It wraps nothing: a [StatusError] would be an answer.
type tornError struct{ said *StatusError }

func (e *tornError) Error() string {
	return "acphttp: the request did not arrive whole: " + e.said.Error()
}

// drain lets the connection of a response be used again.
func drain(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, errorText)
	_ = resp.Body.Close()
}

// statusOf returns the status of a response as an error.
func statusOf(resp *http.Response) *StatusError {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, errorText))
	e := &StatusError{Status: resp.StatusCode, Text: string(bytes.TrimSpace(bytes.ToValidUTF8(text, nil)))}
	after := resp.Header.Get("Retry-After")
	if n, err := strconv.ParseUint(after, 10, 31); err == nil {
		e.RetryAfter = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		e.RetryAfter = max(0, time.Until(at))
	}
	return e
}
