package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

// takers is how many sessions are taken over at once: each is synced.
const takers = 8

// TakeOver makes journals, in a directory, of the sessions that an earlier version of the engine has kept in tables, and
// returns how many. A journal that is there already stays. Each is written under another name, and synced, before it gets
// its own; so a call that was cut off can be repeated. A session that cannot be read at all is left out, with an alarm.
func TakeOver(ctx context.Context, dir string, t Tables, o Options) (n int, err error) {
	o = o.withDefaults()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var work sync.WaitGroup
	sessions := make(chan Session)
	for range takers {
		work.Go(func() {
			for s := range sessions {
				err := takeOver(ctx, dir, t, s, o.Says)
				switch {
				case err == nil:
					mu.Lock()
					n++
					mu.Unlock()
				case errors.Is(err, ErrExists):
				case errors.Is(err, ErrInvalid), errors.Is(err, ErrCorrupt), errors.Is(err, ErrNotFound):
					o.Alarm(s.ID, fmt.Errorf("it cannot be taken over: %w", err))
				default:
					stop(fmt.Errorf("session %q: %w", s.ID, err))
				}
			}
		})
	}
	err = eachSession(ctx, t, func(s Session) error {
		select {
		case sessions <- s:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(sessions)
	work.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = file.System{}.SyncDir(dir)
	}
	return n, err
}

// eachSession calls yield with each session.
func eachSession(ctx context.Context, t Tables, yield func(Session) error) error {
	for after := (Position{}); ; {
		some, err := t.ListSessions(ctx, Query{}, after, MaxRecords)
		if err != nil {
			return err
		}
		for _, s := range some {
			if err := yield(s); err != nil {
				return err
			}
			after = Position{Updated: s.Updated, ID: s.ID}
		}
		if len(some) < MaxRecords {
			return nil
		}
	}
}

// takeOver makes the journal of a session.
func takeOver(ctx context.Context, dir string, t Tables, s Session, says func(*Record) Said) error {
	if err := journal.CheckID(s.ID); err != nil {
		return err
	}
	st, err := t.State(ctx, s.ID)
	if err != nil {
		return err
	}
	shares, err := t.Shares(ctx, s.ID)
	if err != nil {
		return err
	}
	s.Attributes = EarlierAttributes(s.Attributes)
	return file.Put(dir, s.ID, func(add func(*Record) error) error {
		first, err := describe(Session{}, s)
		if err == nil {
			err = (&files{dir: dir}).putLive(Session{}, s)
		}
		if err != nil {
			return err
		}
		first.At, first.Data = s.Created, fmt.Appendf(nil, `{"format":%d,%s`, journal.Format, first.Data[1:])
		f := newFold(s.ID, says)
		if err := Earlier(ctx, t, st, first, func(r *Record) error {
			return errors.Join(f.apply(r), add(r))
		}); err != nil {
			return err
		}
		rest, err := f.lacks(s, shares)
		for i := range rest {
			if err != nil {
				break
			}
			var r Record
			if r, err = journal.Next(s.ID, f.s.Head, f.s.Epoch, rest[i]); err == nil {
				f.s.Head = Head{Seq: r.Seq, Hash: r.Hash}
				err = add(&r)
			}
		}
		return err
	})
}

// lacks returns what has to follow the records for them to say what the row of a session says, and its shares.
func (f *fold) lacks(s Session, shares []Share) (rest []journal.Draft, err error) {
	const none = "none" // as the gateway writes it
	share := func(user, role string) {
		data, e := json.Marshal(struct {
			User string `json:"user"`
			Role string `json:"role"`
			By   string `json:"by"`
		}{user, role, s.Owner})
		rest, err = append(rest, journal.Draft{Kind: journal.KindShared, At: s.Updated, Data: data}), errors.Join(err, e)
	}
	for _, v := range shares {
		if f.shares[v.User] != v.Role {
			share(v.User, v.Role)
		}
		delete(f.shares, v.User)
	}
	for user := range f.shares {
		share(user, none)
	}
	if f.s.State == s.State && f.s.Updated.Equal(s.Updated) {
		return rest, err
	}
	data, e := json.Marshal(descriptionOf(s)) // with the same attributes
	return append(rest, journal.Draft{Kind: journal.KindSession, At: s.Updated, Data: data}), errors.Join(err, e)
}
