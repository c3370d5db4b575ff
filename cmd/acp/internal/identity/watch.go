package identity

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// watchEvery is how often the store is looked at while somebody watches: what another process has
	// revoked is noticed within this time and that of one query.
	watchEvery = 250 * time.Millisecond
	// watchBlind bounds how long watched devices keep their rights while the store cannot be read.
	watchBlind = 5 * time.Second
	// maxWatches bounds what is watched at the same time.
	maxWatches = 16384
)

// A watcher signals the end of rights. It has one goroutine, which runs while something is watched.
type watcher struct {
	store *Store
	nudge chan struct{} // looks at once

	mu      sync.Mutex
	watched map[*watch]bool
	stop    context.CancelFunc // not nil while the goroutine runs
	done    chan struct{}      // closed when the latest goroutine has ended
	closed  bool
}

// A watch is closed, and removed, when the rights of a principal have ended.
type watch struct {
	device  string
	key     string
	expires time.Time
	ended   chan struct{}
}

func (w *watcher) init(s *Store) {
	w.store, w.nudge, w.watched = s, make(chan struct{}, 1), make(map[*watch]bool)
}

// Watch returns a channel that is closed within a second after the device of a principal was revoked, by
// whatever process, its credential has expired, or its rights have changed; at once if that has already
// happened. The server then ends the live connections of the device. If the store cannot be read for
// five seconds, or its file was deleted, the channel is closed as well: rights that cannot be checked
// have ended. Nothing is kept for the watch after ctx is done. The error wraps [ErrTooMany] at 16,384
// watches.
func (s *Store) Watch(ctx context.Context, p Principal) (<-chan struct{}, error) {
	w := &s.watch
	v := &watch{device: p.Device, key: p.Key(), ended: make(chan struct{})}
	w.mu.Lock()
	switch {
	case w.closed:
		w.mu.Unlock()
		return nil, fmt.Errorf("%w: it is closed", ErrStore)
	case len(w.watched) >= maxWatches:
		w.mu.Unlock()
		return nil, fmt.Errorf("%w watched connections: there are %d", ErrTooMany, maxWatches)
	}
	w.watched[v] = true
	w.mu.Unlock()
	// The device is looked up once it is watched, so that no revocation falls between the two.
	d, err := s.Device(ctx, p.Device)
	switch {
	case err != nil && !errors.Is(err, ErrNotFound):
		w.remove(v)
		return nil, err
	case err != nil, d.Principal().Key() != v.key:
		w.end(v)
		return v.ended, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	v.expires = d.Expires
	if w.watched[v] && w.stop == nil && !w.closed {
		var run context.Context
		run, w.stop = context.WithCancel(context.Background())
		w.done = make(chan struct{})
		go w.run(run, w.done)
	}
	context.AfterFunc(ctx, func() { w.remove(v) })
	return v.ended, nil
}

// remove ends a watch without a signal.
func (w *watcher) remove(v *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watched, v)
	w.rest()
}

// end signals a watch.
func (w *watcher) end(v *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[v] {
		delete(w.watched, v)
		close(v.ended)
	}
	w.rest()
}

// rest stops the goroutine if nothing is watched. The caller holds w.mu.
func (w *watcher) rest() {
	if len(w.watched) == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// look has the goroutine look at once.
func (w *watcher) look() {
	select {
	case w.nudge <- struct{}{}:
	default:
	}
}

// close ends all watches without a signal, and waits for the goroutine.
func (w *watcher) close() {
	w.mu.Lock()
	w.closed = true
	clear(w.watched)
	w.rest()
	done := w.done
	w.mu.Unlock()
	if done != nil {
		<-done
	}
}

// run looks at the store until ctx is done.
func (w *watcher) run(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	seen, read := int64(-1), time.Now()
	for {
		n, err := w.check(ctx, seen)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			seen, read = n, time.Now()
		case errors.Is(err, ErrStore) || time.Since(read) >= watchBlind:
			w.store.logger.Error("identity: revocations cannot be noticed, so connections of devices end", "error", err)
			w.endIf(func(*watch) bool { return true })
		}
		now := time.Now()
		w.endIf(func(v *watch) bool { return !v.expires.IsZero() && !now.Before(v.expires) })
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-w.nudge:
		}
	}
}

// check returns the revision of the store. If that is not the one that was seen, check ends the watches
// of devices that are gone or have changed.
func (w *watcher) check(ctx context.Context, seen int64) (n int64, err error) {
	if err := w.store.present(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, watchBlind)
	defer cancel()
	if err := w.store.db.QueryRowContext(ctx, `SELECT n FROM revision`).Scan(&n); err != nil {
		return 0, storeError(err)
	}
	if n == seen {
		return n, nil
	}
	list, err := w.store.Devices(ctx)
	if err != nil {
		return 0, err
	}
	keys := make(map[string]string, len(list))
	for _, d := range list {
		keys[d.ID] = d.Principal().Key()
	}
	w.endIf(func(v *watch) bool { return keys[v.device] != v.key })
	return n, nil
}

// endIf signals the watches that f selects.
func (w *watcher) endIf(f func(*watch) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for v := range w.watched {
		if f(v) {
			delete(w.watched, v)
			close(v.ended)
		}
	}
	w.rest()
}
