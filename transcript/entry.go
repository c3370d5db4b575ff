package transcript

import (
	"encoding/json"
	"slices"

	"github.com/goacp/acp/acpv2"
)

// An EntryKind names the type of an [Entry].
type EntryKind string

// The kinds of entries.
const (
	KindMessage        EntryKind = "message"         // *[Message]
	KindToolCall       EntryKind = "tool_call"       // *[ToolCall]
	KindPlan           EntryKind = "plan"            // *[Plan]
	KindTerminal       EntryKind = "terminal"        // *[Terminal]
	KindNotice         EntryKind = "notice"          // *[Notice]
	KindCompaction     EntryKind = "compaction"      // *[Compaction]
	KindSubagent       EntryKind = "subagent"        // *[Subagent]
	KindSessionMessage EntryKind = "session_message" // *[SessionMessage]
	KindPermission     EntryKind = "permission"      // *[Permission]
	KindTurnEnd        EntryKind = "turn_end"        // *[TurnEnd]
	KindUnknown        EntryKind = "unknown"         // *[Unknown]
)

// An Entry is one thing in a conversation. It is one of *[Message], *[ToolCall],
// *[Plan], *[Terminal], *[Notice], *[Compaction], *[Subagent], *[SessionMessage],
// *[Permission], *[TurnEnd] and *[Unknown], to be distinguished with a type switch.
//
// An entry of a [Snapshot] never changes. Any goroutine may read it; it must not be
// modified, and neither must its slices.
type Entry interface {
	// EntryKind returns the kind of the entry.
	EntryKind() EntryKind

	// Seq returns the number of the entry in its conversation. Numbers grow in the
	// order in which entries first appeared. They do not change while the
	// Conversation exists.
	Seq() uint64

	// EntryID returns the id that the agent gave the entry, or "" for kinds without
	// one.
	EntryID() string

	// Dropped returns how much of the entry was dropped at the bounds of the
	// [Config], in bytes as they count them; 0 means that it is complete.
	Dropped() int64

	// Update returns the update that creates this entry in an empty conversation, for
	// a replay for example. It returns nil for a *[Permission] and a *[TurnEnd],
	// which no update creates.
	Update() acpv2.SessionUpdate

	base() *core
	key() key
	edited(c *Conversation) Entry
	strip()
}

// The parts of an entry whose sizes are counted. The fixed part stays as long as the
// entry does; the others are dropped when space is needed.
const (
	partFixed = iota
	partContent
	partLocations
	partInput
	partOutput
	partMeta
	partOther
	partTerminal // output, which has a bound of its own
	parts
)

// A core is the part that all entries have.
type core struct {
	seq     uint64
	gen     uint64 // the writer's generation that may change the entry
	sizes   [parts]int
	dropped int64
}

// Seq implements [Entry].
func (e *core) Seq() uint64 { return e.seq }

// Dropped implements [Entry].
func (e *core) Dropped() int64 { return e.dropped }

func (e *core) base() *core { return e }

// bulk is the size of the parts that can be dropped.
func (e *core) bulk() (n int) {
	for _, s := range e.sizes[1:] {
		n += s
	}
	return n
}

// A key finds an entry by its id. Each kind of message has ids of its own, as the
// protocol has it.
type key struct {
	space space
	id    string
}

type space uint8

const (
	spaceNone space = iota
	spaceUser
	spaceAgent
	spaceThought
	spaceToolCall
	spacePlan
	spaceTerminal
	spaceCompaction
	spaceSubagent
	spaceSessionMessage
)

// entryOf is a pointer to a type of entry.
type entryOf[T any] interface {
	*T
	Entry
}

// edit returns the entry if the writer may change it, else a copy in its place.
func edit[T any, P entryOf[T]](c *Conversation, p P) P {
	if p.base().gen == c.gen {
		return p
	}
	n := new(T)
	*n = *p
	q := P(n)
	q.base().gen = c.gen
	c.list.set(c.gen, q.base().seq, q)
	return q
}

