package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/jsonrpc"
)

// A result is what [Relay] returned.
type result struct {
	side Side
	err  error
}

// between runs a relay between two streams. The ends that are returned are those of the peers.
func between(t *testing.T, far jsonrpc.Stream, o Options) (client, agent jsonrpc.Stream, done chan result) {
	t.Helper()
	client, near := jsonrpc.Pipe()
	if far == nil {
		far, agent = jsonrpc.Pipe()
	}
	done = make(chan result, 1)
	go func() {
		side, err := Relay(t.Context(), near, far, o)
		done <- result{side, err}
	}()
	return client, agent, done
}

// send writes a message.
func send(t *testing.T, s jsonrpc.Stream, text string) {
	t.Helper()
	if err := s.WriteFrame([]byte(text)); err != nil {
		t.Fatalf("writing %s: %v", text, err)
	}
}

// expect reads a message.
func expect(t *testing.T, s jsonrpc.Stream, want string) {
	t.Helper()
	f, err := s.ReadFrame()
	if err != nil || string(f.Data) != want {
		t.Fatalf("read %s, %v, want %s", f.Data, err, want)
	}
}

// ends waits for the end of a relay.
func ends(t *testing.T, done chan result, side Side, err error) {
	t.Helper()
	got := <-done
	if got.side != side || !errors.Is(got.err, err) || err == nil && got.err != nil {
		t.Errorf("the relay returned %v, %v, want %v, %v", got.side, got.err, side, err)
	}
}

// TestOrder: messages pass in both directions at once, unchanged and in order.
func TestOrder(t *testing.T) {
	client, agent, done := between(t, nil, Options{})
	const n = 1000
	var work sync.WaitGroup
	for _, s := range []jsonrpc.Stream{client, agent} {
		work.Go(func() {
			for i := range n {
				if err := s.WriteFrame(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"m","params":{"n":%d}}`, i)); err != nil {
					t.Error(err)
				}
			}
		})
		work.Go(func() {
			for i := range n {
				f, err := s.ReadFrame()
				if want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"m","params":{"n":%d}}`, i); err != nil || string(f.Data) != want {
					t.Errorf("read %s, %v, want %s", f.Data, err, want)
					return
				}
			}
		})
	}
	work.Wait()
	_ = client.Close()
	ends(t, done, Near, nil)
	if _, err := agent.ReadFrame(); err != io.EOF {
		t.Errorf("the agent reads %v", err)
	}
}

// TestOneLine: a message on several lines becomes one, since the far side may read lines.
func TestOneLine(t *testing.T) {
	client, agent, done := between(t, nil, Options{})
	send(t, client, "{\n\t\"jsonrpc\": \"2.0\",\r\n\t\"method\": \"\xff\"\n}")
	expect(t, agent, "{ \t\"jsonrpc\": \"2.0\",  \t\"method\": \"\xff\" }")
	_ = client.Close()
	ends(t, done, Near, nil)
}

// TestNoise: lines that are not messages do not pass.
func TestNoise(t *testing.T) {
	here, there := net.Pipe()
	client, _, done := between(t, jsonrpc.NewLineStream(here, here), Options{})
	go func() {
		_, _ = io.WriteString(there, "Welcome!\n  \x1b[31m{\n{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\nbye\n")
		_ = there.Close()
	}()
	expect(t, client, `{"jsonrpc":"2.0","method":"m"}`)
	if _, err := client.ReadFrame(); err != io.EOF {
		t.Errorf("the client reads %v", err)
	}
	ends(t, done, Far, nil)
}

// A scripted stream reads what next returns.
type scripted struct {
	jsonrpc.Stream
	next []error
}

// ReadFrame returns the errors first.
func (s *scripted) ReadFrame() (jsonrpc.Frame, error) {
	if len(s.next) > 0 {
		err := s.next[0]
		s.next = s.next[1:]
		return jsonrpc.Frame{}, err
	}
	return s.Stream.ReadFrame()
}

