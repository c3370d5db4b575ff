package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// maxNotes bounds the notes that are kept.
const maxNotes = 1000

// extensions registers the methods of the test suite's own.
func (a *testy) extensions(mux *jsonrpc.Mux) {
	method := func(name string, f func(ctx context.Context, params json.RawMessage) (any, error)) {
		jsonrpc.Method[json.RawMessage, any]{Name: name}.Handle(mux, func(ctx context.Context, params *json.RawMessage) (*any, error) {
			if len(*params) == 0 {
				*params = json.RawMessage("null")
			}
			result, err := f(ctx, *params)
			return &result, err
		})
	}
	method("_tspeer/echo", func(_ context.Context, params json.RawMessage) (any, error) {
		return map[string]json.RawMessage{"echoed": params}, nil
	})
	method("_tspeer/sleep", func(ctx context.Context, params json.RawMessage) (any, error) {
		p := struct{ MS int64 }{1000}
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, jsonrpc.ErrInvalidParams
		}
		return map[string]int64{"slept": p.MS}, sleep(ctx, time.Duration(p.MS)*time.Millisecond)
	})
	method("_tspeer/throw", func(context.Context, json.RawMessage) (any, error) {
		return nil, errors.New("kaboom: secret-token-123")
	})
	method("_tspeer/init", func(context.Context, json.RawMessage) (any, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		return map[string]json.RawMessage{"init": a.hello}, nil
	})
	method("_tspeer/notes", func(context.Context, json.RawMessage) (any, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		return map[string][]json.RawMessage{"notes": append([]json.RawMessage{}, a.notes...)}, nil
	})
	jsonrpc.Notification[json.RawMessage]{Name: "_tspeer/note"}.Handle(mux, func(_ context.Context, params *json.RawMessage) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.notes) < maxNotes {
			a.notes = append(a.notes, *params)
		}
		return nil
	})
}

// sleep waits, or returns why ctx ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
