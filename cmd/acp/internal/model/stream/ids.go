package stream

import (
	"crypto/rand"
)

// IDs keeps the ids of the tools of one answer apart: some servers leave them out, or use
// one twice. The zero value has none.
type IDs struct{ used map[string]bool }

// Next returns id if it is new, and one of its own otherwise.
func (d *IDs) Next(id string) string {
	if d.used == nil {
		d.used = map[string]bool{}
	}
	if id == "" || d.used[id] {
		id = "call_" + rand.Text()
	}
	d.used[id] = true
	return id
}
