package gateway

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/jsonrpc"
)

// TestTriesAgain: what could not be kept is tried again after a second, unless the session or the time of a gateway that
// closes ends before that.
func TestTriesAgain(t *testing.T) {
	for _, tt := range []struct {
		name          string
		ending, leave time.Duration // 0: never
		want          bool
		took          time.Duration
	}{
		{"nothing happens", 0, 0, true, writeAgain},
		{"the time of the gateway ends", writeAgain / 2, 0, false, writeAgain / 2},
		{"the time has ended", -1, 0, false, 0},
		{"the session is given up", 0, writeAgain / 4, false, writeAgain / 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ending := make(chan struct{})
				switch {
				case tt.ending < 0:
					close(ending)
				case tt.ending > 0:
					time.AfterFunc(tt.ending, func() { close(ending) })
				}
				if tt.leave > 0 {
					time.AfterFunc(tt.leave, cancel)
				}
				began := time.Now()
				got := triesAgain(ctx, ending)
				if took := time.Since(began); got != tt.want || took != tt.took {
					t.Errorf("%v after %v", got, took)
				}
			})
		})
	}
}

// TestUnkeptSession: a client that cannot begin a session learns that the server has no room, or cannot write, and when to
// try again.
func TestUnkeptSession(t *testing.T) {
	for _, tt := range []struct {
		err    error
		reason string
	}{
		{engine.ErrFull, "full"}, {engine.ErrReadOnly, "unavailable"}, {errors.ErrUnsupported, ""},
	} {
		err := unkeptSession(fmt.Errorf("write: %w", tt.err))
		f, ok := errors.AsType[*jsonrpc.Failure](err)
		if ok != (tt.reason != "") || ok && (f.Reason != tt.reason || f.RetryAfter == 0) || !ok && !errors.Is(err, tt.err) {
			t.Errorf("%v: %v", tt.err, err)
		}
	}
}