// TestUnanswered: a request that the network lost is answered with the reason, once.
func TestUnanswered(t *testing.T) {
	far, agent := jsonrpc.Pipe()
	asked := make(chan struct{})
	lost := &jsonrpc.UnansweredError{ID: []byte("7"), Err: &acphttp.StatusError{Status: 503, Text: "busy"}}
	client, _, done := between(t, &gated{&scripted{far, []error{lost, lost, &jsonrpc.UnansweredError{ID: []byte(`"x"`), Err: io.EOF}}}, asked}, Options{})
	send(t, client, `{"jsonrpc":"2.0","id":7,"method":"m"}`)
	expect(t, agent, `{"jsonrpc":"2.0","id":7,"method":"m"}`)
	close(asked)
	expect(t, client, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"HTTP status 503 Service Unavailable: busy","data":{"status":503,"body":"busy"}}}`)
	send(t, agent, `{"jsonrpc":"2.0","method":"later"}`)
	expect(t, client, `{"jsonrpc":"2.0","method":"later"}`)
	_ = client.Close()
	ends(t, done, Near, nil)
}

// A gated stream reads nothing until the gate is closed.
type gated struct {
	jsonrpc.Stream
	gate chan struct{}
}

// ReadFrame waits for the gate.
func (g *gated) ReadFrame() (jsonrpc.Frame, error) {
	<-g.gate
	return g.Stream.ReadFrame()
}

// TestTooLarge: of a message that is too large, whoever waits for something because of it gets an error.
func TestTooLarge(t *testing.T) {
	big := func(prefix string) error {
		return &jsonrpc.FrameTooLargeError{Limit: 10, Size: 100, Prefix: []byte(prefix)}
	}
	for _, tt := range []struct {
		name, prefix string
		client       string // what the client gets
		agent        string // what the agent gets
	}{
		{"request of the agent", `{"id":1,"method":"m","params":"aaa`, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: message too large","data":{"limit":10}}}`},
		{"answer of the agent", `{"id":"a","result":"aaa`, `{"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"the answer is too large: 100 bytes, at most 10 are forwarded"}}`, ""},
		{"notification", `{"method":"m","params":"aaa`, "", ""},
		{"nonsense", `aaaaaaa`, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			far, agent := jsonrpc.Pipe()
			client, _, done := between(t, &scripted{far, []error{big(tt.prefix)}}, Options{})
			if tt.agent != "" {
				expect(t, agent, tt.agent)
			}
			if tt.client != "" {
				expect(t, client, tt.client)
			}
			send(t, agent, `{"method":"later"}`)
			expect(t, client, `{"method":"later"}`)
			_ = client.Close()
			ends(t, done, Near, nil)
		})
	}
}

// An exiting stream has an exit error.
type exiting struct {
	jsonrpc.Stream
	err error
}

// ExitErr returns it.
func (e *exiting) ExitErr() error { return e.err }

