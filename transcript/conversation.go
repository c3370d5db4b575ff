package transcript

import (
	"math"
	"sync"

	"github.com/goacp/acp/acpv2"
)

// A Conversation folds the updates of one session into its state.
//
// One goroutine must apply the updates, in their order. Any goroutine may call the
// other methods at any time. A Conversation need not be closed. [New] and
// [Snapshot.Continue] make one.
type Conversation struct {
	mu  sync.Mutex
	cfg Config

	gen   uint64 // grows with each snapshot; an entry of an older one is copied before it changes
	list  list
	sess  *Session
	index *index
	loss  Loss

	first   uint64   // no entry has a lower number
	over    uint64   // the turns of entries before this one have ended
	last    uint64   // the last message of the agent
	unknown []uint64 // the unknown entries
	total   int      // the sizes of everything
	stripAt uint64   // entries before this one have no bulky parts left
	turns   uint64   // that have ended

	nesting int // how deep updates may be nested
	scratch []byte
	v1      v1State
}

// none is a number that no entry has.
const none = math.MaxUint64

// New returns an empty conversation.
func New(cfg Config) *Conversation { return newConversation(cfg.withDefaults()) }

func newConversation(cfg Config) *Conversation {
	return &Conversation{
		cfg:     cfg,
		nesting: nesting,
		gen:     1,
		sess:    &Session{core: core{seq: none}},
		index:   &index{seqs: map[key]uint64{}},
		last:    none,
	}
}

// An index finds entries by their keys. A conversation shares it with its
// snapshots; each of them checks whether what it finds is one of its own entries.
type index struct {
	mu      sync.RWMutex // held for writing only by the conversation, which reads without it
	seqs    map[key]uint64
	removed uint64 // how often entries were removed
}

func (x *index) put(k key, seq uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seqs[k] = seq
}

func (x *index) remove(k key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.removed++
	delete(x.seqs, k)
}

// find returns the number of the entry with a key, and how often entries were removed so
// far.
func (x *index) find(k key) (seq uint64, ok bool, removed uint64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	seq, ok = x.seqs[k]
	return seq, ok, x.removed
}

// An Op says what sort of change a [Change] is.
type Op string

// The kinds of changes.
const (
	OpNone     Op = ""         // the update changed nothing
	OpCreated  Op = "created"  // there is a new entry
	OpAppended Op = "appended" // something was added at the end of an entry's content
	OpUpdated  Op = "updated"  // an entry is different
	OpSession  Op = "session"  // a Field of the [Session] is different
)

// A Field is a part of a [Session].
type Field string

// The fields of a session.
const (
	FieldState         Field = "state"
	FieldUsage         Field = "usage"
	FieldConfigOptions Field = "configOptions"
	FieldCommands      Field = "commands"
	FieldInfo          Field = "info" // title, time of the last activity and metadata
)

// A Change describes what an update did, for a display that draws only what is new.
type Change struct {
	Op    Op
	Field Field // which, for OpSession

	// Seq, Kind and ID name the entry, for the other changes.
	Seq  uint64
	Kind EntryKind
	ID   string

	// Text is the text that a chunk has added to a message or a summary. It is empty
	// if the chunk added something else.
	Text string

	// Trimmed reports that something of this entry or of others, perhaps whole
	// entries, was dropped at the bounds: a display may have to read everything anew.
	Trimmed bool
}

// Apply folds one update and returns what changed. It copies what it keeps; the caller
// may modify u afterwards. An update of an unknown kind becomes an [Unknown] entry. An
// update is ignored and counted in [Loss] if it cannot be encoded, because a required
// value is nil for example, if it is nested deeper than 480 levels, or if it has an id
// of more than 4096 bytes.
func (c *Conversation) Apply(u acpv2.SessionUpdate) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apply(u)
}

// Reset empties the conversation, apart from its [Config]. Call it before the first
// update of a history that is sent again, because the session is loaded or reconnected
// with its history; package acp marks that update with Restarts. Otherwise what is
// replayed is added to what is there, and texts double. Earlier snapshots stay as they
// are. The numbers of entries begin anew.
func (c *Conversation) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	empty := newConversation(c.cfg)
	c.list, c.sess, c.index, c.loss = empty.list, empty.sess, empty.index, empty.loss
	c.first, c.over, c.last, c.unknown = 0, 0, none, nil
	c.total, c.stripAt, c.turns = 0, 0, 0
	c.v1 = empty.v1
}

func (c *Conversation) apply(u acpv2.SessionUpdate) Change {
	loss := c.loss.Bytes
	ch, ok := c.chunk(u)
	if !ok {
		if u != nil {
			u = c.owned(u)
		}
		if u == nil {
			c.loss.Updates++
			return Change{}
		}
		ch = c.fold(u)
	}
	if c.enforce() || c.loss.Bytes != loss {
		ch.Trimmed = true
	}
	return ch
}

// chunk applies the most frequent updates, chunks of text and of terminal output, without
// copying them first.
func (c *Conversation) chunk(u acpv2.SessionUpdate) (_ Change, ok bool) {
	switch u := u.(type) {
	case *acpv2.AgentMessageChunk:
		return c.textChunk(RoleAgent, (*acpv2.ContentChunk)(u))
	case *acpv2.AgentThoughtChunk:
		return c.textChunk(RoleThought, (*acpv2.ContentChunk)(u))
	case *acpv2.UserMessageChunk:
		return c.textChunk(RoleUser, (*acpv2.ContentChunk)(u))
	case *acpv2.TerminalOutputChunk:
		if u != nil {
			return c.applyOutput(u), true
		}
	}
	return Change{}, false
}

