package acp

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// unwrapping is a stream around another that says so.
type unwrapping struct{ jsonrpc.Stream }

func (u unwrapping) Unwrap() jsonrpc.Stream { return u.Stream }

// naive is a stream around another that does not say so, and cannot be compared.
type naive struct {
	jsonrpc.Stream
	_ []int
}

func wrapNaive(s jsonrpc.Stream) jsonrpc.Stream { return naive{Stream: s} }

// TestWrappedCommand holds that a program is supervised through a transport and
// a stream around it: errors have its exit status and last words, and Kill kills.
func TestWrappedCommand(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh on this machine")
	}
	for name, wrap := range map[string]func(*CommandTransport) Transport{
		"transport": func(c *CommandTransport) Transport { return WrapTransport(WrapTransport(c, wrapNaive), wrapNaive) },
		"log":       func(c *CommandTransport) Transport { return LogTransport(LogTransport(c, io.Discard), io.Discard) },
		"other": func(c *CommandTransport) Transport {
			return WrapTransport(c, func(s jsonrpc.Stream) jsonrpc.Stream { return unwrapping{s} })
		},
		"stream": func(c *CommandTransport) Transport {
			s, err := c.Open(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			return Over(unwrapping{s})
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&Client{MaxVersion: 1}).Connect(t.Context(), wrap(Command(sh, "-c", `echo oops >&2; exit 3`)))
			if err == nil || !strings.Contains(err.Error(), "3") || !strings.Contains(err.Error(), "oops") {
				t.Error(err)
			}
			command := Command(sh, "-c", `trap '' TERM
				read line
				printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
				while :; do sleep 1; done`)
			command.CloseGrace, command.TermGrace = time.Hour, time.Hour
			conn, err := (&Client{MaxVersion: 1}).Connect(t.Context(), wrap(command))
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Kill(); err != nil { // would take an hour
				t.Error(err)
			}
			clientNoLeaks(t)
			processes.Range(func(any, any) bool {
				t.Error("a process is remembered")
				return false
			})
		})
	}
}

// exitStream is a stream that knows how its peer ended.
type exitStream struct{ jsonrpc.Stream }

var errExit = errors.New("status 9")

func (exitStream) ExitErr() error { return errExit }

// TestWrappedExitErr holds that a stream's ExitErr is found through those around
// it, and that streams around each other in a circle do no harm.
func TestWrappedExitErr(t *testing.T) {
	ours, theirs := jsonrpc.Pipe()
	_ = ours.Close()
	_, err := (&Client{MaxVersion: 1}).Connect(t.Context(), Over(unwrapping{exitStream{theirs}}))
	if !errors.Is(err, errExit) {
		t.Error(err)
	}
	inside := WrapTransport(Over(theirs), func(s jsonrpc.Stream) jsonrpc.Stream { return exitStream{s} })
	if _, err := (&Client{MaxVersion: 1}).Connect(t.Context(), WrapTransport(inside, wrapNaive)); !errors.Is(err, errExit) {
		t.Error(err)
	}
	if p := processOf(circle{}); p != nil {
		t.Error(p)
	}
	around := WrapTransport(Over(circle{}), wrapNaive)
	if s, err := around.Open(t.Context()); err != nil || processOf(s) != nil {
		t.Error(s, err)
	}
}

// circle is a stream around itself.
type circle struct{ jsonrpc.Stream }

func (c circle) Unwrap() jsonrpc.Stream { return c }

// TestMisconfiguredPeer holds that a side that fails on its configuration does not
// leave its peer waiting.
func TestMisconfiguredPeer(t *testing.T) {
	for name, fails := range map[string]func(context.Context, Transport) error{
		"Agent.Serve":   func(ctx context.Context, tr Transport) error { return new(Agent).Serve(ctx, tr) },
		"Agent.Connect": func(ctx context.Context, tr Transport) error { _, err := new(Agent).Connect(ctx, tr); return err },
		"Client.Connect": func(ctx context.Context, tr Transport) error {
			_, err := (&Client{MinVersion: 3}).Connect(ctx, tr)
			return err
		},
		"wrapped": func(ctx context.Context, tr Transport) error {
			return new(Agent).Serve(ctx, LogTransport(tr, io.Discard))
		},
		"Bridge.Serve": func(ctx context.Context, tr Transport) error {
			return (&Bridge{ClientVersions: [2]int{3, 4}}).Serve(ctx, tr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := Pipe()
				peer := make(chan error, 1)
				go func() {
					if strings.HasPrefix(name, "Client") {
						peer <- (&Agent{Prompt: func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil }}).Serve(context.Background(), b)
						return
					}
					_, err := new(Client).Connect(context.Background(), b)
					peer <- err
				}()
				synctest.Wait()
				if err := fails(t.Context(), a); err == nil {
					t.Error("no error")
				}
				synctest.Wait()
				select {
				case err := <-peer:
					if (err == nil) != strings.HasPrefix(name, "Client") || err != nil && !errors.Is(err, jsonrpc.ErrClosed) {
						t.Error(err)
					}
				default:
					t.Error("the peer waits")
				}
			})
		})
	}
	// A program is not started for that.
	if _, err := (&Client{MinVersion: 3}).Connect(t.Context(), Command("/there/is/no/such/program")); err == nil || strings.Contains(err.Error(), "program") {
		t.Error(err)
	}
	endTransport(t.Context(), nil)
}
