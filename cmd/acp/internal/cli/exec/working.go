package exec

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// workingAfter is how long nothing may have been written before a line says that the agent works.
const workingAfter = 2 * time.Second

// A working is the last line on a terminal while nothing else is written: that the agent works, and for
// how long. Whatever is written through it replaces the line. Its methods may be called from any
// goroutine.
type working struct {
	err   io.Writer // a terminal
	mu    sync.Mutex
	shown bool
	start bool // the cursor is at the beginning of a line
	began time.Time
	last  time.Time // when something was written

	done, ended chan struct{}
}

// startWorking returns a working that shows itself until end is called.
func startWorking(err io.Writer) *working {
	now := time.Now()
	s := &working{err: err, start: true, began: now, last: now, done: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				s.tick(now)
			case <-s.done:
				return
			}
		}
	}()
	return s
}

// tick draws the line if nothing was written for a while.
func (s *working) tick(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.start || now.Sub(s.last) < workingAfter {
		return
	}
	s.shown = true
	fmt.Fprintf(s.err, "\r\x1b[K⋯ the agent is working · %v · Ctrl+C cancels", now.Sub(s.began).Round(time.Second))
}

// clear removes the line. The caller holds mu.
func (s *working) clear() {
	if s.shown {
		s.shown = false
		fmt.Fprint(s.err, "\r\x1b[K")
	}
}

// end removes the line for good.
func (s *working) end() {
	close(s.done)
	<-s.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
}

// through returns a writer that writes to w in place of the line. terminal says that w is the same
// terminal, whose cursor it moves.
func (s *working) through(w io.Writer, terminal bool) io.Writer {
	return &throughWorking{s, w, terminal}
}

type throughWorking struct {
	s        *working
	w        io.Writer
	terminal bool
}

// Write implements [io.Writer].
func (t *throughWorking) Write(p []byte) (int, error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if len(p) > 0 {
		t.s.last = time.Now()
		if t.terminal {
			t.s.clear()
			t.s.start = p[len(p)-1] == '\n'
		}
	}
	return t.w.Write(p)
}
