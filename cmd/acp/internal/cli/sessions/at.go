package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/at"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

// runAt runs the subcommand with the sessions of a gateway.
func (o *Options) runAt(ctx context.Context) error {
	if o.Verb == Resume {
		if o.ResumeAt == nil || len(o.IDs) == 0 {
			return exitcode.Errorf(exitcode.Usage, "which session? acp sessions list --at %s shows their IDs; - is the latest one of this directory", safetext.Line(o.At, 200))
		}
		return o.ResumeAt(ctx, o.At, o.IDs[0])
	}
	if o.Verb == Share {
		return o.shareAt(ctx)
	}
	h, agent, err := at.Open(ctx, o.App, o.At)
	if err != nil {
		return err
	}
	defer h.Close()
	switch o.Verb {
	case List:
		return o.App.Paged(func() error { return o.listAt(ctx, h.Conn()) })
	case Search:
		return o.App.Paged(func() error { return o.searchAt(ctx, h.Conn()) })
	case Delete:
		return o.deleteAt(ctx, h.Conn())
	}
	found, err := at.Find(ctx, h.Conn(), o.At, o.IDs[0], o.App.Cwd)
	if err != nil {
		return err
	}
	if o.Verb == Export && o.Format == recording {
		return o.recordAt(ctx, h.Conn(), agent, found)
	}
	about, read, err := o.readAt(ctx, h, found)
	if err != nil {
		return err
	}
	if o.Verb == Show {
		return o.App.Paged(func() error { return o.write(about, read) })
	}
	return o.exportTo(about, read)
}

// readAt returns a session of the server: what its records say or, for a client that may not have those, what its
// history has, with how its turns have ended. If the server has no history, it is what it sends to a client that loads
// the session.
func (o *Options) readAt(ctx context.Context, h *backend.Host, found at.Session) (about store.Session, read *transcript.Snapshot, err error) {
	if c := h.Conn(); c.Version() > 1 {
		var r *store.Reading
		damaged, page := false, pages(ctx, c)
		err := gateway.PastRecords(found.ID, func(r *gateway.HistoryRequest) (*gateway.HistoryAnswer, error) {
			r.Raw = true
			res, err := page(r)
			damaged = damaged || err == nil && res.Damaged
			return res, err
		}, func() { r, damaged = store.NewReading(string(found.ID), store.Bounds()), false }, func(u *gateway.PastUpdate) error {
			if kept := u.Kept(); kept != nil {
				r.Apply(kept)
				return nil
			}
			return u.Apply(r.Fold())
		})
		if damaged {
			fmt.Fprintf(o.App.Err, "acp: session %s: part of this session is damaged, and left out\n", safetext.Line(string(found.ID), 100))
		}
		about, known := r.Session()
		if !known {
			about = o.storedAt(found, "")
		}
		if err == nil && !known { // but for the usage, which the history does not have
			if s, _, err := h.Restore(ctx, found.ID); err == nil {
				if u := s.Snapshot().Session().Update(transcript.FieldUsage); u != nil {
					r.Fold().Conversation.Apply(u)
				}
			}
		}
		if !errors.Is(err, jsonrpc.ErrMethodNotFound) {
			return about, r.Snapshot(), at.Refusal(err)
		}
	}
	s, how, err := h.Restore(ctx, found.ID)
	if err != nil {
		return about, nil, err
	}
	if how == acp.RestoredNew {
		return about, nil, exitcode.Errorf(exitcode.Protocol, "the server cannot load session %s", safetext.Line(string(found.ID), 100))
	}
	return o.storedAt(found, s.Title()), s.Snapshot(), nil
}

// sessionsAt returns the sessions of the gateway that the flags mean, the latest first.
func (o *Options) sessionsAt(ctx context.Context, c *acp.ClientConn) ([]at.Session, error) {
	cwd := ""
	if o.Here {
		cwd = o.App.Cwd
	}
	all, err := at.Sessions(ctx, c, cwd)
	if name := o.agent(); name != "" {
		all = slices.DeleteFunc(all, func(s at.Session) bool { return s.Agent != name })
	}
	return all, err
}

// searchAt prints the sessions of the gateway that have the words.
func (o *Options) searchAt(ctx context.Context, c *acp.ClientConn) error {
	all, err := o.sessionsAt(ctx, c)
	if err != nil {
		return err
	}
	page := pages(ctx, c)
	found, left := []at.Session{}, 0
	for i, s := range all {
		if n := o.limit(); n >= 0 && len(found) == n {
			left = len(all) - i
			break
		}
		f := store.NewFinder(o.Words)
		err := gateway.Past(s.ID, page, func(u *gateway.PastUpdate) error {
			if u.Child == "" && u.Kind != gateway.PastNotice {
				f.Update(u.Update)
			}
			return nil
		})
		if acp.IsSessionNotFound(err) {
			continue // it was deleted meanwhile, or is not shared any more
		}
		if c.Version() < 2 || errors.Is(err, jsonrpc.ErrMethodNotFound) {
			return exitcode.Errorf(exitcode.Protocol, "that server cannot be searched: it is no gateway of acp")
		}
		if err != nil {
			return at.Refusal(err)
		}
		var ok bool
		if s.Snippet, ok = f.Find(s.Title); ok {
			found = append(found, s)
		}
	}
	if len(found) == 0 && !o.JSON {
		_, err := fmt.Fprintln(o.App.Err, "no matches")
		return err
	}
	if err := at.Print(o.App, found, o.JSON, o.now()); err != nil || left == 0 {
		return err
	}
	return o.printBelow(fmt.Sprintf("%d found, and %d of %d sessions not searched; --all searches all of them", len(found), left, len(all)))
}

// now returns the time.
func (o *Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// listAt prints the sessions of the gateway.
func (o *Options) listAt(ctx context.Context, c *acp.ClientConn) error {
	all, err := o.sessionsAt(ctx, c)
	if err != nil {
		return err
	}
	total := len(all)
	if n := o.limit(); n >= 0 && len(all) > n {
		all = all[:n]
	}
	if len(all) == 0 && !o.JSON {
		_, err := fmt.Fprintln(o.App.Err, "no sessions")
		return err
	}
	if err := at.Print(o.App, all, o.JSON, o.now()); err != nil {
		return err
	}
	return o.printMore(len(all), total, "sessions")
}

// storedAt describes a session of the gateway in the words of those that are stored here.
func (o *Options) storedAt(s at.Session, title string) store.Session {
	if s.Title != "" {
		title = s.Title
	}
	return store.Session{Key: store.Key{Agent: s.Agent, ID: string(s.ID)}, Cwd: s.Cwd, Title: title, Updated: s.Updated}
}

// deleteAt has the gateway delete sessions, after a confirmation. All are looked up before the first
// is deleted.
func (o *Options) deleteAt(ctx context.Context, c *acp.ClientConn) error {
	var found []store.Session
	for _, id := range o.IDs {
		s, err := at.Find(ctx, c, o.At, id, o.App.Cwd)
		if err != nil {
			return err
		}
		found = append(found, o.storedAt(s, ""))
	}
	if !o.Yes {
		if err := o.confirm(ctx, found); err != nil {
			return err
		}
	}
	for _, s := range found {
		switch err := c.Delete(ctx, acp.SessionID(s.ID)); {
		case errors.Is(err, errors.ErrUnsupported):
			return exitcode.Errorf(exitcode.Protocol, "that server cannot delete sessions")
		case err != nil:
			return fmt.Errorf("%s was not deleted: %w", name(s), at.Refusal(err))
		}
		fmt.Fprintf(o.App.Err, "deleted %s\n", name(s))
	}
	return nil
}
