package serve

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/interrupt"
)

// TestAsks: an interrupt in a terminal asks what becomes of agents that are at work, and of no others.
func TestAsks(t *testing.T) {
	work := gateway.Busy{Clients: 1, Turns: 1}
	for _, tt := range []struct {
		name  string
		busy  gateway.Busy
		typed string // ^ is another interrupt
		want  error
		asked bool
	}{
		{"kept", work, "k\n", errKeep, true},
		{"kept, in a word", gateway.Busy{Asks: 1}, "Keep\n", errKeep, true},
		{"ended", work, "e\n", errEnd, true},
		{"interrupted again", work, "^", errEnd, true},
		{"the terminal is gone", work, "", errEnd, true},
		{"clients only", gateway.Busy{Clients: 3}, "", errEnd, false},
		{"nothing", gateway.Busy{}, "", errEnd, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, types, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			var said bytes.Buffer
			var press func()
			o := &Options{App: &app.App{
				In: in, Err: &said, InTerminal: true, ErrTerminal: true,
				Interrupts: func(f func()) func() { press = f; return func() {} },
			}}
			ctx, done := o.asks(t.Context(), func() gateway.Busy {
				if tt.typed == "^" {
					press()
				} else if _, err := types.WriteString(tt.typed); err != nil {
					t.Error(err)
				}
				_ = types.Close()
				return tt.busy
			})
			press()
			<-ctx.Done()
			done()
			if cause := context.Cause(ctx); !errors.Is(cause, tt.want) {
				t.Errorf("%v, want %v", cause, tt.want)
			}
			if asked := strings.Contains(said.String(), "Keep them"); asked != tt.asked {
				t.Errorf("asked: %v; %s", asked, &said)
			}
			if leaves := o.leaves(ctx, t.TempDir()); leaves != (tt.want == errKeep) {
				t.Errorf("leaves the agents: %v", leaves)
			}
		})
	}
}

// TestLeaves: a server that is asked to make room for another one leaves its agents, and one that is to stop does not.
func TestLeaves(t *testing.T) {
	for _, tt := range []struct {
		name       string
		cause      error
		keep, stop bool
		want       bool
	}{
		{"terminated", &interrupt.Error{Signal: syscall.SIGTERM}, false, false, true},
		{"hung up", &interrupt.Error{Signal: syscall.SIGHUP}, false, false, true},
		{"interrupted", &interrupt.Error{Signal: os.Interrupt}, false, false, false},
		{"interrupted, with --keep-agents", &interrupt.Error{Signal: os.Interrupt}, true, false, true},
		{"stopped", &interrupt.Error{Signal: syscall.SIGTERM}, true, true, false},
		{"idle", errIdle, true, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			state := t.TempDir()
			if err := os.Mkdir(filepath.Join(state, "gateway"), 0o700); err != nil {
				t.Fatal(err)
			}
			if tt.stop {
				if err := os.WriteFile(filepath.Join(state, "gateway", "stopping"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(tt.cause)
			o := &Options{App: new(app.App), Operation: Operation{KeepAgents: tt.keep}}
			if got := o.leaves(ctx, state); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
