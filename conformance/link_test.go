package conformance

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

// TestRecordInTurn holds that frames are told of one at a time, though scenarios
// have connections of their own while the shared one is open, on which the agent
// does not keep quiet.
func TestRecordInTurn(t *testing.T) {
	var talkers sync.WaitGroup
	open := func(context.Context) (*Peer, error) {
		ours, theirs := jsonrpc.Pipe()
		talkers.Go(func() {
			for theirs.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"_noise"}`)) == nil {
				runtime.Gosched()
			}
		})
		talkers.Go(func() {
			defer func() { _ = theirs.Close() }()
			w := &between{methods: map[string]string{}, count: map[string]int{}}
			for {
				frame, err := theirs.ReadFrame()
				if err != nil {
					return
				}
				f := w.fly(Client, string(frame.Data))
				what := `"error":{"code":-32601,"message":"no"}`
				if f.method == "initialize" {
					what = `"result":{"protocolVersion":1}`
				}
				if theirs.WriteFrame([]byte(respond(f, what))) != nil {
					return
				}
			}
		})
		return &Peer{Stream: ours}, nil
	}
	var inside, twice atomic.Int32
	calls := strings.Repeat("alive\n", 20)
	rules := oneRule("", calls) + strings.Replace(oneRule("fresh", calls), "-- x --", "-- y --", 1)
	_, err := CheckAgent(t.Context(), open, Options{
		Versions: []int{1}, catalog: rulesOf(t, Agent, rules),
		Record: func(trace.Direction, []byte) {
			if inside.Add(1) > 1 {
				twice.Add(1)
			}
			runtime.Gosched()
			inside.Add(-1)
		},
	})
	talkers.Wait()
	if err != nil || twice.Load() > 0 {
		t.Errorf("told of %d frames while another was told of; %v", twice.Load(), err)
	}
}

// counted is a stream that counts those of its kind that are open.
type counted struct {
	jsonrpc.Stream
	open *atomic.Int32
	once sync.Once
}

func (s *counted) Close() error {
	s.once.Do(func() { s.open.Add(-1) })
	return s.Stream.Close()
}

// TestOneConnection holds that an agent is spoken to on one connection at a time,
// as recordings have them.
func TestOneConnection(t *testing.T) {
	var open atomic.Int32
	agent := polite(func(m *flying) []string { return []string{respond(m, `"result":{}`)} })
	rules := ""
	for i, metadata := range []string{"fresh", "", "bare", "", "fresh"} {
		scenario := "call $r _x\nresult $r"
		if metadata == "bare" {
			scenario = "initialize\n" + scenario
		}
		rules += strings.Replace(oneRule(metadata, scenario), "-- x --", fmt.Sprintf("-- x%d --", i), 1)
	}
	report, err := CheckAgent(t.Context(), func(ctx context.Context) (*Peer, error) {
		if n := open.Add(1); n > 1 {
			t.Errorf("%d connections are open", n)
		}
		p, err := agent(ctx)
		p.Stream = &counted{Stream: p.Stream, open: &open}
		return p, err
	}, Options{catalog: rulesOf(t, Agent, rules)})
	passed := 0
	for _, r := range report.Results {
		if r.Status == Pass {
			passed++
		}
	}
	if err != nil || passed != 5 || open.Load() != 0 {
		t.Errorf("%d rules passed, %d connections are left open; %v", passed, open.Load(), err)
	}
}

// TestLastWords holds that an agent may have much to say between the end of its
// input and its own.
func TestLastWords(t *testing.T) {
	open := func(context.Context) (*Peer, error) {
		ours, theirs := jsonrpc.Pipe()
		eof, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			f, err := theirs.ReadFrame()
			if err != nil {
				return
			}
			w := &between{methods: map[string]string{}, count: map[string]int{}}
			if theirs.WriteFrame([]byte(respond(w.fly(Client, string(f.Data)), `"result":{"protocolVersion":1}`))) != nil {
				return
			}
			<-eof
			for range 3 * maxWaiting {
				if theirs.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"_x"}`)) != nil {
					return
				}
			}
			_ = theirs.Close()
		}()
		return &Peer{
			Stream: ours, CloseWrite: func() error { close(eof); return nil },
			Wait: func(ctx context.Context) (int, error) {
				select {
				case <-ended:
					return 0, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			},
		}, nil
	}
	synctest.Test(t, func(t *testing.T) {
		report, err := CheckAgent(t.Context(), open, Options{
			Versions: []int{1}, catalog: rulesOf(t, Agent, oneRule("", "eof\nexit 0")),
		})
		if err != nil || len(report.Results) != 1 || report.Results[0].Status != Pass {
			t.Errorf("%v, %+v", err, report.Results[0])
		}
	})
}

// stuckWriter is one whose writes end with it, and not before.
type stuckWriter chan struct{}

func (w stuckWriter) Write(b []byte) (int, error) {
	<-w
	return len(b), nil
}

// TestStuckWriter holds that a check ends even if writing past a stream does not
// when it is closed.
func TestStuckWriter(t *testing.T) {
	agent := polite(func(m *flying) []string { return []string{respond(m, `"result":{}`)} })
	synctest.Test(t, func(t *testing.T) {
		w := make(stuckWriter)
		defer close(w)
		report, err := CheckAgent(t.Context(), func(ctx context.Context) (*Peer, error) {
			p, err := agent(ctx)
			p.Raw = w
			return p, err
		}, Options{Versions: []int{1}, catalog: rulesOf(t, Agent, oneRule("", `raw "x"`))})
		if err != nil || len(report.Results) != 1 || report.Results[0].Status != Fail {
			t.Errorf("%v, %+v", err, report)
		}
	})
}

// gappy is a stream with an empty frame before each other.
type gappy struct {
	jsonrpc.Stream
	gave bool
}

func (s *gappy) ReadFrame() (jsonrpc.Frame, error) {
	if s.gave = !s.gave; s.gave {
		return jsonrpc.Frame{}, nil
	}
	return s.Stream.ReadFrame()
}

// TestEmptyFrame holds that a frame with nothing in it is not taken for the end
// of the connection.
func TestEmptyFrame(t *testing.T) {
	agent := polite(func(m *flying) []string { return []string{respond(m, `"result":{}`)} })
	open := func(ctx context.Context) (*Peer, error) {
		p, err := agent(ctx)
		p.Stream = &gappy{Stream: p.Stream}
		return p, err
	}
	report, err := CheckAgent(t.Context(), open, Options{
		Versions: []int{1}, catalog: rulesOf(t, Agent, oneRule("", "call $r _x\nresult $r")),
	})
	if err != nil || len(report.Results) != 1 || report.Results[0].Status != Pass {
		t.Errorf("%v, %+v", err, report)
	}
}
