package jsonrpc

import (
	"context"
	"fmt"
)

// find returns the first stream, of s and those it is around, that can do more than
// every stream: a [Pacer], say.
func find[S Stream](s Stream) (found S) {
	for range maxWrapped {
		if p, ok := s.(S); ok {
			return p
		}
		u, ok := s.(interface{ Unwrap() Stream })
		if !ok {
			return found
		}
		if s = u.Unwrap(); s == nil {
			return found
		}
	}
	return found
}

// Forget is for protocol layers. It has the stream give up what it keeps for a lane, if
// it is a [Forgetter]. It does not block.
func (c *Conn) Forget(lane string) {
	if c.forgetter != nil {
		c.forgetter.Forget(lane)
	}
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
