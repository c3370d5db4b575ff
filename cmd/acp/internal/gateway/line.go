package gateway

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/goacp/acp/internal/turnstile"
)

// maxLine bounds what waits for an agent's place in one line: that of the gateway, or of one user.
const maxLine = 4096

// A lobby is where those wait for whom there is no agent's place: in a line of the gateway, and in one for each user with
// a quota. Only the first in a line tries. The zero value is ready for use.
type lobby struct {
	waits time.Duration // of a request that is not a prompt; 0 means roomPatience
	lines turnstile.Turnstile

	mu      sync.Mutex // no other lock is taken under it
	waiting map[string]int
	changed notice
}

// patience returns how long a request that is not a prompt waits for an agent's place.
func (l *lobby) patience() time.Duration { return cmp.Or(l.waits, roomPatience) }

// waited reports whether somebody is in a line.
func (l *lobby) waited(line string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting[line] > 0
}

// enter waits until it is somebody's turn in a line, and returns what they call then for the next one to have its turn.
func (l *lobby) enter(ctx context.Context, line string) (leave func(), err error) {
	l.mu.Lock()
	if l.waiting[line] >= maxLine {
		l.mu.Unlock()
		return nil, errNoRoom
	}
	if l.waiting == nil {
		l.waiting = make(map[string]int)
	}
	l.waiting[line]++
	place := l.lines.Come(line)
	l.mu.Unlock()
	entered := place.Enter(ctx)
	leave = func() {
		if entered {
			place.Leave()
		} else {
			place.Drop()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.waiting[line]--; l.waiting[line] == 0 {
			delete(l.waiting, line)
		}
	}
	if !entered {
		leave()
		return nil, context.Cause(ctx)
	}
	return leave, nil
}

// change returns what is closed when those whose turn it is should try again.
func (l *lobby) change() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed.wait()
}

// stir has the first in each line try again. It is called whenever an agent has ended or may have become idle.
func (l *lobby) stir() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed.give()
}
