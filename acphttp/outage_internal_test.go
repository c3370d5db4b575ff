package acphttp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestOutage: the hook is called once for each change, one call after the other, whatever it does, and not after the end.
func TestOutage(t *testing.T) {
	for name, hook := range map[string]func(){
		"returns":            func() {},
		"panics":             func() { panic("on purpose") },
		"ends its goroutine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			var heard []bool // no lock: calls do not overlap
			o := outage{log: slog.New(slog.DiscardHandler), hook: func(err error) {
				heard = append(heard, err != nil)
				hook()
			}}
			var work sync.WaitGroup
			for i := range 8 {
				work.Go(func() {
					for j := range 500 {
						if (i+j)%2 == 0 {
							o.set(errors.ErrUnsupported)
						} else {
							o.set(nil)
						}
					}
				})
			}
			work.Wait()
			o.set(nil)
			o.wait()
			for i, failed := range heard {
				if failed != (i%2 == 0) {
					t.Fatalf("call %d of %d is like the one before", i, len(heard))
				}
			}
			if len(heard)%2 != 0 {
				t.Error("the last call does not say that the network works")
			}
			calls := len(heard)
			o.set(errors.ErrUnsupported)
			o.wait()
			o.end()
			o.set(nil)
			o.wait()
			if len(heard) != calls+1 {
				t.Error("the hook was called after the end")
			}
		})
	}
}

type roundTrip func() (*http.Response, error)

func (f roundTrip) RoundTrip(*http.Request) (*http.Response, error) { return f() }

// An examined is a status that our own server gives a request that it has read.
type examined int

// TestInterruptedTries: an outage is what is tried again, and no change is what is not.
func TestInterruptedTries(t *testing.T) {
	post := func(s *clientStream) error { return s.tryDeliver(outgoing{id: "1"}) }
	stream := func(s *clientStream) error { return s.readEvents(s.ctx, &eventReader{opened: func() {}}) }
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, tt := range []struct {
		name     string
		numbered bool // the server knows messages that are posted again
		retryFor time.Duration
		try      func(s *clientStream) error
		answers  []any // an error or a status for each attempt; the last one for all others
		want     string
	}{
		{"posted at once", true, time.Minute, post, []any{202}, ""},
		{"posted again", true, time.Minute, post, []any{502, 502, 202}, "down up"},
		{"posted again once somebody is reached", false, time.Minute, post, []any{refused, 202}, "down up"},
		{"posted again and refused", true, time.Minute, post, []any{502, 404}, "down up"},
		{"not posted again: it may have arrived", false, time.Minute, post, []any{502}, ""},
		{"not posted again: it broke", false, time.Minute, post, []any{io.ErrUnexpectedEOF}, ""},
		{"not posted again: nothing is", true, -1, post, []any{refused}, ""},
		{"given up", true, time.Minute, post, []any{refused}, "down"},
		{"posted again: it was torn", true, time.Minute, post, []any{400, 408, 202}, "down up"},
		{"posted again: the server took the client for gone", true, time.Minute, post, []any{examined(statusClientGone), 202}, ""},
		{"not posted again: the server has read it", true, time.Minute, post, []any{examined(400)}, ""},
		{"not posted again: this server marks nothing", false, time.Minute, post, []any{400}, ""},
		{"no stream: nothing is tried again", true, -1, stream, []any{refused}, ""},
		{"no stream", true, time.Minute, stream, []any{refused}, "down"},
		{"no stream any more", true, time.Minute, stream, []any{refused, 204}, "down up"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var heard []string
				tries := 0
				s := &clientStream{
					t: NewTransport("http://agent/acp"), ctx: t.Context(), numbered: tt.numbered, retryFor: tt.retryFor,
					outage: outage{hook: func(err error) {
						heard = append(heard, map[bool]string{true: "up", false: "down"}[err == nil])
					}},
					client: &http.Client{Transport: roundTrip(func() (*http.Response, error) {
						answer := tt.answers[min(tries, len(tt.answers)-1)]
						tries++
						switch answer := answer.(type) {
						case error:
							return nil, answer
						case examined:
							h := http.Header{HeaderConnectionID: {"1"}}
							return &http.Response{StatusCode: int(answer), Header: h, Body: http.NoBody}, nil
						default:
							return &http.Response{StatusCode: answer.(int), Body: http.NoBody}, nil
						}
					})},
				}
				err := tt.try(s)
				s.outage.wait()
				if got := strings.Join(heard, " "); got != tt.want {
					t.Errorf("heard %q after %d attempts, the last with %v", got, tries, err)
				}
			})
		})
	}
}

