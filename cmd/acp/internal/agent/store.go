package agent

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

// Bounds of the store.
const (
	pageSize    = 50        // sessions on a page of the list
	maxListed   = 20000     // files that are looked at for the list
	maxJournal  = 256 << 20 // bytes
	maxInMemory = 256       // sessions that are kept when there is no directory
	maxMemory   = 32 << 20  // bytes of such a session
	// lockPatience is how long a session is waited for that is just being closed.
	lockPatience = time.Second
)

const (
	// part ends the id of the journal in which the agent keeps a session. That id without it is left to the session itself.
	part   = ".agent"
	suffix = part + ".jsonl" // of the names of files
)

// A store keeps the journals of sessions in a directory, or in memory if there is none. One opener at a time writes a
// session, also of several programs. Methods may be called from any goroutine.
type store struct {
	dir    string
	most   int64 // bytes of a journal
	c      *journal.Container
	log    *slog.Logger
	blanks *store // of sessions in which nothing was said; it has none itself

	mu    sync.Mutex
	mem   map[acp.SessionID]listed // if there is no directory
	inMem int                      // how many are kept there
}

func newStore(dir string, log *slog.Logger) *store {
	o := journal.Options{GiveUp: true, Trouble: func(id string, err error) { // such as a disk that takes long
		if err != nil {
			log.Warn("agent: the journal of a session", "journal", id, "error", err)
		}
	}}
	if dir == "" {
		shelf := func(most int64, inMem int) *store {
			return &store{most: most, c: journal.New(journal.NewMemory(), o), log: log, mem: map[acp.SessionID]listed{}, inMem: inMem}
		}
		s := shelf(maxMemory, maxInMemory)
		s.blanks = shelf(maxBlankSize, maxBlanks)
		return s
	}
	unused := filepath.Join(dir, blankDir)
	return &store{dir: dir, most: maxJournal, c: file.Open(dir, file.Options{Options: o}), log: log, blanks: &store{
		dir: unused, most: maxBlankSize, c: journal.New(lax{file.NewBackend(unused, file.Options{}), unused}, o), log: log,
	}}
}

// busyError says that a session is open somewhere else.
func busyError(id acp.SessionID, who string) error {
	if who == "" {
		who = "another place"
	}
	return &acp.Failure{
		Message: "session " + string(id) + " is open in " + prose.OneLine(who, 200) + ": close it there first",
		Reason:  "session_open", Scope: "session",
	}
}

// unreadable says that what was kept of a session is broken, or out of reach.
func unreadable(id acp.SessionID, err error) error {
	return &acp.Failure{
		Message: "session " + string(id) + " cannot be read: " + prose.OneLine(err.Error(), 300),
		Reason:  "session_unreadable", Scope: "session",
	}
}

// unsaved says that nothing can be added to a session.
func unsaved(id acp.SessionID, err error) error {
	return &acp.Failure{
		Message: "session " + string(id) + " cannot be saved: " + prose.OneLine(err.Error(), 300),
		Reason:  "session_unsaved", Scope: "session",
	}
}

// validID reports whether an id may become the name of a file.
func validID(id acp.SessionID) bool {
	return !strings.Contains(string(id), ".") && journal.CheckID(string(id)+part) == nil
}

func (s *store) path(id acp.SessionID) string { return filepath.Join(s.dir, string(id)+suffix) }

// create makes the journal of a session, with what is to be in it at once.
func (s *store) create(id acp.SessionID, a about, first ...journal.Draft) (*keeper, error) {
	if !validID(id) {
		return nil, acp.SessionNotFound(id)
	}
	s.makeRoom()
	k := &keeper{store: s, id: id, most: s.most, about: a}
	first = append([]journal.Draft{a.draft()}, first...)
	err := k.fits(first...)
	if err == nil {
		k.w, err = s.c.Create(context.Background(), string(id)+part, first...)
	}
	if err != nil {
		return nil, err
	}
	k.added(first...)
	return k, nil
}

