package acp

import (
	"slices"
	"sync"
	"sync/atomic"
)

// maxHeld and maxHeldBytes bound the updates that a Reply holds for its reader.
const (
	maxHeld      = 1024
	maxHeldBytes = 16 << 20
)

// A replyBuffer holds a reply's updates until they are read. One goroutine adds
// them, in order, and one at a time reads them. All other methods may be called
// from any goroutine.
//
// Updates are kept from the start. They may only be read once they are known to
// be the reply's own, or when the reply has ended: begun and ended are set
// independently, since a reply may end without having begun and learn later where
// it would have.
type replyBuffer struct {
	unread  atomic.Bool // reader is readerGone; spares updates the lock
	ignored atomic.Bool // nobody has read for so long that nobody is expected to

	mu         sync.Mutex
	reader     replyReader
	begun      bool
	ended      bool // nothing is added any more
	held       []heldUpdate
	head       int           // of held: the first that was not read
	bytes      int           // of held
	own        *Update       // what restart begins with; nil in version 2
	lost       bool          // the reader has yet to learn that updates are missing,
	unreadable error         // and that one could not be read, or nil
	waiting    bool          // the reader waits for wake
	wake       chan struct{} // holds one; nil until somebody has waited
	room       chan struct{} // closed when there may be room; nil when nobody waits
}

// replyReader says who reads a reply:
//
//	readerNone ──read──▶ readerHere ──leave──▶ readerGone
//	     └────────────────leave─────────────────▲
type replyReader uint8

const (
	readerNone replyReader = iota // nobody has asked for the updates yet: they are held
	readerHere                    // somebody reads
	readerGone                    // nobody is going to: they are discarded
)

// heldUpdate is an update in a buffer. Its size is computed when it is needed.
type heldUpdate struct {
	u    *Update
	seq  uint64 // its number among the session's updates
	size int
}

// push adds an update. If there is no room, it returns a channel that is closed
// when there may be some; push must then be called again. If yields returns true,
// or the buffer has not begun, the oldest updates are dropped instead. yields is
// called with mu held, and with whether there is a reader.
func (b *replyBuffer) push(h *heldUpdate, yields func(read bool) bool) (room <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.open() {
		switch {
		case b.fits(h):
			if len(b.held) == cap(b.held) && b.head > 0 {
				n := copy(b.held, b.held[b.head:])
				clear(b.held[n:])
				b.held, b.head = b.held[:n], 0
			}
			b.held = append(b.held, *h)
			b.bytes += h.size
			b.wakeReader()
			return nil
		case !b.begun || yields(b.reader == readerHere):
			b.pop()
			b.lost = true
		default:
			if b.room == nil {
				b.room = make(chan struct{})
			}
			return b.room
		}
	}
	return nil
}

// lose reports to the reader that an update is missing.
func (b *replyBuffer) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open() {
		b.lost = true
	}
}

// misses reports to the reader an update that could not be read.
func (b *replyBuffer) misses(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open() {
		b.unreadable = err
		b.wakeReader()
	}
}

// next waits for the next update. At the end ok is false.
func (b *replyBuffer) next() (u *Update, err error, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if b.begun || b.ended {
			switch {
			case b.lost:
				b.lost = false
				return nil, errNobodyRead, true
			case b.unreadable != nil:
				err := b.unreadable
				b.unreadable = nil
				return nil, err, true
			case b.head < len(b.held):
				return b.pop(), nil, true
			case b.ended:
				return nil, nil, false
			}
		}
		b.waiting = true
		if b.wake == nil {
			b.wake = make(chan struct{}, 1)
		}
		wake := b.wake
		b.mu.Unlock()
		<-wake
		b.mu.Lock()
	}
}

// read records that somebody begins to read.
func (b *replyBuffer) read() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reader == readerNone {
		b.reader = readerHere
	}
}

// leave records that nobody reads any more: updates that are held or arrive later
// are discarded. If unlessRead is set, a reader that is there stays.
func (b *replyBuffer) leave(unlessRead bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if unlessRead && b.reader != readerNone {
		return
	}
	b.reader = readerGone
	b.unread.Store(true)
	b.held, b.head, b.bytes, b.lost, b.unreadable = nil, 0, 0, false, nil
	b.wakeRoom()
}

// begin says that the updates from the number from on are the reply's own. The
// first time it is called, older ones are dropped.
func (b *replyBuffer) begin(from uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun {
		return
	}
	b.begun = true
	if b.lost {
		// Everything that was lost may have belonged to other turns.
		b.lost = b.head < len(b.held) && b.held[b.head].seq > from
	}
	b.keep(func(h heldUpdate) bool { return h.seq >= from })
	if b.head < len(b.held) {
		b.wakeReader()
	}
}

// cut drops the updates after the number last.
func (b *replyBuffer) cut(last uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keep(func(h heldUpdate) bool { return h.seq <= last })
}

// restart keeps nothing but the reply's own message, if nobody has read anything.
func (b *replyBuffer) restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.own != nil && b.reader == readerNone {
		b.bytes = heldSize(b.own)
		b.held, b.head, b.lost = []heldUpdate{{u: b.own, size: b.bytes}}, 0, false
		b.wakeRoom()
	}
}

// setOwn sets what restart keeps.
func (b *replyBuffer) setOwn(u *Update) {
	b.mu.Lock()
	b.own = u
	b.mu.Unlock()
}

// end records that nothing will be added any more.
func (b *replyBuffer) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.wakeRoom()
	b.wakeReader()
}

// poke makes a push that waits for room look again.
func (b *replyBuffer) poke() {
	b.mu.Lock()
	b.wakeRoom()
	b.mu.Unlock()
}

// The following are called with mu held.

// open reports whether updates are added.
func (b *replyBuffer) open() bool { return !b.ended && b.reader != readerGone }

// fits reports whether there is room for an update. One update always fits.
func (b *replyBuffer) fits(h *heldUpdate) bool {
	if h.size == 0 {
		h.size = heldSize(h.u)
	}
	n := len(b.held) - b.head
	return n == 0 || n < maxHeld && b.bytes+h.size <= maxHeldBytes
}

// pop removes the first update.
func (b *replyBuffer) pop() *Update {
	h := &b.held[b.head]
	u := h.u
	b.bytes -= h.size
	*h = heldUpdate{}
	if b.head++; b.head == len(b.held) {
		b.held, b.head = b.held[:0], 0
	}
	b.wakeRoom()
	return u
}

// keep drops the held updates for which f is false.
func (b *replyBuffer) keep(f func(h heldUpdate) bool) {
	kept := slices.DeleteFunc(slices.Clone(b.held[b.head:]), func(h heldUpdate) bool { return !f(h) })
	b.held, b.head, b.bytes = kept, 0, 0
	for _, h := range kept {
		b.bytes += h.size
	}
	b.wakeRoom()
}

func (b *replyBuffer) wakeRoom() {
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

func (b *replyBuffer) wakeReader() {
	if b.waiting && (b.begun || b.ended) {
		b.waiting = false
		b.wake <- struct{}{} // empty, since the reader waits
	}
}

// heldSize returns roughly how many bytes an update takes.
func heldSize(u *Update) int {
	const item = 256
	if c, ok := u.Update.(*AgentMessageChunk); ok { // by far the most
		if t, ok := c.Content.(*TextContent); ok && t.Annotations == nil {
			return item + len(t.Text) + len(t.Meta) + len(t.Unknown) + len(c.Meta) + len(c.Unknown)
		}
	}
	text, _ := u.Update.AppendJSON(nil)
	return item + len(text)
}
