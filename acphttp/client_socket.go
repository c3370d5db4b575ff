package acphttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// MessageOptions are what a client over WebSocket needs in order to resume.
type MessageOptions struct {
	// Header is that of the answer to the upgrade.
	Header http.Header
	// Redial opens another WebSocket to the same server. Nil means that a
	// WebSocket that broke ends the connection.
	Redial func(ctx context.Context) (Messages, error)
	// RetryFor is how long a WebSocket that broke is tried again; 0 means 30 s.
	RetryFor time.Duration
	// Interrupted is that of a [Transport].
	Interrupted func(err error)
}

// NewMessageStream returns the stream of a client over an open WebSocket. If the server
// keeps what it sends, as a [Server] with Keep does, a WebSocket that broke is replaced
// by another one, and the connection does not notice. Otherwise it ends with a
// [*BrokenError]. Closing the stream closes the WebSocket.
func NewMessageStream(m Messages, o MessageOptions) jsonrpc.Stream {
	s := &messageStream{m: m, redial: o.Redial, retryFor: o.RetryFor, outage: outage{hook: o.Interrupted}}
	setDefault(&s.retryFor, 30*time.Second)
	if tag, first, ok := strings.Cut(o.Header.Get(headerCursor), "-"); ok && first == "0" && o.Redial != nil {
		s.tag, s.id = tag, o.Header.Get(HeaderConnectionID)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.pings.Go(s.ping)
	return s
}

// resend is how much of what was sent is kept, for the case that it did not arrive.
const resend = 4 << 20

type messageStream struct {
	redial   func(ctx context.Context) (Messages, error)
	retryFor time.Duration
	tag, id  string // of the connection, if it can be resumed
	ctx      context.Context
	cancel   context.CancelFunc
	closed   atomic.Bool
	writing  atomic.Bool
	pings    sync.WaitGroup
	outage   outage
	got      uint64 // messages that have come; of whoever reads

	now sync.Mutex // guards m; held briefly
	m   Messages

	mu    sync.Mutex // guards what follows; held while something is written
	sent  uint64     // messages
	kept  [][]byte   // the last of them
	bytes int        // in kept
	stall *time.Timer
}

// clientPing is how often a client sends a ping. Two without an answer end the
// WebSocket.
const clientPing = 25 * time.Second

// clientStall is how long writing may take before the WebSocket counts as broken.
const clientStall = time.Minute

// current returns the WebSocket.
func (s *messageStream) current() Messages {
	s.now.Lock()
	defer s.now.Unlock()
	return s.m
}

// ping notices that the server is gone.
func (s *messageStream) ping() {
	timer := time.NewTimer(clientPing)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			return
		}
		if s.writing.Load() { // which has a bound of its own, and a ping would wait for it
			timer.Reset(clientPing)
			continue
		}
		m := s.current()
		ctx, cancel := context.WithTimeout(s.ctx, 2*clientPing)
		err := m.Ping(ctx)
		cancel()
		if err != nil && s.ctx.Err() == nil && !s.writing.Load() {
			m.Close(closeAbnormal, "") // ends the reading
		}
		timer.Reset(clientPing)
	}
}

func (s *messageStream) ReadFrame() (jsonrpc.Frame, error) {
	for {
		text, err := s.current().Read()
		switch {
		case err == nil:
			s.got++
			return jsonrpc.Frame{Data: text}, nil
		case s.closed.Load():
			return jsonrpc.Frame{}, os.ErrClosed
		case errors.Is(err, io.EOF):
			return jsonrpc.Frame{}, io.EOF
		}
		if err := s.resume(err); err != nil {
			if s.closed.Load() {
				err = os.ErrClosed
			}
			return jsonrpc.Frame{}, err
		}
	}
}

func (s *messageStream) WriteFrame(data []byte) error { return s.write(data) }

// WriteFrames implements [jsonrpc.BatchStream].
func (s *messageStream) WriteFrames(frames [][]byte) error { return s.write(frames...) }

