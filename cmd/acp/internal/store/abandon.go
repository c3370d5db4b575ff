package store

import "context"

// maxAbandoned bounds the calls of a store that wait for files, those that were given up included.
const maxAbandoned = 16

// abandon calls f on a goroutine of its own and returns what it returns, or the error of ctx when that is
// done before. A file system that does not answer cannot be interrupted: f, which gets the same ctx,
// is left behind then, and ends when the file system answers. While so many as maxAbandoned are at it,
// further calls wait for one of them to end.
func abandon[T any](ctx context.Context, s *Store, f func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	var none T
	if ctx.Err() != nil {
		return none, ctx.Err()
	}
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-s.reading }()
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
