package transcript

import "iter"

const (
	nodeBits  = 5
	nodeWidth = 1 << nodeBits
)

// A list holds entries by their number. It is a persistent radix tree: copying
// the struct copies the list, and set leaves earlier copies as they are by copying
// the few nodes between the root and the entry.
type list struct {
	root  *node
	shift uint   // of the root; a leaf has 0
	next  uint64 // the number of the entry after the last
	count int    // of entries
}

// A node belongs to the writer's current generation, which may change it, or to a
// snapshot, and then nobody may.
type node struct {
	gen  uint64
	used int // slots that are not nil
	slot [nodeWidth]any
}

// get returns the entry with a number, or nil.
func (l *list) get(seq uint64) Entry {
	if seq >= l.next || l.root == nil {
		return nil
	}
	n := l.root
	for s := l.shift; s > 0; s -= nodeBits {
		n, _ = n.slot[seq>>s%nodeWidth].(*node)
		if n == nil {
			return nil
		}
	}
	e, _ := n.slot[seq%nodeWidth].(Entry)
	return e
}

// push adds an entry and returns its number.
func (l *list) push(gen uint64, e Entry) uint64 {
	seq := l.next
	l.next++
	l.count++
	if l.root == nil {
		l.root = &node{gen: gen}
	}
	for seq>>l.shift >= nodeWidth {
		up := &node{gen: gen}
		up.put(0, l.root)
		l.root = up
		l.shift += nodeBits
	}
	l.set(gen, seq, e)
	return seq
}

// set replaces an entry; the number must be one that push has returned.
func (l *list) set(gen, seq uint64, e Entry) {
	l.root = l.root.owned(gen)
	n := l.root
	for s := l.shift; s > 0; s -= nodeBits {
		i := seq >> s % nodeWidth
		below, _ := n.slot[i].(*node)
		if below == nil {
			below = &node{gen: gen}
		} else {
			below = below.owned(gen)
		}
		n.put(i, below)
		n = below
	}
	n.put(seq%nodeWidth, e)
}

// remove removes an entry, and the nodes that become empty.
func (l *list) remove(gen, seq uint64) {
	if l.get(seq) == nil {
		return
	}
	l.count--
	l.root = l.root.owned(gen)
	l.root.clear(gen, l.shift, seq)
}

func (n *node) clear(gen uint64, shift uint, seq uint64) {
	i := seq >> shift % nodeWidth
	if shift > 0 {
		below := n.slot[i].(*node).owned(gen)
		below.clear(gen, shift-nodeBits, seq)
		if below.used > 0 {
			n.slot[i] = below
			return
		}
	}
	n.slot[i] = nil
	n.used--
}

func (n *node) owned(gen uint64) *node {
	if n.gen == gen {
		return n
	}
	c := *n
	c.gen = gen
	return &c
}

func (n *node) put(i uint64, v any) {
	if n.slot[i] == nil {
		n.used++
	}
	n.slot[i] = v
}

// all yields the entries in order.
func (l list) all() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if l.root != nil {
			l.root.walk(l.shift, yield)
		}
	}
}

// backward yields the entries from the last to the first.
func (l list) backward() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if l.root != nil {
			l.root.walkBack(l.shift, yield)
		}
	}
}

func (n *node) walk(shift uint, yield func(Entry) bool) bool {
	for i := range n.slot {
		if !n.step(i, shift, (*node).walk, yield) {
			return false
		}
	}
	return true
}

func (n *node) walkBack(shift uint, yield func(Entry) bool) bool {
	for i := range n.slot {
		if !n.step(nodeWidth-1-i, shift, (*node).walkBack, yield) {
			return false
		}
	}
	return true
}

func (n *node) step(i int, shift uint, walk func(*node, uint, func(Entry) bool) bool, yield func(Entry) bool) bool {
	switch v := n.slot[i].(type) {
	case *node:
		return walk(v, shift-nodeBits, yield)
	case Entry:
		return yield(v)
	}
	return true
}
