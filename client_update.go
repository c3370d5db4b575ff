package acp

import (
	"hash/maphash"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
)

// An Update is something that happened in a session. It may be kept, and must
// not be changed.
type Update struct {
	// Session is the session it happened in.
	Session *ClientSession
	// Update is what happened, in the vocabulary of version 2, to be read with
	// a type switch. Agents of version 1 are translated: messages get ids, the
	// plan is called "plan", and modes are an option.
	Update SessionUpdate
	// Created reports that the update is the first of the session that names its
	// message, tool call, terminal, plan, compaction, subagent or cursor: later ones
	// add to it or change it. The session remembers the last 256 of these; if an older one
	// is named again, that counts as the first time. A plan that was removed is
	// forgotten. It is false for all other updates.
	Created bool
	// Replayed reports that this is history, which the agent repeats because the
	// session, or the one whose subagent it is, is being opened again: everything
	// between the request and its answer in version 1; up to the end that the agent
	// marks, or the first state that is not the end of a turn, in version 2. What an agent of version 1 sends
	// just after its answer cannot be distinguished from live updates.
	Replayed bool
	// Restarts reports that the update is the first of such a history. Whoever keeps
	// the conversation has it already, apart from what is new, and begins again: see
	// [transcript.Conversation.Reset].
	//
	// [transcript.Conversation.Reset]: https://pkg.go.dev/github.com/goacp/acp/transcript#Conversation.Reset
	Restarts bool
	// Synthetic reports that the agent sent no such update, because version 1 has
	// none: the user's message and the running state when a prompt is sent, and
	// the idle state at its end. So is the message of [ClientSession.Steer] of an
	// agent of either version that does not send it.
	Synthetic bool

	// V1 or V2 is the message the update came in, or nil.
	V1 *acpv1.SessionNotification
	V2 *acpv2.UpdateSessionNotification
	// Frame is the number that the transport gave that message, or 0, which is what most
	// transports give: see [jsonrpc.Frame]. Several updates of this package may have come in one message.
	Frame uint64

	added string // the new text of a whole message
}

// Text returns the text that the update adds to the agent's answer, or "".
// Thoughts are not part of the answer. [Reply.Text] returns all of a turn's.
//
// Agents of version 2 may also send whole messages. For a new message that is all
// of its text. For a message that replaces an earlier version it is the part beyond
// the earlier length; the common prefix is assumed to be unchanged. The session
// remembers the lengths of its last 16 messages. An Update of your own with a whole
// message has no text.
func (u *Update) Text() string {
	if m, ok := u.Update.(*AgentMessageChunk); ok {
		if t, ok := m.Content.(*TextContent); ok {
			return t.Text
		}
	}
	return u.added
}

// Kind returns what the protocol calls the update, in version 2: the value of
// sessionUpdate, such as "agent_message_chunk" or "tool_call_update". For an update
// that this package does not know it is what the agent wrote. A SessionUpdate that came
// in another way, such as to [Agent.Record], has its name as well:
//
//	(&Update{Update: u}).Kind()
func (u *Update) Kind() string {
	kind, _, _ := describeUpdate(u.Update)
	return kind
}

// ToolCall returns the tool call that the update is about, or nil if it is about
// something else. What the update leaves out is filled in from other updates and
// from permission requests, as in [PermissionRequest], with the same bounds: the
// title, say, when a call ends. That includes what the agent has sent after this
// update, if it has arrived. What the call returned, RawOutput, is only what this
// update says.
//
// It must not be changed. It costs nothing unless it is called.
func (u *Update) ToolCall() *ToolCallUpdate {
	var call *ToolCallUpdate
	switch v := u.Update.(type) {
	case *ToolCallUpdate:
		call = v
		if u.Session != nil {
			call = u.Session.calls.Under(v, u.V1 == nil)
		}
	case *ToolCallContentChunk:
		if u.Session != nil {
			call = u.Session.calls.Known(v.ToolCallID)
		}
		if call == nil {
			call = &ToolCallUpdate{ToolCallID: v.ToolCallID, Content: Set([]ToolCallContent{v.Content})}
		}
	}
	return call
}

// updateSubject is the sort of thing that an update is about. Each has ids of its own.
type updateSubject uint8

const (
	aboutNothing updateSubject = iota // that has an id
	aboutUserMessage
	aboutAgentMessage
	aboutThought
	aboutToolCall
	aboutTerminal
	aboutPlan
	aboutCompaction
	aboutSubagent
	aboutSessionMessage
	aboutCursor
)

