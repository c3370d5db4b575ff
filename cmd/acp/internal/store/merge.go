package store

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// maxOpenParts bounds the parts of one conversation that are open at the same time while it is
// read.
const maxOpenParts = 32

// A merge reads the parts of a conversation together. Use it from one goroutine, and close it.
type merge struct {
	store   *Store
	id      string
	damage  *Damage
	known   map[int]witness // by the part
	step    int             // how much of a part is read at once
	sources []*source       // those that have a record left, in the order of their parts
	open    []*source       // those whose file is open, the one that was opened first comes first
}

// A source is a part that is read, with its next record.
type source struct {
	part int
	f    File // nil while it is closed to make room
	scan *scanner
	rec  record
	at   time.Time // of rec, and never before the preceding ones
}

// add adds a part, unless it has no records.
func (m *merge) add(part int) error {
	src := &source{part: part}
	if err := m.reopen(src); err != nil {
		return err
	}
	m.sources = append(m.sources, src)
	return m.advance(src)
}

// next returns the source whose record is the next one.
func (m *merge) next() *source {
	next := m.sources[0]
	for _, src := range m.sources[1:] {
		if src.at.Before(next.at) {
			next = src
		}
	}
	next.rec.Part = next.part
	return next
}

// advance makes a source read its next record, and removes it at its end.
func (m *merge) advance(src *source) error {
	if src.f == nil {
		if err := m.reopen(src); err != nil {
			return err
		}
	}
	rec, ok := src.scan.next()
	w, known := m.known[src.part]
	if ok {
		if known {
			w.seen(&rec, m.damage)
		}
		src.rec = rec
		if rec.Time.After(src.at) {
			src.at = rec.Time
		}
		return nil
	}
	err := src.scan.failed()
	if known && err == nil {
		w.ended(src.scan.last, m.damage)
	}
	m.shut(src)
	m.sources = slices.DeleteFunc(m.sources, func(other *source) bool { return other == src })
	return err
}

// reopen opens the file of a source where it was left, and closes another one if too many are open.
func (m *merge) reopen(src *source) error {
	if len(m.open) >= maxOpenParts {
		other := m.open[0]
		other.rec.Data = bytes.Clone(other.rec.Data)
		for i := range other.scan.found {
			other.scan.found[i].Data = bytes.Clone(other.scan.found[i].Data)
		}
		m.shut(other)
	}
	f, err := m.store.files.OpenFile(filepath.Join(m.store.dir, logName(m.id, src.part)), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	src.f = f
	m.open = append(m.open, src)
	if old := src.scan; old == nil {
		src.scan = newScanner(f, src.part, place{Hash: root(m.id, src.part)}, m.damage)
	} else {
		src.scan = newScanner(io.NewSectionReader(f, old.at.Offset, 1<<62-old.at.Offset), src.part, old.at, m.damage)
		src.scan.found = old.found
	}
	src.scan.step = m.step
	return nil
}

// shut closes the file of a source and drops what was read ahead.
func (m *merge) shut(src *source) {
	if src.f != nil {
		_ = src.f.Close() // it was only read
		src.f = nil
		src.scan.buf, src.scan.begin, src.scan.end = nil, 0, 0
		m.open = slices.DeleteFunc(m.open, func(other *source) bool { return other == src })
	}
}

func (m *merge) close() {
	for len(m.open) > 0 {
		m.shut(m.open[0])
	}
}