// makeRoom drops the closed session that was changed least recently, if there are too many in memory.
func (s *store) makeRoom() {
	if s.dir != "" {
		return
	}
	all, _ := s.all()
	if len(all) < s.inMem {
		return
	}
	sort.Slice(all, func(i, j int) bool { return all[i].updated.Before(all[j].updated) })
	for _, l := range all {
		if _, owned, _ := s.c.Owner(context.Background(), string(l.id)+part); !owned {
			_ = s.drop(l.id) // there is no disk that could fail
			return
		}
	}
}

// createFrom makes a session of what from gives. It is finished when what is known of it was added: known gets what from
// says of that. If it cannot be kept, from is called to its end all the same, and nothing can be added to the keeper.
func (s *store) createFrom(id acp.SessionID, from func(add func(journal.Draft)) error, known func(was about) about) (*keeper, error) {
	k, lost := s.create(id, about{})
	if lost != nil {
		k = &keeper{store: s, id: id, lost: lost}
	}
	k.most = math.MaxInt64 // an old file is longer as a journal
	var was about
	var some []journal.Draft
	size := 0
	err := from(func(d journal.Draft) {
		if was.see(d); lost != nil || d.Kind == journal.KindSession || d.Kind == journal.KindGap || !d.Kind.Known() {
			return
		}
		if some, size = append(some, d), size+len(d.Data); size > copyBytes {
			lost, some, size = k.add(some...), nil, 0
		}
	})
	if err == nil && lost == nil {
		lost = k.add(some...)
	}
	if err == nil && lost == nil {
		lost = k.set(func(a *about) { *a = known(was) })
	}
	k.most = s.most
	switch {
	case err != nil && k.w != nil:
		return nil, errors.Join(err, k.drop())
	case err != nil:
		return nil, err
	case lost == nil:
		return k, nil
	case k.w != nil:
		_ = k.drop() // what is left of it is not listed, since it is not finished
	}
	return &keeper{store: s, id: id, lost: lost, about: known(was)}, nil
}

// open opens the journal of a session that exists, and calls each with its entries. It waits for one that is being closed.
func (s *store) open(id acp.SessionID, each func(entry)) (*keeper, error) {
	for end := time.Now().Add(lockPatience); ; time.Sleep(20 * time.Millisecond) {
		if !s.exists(id) {
			return nil, s.missing(id)
		}
		k, err := s.own(id, each)
		owned, busy := errors.AsType[*journal.OwnedError](err)
		switch {
		case err == nil:
			return k, nil
		case !busy:
			return nil, unreadable(id, err)
		case time.Now().After(end):
			return nil, busyError(id, owned.Who)
		}
	}
}

// own is open without patience. If the journal cannot be owned for another reason than that it is open elsewhere or of a
// later version, such as a full disk or one without locks, but can be read, nothing can be added to the keeper.
func (s *store) own(id acp.SessionID, each func(entry)) (*keeper, error) {
	k := &keeper{store: s, id: id, most: s.most}
	some := false
	see := func(d journal.Draft) error {
		some = true
		k.count(d)
		k.about.see(d)
		if each != nil {
			seen(d, each)
		}
		return nil
	}
	failed := s.takeOver(id)
	err := failed
	if err == nil {
		err = s.begun(id)
	}
	if err == nil {
		k.w, err = s.c.Own(context.Background(), string(id)+part, func(r *journal.Record) error {
			return see(journal.Draft{Kind: r.Kind, At: r.At, Data: r.Data})
		})
	}
	switch {
	case err == nil:
		if damage := k.w.Damage(); damage != nil {
			s.log.Warn("agent: a session is damaged", "error", damage)
		}
	case some, errors.As(err, new(*journal.OwnedError)), errors.As(err, new(*journal.FormatError)):
		return nil, err
	default:
		if s.readKept(id, failed, see) != nil {
			return nil, err
		}
		k.lost = err
	}
	return k, nil
}

