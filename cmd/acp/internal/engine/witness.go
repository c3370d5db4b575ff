package engine

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// notePause is how long heads are gathered before the witness keeps them. What was acknowledged in
// that time before a crash is not witnessed.
const notePause = 10 * time.Millisecond

// noteTimeout bounds how long the witness may take for one write.
const noteTimeout = 10 * time.Second

// marks passes heads to the witness behind the appends: they do not wait for it. At most one head of
// each session waits.
type marks struct {
	w     Witness
	alarm func(string, error)
	some  chan struct{} // holds a value if heads is not empty
	stop  chan struct{}
	done  chan struct{}
	write sync.Mutex // held while the witness is written, so that what is forgotten stays so; before mu

	mu    sync.Mutex
	heads map[string]Head // acknowledged, and not yet kept
}

func newMarks(w Witness, alarm func(string, error)) *marks {
	m := &marks{
		w: w, alarm: alarm, heads: map[string]Head{},
		some: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go m.run()
	return m
}

// note has a head kept soon.
func (m *marks) note(session string, h Head) {
	m.mu.Lock()
	m.heads[session] = h
	m.mu.Unlock()
	select {
	case m.some <- struct{}{}:
	default:
	}
}

// seen returns the furthest head that is known of a session.
func (m *marks) seen(ctx context.Context, session string) (Head, error) {
	m.mu.Lock()
	h, ok := m.heads[session]
	m.mu.Unlock()
	kept, err := m.w.Seen(ctx, session)
	if ok && (err != nil || h.Seq > kept.Seq) {
		return h, nil
	}
	return kept, err
}

// forget removes a session.
func (m *marks) forget(ctx context.Context, session string) error {
	m.write.Lock()
	defer m.write.Unlock()
	m.mu.Lock()
	delete(m.heads, session)
	m.mu.Unlock()
	return m.w.Forget(ctx, session)
}

// run keeps heads until the engine is closed.
func (m *marks) run() {
	defer close(m.done)
	failed := false
	for {
		select {
		case <-m.stop:
			return
		case <-m.some:
		}
		err := m.flush()
		if err != nil && !failed { // once, until it succeeds again
			m.alarm("", err)
		}
		failed = err != nil
		select {
		case <-m.stop:
			return
		case <-time.After(notePause):
		}
	}
}

// flush writes what is known now. What cannot be written waits for the next time.
func (m *marks) flush() error {
	m.write.Lock()
	defer m.write.Unlock()
	m.mu.Lock()
	heads := maps.Clone(m.heads)
	m.mu.Unlock()
	if len(heads) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), noteTimeout)
	defer cancel()
	if err := m.w.Note(ctx, heads); err != nil {
		return fmt.Errorf("the witness cannot be written: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, h := range heads {
		if m.heads[id] == h {
			delete(m.heads, id)
		}
	}
	return nil
}

// close writes what is left and closes the witness.
func (m *marks) close() error {
	close(m.stop)
	<-m.done
	err := m.flush()
	if e := m.w.Close(); err == nil {
		err = e
	}
	return err
}
