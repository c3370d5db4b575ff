// Package cursors remembers the positions in a session that an agent has reported.
package cursors

import (
	"slices"

	"github.com/goacp/acp/acpv2"
)

// Max bounds the cursors of a session. Beyond that, the one that was reported first is
// forgotten. An update that has more than MaxSize bytes as JSON is ignored.
const (
	Max     = 4096
	MaxSize = 16 << 10
)

// A List is what the cursor updates of a session amount to. The zero value has none. It is
// not safe for concurrent use.
type List struct {
	order []*acpv2.CursorUpdate
	by    map[acpv2.CursorID]*acpv2.CursorUpdate
}

// Apply adds what an update says. The anchor is fixed by the first update that has one; the
// capabilities stay as they are unless the update says something of them. It returns the
// cursor as it is now, or nil if the update is ignored, as one is that says something of an
// unknown cursor without its anchor.
func (l *List) Apply(u *acpv2.CursorUpdate) *acpv2.CursorUpdate {
	if data, err := u.AppendJSON(nil); err != nil || len(data) > MaxSize {
		return nil
	}
	was := l.by[u.CursorID]
	if was == nil {
		if u.Anchor == nil {
			return nil // it was forgotten, or never begun
		}
		if len(l.order) == Max {
			delete(l.by, l.order[0].CursorID)
			l.order = slices.Delete(l.order, 0, 1)
		}
		now := *u
		if l.by == nil {
			l.by = make(map[acpv2.CursorID]*acpv2.CursorUpdate)
		}
		l.by[u.CursorID] = &now
		l.order = append(l.order, &now)
		return &now
	}
	now := *was // what was returned before stays as it was
	if !u.Capabilities.IsZero() {
		now.Capabilities = u.Capabilities
	}
	if u.Meta != nil {
		now.Meta = u.Meta
	}
	l.by[u.CursorID] = &now
	l.order[slices.Index(l.order, was)] = &now
	return &now
}

// All returns the cursors in the order in which they were reported first.
func (l *List) All() []acpv2.CursorUpdate {
	all := make([]acpv2.CursorUpdate, len(l.order))
	for i, c := range l.order {
		all[i] = *c
	}
	return all
}

// Cursor returns a cursor as it is now; nil if it is not known.
func (l *List) Cursor(id acpv2.CursorID) *acpv2.CursorUpdate { return l.by[id] }

// Forks reports whether a session can be forked at a cursor.
func Forks(c *acpv2.CursorUpdate) bool {
	return c.Capabilities.Or(acpv2.CursorCapabilities{}).Fork != nil
}
