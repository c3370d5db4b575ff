package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A blank is a session in which nothing has been said: its options. Blanks have a store of their own, since they are not
// listed, only the latest are kept, and a loss of power may take them. They are not open between changes. The first prompt
// replaces a blank with a journal among the others.

// Bounds of blanks.
const (
	maxBlanks    = 128
	maxBlankSize = 64 << 10 // bytes
)

// blankDir is the directory of blanks, below that of the journals.
const blankDir = "unused"

// lax is a backend that syncs nothing.
type lax struct {
	journal.Backend
	dir string
}

type laxChain struct{ journal.Chain }

func (b lax) Create(ctx context.Context, id string) (journal.Chain, error) {
	c, err := b.Backend.Create(ctx, id)
	return laxChain{c}, err
}

func (b lax) Own(ctx context.Context, id string) (journal.Chain, error) {
	c, err := b.Backend.Own(ctx, id)
	return laxChain{c}, err
}

func (b lax) Delete(_ context.Context, id string) error {
	err := os.Remove(filepath.Join(b.dir, id+".jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return journal.ErrNotFound
	}
	return err
}

func (laxChain) Sync() error { return nil }

// setBlank keeps a session in which nothing has been said, with its options.
func (s *store) setBlank(id acp.SessionID, a about, options *acp.ConfigOptionUpdate) error {
	d, err := updateDraft(options)
	if err == nil {
		err = s.blanks.later(id)
	}
	if err != nil {
		return err
	}
	k, err := s.blanks.open(id, nil)
	if err == nil {
		err = errors.Join(k.add(d), k.close())
	}
	if err == nil {
		return nil
	}
	s.removeBlank(id)
	if k, err = s.blanks.create(id, a, d); err != nil {
		return err
	}
	if err := k.close(); err != nil || s.dir == "" {
		return err
	}
	all, err := s.blanks.all()
	sort.Slice(all, func(i, j int) bool { return all[j].cursor() < all[i].cursor() })
	for _, old := range all[min(len(all), maxBlanks):] {
		s.removeBlank(old.id)
	}
	return err
}

// readBlank calls each for what is kept of a session in which nothing has been said. It reports whether
// there is one.
func (s *store) readBlank(id acp.SessionID, each func(entry)) bool {
	return s.blanks.exists(id) && s.blanks.read(id, func(d journal.Draft) error {
		if each != nil {
			seen(d, each)
		}
		return nil
	}) == nil
}

// missing says that there is no journal of a session, or that a later version has kept it as a blank.
func (s *store) missing(id acp.SessionID) error {
	if b := s.blanks; b != nil && b.exists(id) {
		if err := b.later(id); err != nil {
			return unreadable(id, err)
		}
	}
	return acp.SessionNotFound(id)
}

// removeBlank removes a blank, and reports whether there was one.
func (s *store) removeBlank(id acp.SessionID) bool {
	b := s.blanks
	if !b.exists(id) {
		return false
	}
	_ = errors.Join(b.drop(id), b.removeOld(id)) // it may be gone
	return true
}

// setBlank keeps the session although nothing has been said in it. A failure is logged. The user learns of
// it with the first prompt, if that cannot be kept either.
func (s *session) setBlank() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeBlank()
}

// writeBlank is setBlank for callers that hold mu. It does nothing once the session is closed, since it may
// have been deleted then, or when it has a journal or cannot have one.
func (s *session) writeBlank() {
	if s.end == sessionClosed || s.j != nil || s.lost != nil {
		return
	}
	options := &acp.ConfigOptionUpdate{ConfigOptions: s.values()}
	if err := s.agent.store.setBlank(s.acp.ID(), s.about(), options); err != nil {
		s.agent.log.Warn("agent: a session without a prompt is not kept", "error", err)
	}
}

// about is what is known of the session.
func (s *session) about() about {
	return about{Cwd: s.acp.Cwd(), Roots: s.acp.AdditionalDirectories(), Title: s.title}
}
