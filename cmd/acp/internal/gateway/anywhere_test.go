package gateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// TestAnywhere: a call is made again while the session moves, with pauses and not for ever; other errors end it.
func TestAnywhere(t *testing.T) {
	other := errors.New("other")
	leaves := errors.New("the client leaves")
	for _, test := range []struct {
		name   string
		moving int // calls that fail because the session moves; -1 is all
		end    error
		leave  time.Duration
		want   error
		took   time.Duration
	}{
		{name: "at once"},
		{name: "moves", moving: 3, took: 3 * moveAgain},
		{name: "fails", moving: 1, end: other, want: other, took: moveAgain},
		{name: "moves for ever", moving: -1, want: errMoving, took: moveTime},
		{name: "the client leaves", moving: -1, leave: time.Second / 2, want: leaves, took: time.Second / 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &Gateway{sessions: make(map[string]*session)}
				s := newSession(g, "s")
				defer s.cancel(nil)
				close(s.opened)
				g.sessions["s"] = s
				ctx := t.Context()
				if test.leave > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeoutCause(ctx, test.leave, leaves)
					defer cancel()
				}
				calls, begin := 0, time.Now()
				err := g.anywhere(ctx, "s", func(p place) error {
					if calls++; p != s || calls > 1000 {
						t.Fatalf("call %d, of %v", calls, p)
					}
					if test.moving < 0 || calls <= test.moving {
						return errGone
					}
					return test.end
				})
				if took := time.Since(begin); !errors.Is(err, test.want) || took != test.took {
					t.Errorf("%v after %v and %d calls, want %v after %v", err, took, calls, test.want, test.took)
				}
			})
		})
	}
}

// A moving place is about to be gone, for ever.
type moving struct {
	place
	calls *int
}

func (moving) gone() <-chan struct{} { return nil }

func (m moving) setOption(context.Context, acp.SessionConfigID, acp.SessionConfigOptionValue) error {
	if *m.calls++; *m.calls > 1 {
		return errors.New("called again")
	}
	return errGone
}

// TestSetOptionOver: an option that is set while the place is about to be gone, by a client that is sent nothing more, fails.
func TestSetOptionOver(t *testing.T) {
	calls := 0
	w := &watcher{g: &Gateway{closed: true}, at: moving{calls: &calls}, over: make(chan struct{})}
	close(w.over)
	err := w.setOption(t.Context(), "x", nil)
	if f, _ := errors.AsType[*jsonrpc.Failure](err); f == nil || f.Reason != "closing" || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
