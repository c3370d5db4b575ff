package acp

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/jsonrpc"
)

// numberedStream numbers the frames that are read.
type numberedStream struct {
	jsonrpc.Stream
	n uint64
}

func (s *numberedStream) ReadFrame() (jsonrpc.Frame, error) {
	f, err := s.Stream.ReadFrame()
	s.n++
	f.Number = 100 + s.n
	return f, err
}

// TestUpdateFrame: an update has the number that the stream gave the frame it came in, unless middleware hides that;
// what the client makes itself has none.
func TestUpdateFrame(t *testing.T) {
	for version := 1; version <= 2; version++ {
		for _, hidden := range []bool{false, true} {
			t.Run(fmt.Sprintf("v%d, hidden=%t", version, hidden), func(t *testing.T) {
				agent := &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
					for range 3 {
						if err := t.Say("x"); err != nil {
							return "", err
						}
					}
					return StopEndTurn, nil
				}}
				var got []uint64
				client := &Client{MaxVersion: version, Update: func(_ context.Context, _ *ClientSession, u *Update) {
					if _, ok := u.Update.(*AgentMessageChunk); ok {
						got = append(got, u.Frame)
					} else if u.Synthetic && u.Frame != 0 {
						t.Errorf("%s was made here, and has number %d", u.Kind(), u.Frame)
					}
				}}
				if hidden {
					client.Engine.Incoming = []jsonrpc.Middleware{func(next jsonrpc.Handler) jsonrpc.Handler {
						return func(_ context.Context, r *jsonrpc.Request) (any, error) { return next(context.Background(), r) }
					}}
				}
				ours, theirs := jsonrpc.Pipe()
				served, err := agent.Connect(t.Context(), Over(theirs))
				if err != nil {
					t.Fatal(err)
				}
				defer served.Close()
				conn, err := client.Connect(t.Context(), Over(&numberedStream{Stream: ours}))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Prompt(t.Context(), Text("go")).Wait(); err != nil {
					t.Fatal(err)
				}
				want := []uint64{103, 104, 105} // 101 and 102 are the answers to initialize and session/new
				switch {
				case hidden:
					want = []uint64{0, 0, 0}
				case version == 2: // the answer to the prompt, the message and the running state are before
					want = []uint64{106, 107, 108}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}
