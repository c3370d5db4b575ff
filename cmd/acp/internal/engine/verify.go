package engine

import (
	"context"
	"errors"
)

// VerifyAll verifies every session, as [Engine.Verify] does, and calls report with each and why it is not whole, or
// nil. A session that is deleted meanwhile is left out. It fails if sessions cannot be listed or read for another
// reason than damage.
func (e *Engine) VerifyAll(ctx context.Context, report func(s Session, damage *DamageError) error) error {
	q := Query{Limit: 100}
	for {
		page, err := e.List(ctx, q)
		if err != nil {
			return err
		}
		for _, s := range page.Sessions {
			err := e.Verify(ctx, s.ID)
			damage, bad := errors.AsType[*DamageError](err)
			switch {
			case errors.Is(err, ErrNotFound):
				continue
			case err != nil && !bad:
				return err
			}
			if err := report(s, damage); err != nil {
				return err
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return nil
		}
	}
}
