package gateway

import (
	"slices"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// Bounds of what is remembered of decoded updates: as much as a session has for those who watch it.
const (
	maxDecoded      = 8192
	maxDecodedBytes = 4 << 20 // of the data of records, and of what clients are sent of them
)

// decodedUpdates remembers the updates of the agents that came last, and those that were decoded last of sessions that
// several clients watch: those who watch a session are sent the same ones, each at about the same time. It remembers
// nothing of sessions that nobody watches. The zero value is empty. It is safe for concurrent use; the updates must not
// be modified.
type decodedUpdates struct {
	mu    sync.Mutex
	watch map[string]*watched // sessions
	queue []*decoded          // the oldest first
	bytes int
}

// watched is a session that clients watch. The lock of the decodedUpdates guards it.
type watched struct {
	clients int
	by      map[uint64]*decoded // by the number of the record
}

// A decoded is the update of a record, and the session of the subagent that it is about, or "".
type decoded struct {
	child  acp.SessionID
	update acp.SessionUpdate
	seq    uint64
	size   int    // of the data
	mark   string // of the record

	in     *watched // where it is remembered; nil if it is not
	bytes  int      // that it counts with; guarded by the lock of the decodedUpdates
	v1, v2 shared
}

// join is called with 1 for a client that begins to watch a session, and with -1 for one that ends.
func (c *decodedUpdates) join(session string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watch[session]
	if w == nil {
		if c.watch == nil {
			c.watch = make(map[string]*watched)
		}
		w = new(watched)
		c.watch[session] = w
	}
	if w.clients += n; w.clients == 0 {
		delete(c.watch, session)
	}
	if w.clients == 0 && len(w.by) > 0 {
		w.by = nil
		c.queue = slices.DeleteFunc(c.queue, func(d *decoded) bool {
			if d.in == w {
				c.bytes -= d.bytes
			}
			return d.in == w
		})
		if len(c.queue) == 0 {
			c.queue = nil
		}
	}
}

// of returns the update of a record, which is one of the agent itself or of a subagent.
func (c *decodedUpdates) of(session string, r *engine.Record) (*decoded, error) {
	if d := c.kept(session, r); d != nil {
		return d, nil
	}
	d := &decoded{seq: r.Seq, size: len(r.Data), mark: markOf(r)}
	var err error
	if r.Kind == kindChild {
		d.child, d.update, err = records.DecodeChild(r.Data)
	} else {
		d.update, err = records.DecodeUpdate(r.Data)
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watch[session]
	if w == nil || w.clients < 2 {
		return d, nil
	}
	if first := w.by[r.Seq]; first != nil {
		if first.size == d.size {
			return first, nil
		}
		return d, nil
	}
	c.add(w, d)
	return d, nil
}

// learn remembers an update of an agent as it is kept, so that nobody who watches has to decode it.
func (c *decodedUpdates) learn(session string, d *decoded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watch[session]
	if w != nil && w.by[d.seq] == nil {
		c.add(w, d)
	}
}

// add remembers an update. The caller holds c.mu.
func (c *decodedUpdates) add(w *watched, d *decoded) {
	if w.by == nil {
		w.by = make(map[uint64]*decoded)
	}
	d.in = w
	w.by[d.seq], c.queue = d, append(c.queue, d)
	c.grow(d, d.size)
}

// kept returns the update of a record if it is remembered, or nil.
func (c *decodedUpdates) kept(session string, r *engine.Record) *decoded {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watch[session]
	if w == nil {
		return nil
	}
	d := w.by[r.Seq]
	if d == nil || d.size != len(r.Data) {
		return nil
	}
	if d.mark == "" { // it was learned, and nobody has it yet
		d.mark = markOf(r)
	}
	return d
}

// grow counts n bytes more for an update that is remembered, and forgets the oldest beyond the bounds. The caller holds
// c.mu.
func (c *decodedUpdates) grow(d *decoded, n int) {
	d.bytes += n
	for c.bytes += n; c.bytes > maxDecodedBytes || len(c.queue) > maxDecoded; {
		old := c.queue[0]
		delete(old.in.by, old.seq)
		c.bytes -= old.bytes
		c.queue[0], c.queue = nil, c.queue[1:]
	}
}
