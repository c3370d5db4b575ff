package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/filelock"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/own"
)

// Own are the flags of a server that ends by itself.
type Own struct {
	Background bool          // it was started by another command, and writes to a log
	IdleExit   time.Duration // it ends after nothing was left to keep for this time; 0 means never
}

func (w *Own) flags(f *pflag.FlagSet) {
	f.DurationVar(&w.IdleExit, "idle-exit", 0, "end when no client is attached, no turn runs and no question waits for `TIME` (default: never)")
	f.BoolVar(&w.Background, "background", false, "")
	_ = f.MarkHidden("background")
}

// check refuses what makes no sense.
func (w *Own) check(keeps bool) error {
	switch {
	case w.IdleExit < 0:
		return exitcode.Errorf(exitcode.Usage, "--idle-exit %s is negative", w.IdleExit)
	case w.IdleExit > 0 && !keeps:
		return exitcode.Errorf(exitcode.Usage, "--idle-exit is for a server that keeps sessions")
	}
	return nil
}

// begin announces the server to the commands of its user, and ends it when it has nothing left to keep: ctx is done then.
// end takes that back.
func (o *Options) begin(ctx context.Context, state, url string, g *gateway.Gateway) (_ context.Context, end func(), err error) {
	ctx, answered := o.asks(ctx, g.Busy)
	if o.Cluster.Database != "" { // sessions are not here alone
		return ctx, answered, nil
	}
	defer func() {
		if err != nil {
			answered()
		}
	}()
	s := own.Server{PID: os.Getpid(), URL: url, Started: time.Now().UTC().Truncate(time.Second), Background: o.Own.Background}
	var log *own.Log
	if o.Own.Background {
		s.Log = own.LogFile(state)
		if log, err = own.OpenLog(s.Log); err != nil {
			return nil, nil, err
		}
		o.App.Err = &serialized{w: log}
	}
	forget, err := own.Announce(state, s)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var lingering sync.WaitGroup
	if o.Own.IdleExit > 0 {
		lingering.Go(func() {
			if own.Linger(ctx, o.Own.IdleExit, func() bool { return !g.Busy().None() }) == nil {
				o.note(fmt.Sprintf("nothing was left to keep for %v: ending", o.Own.IdleExit))
				cancel(errIdle)
			}
		})
	}
	return ctx, func() {
		cancel(nil)
		answered()
		lingering.Wait()
		forget()
		if log != nil {
			o.note("ended")
			_ = log.Close()
			o.App.Err = io.Discard
		}
	}, nil
}

// Bounds of how long a server waits for one that is ending: in the background, and where somebody waits for it. A process
// that was killed just now may have the lock still.
const (
	lockWait  = 10 * time.Second
	lockAgain = time.Second
)

// lock locks the directory of the gateway.
func (w *Own) lock(ctx context.Context, f *os.File) (bool, error) {
	end := time.Now().Add(lockAgain)
	if w.Background {
		end = time.Now().Add(lockWait)
	}
	for {
		ok, err := filelock.TryLock(f, true)
		if ok || err != nil || time.Now().After(end) {
			return ok, err
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, context.Cause(ctx)
		}
	}
}

var errIdle = errors.New("nothing is left to keep")

// A serialized writer may be used from any goroutine.
type serialized struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements [io.Writer].
func (s *serialized) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(append([]byte(time.Now().UTC().Format("2006-01-02 15:04:05 ")), p...))
}

// knows reports whether an agent that is not in the configuration is one all the same: a command line, for those who
// could start it themselves.
func (o *Options) knows(name string) bool {
	if !o.Own.Background || strings.TrimSpace(name) == "" {
		return false
	}
	_, err := o.App.Hosted(name)
	return err == nil
}
