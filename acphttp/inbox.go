package acphttp

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/goacp/acp/jsonrpc"
)

// errInboxFull is returned by inbox.put for what exceeds even the hard bound.
var errInboxFull = errors.New("acphttp: too much was sent and is not handled")

// inbox is what was received, from several goroutines, and is not read yet.
type inbox struct {
	soft, hard int // bytes: see put

	mu     sync.Mutex
	items  []item
	head   int
	bytes  int
	end    error         // what reading returns after the items
	wake   chan struct{} // closed when there is something to read; nil unless the reader waits
	room   chan struct{} // closed when there is room; nil unless somebody waits
	before func() error
}

// item is a frame, or an error that ends nothing.
type item struct {
	frame []byte
	owned bool // it shares its memory with no other
	err   error
}

// ownSize is the size from which a frame has memory of its own.
const ownSize = 32 << 10

const (
	keepItems = 16       // of an inbox that waits
	maxItems  = 16 << 10 // of one that does not
)

// spareItems has the lists of inboxes that wait.
var spareItems sync.Pool

type itemList struct{ items []item }

// itemCost is what an item counts beyond its text.
const itemCost = 64

// put adds a frame, which the inbox owns from then on. If more than the soft bound is
// waiting, it waits for room; if it must not wait, the hard bound holds, and beyond
// that it fails with errInboxFull.
func (b *inbox) put(ctx context.Context, frame []byte, mayWait bool) error {
	b.mu.Lock()
	for b.end == nil && b.bytes > 0 && b.bytes+len(frame)+itemCost > b.soft {
		if !mayWait {
			if b.bytes+len(frame) > b.hard {
				b.mu.Unlock()
				return errInboxFull
			}
			break
		}
		if b.room == nil {
			b.room = make(chan struct{})
		}
		room := b.room
		b.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		b.mu.Lock()
	}
	if b.end != nil {
		err := b.end
		b.mu.Unlock()
		return err
	}
	b.add(item{frame: frame, owned: len(frame) >= ownSize})
	b.mu.Unlock()
	return nil
}

// add adds an item. The caller holds b.mu.
func (b *inbox) add(it item) {
	if b.items == nil {
		if l, _ := spareItems.Get().(*itemList); l != nil {
			b.items = l.items
		}
	}
	b.items = append(b.items, it)
	b.bytes += len(it.frame) + itemCost
	b.rouse()
}

// push adds a frame whatever the bounds, unless reading has ended.
func (b *inbox) push(frame []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end == nil {
		b.add(item{frame: frame, owned: len(frame) >= ownSize})
	}
}

// fail adds an error that is not final.
func (b *inbox) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end == nil {
		b.add(item{err: err})
	}
}

// rouse wakes the reader. The caller holds b.mu.
func (b *inbox) rouse() {
	if b.wake != nil {
		close(b.wake)
		b.wake = nil
	}
}

// close makes reading end with err, after what is waiting. With drop, that is given
// up. Only the first close counts, except that a later one may still drop.
func (b *inbox) close(err error, drop bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end == nil {
		b.end = err
	}
	if drop {
		b.items, b.head, b.bytes = nil, 0, 0
		b.end = err
	}
	b.rouse()
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

// get returns the next frame.
func (b *inbox) get() (jsonrpc.Frame, error) {
	b.mu.Lock()
	for b.head == len(b.items) {
		if b.end != nil {
			err := b.end
			b.mu.Unlock()
			return jsonrpc.Frame{}, err
		}
		if cap(b.items) > keepItems { // one that waits holds few
			spareItems.Put(&itemList{b.items[:0]})
			b.items, b.head = nil, 0
		}
		if b.wake == nil {
			b.wake = make(chan struct{})
		}
		wake, before := b.wake, b.before
		b.mu.Unlock()
		if before != nil {
			if err := before(); err != nil {
				return jsonrpc.Frame{}, err
			}
		}
		<-wake
		b.mu.Lock()
	}
	it := b.items[b.head]
	b.items[b.head] = item{}
	b.head++
	b.bytes -= len(it.frame) + itemCost
	switch {
	case b.head == len(b.items):
		if cap(b.items) > maxItems {
			b.items = nil
		}
		b.items, b.head = b.items[:0], 0
	case b.head >= 1024 && 2*b.head >= len(b.items):
		b.items, b.head = slices.Delete(b.items, 0, b.head), 0
	}
	if b.room != nil && b.bytes < b.soft {
		close(b.room)
		b.room = nil
	}
	b.mu.Unlock()
	return jsonrpc.Frame{Data: it.frame, Owned: it.owned}, it.err
}

// buffered reports whether get would return at once.
func (b *inbox) buffered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.head < len(b.items)
}