func (s *messageStream) write(frames ...[]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tag != "" {
		for _, f := range frames {
			s.keep(f)
		}
	}
	if s.stall == nil {
		s.stall = time.AfterFunc(clientStall, func() { s.current().Close(closeAbnormal, "") })
	} else {
		s.stall.Reset(clientStall)
	}
	s.writing.Store(true)
	err := s.current().Write(frames...)
	s.writing.Store(false)
	s.stall.Stop()
	switch {
	case err == nil:
		return nil
	case s.closed.Load():
		return os.ErrClosed
	case s.tag != "":
		return nil // it is sent again, or reading ends with the reason
	}
	return &BrokenError{err}
}

// keep keeps a message that is sent. The caller holds s.mu.
func (s *messageStream) keep(f []byte) {
	s.sent++
	s.kept = append(s.kept, append([]byte(nil), f...))
	s.bytes += len(f)
	for s.bytes > resend && len(s.kept) > 1 {
		s.bytes -= len(s.kept[0])
		s.kept[0] = nil
		s.kept = s.kept[1:]
	}
}

// resume replaces a WebSocket that broke. It returns why that is impossible.
func (s *messageStream) resume(cause error) error {
	s.current().Close(closeAbnormal, "") // so that nobody waits for it
	if s.tag == "" {
		return &BrokenError{cause}
	}
	var again pause
	var down error // why attempts fail, if that is an outage
	var atLeast time.Duration
	for {
		if !again.wait(s.ctx, s.retryFor, atLeast, &s.outage, down) {
			return &BrokenError{cause}
		}
		m, err := s.redial(s.ctx)
		if said := (*StatusError)(nil); errors.As(err, &said) && isTorn(said.Status) {
			err = &tornError{said} // the same request has been good before
		}
		if err != nil {
			cause, down, atLeast = err, outageOf(err, 1), 0 // the WebSocket that broke was the first attempt
			if said := (*StatusError)(nil); errors.As(err, &said) {
				if !isBusy(said.Status) {
					return &BrokenError{err}
				}
				if atLeast = said.RetryAfter; down == nil {
					s.outage.set(nil) // the network has brought that
				}
			}
			continue
		}
		received, err := s.ask(m)
		if err == nil {
			err = s.takeOver(m, received)
		}
		if err == nil {
			s.outage.set(nil)
			return nil
		}
		m.Close(closeAbnormal, "")
		if errors.Is(err, errResume) {
			return &BrokenError{err}
		}
		cause, down, atLeast = err, outageOf(err, 1), 0
	}
}

var errResume = errors.New("the connection cannot be resumed")

// ask asks for the rest of what the server has sent. It returns how many messages the
// server has got.
func (s *messageStream) ask(m Messages) (received uint64, err error) {
	late := time.AfterFunc(s.retryFor, func() { m.Close(closeAbnormal, "") })
	defer late.Stop()
	params, _ := json.Marshal(resumeParams{s.id, s.tag + "-" + strconv.FormatUint(s.got, 10)})
	if err := m.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, methodResume, params)); err != nil {
		return 0, err
	}
	text, err := m.Read()
	if err != nil {
		return 0, err
	}
	var answer struct {
		Method string
		Params struct {
			Received uint64
			Reason   string
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Method != methodResumed {
		return 0, fmt.Errorf("%w: %s", errResume, answer.Params.Reason)
	}
	return answer.Params.Received, nil
}

// takeOver makes m the WebSocket, after what the server has not got was sent again.
func (s *messageStream) takeOver(m Messages, received uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.sent - uint64(len(s.kept)) // not kept any more, up to this one
	if received < first || received > s.sent {
		return fmt.Errorf("%w: the server has got %d messages of %d", errResume, received, s.sent)
	}
	if rest := s.kept[received-first:]; len(rest) > 0 {
		// Nobody else knows of m yet, who could close it.
		late := time.AfterFunc(clientStall, func() { m.Close(closeAbnormal, "") })
		left := context.AfterFunc(s.ctx, func() { m.Close(closeAbnormal, "") })
		err := m.Write(rest...)
		late.Stop()
		left()
		if err != nil {
			return err
		}
	}
	s.now.Lock()
	defer s.now.Unlock()
	if s.closed.Load() {
		return os.ErrClosed
	}
	s.m = m
	return nil
}

func (s *messageStream) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.outage.end()
	s.cancel()
	s.now.Lock()
	m := s.m
	s.now.Unlock()
	m.Close(closeNormal, "") // the server may have left before
	s.pings.Wait()
	s.outage.wait()
	return nil
}
