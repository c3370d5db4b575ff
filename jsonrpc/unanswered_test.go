package jsonrpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestOutcomeUnknown: whichever side ends the connection, the peer may have handled a
// call without an answer, and cannot have handled one made afterwards.
func TestOutcomeUnknown(t *testing.T) {
	for name, end := range map[string]func(a, b *Conn){
		"closed here":  func(a, _ *Conn) { _ = a.Close() },
		"closed there": func(_, b *Conn) { _ = b.stream.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mux Mux
				prompt.Handle(&mux, func(ctx context.Context, _ *note) (*reply, error) {
					<-ctx.Done()
					return nil, nil
				})
				a, b := pair(Config{}, Config{Mux: &mux})
				failed := make(chan error, 1)
				go func() {
					_, err := prompt.Call(bg, a, &note{})
					failed <- err
				}()
				synctest.Wait()
				end(a, b)
				if err := <-failed; !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
				<-a.Done()
				if _, err := prompt.Call(bg, a, &note{}); errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
				_ = b.Close()
				<-b.Done()
			})
		})
	}
}
