package cli

import (
	"context"
	"errors"
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

// errPipe is the cancellation cause after the reader of standard output has gone.
var errPipe = errors.New("the output has no reader any more")

// slowAfter is how long the program may take to end before the user is reminded of the second
// interrupt.
const slowAfter = time.Second

// watchSignals returns a context that SIGINT, SIGTERM and SIGHUP cancel. The second SIGINT or
// SIGTERM calls exit, which ends the process together with the agents it has started. A signal that
// follows another of its kind within [interrupt.Window] is ignored, because some terminals and
// process supervisors send one twice. Until stop is called, writing to a closed pipe fails instead
// of ending the process by SIGPIPE.
//
// handle diverts all SIGINTs to a function, until the function that it returns is called; the line
// interface uses it to cancel a turn. slow is called once if the program has not ended within
// slowAfter of the first SIGINT.
func watchSignals(ctx context.Context, exit func(int), slow func()) (_ context.Context, handle func(func()) func(), stop func()) {
	var handler atomic.Pointer[func()]
	handle = func(f func()) func() {
		handler.Store(&f)
		return func() { handler.CompareAndSwap(&f, nil) }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endSignals...)
	pipes := make(chan os.Signal, 1) // never read: registering it is what counts
	notifyPipe(pipes)
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		var late <-chan time.Time
		var once interrupt.Filter
		for counted := 0; ; {
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
				cancel(&interrupt.Error{Signal: s})
				if s == syscall.SIGHUP {
					continue // closing a terminal may send several
				}
				if counted++; counted > 1 {
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

// leaveWithin bounds how long a [farewell] may delay the exit.
const leaveWithin = time.Second

// A farewell is the clean-up that must happen even if the process exits at the second interrupt,
// while the functions that would normally do it are still blocked: restoring the terminal, for
// example. Its methods may be called from any goroutine.
type farewell struct {
	mu   sync.Mutex
	todo []*func()
}

// onExit makes exit call f, until forget is called.
func (w *farewell) onExit(f func()) (forget func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.todo = append(w.todo, &f)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.todo = slices.DeleteFunc(w.todo, func(other *func()) bool { return other == &f })
	}
}

// exit calls the registered functions, the latest first. It returns when they have returned, or
// after leaveWithin.
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

// A pipe passes on what is written to it and detects when its reader has gone. From then on it
// discards everything and reports success, so that the command ends by its cancelled context
// instead of failing in the middle of whatever it is writing.
type pipe struct {
	w      io.Writer
	broken func()
	gone   atomic.Bool
	failed atomic.Pointer[error] // the first other failure, such as a full disk
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
