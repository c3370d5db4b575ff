package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/at"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
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
	s, how, err := h.Restore(ctx, found.ID)
	if err != nil {
		return err
	}
	if how == acp.RestoredNew {
		return exitcode.Errorf(exitcode.Protocol, "the server cannot load session %s", safetext.Line(string(found.ID), 100))
	}
	about, read := o.storedAt(found, s.Title()), s.Snapshot()
	if o.Verb == Show {
		return o.App.Paged(func() error { return o.write(about, read) })
	}
	return o.exportTo(about, read)
}

// listAt prints the sessions of the gateway.
func (o *Options) listAt(ctx context.Context, c *acp.ClientConn) error {
	cwd := ""
	if o.Here {
		cwd = o.App.Cwd
	}
	all, err := at.Sessions(ctx, c, cwd)
	if err != nil {
		return err
	}
	if name := o.agent(); name != "" {
		all = slices.DeleteFunc(all, func(s at.Session) bool { return s.Agent != name })
	}
	if n := o.limit(); n >= 0 && len(all) > n {
		all = all[:n]
	}
	if len(all) == 0 && !o.JSON {
		_, err := fmt.Fprintln(o.App.Err, "no sessions")
		return err
	}
	now := time.Now()
	if o.Now != nil {
		now = o.Now()
	}
	return at.Print(o.App, all, o.JSON, now)
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
