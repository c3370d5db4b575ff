package acphttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/internal/logtest"
)

// A pausing is a WebSocket whose peer reads for a moment each time it is let. While a
// write waits, a ping fails after 5 s, as those of acpws do.
type pausing struct {
	in     chan []byte
	let    chan struct{}
	closed chan struct{}
	once   sync.Once
	polite bool // it answers Close

	mu      sync.Mutex
	writing bool
	code    int
}

func newPausing() *pausing {
	return &pausing{in: make(chan []byte, 1), let: make(chan struct{}), closed: make(chan struct{})}
}

func (p *pausing) Upgrade(http.ResponseWriter, *http.Request, http.Header, int) (acphttp.Messages, error) {
	return p, nil
}

func (p *pausing) Read() ([]byte, error) {
	select {
	case text := <-p.in:
		return text, nil
	case <-p.closed:
		if p.polite {
			return nil, io.EOF
		}
		return nil, io.ErrUnexpectedEOF
	}
}

func (p *pausing) setWriting(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing = is
}

func (p *pausing) Write(...[]byte) error {
	p.setWriting(true)
	defer p.setWriting(false)
	select {
	case <-p.let:
		return nil
	case <-p.closed:
		return io.ErrClosedPipe
	}
}

func (p *pausing) Ping(ctx context.Context) error {
	p.mu.Lock()
	writing := p.writing
	p.mu.Unlock()
	if writing {
		time.Sleep(5 * time.Second)
		return errors.New("the ping could not be sent")
	}
	return nil
}

func (p *pausing) Close(code int, _ string) bool {
	p.once.Do(func() {
		p.code = code
		close(p.closed)
	})
	return p.polite
}

// TestPause: a peer that does not read for less than the stall timeout keeps its
// WebSocket, although no ping reaches it. After the timeout it loses it.
func TestPause(t *testing.T) {
	note := []byte(`{"jsonrpc":"2.0","method":"_x"}`)
	for name, begin := range map[string]func(p *pausing, log *slog.Logger) (stop func()){
		"server": func(p *pausing, log *slog.Logger) func() {
			s := &acphttp.Server{Upgrade: p, Logger: log, Serve: func(ctx context.Context, t acp.Transport) error {
				stream, err := t.Open(ctx)
				if err != nil {
					return err
				}
				defer stream.Close()
				for err == nil {
					err = stream.WriteFrame(note)
				}
				return err
			}}
			done := upgraded(s, p)
			return func() { <-done }
		},
		"client": func(p *pausing, _ *slog.Logger) func() {
			stream := acphttp.NewMessageStream(p, acphttp.MessageOptions{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				for stream.WriteFrame(note) == nil {
				}
			}()
			return func() {
				<-done
				_ = stream.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPausing()
				stop := begin(p, logtest.New(t))
				for i := range 5 {
					time.Sleep(57 * time.Second)
					select {
					case p.let <- struct{}{}:
					case <-p.closed:
						t.Fatal("closed in pause", i)
					}
				}
				began := time.Now()
				<-p.closed
				if d := time.Since(began); d != time.Minute {
					t.Error("closed after", d)
				}
				stop()
			})
		})
	}
}

// upgraded has a server serve a WebSocket. The channel is closed when that has ended.
func upgraded(s *acphttp.Server, p *pausing) <-chan struct{} {
	p.in <- []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	r := httptest.NewRequest(http.MethodGet, "/acp", nil)
	r.Header.Set("Upgrade", "websocket")
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ServeHTTP(httptest.NewRecorder(), r)
	}()
	return done
}

// several is an Upgrader of WebSockets that are given.
type several struct{ list []*pausing }

func (u *several) Upgrade(http.ResponseWriter, *http.Request, http.Header, int) (acphttp.Messages, error) {
	p := u.list[0]
	u.list = u.list[1:]
	return p, nil
}

