package relay

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/jsonrpc"
)

// fails deals with an error of reading, and returns the one that the reader gets, or nil once there is another connection.
func (s *steady) fails(generation int, err error) error {
	lost, unanswered := errors.AsType[*jsonrpc.UnansweredError](err)
	_, large := errors.AsType[*jsonrpc.FrameTooLargeError](err)
	s.mu.Lock()
	steady := s.gateway && s.initialize != nil
	refused := unanswered && !(steady && isBroken(lost.Err))
	if refused { // which is an answer
		s.answered(string(lost.ID))
	}
	s.mu.Unlock()
	if refused || large || !steady {
		return err
	}
	if unanswered { // from here on it is about the connection: whoever reads continues after an error about one request
		err = lost.Err
	}
	if s.ctx.Err() != nil {
		return err
	}
	s.broke(generation)
	return s.again(err)
}

// isBroken reports whether a request has no answer because the connection cannot be used, or is not known: then the request is
// sent again on another one. Otherwise the server refuses the request itself.
func isBroken(err error) bool {
	if said, ok := errors.AsType[*acphttp.StatusError](err); ok {
		switch said.Status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
			return true
		}
	}
	_, network := errors.AsType[*net.OpError](err)
	return network || errors.Is(err, jsonrpc.ErrOutcomeUnknown)
}

// again opens another connection in place of one that ended with an error, which it returns if that is not possible.
func (s *steady) again(broken error) error {
	s.mu.Lock()
	s.generation++
	s.byFar = make(map[string]*steadyAsk)
	for _, a := range s.asks {
		a.far = nil
	}
	s.mu.Unlock()
	began := time.Now()
	for wait := steadyFirst; ; wait = min(2*wait, steadyMost) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			timer.Stop()
			return os.ErrClosed
		}
		err := s.attempt()
		if err == nil {
			s.interrupted(nil)
			return nil
		}
		if s.ctx.Err() != nil {
			return os.ErrClosed
		}
		s.interrupted(err)
		if !passes(err, time.Since(began)) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.err == nil {
				s.err = broken
			}
			select {
			case <-s.up:
			default:
				close(s.up)
			}
			if errors.Is(broken, io.EOF) { // which would look like an orderly end
				return fmt.Errorf("the connection has ended, and it was not possible to return: %w", err)
			}
			if remote.IsUnauthorized(err) { // it comes first, since it is what can be mended
				return fmt.Errorf("it was not possible to return: %w; the connection had ended: %w", err, broken)
			}
			return fmt.Errorf("%w; and it was not possible to return: %w", broken, err)
		}
	}
}

// passes reports whether an attempt is worth another one that has failed with err, since that long.
func passes(err error, since time.Duration) bool {
	switch _, answered := errors.AsType[*jsonrpc.Error](err); {
	case errors.Is(err, errNoGateway):
		return false
	case answered || exitcode.Of(err) != exitcode.Failed:
	default:
		if why := remote.Explain("", err); why != nil {
			err = why
		} else {
			err = exitcode.With(exitcode.Agent, err)
		}
	}
	return remote.Passes(err, since)
}

// errNoGateway is why a connection cannot be continued that was to a gateway.
var errNoGateway = errors.New("the peer is no gateway any more")

// attempt tries once to open another connection.
func (s *steady) attempt() (err error) {
	stream, err := s.open(s.ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = stream.Close()
		}
	}()
	defer context.AfterFunc(s.ctx, func() { _ = stream.Close() })()
	limit := time.AfterFunc(steadyReply, func() { _ = stream.Close() })
	defer limit.Stop()
	s.backlog = nil
	s.mu.Lock()
	initialize := s.initialize
	sessions := make(map[string]*steadySession, len(s.sessions))
	for id, x := range s.sessions {
		sessions[id] = x
	}
	s.mu.Unlock()
	if _, err := s.call(stream, "initialize", initialize); err != nil {
		return err
	}
	for id, x := range sessions {
		params := object{"sessionId": marshal(id), "cwd": x.cwd, "mcpServers": x.servers}
		position := x.position
		if position == nil {
			position = json.RawMessage(`{"cursor":0}`)
		}
		params["_meta"] = marshal(object{ownmeta.Key: position})
		if len(x.servers) == 0 {
			params["mcpServers"] = json.RawMessage("[]")
		}
		result, err := s.call(stream, "session/resume", marshal(params))
		if err != nil {
			return err
		}
		if positionOf(objectOf(result)["_meta"]) == nil {
			return errNoGateway
		}
	}
	return s.resend(stream)
}

// resend sends what has no answer, and lets others write again.
func (s *steady) resend(stream jsonrpc.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, w := range s.pending {
		again := w.data != nil
		switch w.method {
		case "session/prompt", "session/list", "session/load", "session/resume", "session/set_config_option", "session/set_mode", "session/set_model", "session/close":
		default:
			again = false
		}
		if again {
			if err := stream.WriteFrame(w.data); err != nil {
				return err
			}
			continue
		}
		s.size -= len(w.data)
		delete(s.pending, id)
		s.backlog = append(s.backlog, jsonrpc.Frame{Data: encode([]byte(id), problem{
			Code: jsonrpc.CodeInternalError, Message: "the connection broke before the answer: whether " + w.method + " was done is not known",
		})})
	}
	for _, x := range s.sessions {
		if x.cancel != nil {
			if err := stream.WriteFrame(x.cancel); err != nil {
				return err
			}
		}
	}
	s.stream, s.isUp = stream, true
	close(s.up)
	return nil
}

// call sends a request of our own and returns its result. What else arrives is kept for the reader.
func (s *steady) call(stream jsonrpc.Stream, method string, params json.RawMessage) (json.RawMessage, error) {
	id := marshal("acp-connect-" + rand.Text())
	if err := stream.WriteFrame((&message{ID: id, Method: method, Params: params}).line()); err != nil {
		return nil, err
	}
	for {
		f, err := stream.ReadFrame()
		if lost, ok := errors.AsType[*jsonrpc.UnansweredError](err); ok {
			err = lost.Err // nothing else was asked yet
		}
		if err != nil {
			return nil, err
		}
		var m message
		if json.Unmarshal(f.Data, &m) == nil && m.Method == "" && bytes.Equal(m.ID, id) {
			if len(m.Error) > 0 {
				said := new(jsonrpc.Error)
				if json.Unmarshal(m.Error, said) != nil {
					said = jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", m.Error[:min(len(m.Error), maxReason)])
				}
				return nil, fmt.Errorf("%s was refused: %w", method, said)
			}
			return bytes.Clone(m.Result), nil
		}
		if method == "session/resume" && isState(&m, params) {
			continue // it is that of the new connection, which knows of no turn yet; the turn's own follow
		}
		if len(s.backlog) >= maxBacklog {
			return nil, io.ErrShortBuffer
		}
		f.Data = bytes.Clone(f.Data)
		s.backlog = append(s.backlog, f)
	}
}
