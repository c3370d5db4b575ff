package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/interrupt"
)

// errPipe is the cause of what ends since nobody reads the output any more.
var errPipe = errors.New("nobody reads the output any more")

// An interruption is the cause of what ends since the process was told to.
type interruption struct{ signal os.Signal }

func (e *interruption) Error() string { return fmt.Sprintf("cancelled: %v", e.signal) }

// Is makes it a [context.Canceled] for those who look for that.
func (e *interruption) Is(target error) bool { return target == context.Canceled }

// slowAfter is how long an end may take before who waits is told what else can be done.
const slowAfter = time.Second

// watchSignals returns a context that SIGINT, SIGTERM and SIGHUP cancel. The second SIGINT or
// SIGTERM ends the process by exit: agents and what they have started end with it. A signal that
// follows one of its kind within [interrupt.Window] is ignored. Until stop is called SIGPIPE is an
// error of the write instead of the end.
//
// handle has interrupts call a function instead, however many there are. slow is called once, when
// what runs has not ended slowAfter the first SIGINT.
func watchSignals(ctx context.Context, exit func(int), slow func()) (_ context.Context, handle func(func()) func(), stop func()) {
	var handler atomic.Pointer[func()]
	handle = func(f func()) func() {
		handler.Store(&f)
		return func() { handler.CompareAndSwap(&f, nil) }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endSignals...)
	pipes := make(chan os.Signal, 1) // never read: only that it is asked for counts
	notifyPipe(pipes)
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		var late <-chan time.Time
		var once interrupt.Filter
		for told := 0; ; {
			select {
			case <-done:
				return
			case <-late:
				slow()
			case s := <-signals:
				if !once.Counts(s, time.Now()) {
					continue
				}
				if f := handler.Load(); f != nil && s == os.Interrupt {
					(*f)()
					continue
				}
				cancel(&interruption{s})
				if s == syscall.SIGHUP {
					continue // closing a terminal may send several
				}
				if told++; told > 1 {
					exit(int(exitcode.Cancelled))
				}
				if s == os.Interrupt {
					late = time.After(slowAfter)
				}
			}
		}
	})
	return ctx, handle, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(done)
		watching.Wait()
		cancel(nil)
	}
}

// leaveWithin is how long what is called before the exit may take.
const leaveWithin = time.Second

// A farewell is what is to be done when the process ends at once, while the functions that would do
// it are still busy.
type farewell struct {
	mu   sync.Mutex
	todo []*func()
}

// add has f called before the exit, until forget is called.
func (w *farewell) add(f func()) (forget func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.todo = append(w.todo, &f)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.todo = slices.DeleteFunc(w.todo, func(other *func()) bool { return other == &f })
	}
}

// exit returns when all is done, or it has taken too long.
func (w *farewell) exit() {
	w.mu.Lock()
	todo := slices.Clone(w.todo)
	w.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, f := range slices.Backward(todo) {
			(*f)()
		}
	}()
	select {
	case <-done:
	case <-time.After(leaveWithin):
	}
}

// A pipe passes on what is written and notices that nobody reads it any more: from then on it
// swallows everything, so that what runs ends in order.
type pipe struct {
	w      io.Writer
	broken func()
	gone   atomic.Bool
	failed atomic.Pointer[error] // the first failure of another kind, such as a full disk
}

func (p *pipe) isBroken() bool { return p.gone.Load() }

// Write writes to the stream below. It never fails because the reader has gone.
func (p *pipe) Write(b []byte) (int, error) {
	if p.gone.Load() {
		return len(b), nil
	}
	n, err := p.w.Write(b)
	if err != nil && isBrokenPipe(err) {
		p.gone.Store(true)
		p.broken()
		return len(b), nil
	}
	if err != nil {
		p.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}
