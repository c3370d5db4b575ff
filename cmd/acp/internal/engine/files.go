package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// An Index is a [Database] whose rows are made of the records of journals in files. It can be deleted when nobody uses it: it is
// made again.
type Index interface {
	Database
	// Put stores everything that is known of a session as of its Head, whatever was there. size is that of its journal, or negative if
	// that is not known.
	Put(ctx context.Context, s Session, shares []Share, size int64) error
	// PutSize notes the size of the journal that is in the index, unless the one that it has is another one than was.
	PutSize(ctx context.Context, id string, was, size int64) error
	// Sizes returns the sizes of the journals that are in the index, and Size that of one; those that are not known are
	// negative.
	Sizes(ctx context.Context) (map[string]int64, error)
	Size(ctx context.Context, id string) (int64, error)
}

// Files returns an engine on the journals in a directory. db is an index of them, and w the witness. It closes both when it is
// closed. who is what others learn who want a session that it owns. Sessions that others have written are read.
func Files(ctx context.Context, dir, who string, db Index, w Witness, o Options) (*Engine, error) {
	return onDisk(ctx, file.System{}, dir, who, db, w, o)
}

func onDisk(ctx context.Context, d file.Disk, dir, who string, db Index, w Witness, o Options) (*Engine, error) {
	e := newEngine(db, w, o)
	e.files = &files{dir: dir, who: who, db: db, owner: e.o.Owner, alarm: e.o.Alarm, unlisted: map[string]unlisted{}, read: map[string]time.Time{}}
	e.journals = file.Open(dir, file.Options{Options: e.options(), Who: who, Disk: d})
	if err := e.refresh(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("read the sessions in %s: %w", dir, err), e.Close())
	}
	return e, nil
}

// files is what an engine knows whose rows are made of records.
type files struct {
	dir   string
	who   string // what this process says of itself where it owns a journal
	db    Index
	owner string // of sessions that name none
	alarm func(session string, err error)

	scanning sync.Mutex // held while the index is made of journals, and what follows is used
	scanned  time.Time  // when that was done for all of them
	failing  bool       // the last time it was not possible
	unlisted map[string]unlisted
	read     map[string]time.Time // when a journal was read that somebody else owns

	mu      sync.Mutex
	current *Lease // the last one
}

// lease returns a lease, and ends the one before it.
func (x *files) lease(node string) *Lease {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.current != nil {
		x.current.end()
	}
	x.current = &Lease{node: node, over: make(chan struct{})}
	return x.current
}

// mended folds the readable records of a damaged session. If the index knows the session, mended starts from its row, which
// may also hold what the damaged records said.
func (e *Engine) mended(ctx context.Context, d *DamageError) (*fold, error) {
	f, from := newFold(d.ID, e.o.Says), uint64(0)
	s, err := e.db.Session(ctx, d.ID)
	switch {
	case errors.Is(err, ErrNotFound) || err == nil && len(d.Lost) == 0:
	case err != nil:
		return nil, err
	default:
		shares, err := e.db.Shares(ctx, d.ID)
		if err != nil {
			return nil, err
		}
		all, err := members(s.Attributes)
		if err != nil {
			return nil, err
		}
		f.s, from = s, s.Head.Seq
		f.s.Attributes = nil // they are made of those
		maps.Copy(f.attributes, all)
		delete(f.attributes, live)
		for _, v := range shares {
			f.shares[v.User] = v.Role
		}
	}
	err = e.journals.Read(ctx, d.ID, 0, func(r *Record) error {
		if r.Seq <= from {
			return nil
		}
		return f.apply(r)
	})
	if errors.As(err, new(*DamageError)) {
		err = nil
	}
	return f, err
}

