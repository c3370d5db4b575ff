package acphost

import (
	"slices"
	"sync"

	"github.com/goacp/acp/acpv1"
)

// maxWatchPending bounds the output that waits for the hook, in bytes.
const maxWatchPending = 256 << 10

// A TerminalEvent is what a terminal has done: one of Started, Output and
// Exited. Started comes first and Exited once, after what the command itself has
// printed; processes it has left behind may print more after that.
type TerminalEvent struct {
	SessionID  acpv1.SessionID
	TerminalID acpv1.TerminalID

	Started *TerminalStart
	// Output is what was printed, which may begin and end within a character.
	// The hook may keep it. Dropped is how many bytes before it were dropped
	// since the hook was too slow.
	Output  []byte
	Dropped int
	Exited  *acpv1.TerminalExitStatus
}

// A TerminalStart is what is run: what the request says or, for one that is a
// line, the shell with it.
type TerminalStart struct {
	Command string
	Args    []string
	Cwd     string // absolute
}

// A watcher has the output that the hook has not received yet.
type watcher struct {
	hook  func(TerminalEvent)
	event TerminalEvent // with the ids
	wake  chan struct{} // holds an element when there is output

	mu      sync.Mutex
	pending []byte
	dropped int
}

func newWatcher(hook func(TerminalEvent), event TerminalEvent) *watcher {
	return &watcher{hook: hook, event: event, wake: make(chan struct{}, 1)}
}

// write adds output, which it copies.
func (w *watcher) write(b []byte) {
	if len(b) == 0 {
		return
	}
	w.mu.Lock()
	w.pending = append(w.pending, b...)
	if n := len(w.pending) - maxWatchPending; n > 0 {
		w.pending = slices.Delete(w.pending, 0, n)
		w.dropped += n
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// flush passes on the output there is.
func (w *watcher) flush() {
	e := w.event
	w.mu.Lock()
	e.Output, e.Dropped = w.pending, w.dropped
	w.pending, w.dropped = nil, 0
	w.mu.Unlock()
	if len(e.Output) > 0 {
		w.hook(e)
	}
}

// watch tells the hook of everything, until there will be nothing more.
func (t *terminal) watch(start TerminalStart) {
	w := t.watcher
	e := w.event
	e.Started = &start
	w.hook(e)
	read, exited := t.read, t.exited
	for read != nil || exited != nil {
		select {
		case <-w.wake:
			w.flush()
		case <-read:
			read = nil
			w.flush()
		case <-exited:
			exited = nil
			w.flush()
			status := t.status
			e := w.event
			e.Exited = &status
			w.hook(e)
		}
	}
}
