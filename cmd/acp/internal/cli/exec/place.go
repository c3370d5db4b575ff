package exec

import (
	"github.com/goacp/acp"
	"github.com/goacp/acp/transcript"
)

// A place is where a turn is among those of others at a gateway.
type place struct {
	behind bool          // turns of others may come first, which are not written as text
	own    acp.MessageID // the message of the user that begins the turn; "" if it has not begun
	from   uint64        // the entry of that
	left   bool          // the turn runs without this program: what follows is not about it
	alone  bool          // it will, so that nothing of it is written, however early it comes
}

// follows has the report wait for the beginning of the turn, which a gateway says: others may come before it.
func (r *report) follows() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.place.behind = true
}

// isBehind reports whether turns of others may come before this one, which a gateway has not begun yet.
func (r *report) isBehind() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.place.behind && r.place.own == ""
}

// isAfter reports whether the turn begins after an entry of the session, which belongs to another turn then.
func (p *place) isAfter(e transcript.Entry, seq uint64) bool {
	if !p.behind {
		return false
	}
	if m, ok := e.(*transcript.Message); ok && p.from == 0 && p.own != "" && m.Role == transcript.RoleUser && m.ID == p.own {
		p.from = seq
	}
	return p.from == 0 || seq < p.from
}

// leave ends the report before the turn has ended: what its end looks like from here is not how it ends.
func (r *report) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.place.left = true
}