// TestFarEnds: what the far side has not answered is answered with the reason.
func TestFarEnds(t *testing.T) {
	errExit := errors.New("it crashed")
	for _, tt := range []struct {
		name    string
		exit    error
		explain func(error) error
		message string
	}{
		{"well", nil, nil, "the agent has ended without an answer"},
		{"badly", errExit, nil, "it crashed"},
		{"explained", errExit, func(err error) error { return fmt.Errorf("the agent says that %w", err) }, "the agent says that it crashed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			far, agent := jsonrpc.Pipe()
			client, _, done := between(t, jsonrpc.Tap(&exiting{far, tt.exit}, func(bool, []byte) {}), Options{Explain: tt.explain})
			send(t, client, `{"id":1,"method":"m"}`)
			expect(t, agent, `{"id":1,"method":"m"}`)
			send(t, client, `{"id":2,"method":"m"}`)
			expect(t, agent, `{"id":2,"method":"m"}`)
			send(t, agent, `{"id":1,"result":{}}`)
			_ = agent.Close()
			expect(t, client, `{"id":1,"result":{}}`)
			expect(t, client, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"`+tt.message+`"}}`)
			if _, err := client.ReadFrame(); err != io.EOF {
				t.Errorf("the client reads %v", err)
			}
			ends(t, done, Far, tt.exit)
		})
	}
}

// A slow stream says something while it is closed, as a process does.
type slow struct {
	jsonrpc.Stream
	last chan string
	once sync.Once
}

// ReadFrame returns what is said at the end.
func (s *slow) ReadFrame() (jsonrpc.Frame, error) {
	last, ok := <-s.last
	if !ok {
		return jsonrpc.Frame{}, io.EOF
	}
	return jsonrpc.Frame{Data: []byte(last)}, nil
}

// Close says it.
func (s *slow) Close() error {
	s.once.Do(func() { s.last <- `{"method":"bye"}`; close(s.last) })
	return nil
}

// TestLastWords: what the far side says when its input ends arrives.
func TestLastWords(t *testing.T) {
	here, there := net.Pipe()
	far, agent := jsonrpc.Pipe()
	defer agent.Close()
	done := make(chan result, 1)
	near := &halfOpen{jsonrpc.NewLineStream(here, here)}
	go func() {
		side, err := Relay(t.Context(), near, &slow{Stream: far, last: make(chan string, 1)}, Options{})
		done <- result{side, err}
	}()
	text, err := io.ReadAll(there)
	if err != nil || string(text) != `{"method":"bye"}`+"\n" {
		t.Errorf("%q, %v", text, err)
	}
	ends(t, done, Near, nil)
	_ = far.Close()
}

// A halfOpen stream has nothing to read.
type halfOpen struct{ jsonrpc.Stream }

// ReadFrame is at the end.
func (halfOpen) ReadFrame() (jsonrpc.Frame, error) { return jsonrpc.Frame{}, io.EOF }

// TestLinger: the far side has some time for what it was asked before the client left, and no more.
func TestLinger(t *testing.T) {
	for _, answers := range []bool{true, false} {
		t.Run(fmt.Sprint(answers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far, agent := jsonrpc.Pipe()
				near := &slow{last: make(chan string, 1)}
				near.last <- `{"id":1,"method":"m"}`
				close(near.last)
				var mu sync.Mutex
				var got []string
				done := make(chan result, 1)
				began := time.Now()
				go func() {
					side, err := Relay(t.Context(), &collecting{near, &mu, &got}, far, Options{Linger: time.Minute})
					done <- result{side, err}
				}()
				expect(t, agent, `{"id":1,"method":"m"}`)
				time.Sleep(time.Second)
				if answers {
					send(t, agent, `{"id":1,"result":1}`)
				}
				ends(t, done, Near, nil)
				if took := time.Since(began); answers && took != time.Second || !answers && took != time.Minute {
					t.Errorf("it took %v", took)
				}
				if text := strings.Join(got, " "); answers != (text == `{"id":1,"result":1}`) {
					t.Errorf("the client got %q", text)
				}
			})
		})
	}
}

// A collecting stream keeps what is written.
type collecting struct {
	jsonrpc.Stream
	mu  *sync.Mutex
	got *[]string
}

// WriteFrame keeps it.
func (c *collecting) WriteFrame(data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.got = append(*c.got, string(data))
	return nil
}

// Close does nothing.
func (c *collecting) Close() error { return nil }

// TestCancelled: the end of the context ends both sides.
func TestCancelled(t *testing.T) {
	client, near := jsonrpc.Pipe()
	far, agent := jsonrpc.Pipe()
	errEnough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan result, 1)
	go func() {
		side, err := Relay(ctx, near, far, Options{})
		done <- result{side, err}
	}()
	cancel(errEnough)
	ends(t, done, 0, errEnough)
	for _, s := range []jsonrpc.Stream{client, agent} {
		if _, err := s.ReadFrame(); err != io.EOF {
			t.Errorf("read %v", err)
		}
	}
}

// TestLazy: what cannot be opened fails the request that needs it, and nothing is opened without one.
func TestLazy(t *testing.T) {
	errOpen := errors.New("nobody is there")
	opened := 0
	lazy := func() jsonrpc.Stream {
		return Lazy(func(context.Context) (jsonrpc.Stream, error) { opened++; return nil, errOpen })
	}
	client, _, done := between(t, lazy(), Options{})
	send(t, client, `{"id":1,"method":"initialize"}`)
	expect(t, client, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"nobody is there"}}`)
	ends(t, done, Far, errOpen)
	client, _, done = between(t, lazy(), Options{})
	_ = client.Close()
	ends(t, done, Near, nil)
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
}

// TestMaxAsked: beyond the bound requests pass and are not remembered.
func TestMaxAsked(t *testing.T) {
	r := &relay{asked: map[string]struct{}{}}
	for i := range MaxAsked + 10 {
		r.ask(fmt.Append(nil, i))
	}
	if len(r.asked) != MaxAsked || !r.answered([]byte("0")) || r.answered([]byte("0")) || r.answered(fmt.Append(nil, MaxAsked)) {
		t.Errorf("%d are remembered", len(r.asked))
	}
}
