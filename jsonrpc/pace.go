package jsonrpc

import (
	"context"
	"fmt"
)

// findPacer returns the first stream, of s and those it is around, that paces what
// is sent.
func findPacer(s Stream) Pacer {
	for range maxWrapped {
		if p, ok := s.(Pacer); ok {
			return p
		}
		u, ok := s.(interface{ Unwrap() Stream })
		if !ok {
			return nil
		}
		if s = u.Unwrap(); s == nil {
			return nil
		}
	}
	return nil
}

// pace waits until there is room in a lane. A handler that waits counts like one
// that waits for room in the output buffer: the connection reads on meanwhile, so
// that a cancellation reaches it.
func (c *Conn) pace(ctx context.Context, method, lane string) error {
	if lane == "" {
		return nil
	}
	token, _ := ctx.Value(entryKey{}).(*entry)
	if entered, full := c.enterSend(token, false); entered {
		defer c.leaveSend()
		if full {
			return queueFull(method)
		}
	}
	err := c.pacer.Pace(ctx, lane)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctxError(ctx, method)
	}
	return fmt.Errorf("jsonrpc: %s: %w", method, err)
}
