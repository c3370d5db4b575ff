package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/jsonrpc"
)

// oddStream is a stream whose reader is given errors in between, and whose lanes have
// room only when it says so.
type oddStream struct {
	jsonrpc.Stream
	odd  chan error
	room map[string]chan struct{} // closed: there is room
	mu   sync.Mutex
	seen []string
}

func (s *oddStream) ReadFrame() (jsonrpc.Frame, error) {
	select {
	case err := <-s.odd:
		return jsonrpc.Frame{}, err
	default:
		return s.Stream.ReadFrame()
	}
}

func (s *oddStream) Pace(ctx context.Context, lane string) error {
	s.mu.Lock()
	s.seen = append(s.seen, lane)
	s.mu.Unlock()
	select {
	case <-s.room[lane]:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errStuck = errors.New("stuck")

func laneByParams(_ string, params any) string {
	if p, ok := params.(json.RawMessage); ok && len(p) > 2 && p[0] == '"' {
		return string(p[1 : len(p)-1])
	}
	return ""
}

// TestUnanswered: a stream fails one call, and the connection and other calls continue.
func TestUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := jsonrpc.Pipe()
		mux := new(jsonrpc.Mux)
		release := make(chan struct{})
		wait := jsonrpc.Method[json.RawMessage, json.RawMessage]{Name: "wait"}
		wait.Handle(mux, func(ctx context.Context, p *json.RawMessage) (*json.RawMessage, error) {
			<-release
			return p, nil
		})
		peer := jsonrpc.NewConn(b, jsonrpc.Config{Mux: mux})
		odd := &oddStream{Stream: a, odd: make(chan error, 4)}
		conn := jsonrpc.NewConn(odd, jsonrpc.Config{})
		errs := [2]chan error{make(chan error, 1), make(chan error, 1)}
		for i := range errs {
			go func() { errs[i] <- conn.Call(t.Context(), "wait", json.RawMessage(`1`), new(json.RawMessage)) }()
			synctest.Wait()
		}
		odd.odd <- &jsonrpc.UnansweredError{ID: []byte("0"), Err: errStuck}
		odd.odd <- &jsonrpc.UnansweredError{ID: []byte("0"), Err: errStuck}   // again
		odd.odd <- &jsonrpc.UnansweredError{ID: []byte("99"), Err: errStuck}  // a call that never was
		odd.odd <- &jsonrpc.UnansweredError{ID: []byte(`"x"`), Err: errStuck} // not one of ours
		if err := peer.Notify(t.Context(), "_x", nil); err != nil {           // wakes the reader
			t.Fatal(err)
		}
		err := <-errs[0]
		said := (*jsonrpc.Error)(nil)
		if !errors.Is(err, errStuck) || errors.As(err, &said) || errors.Is(err, jsonrpc.ErrClosed) || !strings.Contains(err.Error(), "wait") {
			t.Errorf("the call failed with %v", err)
		}
		close(release)
		if err := <-errs[1]; err != nil {
			t.Error(err)
		}
		_ = conn.Close()
		_ = peer.Close()
		<-peer.Done()
	})
}

// TestPacer: what is sent in a lane waits for room in that lane, and nothing else does.
func TestPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := jsonrpc.Pipe()
		peer := jsonrpc.NewConn(b, jsonrpc.Config{})
		open := make(chan struct{})
		close(open)
		full := make(chan struct{})
		odd := &oddStream{Stream: a, room: map[string]chan struct{}{"full": full, "open": open}}
		conn := jsonrpc.NewConn(jsonrpc.Tap(odd, func(bool, []byte) {}), jsonrpc.Config{Lane: laneByParams})
		sent := make(chan error, 1)
		go func() { sent <- conn.Notify(t.Context(), "n", json.RawMessage(`"full"`)) }()
		synctest.Wait()
		if err := conn.Notify(t.Context(), "n", json.RawMessage(`"open"`)); err != nil {
			t.Error(err)
		}
		if err := conn.Notify(t.Context(), "n", json.RawMessage(`[]`)); err != nil { // no lane
			t.Error(err)
		}
		if len(sent) > 0 {
			t.Error("what was sent did not wait:", <-sent)
		}
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan error, 1)
		go func() { called <- conn.Call(ctx, "c", json.RawMessage(`"full"`), nil) }()
		synctest.Wait()
		cancel()
		if err := <-called; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(full)
		if err := <-sent; err != nil {
			t.Error(err)
		}
		if got := strings.Join(odd.seen, " "); got != "full open full" {
			t.Error(got)
		}
		_ = conn.Close()
		_ = peer.Close()
		<-peer.Done()
	})
}
