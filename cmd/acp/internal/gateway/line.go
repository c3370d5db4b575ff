package gateway

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxLine bounds what waits for an agent's place in one line: that of the gateway, or of one user.
const maxLine = 4096

// A lobby is where those wait for whom there is no agent's place: in a line of the gateway, and in one for each user with
// a quota. Only the first in a line tries. The zero value is ready for use.
type lobby struct {
	waits   time.Duration // of a request that is not a prompt; 0 means roomPatience
	waiting atomic.Int64  // in all lines; nothing need be done where it is 0
	mu      sync.Mutex    // no other lock is taken under it
	lines   map[string][]*waiter
}

// A waiter is somebody who waits in a line.
type waiter struct {
	line string
	turn chan struct{} // has an element if it should try, as the first in its line
}

// patience returns how long a request that is not a prompt waits for an agent's place.
func (l *lobby) patience() time.Duration { return cmp.Or(l.waits, roomPatience) }

// join adds somebody at the end of a line, or returns nil if too many wait there.
func (l *lobby) join(line string) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines[line]) >= maxLine {
		return nil
	}
	if l.lines == nil {
		l.lines = make(map[string][]*waiter)
	}
	w := &waiter{line, make(chan struct{}, 1)}
	l.lines[line] = append(l.lines[line], w)
	l.waiting.Add(1)
	if len(l.lines[line]) == 1 {
		w.turn <- struct{}{}
	}
	return w
}

// leave takes somebody out of a line; the next one tries, if that was the first.
func (l *lobby) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.lines[w.line], w)
	rest := slices.Delete(l.lines[w.line], i, i+1)
	l.waiting.Add(-1)
	if len(rest) == 0 {
		delete(l.lines, w.line)
		return
	}
	l.lines[w.line] = rest
	if i == 0 {
		rest[0].wake()
	}
}

// stir has the first in each line try again. It is called whenever an agent has ended or may have become idle.
func (l *lobby) stir() {
	if l.waiting.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		line[0].wake()
	}
}

func (w *waiter) wake() {
	select {
	case w.turn <- struct{}{}:
	default: // it is about to try
	}
}
