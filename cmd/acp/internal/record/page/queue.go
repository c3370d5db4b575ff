package page

import (
	"slices"
	"sync"

	"github.com/goacp/acp/trace"
)

// A queue holds the records that were not digested yet, up to queueBytes, or to feedBytes for
// callers that wait: that suffices to keep the digestion busy.
type queue struct {
	mu    sync.Mutex
	wake  *sync.Cond // something changed
	recs  []*trace.Record
	bytes int
	lost  int64
	ended bool
}

const (
	feedBytes   = 8 << 20
	recordBytes = 128 // of a record apart from its data
)

// put adds a copy of a record. If there is no room it waits, or counts the record as lost. It
// returns false if the queue has ended.
func (q *queue) put(rec *trace.Record, wait bool) bool {
	c := *rec
	c.Data = slices.Clone(rec.Data)
	size := recordBytes + len(c.Data)
	q.mu.Lock()
	defer q.mu.Unlock()
	for wait && !q.ended && q.bytes > 0 && q.bytes+size > feedBytes {
		q.wake.Wait()
	}
	switch {
	case q.ended:
		return false
	case q.bytes > 0 && q.bytes+size > queueBytes:
		q.lost++
		return true
	}
	q.recs = append(q.recs, &c)
	q.bytes += size
	q.wake.Broadcast()
	return true
}

// take waits for records and returns those there are, and how many were lost so far. ok is false if
// no more will come.
func (q *queue) take() (recs []*trace.Record, lost int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.recs) == 0 && !q.ended {
		q.wake.Wait()
	}
	recs, q.recs, q.bytes = q.recs, nil, 0
	q.wake.Broadcast()
	return recs, q.lost, len(recs) > 0 || !q.ended
}

// end accepts no more records.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.wake.Broadcast()
}

// abandon ends the queue and drops what is in it.
func (q *queue) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended, q.recs, q.bytes = true, nil, 0
	q.wake.Broadcast()
}
