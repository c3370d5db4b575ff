package page

import (
	"sort"
	"sync"
	"time"
)

// A row is a record in the form that pages get. It never changes.
type row struct {
	seq   int64 // from 1, without gaps
	frame int64 // the number among the frames that were checked, or that of the preceding one
	at    time.Duration
	json  []byte // an object
	full  []byte // the whole record, if json has only part of it
}

const rowBytes = 96 // of a row apart from its contents

func (r *row) size() int64 { return rowBytes + int64(len(r.json)+len(r.full)) }

// A history keeps the latest rows, and wakes goroutines that wait for more.
type history struct {
	maxRows  int
	maxBytes int64

	mu      sync.Mutex
	rows    []*row
	next    int64 // the number of the next row
	bytes   int64
	lost    int64
	changes int64 // of the conversations
	ended   bool
	more    chan struct{} // closed when something changes
}

func newHistory(rows int, bytes int64) *history {
	return &history{maxRows: rows, maxBytes: bytes, next: 1, more: make(chan struct{})}
}

// changed wakes what waits. The caller holds the lock.
func (h *history) changed() {
	close(h.more)
	h.more = make(chan struct{})
}

// add appends a row and drops the oldest ones beyond the bounds, but never the latest.
func (h *history) add(r *row) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.seq = h.next
	h.next++
	h.rows = append(h.rows, r)
	h.bytes += r.size()
	drop := 0
	for len(h.rows)-drop > 1 && (len(h.rows)-drop > h.maxRows || h.bytes > h.maxBytes) {
		h.bytes -= h.rows[drop].size()
		h.rows[drop] = nil
		drop++
	}
	// The dropped rows are released when append moves the rest.
	h.rows = h.rows[drop:]
	h.changed()
}

// seq returns the number that the next row will have.
func (h *history) seq() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next
}

// at returns the number of the row of a checked frame, or 0 if it was dropped.
func (h *history) at(frame int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := sort.Search(len(h.rows), func(i int) bool { return h.rows[i].frame >= frame })
	if i == len(h.rows) || h.rows[i].frame != frame {
		return 0
	}
	return h.rows[i].seq
}

// row returns a row, or nil.
func (h *history) row(seq int64) *row {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.next - int64(len(h.rows))
	if seq < first || seq >= h.next {
		return nil
	}
	return h.rows[seq-first]
}

// told sets the number of changes of the conversations.
func (h *history) told(changes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changes != changes {
		h.changes = changes
		h.changed()
	}
}

// missed sets the number of lost records.
func (h *history) missed(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = n
	h.changed()
}

// end records that nothing follows.
func (h *history) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	h.changed()
}

// news is what a viewer has not seen.
type news struct {
	first   int64  // the oldest row
	from    int64  // where rows begin
	rows    []*row // from the requested row, or from first, on
	lost    int64
	changes int64
	ended   bool // and rows are the last ones
	more    <-chan struct{}
}

// since returns what exists from a row on: at most a number of rows, and of bytes unless one row is
// larger.
func (h *history) since(seq int64, rows int, bytes int64) news {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.next - int64(len(h.rows))
	n := news{first: first, lost: h.lost, changes: h.changes, more: h.more}
	seq = min(max(seq, first), h.next)
	from := int(seq - first)
	to := from
	for ; to < len(h.rows) && to-from < rows; to++ {
		bytes -= int64(len(h.rows[to].json))
		if bytes < 0 && to > from {
			break
		}
	}
	n.from = seq
	n.rows = append([]*row(nil), h.rows[from:to]...)
	n.ended = h.ended && to == len(h.rows)
	return n
}
