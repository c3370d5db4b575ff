package acphttp

// windowMax bounds the numbers that a window remembers one by one.
const windowMax = 1024

// window remembers which numbers it has seen: all up to one, and some above it.
type window struct {
	base uint64
	seen map[uint64]bool
}

// has reports whether a number was added. Numbers that are long past count as added.
func (w *window) has(n uint64) bool { return n <= w.base || w.seen[n] }

// add adds a number.
func (w *window) add(n uint64) {
	if w.has(n) {
		return
	}
	if n == w.base+1 {
		w.base = n
	} else {
		if w.seen == nil {
			w.seen = make(map[uint64]bool)
		}
		w.seen[n] = true
	}
	if len(w.seen) > windowMax { // some never came
		low := n
		for m := range w.seen {
			low = min(low, m)
		}
		w.base = low
		delete(w.seen, low)
	}
	for len(w.seen) > 0 && w.seen[w.base+1] {
		delete(w.seen, w.base+1)
		w.base++
	}
}
