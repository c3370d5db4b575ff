package exec

import (
	"github.com/goacp/acp"
	"github.com/goacp/acp/transcript"
)

// A place is where a turn is among those of others at a gateway.
type place struct {
	behind bool          // turns of others may come first, which are not written as text
	own    acp.MessageID // the message of the user that begins the turn; "" if it has not begun
	begun  bool          // that has come
	left   bool          // the turn runs without this program: what follows is not about it
	alone  bool          // it will, so that nothing of it is written, however early it comes

	steered acp.SteerOutcome // how another turn has got the prompt, or ""
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

// isBefore reports whether the turn has not begun yet at a change of an entry, in the order of changes. What comes later is
// part of the turn, also if it changes an entry that is older: what an agent says in a turn may continue what it has said
// before.
func (r *report) isBefore(snap *transcript.Snapshot, e transcript.Entry, seq uint64) bool {
	p := &r.place
	if !p.behind || p.begun {
		return false
	}
	if m, ok := e.(*transcript.Message); !ok || p.own == "" || m.Role != transcript.RoleUser || m.ID != p.own {
		return true
	}
	p.begun = true
	for e := range snap.Entries() { // what is there is not part of the turn
		if e.Seq() >= seq {
			break
		}
		switch e := e.(type) {
		case *transcript.Message:
			r.read[e.Seq()] = len(e.Text())
		case *transcript.Terminal:
			r.read[e.Seq()] = int(e.Skipped) + len(e.Raw())
		case *transcript.ToolCall:
			r.ended[e.Seq()] = e.Ended()
		}
	}
	return false
}

// steered notes that another turn has the prompt.
func (r *report) steered(outcome acp.SteerOutcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.place.steered = outcome
	if !r.json && !r.quiet {
		r.remark("the turn that runs has the prompt")
	}
}

// leave ends the report before the turn has ended: what its end looks like from here is not how it ends.
func (r *report) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.place.left = true
}
