package journal

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxMemory bounds a journal in memory, in bytes: beyond it the older half is replaced by a gap.
	maxMemory = 64 << 20
	// maxJournals bounds how many there are: those that nobody owns make room, the oldest first.
	maxJournals = 1024
)

// A memory is a [Backend] without files.
type memory struct {
	mu   sync.Mutex
	all  map[string]*memoryLog
	made uint64
}

// A memoryLog is a journal in memory. Its fields are guarded by memory.mu.
type memoryLog struct {
	m       *memory
	id      string
	made    uint64
	lines   []memoryLine
	size    int
	owned   bool
	deleted bool
}

// A memoryLine is a line without its end.
type memoryLine struct {
	from, seq uint64
	text      []byte
}

// NewMemory returns a backend that keeps journals for as long as the process lives: up to 1,024 of 64 MiB. It is for
// what must not be kept.
func NewMemory() Backend { return &memory{all: map[string]*memoryLog{}} }

// Create implements [Backend].
func (m *memory) Create(_ context.Context, id string) (Chain, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[id] != nil {
		return nil, ErrExists
	}
	if len(m.all) >= maxJournals {
		var oldest *memoryLog
		for _, l := range m.all {
			if !l.owned && (oldest == nil || l.made < oldest.made) {
				oldest = l
			}
		}
		if oldest == nil {
			return nil, fmt.Errorf("%w journals in memory: %d", ErrTooMany, maxJournals)
		}
		oldest.deleted = true
		delete(m.all, oldest.id)
	}
	m.made++
	l := &memoryLog{m: m, id: id, made: m.made, owned: true}
	m.all[id] = l
	return l, nil
}

// Own implements [Backend].
func (m *memory) Own(_ context.Context, id string) (Chain, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.all[id]
	switch {
	case l == nil:
		return nil, ErrNotFound
	case l.owned:
		return nil, &OwnedError{ID: id, Who: thisProgram}
	}
	l.owned = true
	return l, nil
}

// Scan implements [Backend]. Places are numbers of records.
func (m *memory) Scan(_ context.Context, id string, after uint64, _ int64, yield func(line []byte, end int64) bool) error {
	m.mu.Lock()
	var lines []memoryLine
	l := m.all[id]
	if l != nil {
		lines = l.lines
	}
	m.mu.Unlock()
	if l == nil {
		return ErrNotFound
	}
	first := max(findLine(lines, after)-1, 0)
	if first > 0 && !yield(lines[0].text, int64(lines[0].seq)) {
		return nil
	}
	for _, line := range lines[first:] {
		if !yield(line.text, int64(line.seq)) {
			break
		}
	}
	return nil
}

// findLine returns the first line that is behind a record.
func findLine(lines []memoryLine, after uint64) int {
	n, _ := slices.BinarySearchFunc(lines, after, func(l memoryLine, after uint64) int {
		if l.seq <= after {
			return -1
		}
		return 1
	})
	return n
}

// List implements [Backend].
func (m *memory) List(_ context.Context, yield func(id string, size int64) bool) error {
	m.mu.Lock()
	sizes := make(map[string]int64, len(m.all))
	for id, l := range m.all {
		if n := len(l.lines); n > 0 { // otherwise it is being made
			sizes[id] = int64(l.lines[n-1].seq)
		}
	}
	m.mu.Unlock()
	for id, size := range sizes {
		if !yield(id, size) {
			break
		}
	}
	return nil
}

// Owner implements [Backend].
func (m *memory) Owner(_ context.Context, id string) (who string, owned bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.all[id]
	return "", l != nil && l.owned, nil
}

// Delete implements [Backend].
func (m *memory) Delete(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[id] == nil {
		return ErrNotFound
	}
	for name, l := range m.all {
		if name == id || strings.HasPrefix(name, id+".") {
			l.deleted = true
			delete(m.all, name)
		}
	}
	return nil
}

// Poll implements [Backend].
func (m *memory) Poll() time.Duration { return 0 }

// Close implements [Backend].
func (m *memory) Close() error { return nil }

// Epoch implements [Chain].
func (l *memoryLog) Epoch() uint32 { return 0 }

// Begin implements [Chain].
func (l *memoryLog) Begin(int64) (int64, error) { return 0, nil }

// Write implements [Chain].
func (l *memoryLog) Write(records []Record) (bool, error) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.deleted {
		return false, ErrDeleted
	}
	for i := range records {
		r := &records[i]
		text := bytes.TrimSuffix(AppendLine(make([]byte, 0, len(r.Body)+recordBytes), r), []byte("\n"))
		l.lines = append(l.lines, memoryLine{r.From, r.Seq, text})
		l.size += len(text) + recordBytes
	}
	if l.size > maxMemory {
		return true, l.forget()
	}
	return true, nil
}

// forget replaces the older half, apart from the first record, by a gap.
func (l *memoryLog) forget() error {
	n, size := 1, 0
	for n < len(l.lines)-1 && size < l.size/2 {
		size += len(l.lines[n].text) + recordBytes
		n++
	}
	if n == 1 {
		return nil
	}
	before, err := ParseLine(l.lines[0].text)
	if err != nil {
		return err
	}
	last, err := ParseLine(l.lines[n-1].text)
	if err == nil {
		err = last.parseBody()
	}
	if err != nil {
		return err
	}
	made, err := makeGap(l.id, before.Hash, l.lines[1].from, &last, &Draft{})
	if err != nil {
		return err
	}
	l.replace([]Record{made})
	return nil
}

// replace puts records in the place of others.
func (l *memoryLog) replace(with []Record) {
	lines := make([]memoryLine, 0, len(l.lines))
	l.size = 0
	for _, old := range l.lines {
		for len(with) > 0 && with[0].Seq < old.from {
			with = with[1:]
		}
		if len(with) > 0 && old.seq >= with[0].From {
			if old.seq < with[0].Seq {
				continue
			}
			old = memoryLine{with[0].From, with[0].Seq, bytes.TrimSuffix(AppendLine(nil, &with[0]), []byte("\n"))}
		}
		lines = append(lines, old)
		l.size += len(old.text) + recordBytes
	}
	l.lines = lines // those who read have the old ones
}

// Sync implements [Chain].
func (l *memoryLog) Sync() error { return nil }

// Replace implements [Chain].
func (l *memoryLog) Replace(with []Record) error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.deleted {
		return ErrDeleted
	}
	l.replace(with)
	return nil
}

// Close implements [Chain].
func (l *memoryLog) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	l.owned = false
	return nil
}
