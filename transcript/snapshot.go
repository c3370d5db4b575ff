package transcript

import (
	"iter"

	"github.com/goacp/acp/acpv2"
)

// A Snapshot is a conversation as it was at one moment. It never changes, so any number
// of goroutines may read it; only UnmarshalJSON writes to one. The zero value is an
// empty conversation.
//
// A snapshot keeps its entries in memory. It shares them with the conversation and with
// other snapshots.
type Snapshot struct {
	list    list
	sess    *Session
	index   *index
	loss    Loss
	gen     uint64
	last    uint64
	over    uint64
	removed uint64
	turns   uint64 // that had ended
}

// Len returns the number of entries.
func (s *Snapshot) Len() int { return s.list.count }

// Entries yields the entries in the order in which they first appeared.
func (s *Snapshot) Entries() iter.Seq[Entry] { return s.list.all() }

// Backward yields the entries from the latest to the first.
func (s *Snapshot) Backward() iter.Seq[Entry] { return s.list.backward() }

// Entry returns the entry with the number seq, as in [Change], or nil.
func (s *Snapshot) Entry(seq uint64) Entry { return s.list.get(seq) }

// Session returns the state of the session as a whole. It is never nil.
func (s *Snapshot) Session() *Session {
	if s.sess == nil {
		return &Session{}
	}
	return s.sess
}

// Loss returns what has been lost at the bounds so far.
func (s *Snapshot) Loss() Loss { return s.loss }

// Text returns the text of the last message of the agent, or "".
func (s *Snapshot) Text() string {
	if m, ok := s.list.get(s.lastAgent()).(*Message); ok {
		return m.Text()
	}
	return ""
}

func (s *Snapshot) lastAgent() uint64 {
	if s.index == nil {
		return none // the zero Snapshot
	}
	return s.last
}

// find returns the entry with a key, or nil. The index may be newer than the snapshot:
// entries that were added since are ignored, and ones that were removed since are
// searched for.
func (s *Snapshot) find(k key) Entry {
	if s.index == nil {
		return nil
	}
	seq, ok, removed := s.index.find(k)
	if ok {
		if e := s.list.get(seq); e != nil {
			return e
		}
	}
	if removed == s.removed {
		return nil
	}
	for e := range s.list.all() {
		if e.key() == k {
			return e
		}
	}
	return nil
}

func find[P Entry](s *Snapshot, in space, id string) P {
	e, _ := s.find(key{in, id}).(P)
	return e
}

// Message returns a message by its role and its id, or nil.
func (s *Snapshot) Message(role Role, id acpv2.MessageID) *Message {
	return find[*Message](s, role.space(), string(id))
}

// ToolCall returns a tool call by its id, or nil.
func (s *Snapshot) ToolCall(id acpv2.ToolCallID) *ToolCall {
	return find[*ToolCall](s, spaceToolCall, string(id))
}

// Plan returns a plan by its id, or nil.
func (s *Snapshot) Plan(id acpv2.PlanID) *Plan { return find[*Plan](s, spacePlan, string(id)) }

// Terminal returns a terminal by its id, or nil.
func (s *Snapshot) Terminal(id acpv2.TerminalID) *Terminal {
	return find[*Terminal](s, spaceTerminal, string(id))
}

// Compaction returns a compaction by its id, or nil.
func (s *Snapshot) Compaction(id acpv2.CompactionID) *Compaction {
	return find[*Compaction](s, spaceCompaction, string(id))
}

// Subagent returns a child session by its id, or nil.
func (s *Snapshot) Subagent(id acpv2.SessionID) *Subagent {
	return find[*Subagent](s, spaceSubagent, string(id))
}

// SessionMessage returns a message between sessions by its id in this one, or nil.
func (s *Snapshot) SessionMessage(id acpv2.MessageID) *SessionMessage {
	return find[*SessionMessage](s, spaceSessionMessage, string(id))
}

// Exchange yields the messages between this session and another one, such as a child,
// in the order in which they first appeared.
func (s *Snapshot) Exchange(with acpv2.SessionID) iter.Seq[*SessionMessage] {
	return func(yield func(*SessionMessage) bool) {
		for e := range s.list.all() {
			m, ok := e.(*SessionMessage)
			if ok && (m.Sender == with || m.Recipient == with) && !yield(m) {
				return
			}
		}
	}
}