// upsert finds the entry with a key, to be changed, or adds one (S90). It returns
// nil when the id is too long to be kept.
func upsert[T any, P entryOf[T]](c *Conversation, k key, fresh func() P) (p P, op Op) {
	if len(k.id) > idBytes {
		c.loss.Updates++
		return nil, OpNone
	}
	if seq, ok := c.index.seqs[k]; ok {
		return edit[T](c, c.list.get(seq).(P)), OpUpdated
	}
	p = fresh()
	c.add(p, len(k.id))
	return p, OpCreated
}

// A Role says whose message a [Message] is.
type Role string

// The roles.
const (
	RoleUser    Role = "user"    // what the user said, as the agent tells it
	RoleAgent   Role = "agent"   // the agent's reply
	RoleThought Role = "thought" // the agent's reasoning
)

// A Message is something the user or the agent said, or the agent thought. Ids are
// unique within a role.
type Message struct {
	core
	Role Role
	ID   acpv2.MessageID
	Meta json.RawMessage // _meta of the message, merged; that of chunks is dropped
	body content
}

// Content returns the blocks of the message. Text that arrived in consecutive chunks
// is one block. Content allocates a slice of them.
func (m *Message) Content() []acpv2.ContentBlock { return m.body.list() }

// Text returns the text blocks of the message, joined. If there is only one, as is
// usual, Text does not allocate.
func (m *Message) Text() string { return m.body.joined() }

// EntryKind implements [Entry].
func (*Message) EntryKind() EntryKind { return KindMessage }

// EntryID implements [Entry].
func (m *Message) EntryID() string { return string(m.ID) }

// Update implements [Entry].
func (m *Message) Update() acpv2.SessionUpdate {
	switch m.Role {
	case RoleUser:
		return &acpv2.UserMessage{MessageID: m.ID, Content: m.body.patch(), Meta: m.Meta}
	case RoleThought:
		return &acpv2.AgentThought{MessageID: m.ID, Content: m.body.patch(), Meta: m.Meta}
	}
	return &acpv2.AgentMessage{MessageID: m.ID, Content: m.body.patch(), Meta: m.Meta}
}

func (m *Message) key() key                     { return key{m.Role.space(), string(m.ID)} }
func (m *Message) edited(c *Conversation) Entry { return edit(c, m) }
func (m *Message) strip()                       { m.body, m.Meta = content{}, nil }

func (r Role) space() space {
	switch r {
	case RoleUser:
		return spaceUser
	case RoleThought:
		return spaceThought
	}
	return spaceAgent
}

// A ToolCall is one use of a tool by the agent. What the agent has not reported is
// zero, except that Kind is other and Status is pending at first.
type ToolCall struct {
	core
	ID           acpv2.ToolCallID
	Name         string // the tool's name, for programs
	Title        string // for people
	Kind         acpv2.ToolKind
	Status       acpv2.ToolCallStatus
	Content      []acpv2.ToolCallContent
	Locations    []acpv2.ToolCallLocation
	RawInput     json.RawMessage
	RawOutput    json.RawMessage
	Capabilities *acpv2.ToolCallCapabilities // replaced as a whole; nil allows nothing
	Meta         json.RawMessage
	run          *contentRun
	turn         uint64 // in which it was changed last
}

// Ended reports whether the call has ended. A status that this package does not know
// means that the call is still in progress.
func (t *ToolCall) Ended() bool {
	switch t.Status {
	case acpv2.ToolCallStatusCompleted, acpv2.ToolCallStatusFailed, acpv2.ToolCallStatusCancelled:
		return true
	}
	return false
}

// Cancellable reports whether the client may cancel the call.
func (t *ToolCall) Cancellable() bool {
	return !t.Ended() && t.Capabilities != nil && t.Capabilities.Cancel != nil
}

// EntryKind implements [Entry].
func (*ToolCall) EntryKind() EntryKind { return KindToolCall }

// EntryID implements [Entry].
func (t *ToolCall) EntryID() string { return string(t.ID) }

// Update implements [Entry].
func (t *ToolCall) Update() acpv2.SessionUpdate {
	u := &acpv2.ToolCallUpdate{
		ToolCallID: t.ID,
		Name:       setText(t.Name),
		Title:      setText(t.Title),
		Kind:       acpv2.Set(t.Kind),
		Status:     acpv2.Set(t.Status),
		Content:    setList(t.Content),
		Locations:  setList(t.Locations),
		RawInput:   t.RawInput,
		RawOutput:  t.RawOutput,
		Meta:       t.Meta,
	}
	if t.Capabilities != nil {
		u.Capabilities = acpv2.Set(*t.Capabilities)
	}
	return u
}

