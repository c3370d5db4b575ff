package engine

import (
	"context"
	"fmt"
	"slices"
)

// MaxShares bounds the users with whom a session is shared.
const MaxShares = 256

// A Share is what somebody other than the owner may do in a session. The engine knows no roles.
type Share struct {
	User string
	Role string
}

// A Usage is what an owner has in the database.
type Usage struct {
	Sessions int
	Bytes    int64 // of the data of their records
}

// Usage returns what an owner has. It reads as many pages as the owner's records have, so callers keep the
// result for a while.
func (e *Engine) Usage(ctx context.Context, owner string) (Usage, error) {
	usage := e.db.Usage
	if e.files != nil {
		usage = e.usage
	}
	u, err := usage(ctx, owner)
	if err != nil {
		return Usage{}, fmt.Errorf("usage of %q: %w", owner, err)
	}
	return u, nil
}

// Share shares a session with a user, in a role, or in another one than before; a role of "" ends that. It fails
// with [ErrNotFound], with [ErrInvalid], or with [ErrTooMany] at [MaxShares]. Shares end with their session. Where rows are made
// of records it only checks that: the record counts that the caller appends.
func (e *Engine) Share(ctx context.Context, session string, s Share) error {
	err := checkName("user", s.User, true)
	if err == nil {
		err = checkText("role", s.Role, MaxText)
	}
	if err == nil && e.files != nil {
		err = e.maySay(ctx, session, s)
	} else if err == nil {
		err = e.db.PutShare(ctx, session, s, MaxShares)
	}
	if err != nil {
		return fmt.Errorf("share session %q: %w", session, err)
	}
	return nil
}

// Shares returns with whom a session is shared, by user. A session that does not exist has none.
func (e *Engine) Shares(ctx context.Context, session string) ([]Share, error) {
	all, err := e.db.Shares(ctx, session)
	if err != nil {
		return nil, fmt.Errorf("shares of session %q: %w", session, err)
	}
	return all, nil
}

// maySay checks a share.
func (e *Engine) maySay(ctx context.Context, session string, s Share) error {
	if _, err := e.db.Session(ctx, session); err != nil {
		return err
	}
	all, err := e.db.Shares(ctx, session)
	if err != nil {
		return err
	}
	if s.Role != "" && len(all) >= MaxShares && !slices.ContainsFunc(all, func(v Share) bool { return v.User == s.User }) {
		return ErrTooMany
	}
	return nil
}