// TestSocketEnds: a resumable connection takes no room any more once its agent has ended
// and its client has got everything. If that is not known, it does for a while.
func TestSocketEnds(t *testing.T) {
	for _, polite := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			first, second := newPausing(), newPausing()
			first.polite = polite
			s := &acphttp.Server{
				Upgrade: &several{[]*pausing{first, second}}, Keep: acphttp.Retention{Bytes: 1 << 10}, Limits: acphttp.Limits{MaxConnections: 1},
				Serve: func(ctx context.Context, t acp.Transport) error {
					stream, err := t.Open(ctx)
					if err != nil {
						return err
					}
					defer stream.Close()
					return stream.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"_last"}`))
				},
			}
			done := upgraded(s, first)
			first.let <- struct{}{}
			<-done
			synctest.Wait()
			done = upgraded(s, second)
			synctest.Wait()
			select {
			case <-second.closed:
				if polite {
					t.Error("there is no room:", second.code)
				}
			default:
				if !polite {
					t.Error("the first one was forgotten")
				}
				second.let <- struct{}{}
			}
			<-done
			_ = s.Close(context.Background())
		})
	}
}

// TestSocketLeft: an agent over WebSocket that heeds nothing but its ctx ends after its
// client.
func TestSocketLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPausing()
		p.polite = true
		s := &acphttp.Server{Upgrade: p, Serve: func(ctx context.Context, t acp.Transport) error {
			stream, err := t.Open(ctx)
			if err != nil {
				return err
			}
			defer stream.Close()
			for err == nil {
				_, err = stream.ReadFrame()
			}
			<-ctx.Done()
			return err
		}}
		done := upgraded(s, p)
		synctest.Wait()
		began := time.Now()
		p.Close(1000, "")
		<-done
		if d := time.Since(began); d != 10*time.Second {
			t.Error(d)
		}
	})
}

// A noting is a pausing that keeps what was written last.
type noting struct {
	*pausing
	last []byte
}

func (n *noting) Upgrade(http.ResponseWriter, *http.Request, http.Header, int) (acphttp.Messages, error) {
	return n, nil
}

func (n *noting) Write(texts ...[]byte) error {
	last := bytes.Clone(texts[len(texts)-1])
	err := n.pausing.Write(texts...)
	n.last = last
	return err
}

// TestPacedSocket: what sessions send over a WebSocket that nobody reads waits at the bound for one session, and the
// answer to a request is sent in any case.
func TestPacedSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said atomic.Int64
		agent := &acp.Agent{Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			for ctx.Err() == nil {
				if err := t.Say(strings.Repeat("x", 1000)); err != nil {
					return "", err
				}
				said.Add(1)
			}
			return acp.StopCancelled, nil
		}}
		p := &noting{pausing: newPausing()}
		s := &acphttp.Server{Serve: agent.Serve, Upgrade: p, Keep: acphttp.Retention{Bytes: 1 << 10}, Limits: acphttp.Limits{MaxUnsentSession: 256 << 10}}
		r := httptest.NewRequest(http.MethodGet, "/acp", nil)
		r.Header.Set("Upgrade", "websocket")
		done := make(chan struct{})
		p.in <- []byte(initialize)
		go func() {
			defer close(done)
			s.ServeHTTP(httptest.NewRecorder(), r)
		}()
		p.let <- struct{}{}
		p.in <- []byte(newSession)
		p.let <- struct{}{}
		synctest.Wait()
		var answer struct{ Result struct{ SessionID string } }
		if err := json.Unmarshal(p.last, &answer); err != nil {
			t.Fatal(err)
		}
		p.in <- []byte(prompt(3, answer.Result.SessionID, "x"))
		synctest.Wait()
		// What is being written, the bound, and what the connection of the agent holds.
		if n := said.Load(); n < 200 || n > 600 {
			t.Errorf("the agent has said %d times 1 kB", n)
		}
		for range 3 {
			n := said.Load()
			p.let <- struct{}{}
			synctest.Wait()
			if more := said.Load() - n; more < 1 || more > 200 {
				t.Errorf("%d more were said after one was read", more)
			}
		}
		p.Close(1000, "")
		<-done
		_ = s.Close(context.Background())
	})
}