func (t *ToolCall) key() key                     { return key{spaceToolCall, string(t.ID)} }
func (t *ToolCall) edited(c *Conversation) Entry { return edit(c, t) }
func (t *ToolCall) strip() {
	t.Content, t.Locations, t.run = nil, nil, nil
	t.RawInput, t.RawOutput, t.Meta = nil, nil, nil
}

// A Plan is what the agent intends to do: *[acpv2.PlanItems], *[acpv2.PlanMarkdown],
// *[acpv2.PlanFile] or *[acpv2.UnknownPlanUpdateContent].
type Plan struct {
	core
	ID      acpv2.PlanID
	Content acpv2.PlanUpdateContent // the latest
	Removed bool                    // the agent has taken the plan away; Content is what it was
}

// EntryKind implements [Entry].
func (*Plan) EntryKind() EntryKind { return KindPlan }

// EntryID implements [Entry].
func (p *Plan) EntryID() string { return string(p.ID) }

// Update implements [Entry]. It returns the plan's contents even if the plan was
// removed.
func (p *Plan) Update() acpv2.SessionUpdate { return &acpv2.PlanUpdate{Plan: p.Content} }

func (p *Plan) key() key                     { return key{spacePlan, string(p.ID)} }
func (p *Plan) edited(c *Conversation) Entry { return edit(c, p) }
func (p *Plan) strip()                       { p.Content = emptyPlan(p.Content, p.ID) }

// A Notice is a message of the agent to the user that is about the session.
type Notice struct {
	core
	Severity    acpv2.NoticeSeverity
	Title       string
	Description string
	Meta        json.RawMessage
}

// EntryKind implements [Entry].
func (*Notice) EntryKind() EntryKind { return KindNotice }

// EntryID implements [Entry].
func (*Notice) EntryID() string { return "" }

// Update implements [Entry].
func (n *Notice) Update() acpv2.SessionUpdate {
	return &acpv2.Notice{Severity: n.Severity, Title: n.Title, Description: n.Description, Meta: n.Meta}
}

func (*Notice) key() key                       { return key{} }
func (n *Notice) edited(c *Conversation) Entry { return edit(c, n) }
func (n *Notice) strip()                       { n.Description, n.Meta = "", nil }

// A Compaction marks where the agent has condensed the context.
type Compaction struct {
	core
	ID     acpv2.CompactionID
	Status acpv2.CompactionStatus
	Error  string // what went wrong, for people
	Meta   json.RawMessage
	body   content
}

// Summary returns the content to show in place of the condensed messages.
func (x *Compaction) Summary() []acpv2.ContentBlock { return x.body.list() }

// EntryKind implements [Entry].
func (*Compaction) EntryKind() EntryKind { return KindCompaction }

// EntryID implements [Entry].
func (x *Compaction) EntryID() string { return string(x.ID) }

// Update implements [Entry].
func (x *Compaction) Update() acpv2.SessionUpdate {
	return &acpv2.CompactionUpdate{CompactionID: x.ID, Status: x.Status, Summary: x.body.patch(), Error: setText(x.Error), Meta: x.Meta}
}

func (x *Compaction) key() key                     { return key{spaceCompaction, string(x.ID)} }
func (x *Compaction) edited(c *Conversation) Entry { return edit(c, x) }
func (x *Compaction) strip()                       { x.body, x.Meta = content{}, nil }

// A Subagent is a child session as its parent reports it. The updates of the child's
// own session are another conversation. Messages between the two sessions are
// [SessionMessage] entries.
type Subagent struct {
	core
	ID                    acpv2.SessionID
	Title                 string
	Description           string
	Capabilities          *acpv2.SubagentSessionCapabilities // replaced as a whole; nil allows nothing
	State                 *State                             // nil: not known, which is not idle
	Cwd                   string                             // empty: the parent's
	AdditionalDirectories []string                           // nil: the parent's; empty: none
	Meta                  json.RawMessage
}

