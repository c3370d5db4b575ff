package acp

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

// relayed is a transport to an agent behind a relay. The openings from broken on fail
// with err, as many as there are errors.
type relayed struct {
	agent  *Agent
	opened int
	broken int
	errs   []error
	cut    context.CancelFunc
}

// broken is a stream that breaks before anything is answered.
type broken struct{ err error }

func (b *broken) ReadFrame() (jsonrpc.Frame, error) { return jsonrpc.Frame{}, b.err }
func (b *broken) WriteFrame([]byte) error           { return nil }
func (b *broken) Close() error                      { return nil }

func (r *relayed) Open(ctx context.Context) (jsonrpc.Stream, error) {
	r.opened++
	if i := r.opened - r.broken; i >= 0 && i < len(r.errs) {
		return &broken{r.errs[i]}, nil
	}
	ours, theirs := Pipe()
	serving, cut := context.WithCancel(context.WithoutCancel(ctx))
	r.cut = cut
	go func() { _ = r.agent.Serve(serving, ours) }()
	return theirs.Open(ctx)
}

// TestBrokenHandshake: a network that fails before initialize is answered does not make
// the client speak another version, neither at first nor when it reconnects. An agent
// that closes the connection may want the other one.
func TestBrokenHandshake(t *testing.T) {
	reset := errors.New("connection reset by peer")
	for _, tt := range []struct {
		name      string
		broken    int // the first opening that fails
		err       error
		want      error // of Connect or Reconnect
		version   int
		reconnect bool
	}{
		{"reset at first", 1, reset, reset, 0, false},
		{"torn at first", 1, io.ErrUnexpectedEOF, io.ErrUnexpectedEOF, 0, false},
		{"closed at first", 1, io.EOF, nil, 1, false},
		{"reset again", 2, reset, reset, 0, true},
		{"closed again", 2, io.EOF, io.EOF, 0, true},
		{"well", 9, nil, nil, 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			agent := logged(t, &Agent{Prompt: func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil }})
			r := &relayed{agent: agent, broken: tt.broken, errs: []error{tt.err}}
			defer func() {
				if r.cut != nil {
					r.cut()
				}
			}()
			conn, err := new(Client).Connect(t.Context(), r)
			if tt.reconnect {
				if err != nil {
					t.Fatal(err)
				}
				r.cut()
				<-conn.Done()
				conn, _, err = conn.Reconnect(t.Context(), false)
			}
			if !errors.Is(err, tt.want) || err == nil && conn.Version() != tt.version {
				t.Fatalf("%v, and the error is %v", conn, err)
			}
			if err == nil {
				_ = conn.Close()
			}
		})
	}
}