// TestInterruptedAtTheEnd: the stream of a client is closed only when the hook has returned, over both transports.
func TestInterruptedAtTheEnd(t *testing.T) {
	for name, open := range map[string]func(hook func(error)) (io.Closer, *outage){
		"HTTP": func(hook func(error)) (io.Closer, *outage) {
			transport := NewTransport("http://agent/acp")
			transport.Interrupted = hook
			s, _ := transport.Open(t.Context())
			return s, &s.(*clientStream).outage
		},
		"WebSocket": func(hook func(error)) (io.Closer, *outage) {
			s := NewMessageStream(noMessages{}, MessageOptions{Interrupted: hook})
			return s, &s.(*messageStream).outage
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var order []string
				s, o := open(func(error) {
					time.Sleep(time.Minute)
					order = append(order, "the hook returns")
				})
				o.set(errors.ErrUnsupported)
				synctest.Wait()
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if order = append(order, "closed"); !slices.Equal(order, []string{"the hook returns", "closed"}) {
					t.Error(order)
				}
				time.Sleep(time.Hour) // until all has returned
			})
		})
	}
}

// noMessages are a WebSocket on which nothing comes.
type noMessages struct{ Messages }

func (noMessages) Ping(context.Context) error { return nil }
func (noMessages) Close(int, string) bool     { return true }

// TestOutageOf: what a server says itself, and the end of a stream that has lasted, are no outage.
func TestOutageOf(t *testing.T) {
	for _, tt := range []struct {
		err    error
		before int
		want   bool
	}{
		{errNoRequest, 0, true},
		{errSilent, 0, true},
		{errors.ErrUnsupported, 0, false},
		{errors.ErrUnsupported, 1, true},
		{&StatusError{Status: 404}, 1, false},
		{&StatusError{Status: 429}, 1, false},
		{&StatusError{Status: 503, RetryAfter: 1}, 1, false},
		{&StatusError{Status: 503}, 0, true},
		{&StatusError{Status: 502}, 0, true},
	} {
		if got := outageOf(tt.err, tt.before) != nil; got != tt.want {
			t.Errorf("%v after %d: %v", tt.err, tt.before, got)
		}
	}
}

// resuming are a WebSocket on which a connection is resumed, and nothing comes after that.
type resuming struct {
	noMessages
	asked  bool
	closed chan struct{}
	once   sync.Once
}

func (*resuming) Write(...[]byte) error { return nil }

func (r *resuming) Close(int, string) bool {
	r.once.Do(func() { close(r.closed) })
	return true
}

func (r *resuming) Read() ([]byte, error) {
	if !r.asked {
		r.asked = true
		return []byte(`{"method":"` + methodResumed + `","params":{"received":0}}`), nil
	}
	<-r.closed
	return nil, io.EOF
}

// TestInterruptedResume: a server that refuses a WebSocket because it is busy is no outage, and is asked again when it
// says.
func TestInterruptedResume(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	busy := &StatusError{Status: http.StatusTooManyRequests, RetryAfter: 7 * time.Second}
	for _, tt := range []struct {
		name    string
		answers []error // for each attempt before the one that succeeds
		want    string
		took    time.Duration
	}{
		{"at once", nil, "", 0},
		{"busy", []error{busy}, "", 7 * time.Second},
		{"busy for long", []error{busy, busy}, "", 14 * time.Second},
		{"overloaded", []error{&StatusError{Status: http.StatusServiceUnavailable, RetryAfter: 3 * time.Second}}, "", 3 * time.Second},
		{"away", []error{refused}, "down up", pauseMin},
		{"what is between is away", []error{&StatusError{Status: http.StatusBadGateway}}, "down up", pauseMin},
		{"torn", []error{&StatusError{Status: http.StatusBadRequest}}, "down up", pauseMin},
		{"away, then busy", []error{refused, busy, busy}, "down up", pauseMin + 14*time.Second},
		{"busy, then away", []error{busy, refused}, "down up", 7*time.Second + 2*pauseMin},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var heard []string
				next := &resuming{closed: make(chan struct{})}
				tries := 0
				s := NewMessageStream(noMessages{}, MessageOptions{
					Header: http.Header{http.CanonicalHeaderKey(headerCursor): {"tag-0"}}, RetryFor: time.Minute,
					Interrupted: func(err error) { heard = append(heard, map[bool]string{true: "up", false: "down"}[err == nil]) },
					Redial: func(context.Context) (Messages, error) {
						if tries++; tries <= len(tt.answers) {
							return nil, tt.answers[tries-1]
						}
						return next, nil
					},
				}).(*messageStream)
				began := time.Now()
				err := s.resume(io.ErrUnexpectedEOF)
				took := time.Since(began)
				synctest.Wait()
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if got := strings.Join(heard, " "); err != nil || got != tt.want || took != tt.took {
					t.Errorf("%v after %v and %d attempts, heard %q; want %q after %v", err, took, tries, got, tt.want, tt.took)
				}
			})
		})
	}
}
