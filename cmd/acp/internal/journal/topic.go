package journal

import "sync"

// Bounds of the records that a topic holds. A follower that is further behind reads the journal.
const (
	topicRecords = 8192
	topicBytes   = 4 << 20
)

// A topic is a journal with followers. It holds the records that were kept last, once for all
// followers, until each of them has taken them.
type topic struct {
	mu        sync.Mutex
	followers map[*follower]struct{}
	batches   []*batch // in order; there may be gaps between those of two owners
	first     uint64   // the number of batches[0]; batches are numbered in the order in which they came
	records   int
	size      int
	last      uint64 // the last record that came
}

// A batch is records that came at once, in order and without a gap.
type batch struct {
	recs []*Record
	size int
	left int // followers that have not taken it
}

// A follower is how far a follower of a topic is. Its fields are guarded by the lock of the topic.
type follower struct {
	wake   chan struct{} // holds a value if there is something to look at
	next   uint64        // the number of the batch to take next
	missed bool          // records may be kept that did not come: read the journal
	err    error
}

func newFollower() *follower { return &follower{wake: make(chan struct{}, 1)} }

func (f *follower) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// add adds a follower, which gets what comes from now on.
func (t *topic) add(f *follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.next = t.end()
	t.followers[f] = struct{}{}
}

// remove removes a follower. It reports whether no other is left.
func (t *topic) remove(f *follower) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for f.next = max(f.next, t.first); f.next < t.end(); f.next++ {
		t.batches[f.next-t.first].left--
	}
	t.drop()
	delete(t.followers, f)
	return len(t.followers) == 0
}

// end is the number of the batch that comes next. The caller holds t.mu.
func (t *topic) end() uint64 { return t.first + uint64(len(t.batches)) }

// put adds records that are kept. Those that came before are left out.
func (t *topic) put(recs []*Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(recs) > 0 && recs[0].Seq <= t.last {
		recs = recs[1:]
	}
	for len(recs) > 0 {
		b := &batch{left: len(t.followers)}
		n := 0
		for n < len(recs) && recs[n].Seq == recs[0].Seq+uint64(n) {
			b.size += recs[n].size()
			n++
		}
		b.recs, recs = recs[:n:n], recs[n:]
		t.last = b.recs[n-1].Seq
		t.batches = append(t.batches, b)
		t.records, t.size = t.records+n, t.size+b.size
	}
	t.drop()
	for f := range t.followers {
		f.signal()
	}
}

// drop drops what all followers have taken, and what exceeds the bounds: of a single batch nothing. The caller holds
// t.mu.
func (t *topic) drop() {
	for len(t.batches) > 0 {
		b := t.batches[0]
		if b.left > 0 && (len(t.batches) == 1 || t.records <= topicRecords && t.size <= topicBytes) {
			return
		}
		t.batches[0] = nil
		t.batches = t.batches[1:]
		t.first++
		t.records, t.size = t.records-len(b.recs), t.size-b.size
	}
	t.batches = nil
}

// take returns the records that follow the record at, as far as they came together, or none if they did not come
// yet. lagged is set if the journal has to be read first.
func (t *topic) take(f *follower, at uint64) (recs []*Record, lagged bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.err != nil {
		return nil, false, f.err
	}
	if f.missed {
		f.missed = false
		return nil, true, nil
	}
	defer t.drop()
	for f.next = max(f.next, t.first); f.next < t.end(); {
		b := t.batches[f.next-t.first]
		if b.recs[0].Seq > at+1 {
			return nil, true, nil
		}
		f.next++
		b.left--
		if last := b.recs[len(b.recs)-1].Seq; last > at {
			return b.recs[len(b.recs)-int(last-at):], false, nil
		}
	}
	return nil, t.last > at, nil // they may have been dropped
}

// has reports whether a follower that has reached the record at can continue without the journal.
func (t *topic) has(f *follower, at uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := max(f.next, t.first)
	return f.err == nil && !f.missed && next < t.end() && t.batches[next-t.first].recs[0].Seq <= at+1
}

// fail has followers end with an error.
func (t *topic) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for f := range t.followers {
		if f.err == nil {
			f.err = err
		}
		f.signal()
	}
}

// miss has followers read the journal.
func (t *topic) miss() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for f := range t.followers {
		f.missed = true
		f.signal()
	}
}
