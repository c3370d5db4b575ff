package acphttp

import (
	"errors"
	"sync"
	"time"
)

// ErrGap is returned by [Log.Read] when events that were asked for are not kept any
// more. The client is refused then: a stream never resumes with a gap.
var ErrGap = errors.New("acphttp: the stream cannot be resumed from there")

// A Log keeps the events of one stream of one connection: at least those that its
// client has not taken, and as many of the others as a client may want again after
// its connection broke. Events are numbered from 1.
//
// The server calls the methods of a Log one at a time.
type Log interface {
	// Append adds an event. It must not keep frame. An error ends the
	// connection.
	Append(frame []byte) error
	// Read calls yield with the events after a given one, in order, until yield
	// returns false or there are no more. A frame is valid until yield returns.
	// Read returns ErrGap if an event after the given one is not kept any more,
	// or if the log has never had the given one.
	Read(after uint64, yield func(seq uint64, frame []byte) bool) error
	// Last returns the number of the last event, 0 without any.
	Last() uint64
	// Taken is called when the client was sent all events up to a given one.
	// Those that are kept beyond that are for resumption alone.
	Taken(seq uint64)
	// Close releases what the log holds. The stream has ended.
	Close() error
}

// Retention bounds what a [Log] in memory keeps of the events that a client was sent,
// for the case that they did not arrive. The zero value keeps nothing, so streams
// cannot be resumed.
type Retention struct {
	Bytes int // for each stream
	// Age drops what was sent so long ago, once something more is sent in the
	// stream; 0 means that nothing is too old.
	Age time.Duration
}

// NewLog returns a log in memory. What the client was not sent is kept in any case;
// see [Limits] for the bound of that. An empty log holds next to nothing.
func NewLog(keep Retention) Log { return &ring{keep: keep, next: 1, first: 1, now: time.Now} }

const (
	chunkMin = 1 << 10
	chunkMax = 32 << 10
)

// ring is a log in memory: chunks of frames, of which whole ones are dropped.
type ring struct {
	keep   Retention
	now    func() time.Time
	chunks []*chunk
	first  uint64 // the first event that is kept
	next   uint64 // the number of the next event
	taken  uint64
	bytes  int // of the chunks
	unsent int // of these, of events after taken
}

// spareChunks are chunks of the largest size to be used again, by any ring: one of a
// stream that waits holds none.
var spareChunks sync.Pool

// chunk is some consecutive events.
type chunk struct {
	first uint64
	data  []byte
	ends  []int // of the events, in data
	last  time.Time
}

func (r *ring) Append(frame []byte) error {
	n := len(r.chunks)
	if n == 0 || cap(r.chunks[n-1].data)-len(r.chunks[n-1].data) < len(frame) {
		r.grow(len(frame))
		n = len(r.chunks)
	}
	c := r.chunks[n-1]
	c.data = append(c.data, frame...)
	c.ends = append(c.ends, len(c.data))
	if r.keep.Age > 0 {
		c.last = r.now()
	}
	r.next++
	r.bytes += len(frame)
	r.unsent += len(frame)
	return nil
}

// grow adds a chunk with room for a frame of size bytes. Chunks grow with use.
func (r *ring) grow(size int) {
	room := chunkMin
	if n := len(r.chunks); n > 0 {
		room = min(4*cap(r.chunks[n-1].data), chunkMax)
	} else if r.next > 1 {
		room = chunkMax
	}
	if room == chunkMax && size <= chunkMax {
		if c, _ := spareChunks.Get().(*chunk); c != nil {
			c.first = r.next
			r.chunks = append(r.chunks, c)
			return
		}
	}
	r.chunks = append(r.chunks, &chunk{first: r.next, data: make([]byte, 0, max(room, size))})
}

func (r *ring) Read(after uint64, yield func(seq uint64, frame []byte) bool) error {
	if after >= r.next || after+1 < r.first {
		return ErrGap
	}
	for _, c := range r.chunks {
		end := c.first + uint64(len(c.ends))
		for seq := max(after+1, c.first); seq < end; seq++ {
			i := int(seq - c.first)
			from := 0
			if i > 0 {
				from = c.ends[i-1]
			}
			if !yield(seq, c.data[from:c.ends[i]]) {
				return nil
			}
		}
	}
	return nil
}

func (r *ring) Last() uint64 { return r.next - 1 }

func (r *ring) Taken(seq uint64) {
	if seq > r.taken {
		_ = r.Read(r.taken, func(n uint64, frame []byte) bool {
			if n > seq {
				return false
			}
			r.unsent -= len(frame)
			return true
		})
		r.taken = seq
	}
	var old time.Time
	if r.keep.Age > 0 {
		old = r.now().Add(-r.keep.Age)
	}
	for len(r.chunks) > 0 {
		c := r.chunks[0]
		if c.first+uint64(len(c.ends)) > r.taken+1 {
			return
		}
		if r.bytes-r.unsent-len(c.data) < r.keep.Bytes && (r.keep.Age == 0 || c.last.After(old)) {
			return
		}
		r.first = c.first + uint64(len(c.ends))
		r.bytes -= len(c.data)
		if cap(c.data) == chunkMax {
			c.data, c.ends, c.last = c.data[:0], c.ends[:0], time.Time{}
			spareChunks.Put(c)
		}
		r.chunks[0] = nil
		r.chunks = r.chunks[1:]
	}
	r.chunks = nil
}

func (r *ring) Close() error {
	r.chunks, r.first = nil, r.next
	return nil
}