// describeUpdate returns the discriminator of an update, and the sort and the id of
// what it is about.
func describeUpdate(u SessionUpdate) (kind string, about updateSubject, id string) {
	switch u := u.(type) {
	case *AgentMessageChunk:
		return "agent_message_chunk", aboutAgentMessage, string(u.MessageID)
	case *AgentMessage:
		return "agent_message", aboutAgentMessage, string(u.MessageID)
	case *AgentThoughtChunk:
		return "agent_thought_chunk", aboutThought, string(u.MessageID)
	case *AgentThought:
		return "agent_thought", aboutThought, string(u.MessageID)
	case *UserMessageChunk:
		return "user_message_chunk", aboutUserMessage, string(u.MessageID)
	case *UserMessage:
		return "user_message", aboutUserMessage, string(u.MessageID)
	case *ToolCallUpdate:
		return "tool_call_update", aboutToolCall, string(u.ToolCallID)
	case *ToolCallContentChunk:
		return "tool_call_content_chunk", aboutToolCall, string(u.ToolCallID)
	case *TerminalUpdate:
		return "terminal_update", aboutTerminal, string(u.TerminalID)
	case *TerminalOutputChunk:
		return "terminal_output_chunk", aboutTerminal, string(u.TerminalID)
	case *PlanUpdate:
		return "plan_update", aboutPlan, string(translate.PlanIDOf(u.Plan))
	case *PlanRemoved:
		return "plan_removed", aboutPlan, string(u.PlanID)
	case *CompactionUpdate:
		return "compaction_update", aboutCompaction, string(u.CompactionID)
	case *CompactionSummaryChunk:
		return "compaction_summary_chunk", aboutCompaction, string(u.CompactionID)
	case *SubagentUpdate:
		return "subagent_update", aboutSubagent, string(u.SessionID)
	case *SessionMessage:
		return "session_message", aboutSessionMessage, string(u.MessageID)
	case *SessionMessageChunk:
		return "session_message_chunk", aboutSessionMessage, string(u.MessageID)
	case StateUpdate:
		return "state_update", aboutNothing, ""
	case *AvailableCommandsUpdate:
		return "available_commands_update", aboutNothing, ""
	case *ConfigOptionUpdate:
		return "config_option_update", aboutNothing, ""
	case *SessionInfoUpdate:
		return "session_info_update", aboutNothing, ""
	case *UsageUpdate:
		return "usage_update", aboutNothing, ""
	case *Notice:
		return "notice", aboutNothing, ""
	case *acpv2.CursorUpdate:
		return "cursor_update", aboutCursor, string(u.CursorID)
	case *acpv2.PromptSuggestionsUpdate:
		return "prompt_suggestions_update", aboutNothing, ""
	case *acpv2.ReplayComplete:
		return "replay_complete", aboutNothing, ""
	case *acpv2.UnknownSessionUpdate:
		return u.Type, aboutNothing, ""
	}
	return "", aboutNothing, ""
}

const maxMentioned = 256

// clientMentions remembers which messages, tool calls and so on the updates of a
// session have named: hashes, so that nothing an agent sent is held.
type clientMentions struct {
	about updateSubject // what was named last: nearly all updates name it again
	id    string
	ring  *[maxMentioned]uint64 // nil before the first; 0 is none
	next  int
}

var mentionSeed = maphash.MakeSeed()

// first reports whether something is named for the first time.
func (m *clientMentions) first(about updateSubject, id string) bool {
	if m.id == id && m.about == about {
		return false
	}
	m.about, m.id = about, id
	h := hashMention(about, id)
	if m.ring == nil {
		m.ring = new([maxMentioned]uint64)
	}
	if slices.Contains(m.ring[:], h) {
		return false
	}
	m.ring[m.next] = h
	m.next = (m.next + 1) % maxMentioned
	return true
}

// forget has the next mention be the first.
func (m *clientMentions) forget(about updateSubject, id string) {
	if m.id == id && m.about == about {
		m.about, m.id = aboutNothing, ""
	}
	if m.ring == nil {
		return
	}
	if i := slices.Index(m.ring[:], hashMention(about, id)); i >= 0 {
		m.ring[i] = 0
	}
}

func hashMention(about updateSubject, id string) uint64 {
	h := maphash.String(mentionSeed, id) ^ uint64(about)*0x9e3779b97f4a7c15
	return max(h, 1)
}

// see reports whether an update is the first that names what it is about.
func (m *clientMentions) see(u SessionUpdate) bool {
	_, about, id := describeUpdate(u)
	if about == aboutNothing {
		return false
	}
	if _, removed := u.(*PlanRemoved); removed {
		m.forget(about, id)
		return false
	}
	return m.first(about, id)
}

const maxSaid = 16

// clientSaid are the lengths of the last messages of an agent of version 2, the
// latest last.
type clientSaid []clientMessage

type clientMessage struct {
	id    MessageID
	bytes int
}

// of returns the entry of a message.
func (s *clientSaid) of(id MessageID) *clientMessage {
	list := *s
	if n := len(list); n > 0 && list[n-1].id == id { // nearly always
		return &list[n-1]
	}
	entry := clientMessage{id: id}
	if i := slices.IndexFunc(list, func(m clientMessage) bool { return m.id == id }); i >= 0 {
		entry = list[i]
		list = slices.Delete(list, i, i+1)
	} else if len(list) >= maxSaid {
		list = slices.Delete(list, 0, 1)
	}
	*s = append(list, entry)
	return &(*s)[len(*s)-1]
}

// chunk takes in a piece of a message.
func (s *clientSaid) chunk(c *AgentMessageChunk) {
	if t, ok := c.Content.(*TextContent); ok {
		s.of(c.MessageID).bytes += len(t.Text)
	}
}

// whole takes in a whole message and returns the text that is new.
func (s *clientSaid) whole(u *AgentMessage) string {
	if u.Content.IsZero() {
		return "" // it stays as it is
	}
	var all strings.Builder
	for _, b := range u.Content.Or(nil) {
		if t, ok := b.(*TextContent); ok {
			all.WriteString(t.Text)
		}
	}
	text := all.String()
	m := s.of(u.MessageID)
	before := m.bytes
	m.bytes = len(text)
	if before >= len(text) || !utf8.RuneStart(text[before]) {
		return ""
	}
	return text[before:]
}
