package store

import (
	"context"
	"fmt"
	"time"
)

const (
	// maxAbandoned bounds the calls of a store that wait for files, including those that were
	// abandoned.
	maxAbandoned = 16
	// abandonWait bounds how long a further call waits until one of them ends.
	abandonWait = 5 * time.Second
)

// A result is what a call returns.
type result[T any] struct {
	v   T
	err error
}

// abandon calls f on a goroutine of its own and returns the result of f, or the error of ctx if
// that is done first. A file system that does not answer cannot be interrupted: f, which gets the
// same ctx, is left behind then, and ends when the file system answers. While maxAbandoned calls
// are under way, a further one waits until one of them ends; after abandonWait it fails with
// [ErrStalled].
func abandon[T any](ctx context.Context, s *Store, f func() (T, error)) (T, error) {
	var none T
	done, err := begin(ctx, s, f)
	if err != nil {
		return none, err
	}
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// begin is the first half of abandon: it returns as soon as f is called, and done yields the result
// of f.
func begin[T any](ctx context.Context, s *Store, f func() (T, error)) (done <-chan result[T], err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := s.takeTurn(ctx); err != nil {
		return nil, err
	}
	d := make(chan result[T], 1)
	go func() {
		defer func() { <-s.reading }()
		v, err := f()
		d <- result[T]{v, err}
	}()
	return d, nil
}

// takeTurn waits until fewer than maxAbandoned calls are under way.
func (s *Store) takeTurn(ctx context.Context) error {
	select {
	case s.reading <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(abandonWait)
	defer late.Stop()
	select {
	case s.reading <- struct{}{}:
		return nil
	case <-late.C:
		return fmt.Errorf("%w: %d calls wait for it", ErrStalled, maxAbandoned)
	case <-ctx.Done():
		return ctx.Err()
	}
}
