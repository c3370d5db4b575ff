package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A list looks at all journals unless one did in the last freshFor. A journal that another program is writing is
// read once in foreignFor.
const freshFor, foreignFor = 200 * time.Millisecond, 2 * time.Second

// fresh brings the index up to date with what other programs have written. If that fails, the index counts as it is.
func (e *Engine) fresh(ctx context.Context) error {
	x := e.files
	if x == nil {
		return nil
	}
	x.scanning.Lock()
	defer x.scanning.Unlock()
	if !x.scanned.IsZero() && time.Since(x.scanned) < freshFor {
		return nil
	}
	err := e.refresh(ctx)
	if x.scanned = time.Now(); err == nil || ctx.Err() != nil {
		x.failing = x.failing && err != nil
		return ctx.Err()
	}
	if !x.failing {
		x.failing = true
		e.o.Alarm("", fmt.Errorf("what others write cannot be listed: %w", err))
	}
	return nil
}

// refresh brings the index up to date. What another server owns is up to that.
func (e *Engine) refresh(ctx context.Context) error {
	x := e.files
	had, err := x.db.Sizes(ctx) // first, so that no journal is missed that somebody makes meanwhile
	if err != nil {
		return err
	}
	sizes := map[string]int64{}
	if err := e.journals.List(ctx, func(id string, size int64) bool { sizes[id] = size; return true }); err != nil {
		return err
	}
	for id := range had {
		if _, there := sizes[id]; !there {
			if err := x.unindex(ctx, id); err != nil {
				return err
			}
		}
	}
	maps.DeleteFunc(x.unlisted, func(id string, _ unlisted) bool { _, there := sizes[id]; return !there })
	maps.DeleteFunc(x.read, func(_ string, at time.Time) bool { return time.Since(at) >= foreignFor })
	for id, size := range sizes {
		if was, there := had[id]; there && was == size || e.owner(id) != nil {
			continue
		}
		if err := e.index(ctx, id, size); err != nil {
			return err
		}
	}
	return nil
}

// index updates what the index has of a journal that another program may have written to. It does nothing if the
// journal was read a moment ago and is being written still. The caller holds scanning.
func (e *Engine) index(ctx context.Context, id string, size int64) error {
	x := e.files
	if v, known := x.unlisted[id]; known && v.size == size {
		return nil
	}
	who, owned, err := e.journals.Owner(ctx, id)
	if err == nil && owned && who == x.who {
		return nil // another engine of this process writes the index
	}
	if owned {
		if at, lately := x.read[id]; lately && time.Since(at) < foreignFor {
			return nil
		}
		x.read[id] = time.Now()
	}
	unlock, err := e.lock(ctx, id) // so that nobody here claims it, or changes its row
	if err != nil {
		return err
	}
	defer unlock()
	if e.owner(id) != nil {
		return nil
	}
	f := newFold(id, e.o.Says)
	computed, err := e.journals.Computed(ctx, id)
	if err == nil {
		err = e.Read(ctx, id, 0, func(r Record) error { return f.apply(&r) })
	}
	if damage := (*DamageError)(nil); errors.As(err, &damage) {
		f, err = e.mended(ctx, damage)
	} else if err == nil && f.s.Head.Seq > 0 && !computed { // a restore or a takeover adds sessions the witness has not seen
		e.marks.note(id, f.s.Head)
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		if !errors.Is(err, ErrNotFound) { // deleted meanwhile
			x.unlisted[id] = unlisted{size: size}
			e.o.Alarm(id, err) // of a later version
		}
		return nil
	}
	if f.parent != "" || f.s.Created.IsZero() { // or nothing can be read, which was said, or nothing is there yet
		x.unlisted[id] = unlisted{f.parent, size}
		return nil
	}
	delete(x.unlisted, id)
	s, shares, err := x.made(f)
	if err != nil {
		return err
	}
	if err := x.db.Put(ctx, s, shares, size); err != nil {
		return err
	}
	if _, err := x.size(id); errors.Is(err, fs.ErrNotExist) { // meanwhile, and then the row came back
		return x.unindex(ctx, id)
	}
	return nil
}

// written updates the index for a session that another program may have written to.
func (e *Engine) written(ctx context.Context, id string) error {
	x := e.files
	if x == nil || e.owner(id) != nil || journal.CheckID(id) != nil {
		return nil
	}
	x.scanning.Lock()
	defer x.scanning.Unlock()
	was, err := x.db.Size(ctx, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	there := err == nil
	size, err := x.size(id)
	switch {
	case errors.Is(err, fs.ErrNotExist) && there:
		return x.unindex(ctx, id)
	case err != nil, there && was >= size: // of a conversation in several files, the first one is smaller
		return nil
	}
	return e.index(ctx, id, size)
}

// unindex removes a session from the index, if it is there.
func (x *files) unindex(ctx context.Context, id string) error {
	if _, err := x.db.DeleteSession(ctx, id); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// An unlisted journal cannot be read, or is the conversation of a subagent: that is deleted with the one that it is
// part of.
type unlisted struct {
	part string // of that
	size int64
}

// partsOf returns the parts of a session, and their parts, those that are deepest first.
func (e *Engine) partsOf(ctx context.Context, id string) (all []string, err error) {
	x := e.files
	x.scanning.Lock()
	defer x.scanning.Unlock()
	if err := e.refresh(ctx); err != nil { // there may be new ones
		return nil, err
	}
	for next := []string{id}; len(next) > 0; next = next[1:] {
		for name, p := range x.unlisted {
			if p.part == next[0] && !slices.Contains(all, name) {
				all, next = append(all, name), append(next, name)
			}
		}
	}
	slices.Reverse(all)
	return all, nil
}