// Cancellable reports whether the client may cancel what the child is doing.
func (s *Subagent) Cancellable() bool { return s.Capabilities != nil && s.Capabilities.Cancel != nil }

// EntryKind implements [Entry].
func (*Subagent) EntryKind() EntryKind { return KindSubagent }

// EntryID implements [Entry].
func (s *Subagent) EntryID() string { return string(s.ID) }

// Update implements [Entry].
func (s *Subagent) Update() acpv2.SessionUpdate {
	u := &acpv2.SubagentUpdate{
		SessionID:             s.ID,
		Title:                 setText(s.Title),
		Description:           setText(s.Description),
		Cwd:                   setText(s.Cwd),
		AdditionalDirectories: setList(s.AdditionalDirectories),
		Meta:                  s.Meta,
	}
	if s.Capabilities != nil {
		u.Capabilities = acpv2.Set(*s.Capabilities)
	}
	if s.State != nil {
		u.State = acpv2.Set(s.State.Update())
	}
	return u
}

func (s *Subagent) key() key                     { return key{spaceSubagent, string(s.ID)} }
func (s *Subagent) edited(c *Conversation) Entry { return edit(c, s) }
func (s *Subagent) strip()                       { s.AdditionalDirectories, s.Meta = nil, nil }

// A SessionMessage is a message between this session and another, usually between a
// parent and a child.
type SessionMessage struct {
	core
	ID                 acpv2.MessageID
	Sender, Recipient  acpv2.SessionID // empty while not told
	SenderMessageID    acpv2.MessageID // its id in the sender's transcript, if this is the recipient's
	RecipientMessageID acpv2.MessageID // its id in the recipient's transcript, if this is the sender's
	Meta               json.RawMessage
	body               content
}

// Content returns the blocks of the message, as [Message.Content] does.
func (m *SessionMessage) Content() []acpv2.ContentBlock { return m.body.list() }

// Text returns the text of the message, as [Message.Text] does.
func (m *SessionMessage) Text() string { return m.body.joined() }

// EntryKind implements [Entry].
func (*SessionMessage) EntryKind() EntryKind { return KindSessionMessage }

// EntryID implements [Entry].
func (m *SessionMessage) EntryID() string { return string(m.ID) }

// Update implements [Entry].
func (m *SessionMessage) Update() acpv2.SessionUpdate {
	return &acpv2.SessionMessage{
		MessageID:          m.ID,
		SenderSessionID:    setText(m.Sender),
		RecipientSessionID: setText(m.Recipient),
		SenderMessageID:    setText(m.SenderMessageID),
		RecipientMessageID: setText(m.RecipientMessageID),
		Content:            m.body.patch(),
		Meta:               m.Meta,
	}
}

func (m *SessionMessage) key() key                     { return key{spaceSessionMessage, string(m.ID)} }
func (m *SessionMessage) edited(c *Conversation) Entry { return edit(c, m) }
func (m *SessionMessage) strip()                       { m.body, m.Meta = content{}, nil }

// An Unknown is an update of a kind that this package does not know. It is kept byte
// for byte.
type Unknown struct {
	core
	Type string          // its sessionUpdate
	Raw  json.RawMessage // the whole update; no more than its type when a bound took the rest
}

// EntryKind implements [Entry].
func (*Unknown) EntryKind() EntryKind { return KindUnknown }

// EntryID implements [Entry].
func (*Unknown) EntryID() string { return "" }

// Update implements [Entry].
func (u *Unknown) Update() acpv2.SessionUpdate {
	return &acpv2.UnknownSessionUpdate{Type: u.Type, Raw: u.Raw}
}

func (*Unknown) key() key                       { return key{} }
func (u *Unknown) edited(c *Conversation) Entry { return edit(c, u) }
func (u *Unknown) strip()                       { u.Raw = taggedOnly("sessionUpdate", u.Type) }

func setText[T ~string](s T) (p acpv2.Patch[T]) {
	if s != "" {
		p = acpv2.Set(s)
	}
	return p
}

func setList[T any](s []T) (p acpv2.Patch[[]T]) {
	if s != nil {
		p = acpv2.Set(slices.Clip(s))
	}
	return p
}