func (c *Conversation) textChunk(role Role, u *acpv2.ContentChunk) (_ Change, ok bool) {
	if u == nil {
		return Change{}, false
	}
	text, ok := plainText(u.Content)
	if !ok {
		return Change{}, false
	}
	m, op := c.message(role, u.MessageID)
	if m == nil {
		return Change{}, true
	}
	return c.addText(m, op, &m.body, text), true
}

func (c *Conversation) fold(u acpv2.SessionUpdate) Change {
	switch u := u.(type) {
	case *acpv2.UserMessageChunk:
		return c.applyChunk(RoleUser, (*acpv2.ContentChunk)(u))
	case *acpv2.AgentMessageChunk:
		return c.applyChunk(RoleAgent, (*acpv2.ContentChunk)(u))
	case *acpv2.AgentThoughtChunk:
		return c.applyChunk(RoleThought, (*acpv2.ContentChunk)(u))
	case *acpv2.UserMessage:
		return c.applyMessage(RoleUser, u.MessageID, u.Content, u.Meta)
	case *acpv2.AgentMessage:
		return c.applyMessage(RoleAgent, u.MessageID, u.Content, u.Meta)
	case *acpv2.AgentThought:
		return c.applyMessage(RoleThought, u.MessageID, u.Content, u.Meta)
	case *acpv2.ToolCallUpdate:
		return c.applyToolCall(u)
	case *acpv2.ToolCallContentChunk:
		return c.applyToolCallChunk(u)
	case *acpv2.TerminalUpdate:
		return c.applyTerminal(u)
	case *acpv2.PlanUpdate:
		return c.applyPlan(u)
	case *acpv2.PlanRemoved:
		return c.applyPlanRemoved(u)
	case *acpv2.Notice:
		return c.applyNotice(u)
	case *acpv2.CompactionUpdate:
		return c.applyCompaction(u)
	case *acpv2.CompactionSummaryChunk:
		return c.applySummaryChunk(u)
	case *acpv2.SubagentUpdate:
		return c.applySubagent(u)
	case *acpv2.SessionMessage:
		return c.applySessionMessage(u)
	case *acpv2.SessionMessageChunk:
		return c.applySessionMessageChunk(u)
	case acpv2.StateUpdate:
		return c.applyState(u)
	case *acpv2.UsageUpdate:
		return c.applyUsage(u)
	case *acpv2.ConfigOptionUpdate:
		return c.applyOptions(u)
	case *acpv2.AvailableCommandsUpdate:
		return c.applyCommands(u)
	case *acpv2.SessionInfoUpdate:
		return c.applyInfo(u)
	case *acpv2.PromptSuggestionsUpdate, *acpv2.CursorUpdate, *acpv2.ReplayComplete:
		return Change{} // about the session as it is connected, no part of what was said
	case *acpv2.UnknownSessionUpdate:
		return c.applyUnknown(u)
	}
	c.loss.Updates++
	return Change{}
}

// changed describes a change of an entry.
func changed(e Entry, op Op) Change {
	return Change{Op: op, Seq: e.base().seq, Kind: e.EntryKind(), ID: e.EntryID()}
}

// appended returns the change that a chunk makes.
func appended(e Entry, op Op) Change {
	if op == OpUpdated {
		op = OpAppended
	}
	return changed(e, op)
}

// Snapshot returns the conversation as it is now. That takes the same short time
// however long the conversation is. An entry that changes afterwards is copied once, at
// the first change.
func (c *Conversation) Snapshot() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Snapshot{
		list: c.list, sess: c.sess, index: c.index, loss: c.loss,
		gen: c.gen, last: c.last, over: c.over, removed: c.index.removed, turns: c.turns,
	}
	c.gen++
	return s
}

// Continue returns a conversation that continues from the snapshot, under bounds of its
// own. The snapshot does not change. Entries keep their numbers, and questions without
// an answer remain open. In protocol version 1, the first chunk without an id begins a
// new message.
func (s *Snapshot) Continue(cfg Config) *Conversation {
	c := newConversation(cfg.withDefaults())
	c.gen, c.list, c.loss, c.last = s.gen+1, s.list, s.loss, s.lastAgent()
	c.turns, c.over = s.turns, s.over
	if s.sess != nil {
		c.sess = s.sess
	}
	c.v1.updates.SetOptions(c.sess.ConfigOptions)
	c.total = sum(c.sess.core.sizes)
	c.first = s.list.next
	c.v1.round = 1
	for e := range s.list.all() {
		b := e.base()
		c.first = min(c.first, b.seq)
		if k := e.key(); k.space != spaceNone {
			c.index.seqs[k] = b.seq
		}
		if m, ok := e.(*Message); ok {
			c.v1.after(string(m.ID))
		}
		if _, ok := e.(*Unknown); ok {
			c.unknown = append(c.unknown, b.seq)
		}
		c.total += sum(b.sizes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enforce()
	return c
}

func sum(sizes [parts]int) (n int) {
	for _, s := range sizes {
		n += s
	}
	return n
}
