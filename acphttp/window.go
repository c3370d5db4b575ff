package acphttp

// windowMax bounds the numbers that a window remembers one by one.
const windowMax = 1024

// window remembers which numbers it has seen: all up to one but a few, and some above
// it.
type window struct {
	base   uint64
	missed map[uint64]bool // up to base, not seen
	seen   map[uint64]bool // above base
}

// has reports whether a number was added. Of numbers that never came it knows only the
// last 1,024; those before count as added.
func (w *window) has(n uint64) bool { return n <= w.base && !w.missed[n] || w.seen[n] }

// add adds a number.
func (w *window) add(n uint64) {
	switch {
	case w.has(n):
		return
	case n <= w.base:
		delete(w.missed, n)
		return
	case n == w.base+1:
		w.base = n
	default:
		if w.seen == nil {
			w.seen = make(map[uint64]bool)
		}
		w.seen[n] = true
	}
	if len(w.seen) > windowMax { // some have not come
		w.skip()
	}
	for len(w.seen) > 0 && w.seen[w.base+1] {
		delete(w.seen, w.base+1)
		w.base++
	}
}

// skip moves the base to the lowest number above it, and remembers those between.
func (w *window) skip() {
	low := ^uint64(0)
	for m := range w.seen {
		low = min(low, m)
	}
	if w.missed == nil {
		w.missed = make(map[uint64]bool)
	}
	for m := max(w.base+1, low-min(low, windowMax)); m < low; m++ {
		w.missed[m] = true
	}
	for m := range w.missed {
		if len(w.missed) <= windowMax {
			break
		}
		if m+windowMax < low {
			delete(w.missed, m)
		}
	}
	w.base = low
	delete(w.seen, low)
}
