package timeline

// A Mark is the place of a response among the items of a line. The zero Mark is ready to
// be used once. It must not be copied after that.
//
//	pending ──Resolve──▶ resolved ──┐
//	   │                            ├─▶ delivered, in its turn: Done is closed
//	   └──────Discard──▶ discarded ─┘
type Mark[T any] struct {
	// Done is closed when the item in this place has been delivered. It may be nil.
	// It must be set before the mark is placed.
	Done chan struct{}

	// Guarded by the line's mu:
	arrived uint64 // items that arrived before it
	posted  uint64 // items that were posted before it
	state   markState
	item    T
}

type markState uint8

const (
	markPending   markState = iota // it holds up everything after it
	markResolved                   // its item may be delivered
	markDiscarded                  // there is nothing to deliver
)

// Place puts a mark after everything that has arrived and was posted. The reader calls
// it, so that nothing arrives in the meantime; others may if that does not matter.
func (l *Line[T]) Place(m *Mark[T]) {
	l.mu.Lock()
	m.arrived, m.posted = l.arrived.Load(), l.posted
	l.marks = append(l.marks, m)
	l.mu.Unlock()
}

// Resolve sets the item to deliver in the place of the mark. The caller must call
// [Line.Kick] or [Line.Settle] next.
func (l *Line[T]) Resolve(m *Mark[T], item T) {
	l.mu.Lock()
	m.state, m.item = markResolved, item
	l.notify()
	l.mu.Unlock()
}

// Discard says that there is nothing to deliver in the place of the mark. The caller must
// call [Line.Kick] or [Line.Settle] next.
func (l *Line[T]) Discard(m *Mark[T]) {
	l.mu.Lock()
	m.state = markDiscarded
	l.notify()
	l.mu.Unlock()
}

func resolved[T any](marks []*Mark[T]) bool {
	for _, m := range marks {
		if m.state == markPending {
			return false
		}
	}
	return true
}