// size returns the size of a journal.
func (x *files) size(id string) (int64, error) {
	info, err := os.Stat(filepath.Join(x.dir, id+".jsonl"))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// usage returns what the sessions of an owner take.
func (e *Engine) usage(ctx context.Context, owner string) (u Usage, err error) {
	for q := (Query{Owner: owner, Limit: 500}); ; {
		page, err := e.List(ctx, q)
		if err != nil {
			return Usage{}, err
		}
		for _, s := range page.Sessions {
			if records.ByChat(s.ID) {
				continue // what its user said in chats is not the gateway's
			}
			u.Sessions++
			if size, err := e.files.size(s.ID); err == nil {
				u.Bytes += size
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return u, nil
		}
	}
}

// descriptionOf returns the description of a session whose attributes have not changed.
func descriptionOf(s Session) records.Description {
	return records.Description{
		Agent: s.Agent, Session: s.AgentSession, Cwd: s.Cwd, Title: s.Title, Owner: s.Owner, State: &s.State, From: s.Parent,
		Created: s.Created, Updated: s.Updated,
	}
}

// describe returns the record that makes a session of another one. It has no kind if the records of both are the same.
func describe(was, now Session) (journal.Draft, error) {
	d := descriptionOf(now)
	old, err := members(was.Attributes)
	if err != nil {
		return journal.Draft{}, err
	}
	all, err := members(now.Attributes)
	if err != nil {
		return journal.Draft{}, err
	}
	d.Attributes = map[string]json.RawMessage{}
	for name, v := range all {
		if name != live && !bytes.Equal(old[name], v) {
			d.Attributes[name] = v
		}
	}
	for name := range old {
		if _, has := all[name]; !has && name != live {
			d.Attributes[name] = json.RawMessage("null")
		}
	}
	was.Attributes, now.Attributes = nil, nil
	was.Updated = now.Updated
	if len(d.Attributes) == 0 && reflect.DeepEqual(was, now) {
		return journal.Draft{}, nil // there is nothing to write down
	}
	data, err := json.Marshal(d)
	return journal.Draft{Kind: journal.KindSession, Data: data}, err
}

func members(attributes json.RawMessage) (all map[string]json.RawMessage, err error) {
	if len(attributes) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(attributes, &all); err != nil {
		return nil, fmt.Errorf("%w: the attributes: %w", ErrInvalid, err)
	}
	return all, nil
}

// live is the attribute that says how an agent is reached that outlives this process. It has a secret and is worth nothing once
// the agent has ended, so it is in a file of its own, and in no record.
const live = "held"

func (x *files) liveFile(id string) string { return filepath.Join(x.dir, id+".live") }

// putLive stores that attribute of a session that was another one.
func (x *files) putLive(was, now Session) error {
	old, _ := members(was.Attributes) // which was checked
	all, _ := members(now.Attributes)
	v := all[live]
	if bytes.Equal(old[live], v) {
		return nil
	}
	name := x.liveFile(now.ID)
	if v == nil {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.WriteFile(name+".new", v, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// A fold makes what is known of a session of its records.
type fold struct {
	s          Session
	attributes map[string]json.RawMessage
	shares     map[string]string // roles by users
	says       func(*Record) Said
	parent     string // what the session is part of, if it is that of a subagent
}

func newFold(id string, says func(*Record) Said) *fold {
	return &fold{s: Session{ID: id}, attributes: map[string]json.RawMessage{}, shares: map[string]string{}, says: says}
}

// apply takes the next record.
func (f *fold) apply(r *Record) error {
	f.s.Epoch, f.s.Head = r.Epoch, Head{Seq: r.Seq, Hash: r.Hash}
	at := storable(r.At, minTime)
	if f.s.Created.IsZero() {
		f.s.Created, f.s.Updated = at, at
	}
	if r.Kind != journal.KindSession {
		said := f.says(r)
		if said.State != "" {
			f.s.State, f.s.Updated = said.State, at
		}
		said.applyTo(f.shares)
		return nil
	}
	var d records.Description
	if json.Unmarshal(r.Data, &d) != nil || d.Agent == "" && d.Created.IsZero() { // the journal's own
		return nil
	}
	s := &f.s
	s.Agent, s.AgentSession, s.Cwd, s.Title = d.Agent, d.Session, d.Cwd, d.Title
	if !d.Created.IsZero() {
		s.Created = storable(d.Created, at)
	}
	switch {
	case d.State != nil:
		s.State, s.Owner, s.Parent, s.Updated = *d.State, d.Owner, cmp.Or(d.From, d.Parent), storable(d.Updated, at)
	case s.State == "": // a chat's, which leaves all that as it is
		s.State = records.StateIdle
	}
	if d.State == nil {
		f.parent = d.Parent
	}
	for name, v := range d.Attributes {
		if string(v) == "null" {
			delete(f.attributes, name)
		} else {
			f.attributes[name] = v
		}
	}
	return nil
}

// storable returns a time, or another one if it cannot be stored.
func storable(t, other time.Time) time.Time {
	if t.Before(minTime) || t.After(maxTime) {
		return other
	}
	return t
}

// made returns what is known of the session then.
func (x *files) made(f *fold) (s Session, shares []Share, err error) {
	switch v, err := os.ReadFile(x.liveFile(f.s.ID)); {
	case err == nil && json.Valid(v):
		f.attributes[live] = v
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		x.alarm(f.s.ID, fmt.Errorf("its agent cannot be reached any more: %w", err))
	}
	s = f.s
	s.Owner = cmp.Or(s.Owner, x.owner)
	if len(f.attributes) > 0 {
		if s.Attributes, err = json.Marshal(f.attributes); err != nil {
			return Session{}, nil, err
		}
	}
	return s, sharesOf(f.shares), nil
}

// create makes the journal of a session, and its row.
func (e *Engine) create(ctx context.Context, s Session) error {
	unlock, err := e.lock(ctx, s.ID)
	if err != nil {
		return err
	}
	defer unlock()
	first, err := describe(Session{}, s)
	if err != nil {
		return err
	}
	w, err := e.journals.Create(ctx, s.ID, first)
	if err != nil {
		return err
	}
	x, h := e.files, w.Head()
	size, err := x.size(s.ID)
	if err == nil {
		err = x.putLive(Session{}, s)
	}
	if err == nil {
		s.Epoch, s.Head = w.Epoch(), h
		err = x.db.Put(ctx, s, nil, size)
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.o.CommitTimeout)
	defer cancel()
	if err = errors.Join(err, w.Release(bound)); err != nil {
		_, failed := e.Delete(bound, s.ID) // or it would be there all the same
		return errors.Join(err, failed)
	}
	e.marks.note(s.ID, h)
	return nil
}

// update writes what is known of a session down, and then its row. A session that nobody owns is owned for that long.
func (e *Engine) update(ctx context.Context, id string, change func(*Session) (Session, error)) (Session, error) {
	for range updateTries {
		unlock, err := e.lock(ctx, id)
		if err != nil {
			return Session{}, err
		}
		if o := e.owner(id); o != nil {
			unlock()
			s, err := o.update(ctx, change)
			if !errors.Is(err, ErrReleased) {
				return s, err
			}
			if err := o.Release(ctx); err != nil { // somebody does that: once it is done, anew
				return Session{}, err
			}
			continue
		}
		s, err := e.updateFree(ctx, id, change)
		unlock()
		return s, err
	}
	return Session{}, ErrConflict
}

func (e *Engine) updateFree(ctx context.Context, id string, change func(*Session) (Session, error)) (Session, error) {
	f := newFold(id, e.o.Says)
	w, err := e.journals.Own(ctx, id, f.apply)
	if err != nil {
		return Session{}, known(err)
	}
	if d := w.Damage(); d != nil {
		_ = e.damaged(ctx, id, d)
	}
	o := &Owned{e: e, id: id, w: w, unsized: -1 - newToken()}
	s := Session{}
	if err = o.index(ctx, f); err == nil {
		s, err = o.update(ctx, change)
	}
	return s, errors.Join(err, o.giveUp(ctx))
}

// update is the same for a session that is owned.
func (o *Owned) update(ctx context.Context, change func(*Session) (Session, error)) (s Session, err error) {
	x := o.e.files
	_, err = o.keep(ctx, func(was Session) (Session, []journal.Draft, error) {
		if s, err = change(&was); err != nil {
			return Session{}, nil, err
		}
		draft, err := describe(was, s)
		if err == nil {
			err = o.w.Err()
		}
		if err == nil {
			err = x.putLive(was, s)
		}
		if s.Version++; draft.Kind != "" || err != nil {
			return s, []journal.Draft{draft}, err
		}
		if _, err := x.size(o.id); errors.Is(err, fs.ErrNotExist) { // no write finds out
			return Session{}, nil, ErrDeleted
		}
		s.Updated = was.Updated
		return s, nil, nil
	}, func(all []*Record) { o.noted(s, nil, all[len(all)-1]) })
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrReleased) {
		if _, gone := x.size(o.id); errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, x.putLive(s, Session{ID: o.id})) // with everything else of it
		}
	}
	return s, err
}

// noted brings the index up to date once records are kept: s is the session as of the last one, and they say that. What fails is
// tried again, with what is kept by then.
func (o *Owned) noted(s Session, said []Said, last *Record) {
	o.indexing.Lock()
	defer o.indexing.Unlock()
	s.Epoch, s.Head = last.Epoch, Head{Seq: last.Seq, Hash: last.Hash}
	o.now = s
	for _, v := range said {
		v.applyTo(o.shares)
	}
	o.put()
}

// put writes the session to the index. The caller holds indexing.
func (o *Owned) put() {
	err := o.e.files.db.Put(context.Background(), o.now, sharesOf(o.shares), o.unsized)
	switch {
	case err == nil:
		o.stale = false
	case o.w.Err() != nil: // it is read again
	default:
		if !o.stale {
			o.stale = true
			o.e.o.Alarm("", fmt.Errorf("the index cannot be written, and is tried again: %w", err))
		}
		if o.again == nil {
			o.again = time.AfterFunc(indexAgain, o.putAgain)
		}
	}
}

// indexAgain is how long it takes until what could not be written to the index is tried again.
const indexAgain = time.Second

// putAgain writes the session to the index if that is behind.
func (o *Owned) putAgain() {
	o.indexing.Lock()
	defer o.indexing.Unlock()
	o.stopAgain()
	if o.stale && o.w.Err() == nil {
		o.put()
	}
}

// stopAgain stops the timer, if there is one. The caller holds indexing.
func (o *Owned) stopAgain() {
	if o.again != nil {
		o.again.Stop()
		o.again = nil
	}
}

// applyTo changes the roles of users as the record says.
func (v Said) applyTo(roles map[string]string) {
	switch {
	case v.Share == nil:
	case v.Share.Role == "":
		delete(roles, v.Share.User)
	default:
		roles[v.Share.User] = v.Share.Role
	}
}

// sharesOf returns shares by user.
func sharesOf(roles map[string]string) (shares []Share) {
	for _, user := range slices.Sorted(maps.Keys(roles)) {
		shares = append(shares, Share{user, roles[user]})
	}
	return shares
}