// seen calls each with the entry in a record, if it has one.
func seen(d journal.Draft, each func(entry)) {
	if e, ok := parseEntry(d); ok {
		each(e)
	}
}

// begun returns errUnbegun if there is no journal of a session, or none that is finished.
func (s *store) begun(id acp.SessionID) error {
	a, err := s.newest(id)
	if err == nil && a.Cwd == "" {
		err = errUnbegun
	}
	return err
}

var errUnbegun = errors.New("it has no beginning")

// read calls each with what was kept of a session, which may be open, but for what is damaged. It takes over what an earlier
// version has kept, or else reads that.
func (s *store) read(id acp.SessionID, each func(journal.Draft) error) error {
	return s.readKept(id, s.takeOver(id), each)
}

// readKept is read after an attempt to take the session over, which may have failed.
func (s *store) readKept(id acp.SessionID, failed error, each func(journal.Draft) error) error {
	// Whoever takes the session over finishes the journal before this file goes.
	old, err := s.openOld(id, os.O_RDONLY)
	if err == nil {
		defer func() { _ = old.Close() }()
	}
	begun := s.begun(id)
	switch damaged := errors.As(begun, new(*journal.DamageError)); {
	case begun == nil:
		return s.readJournal(id, each)
	case old != nil && (damaged || errors.Is(begun, errUnbegun)):
		return readOld(id, old, each)
	}
	return cmp.Or(failed, begun)
}

// readJournal is read of a journal that is finished.
func (s *store) readJournal(id acp.SessionID, each func(journal.Draft) error) error {
	some := false
	err := s.c.Read(context.Background(), string(id)+part, 0, func(r *journal.Record) error {
		some = true
		return each(journal.Draft{Kind: r.Kind, At: r.At, Data: r.Data})
	})
	if damage, ok := errors.AsType[*journal.DamageError](err); ok && some {
		s.log.Warn("agent: a session is damaged", "error", damage)
		return nil
	}
	return err
}

// copyOf makes a session with what was kept of another, which may be open elsewhere. It calls each with every entry, also if
// the copy cannot be kept: then nothing can be added to the keeper.
func (s *store) copyOf(from, id acp.SessionID, a about, each func(entry)) (*keeper, error) {
	if !s.exists(from) {
		return nil, s.missing(from)
	}
	k, err := s.createFrom(id, func(add func(journal.Draft)) error {
		return s.read(from, func(d journal.Draft) error {
			seen(d, each)
			add(d)
			return nil
		})
	}, func(was about) about {
		a.Title, a.Parent = was.Title, from
		return a
	})
	if err != nil {
		return nil, unreadable(from, err)
	}
	return k, nil
}

// remove deletes a session that is not open.
func (s *store) remove(id acp.SessionID) error {
	// First, so that a blank that an interrupted process left beside the journal does not bring it back.
	if s.removeBlank(id) && !s.exists(id) {
		return nil
	}
	k, err := s.open(id, nil) // nobody else may have it
	if err == nil {
		return k.drop()
	}
	if f, ok := errors.AsType[*acp.Failure](err); !ok || f.Reason != "session_unreadable" {
		return err
	}
	return errors.Join(s.drop(id), s.removeOld(id))
}

// drop deletes the journal of a session, if there is one.
func (s *store) drop(id acp.SessionID) error {
	err := s.c.Delete(context.Background(), string(id)+part)
	if errors.Is(err, journal.ErrNotFound) {
		err = nil
	}
	s.mu.Lock()
	delete(s.mem, id)
	s.mu.Unlock()
	return err
}

// exists reports whether there is such a session.
func (s *store) exists(id acp.SessionID) bool {
	s.mu.Lock()
	_, ok := s.mem[id]
	s.mu.Unlock()
	return ok || s.dir != "" && validID(id) && (isRegular(s.path(id)) || isRegular(s.oldPath(id)))
}

func isRegular(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// openRegular opens a regular file. Reading anything else might never end.
func openRegular(path string, flags int) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	return os.OpenFile(path, flags, 0)
}
