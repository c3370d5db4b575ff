// Package ids has the ids of what an agent sends: those of its messages, tool calls, terminals, plans and compactions. They
// are unique within one life of an agent at most, that is, from its start to its end, so whoever keeps what several lives
// have sent renames them.
package ids

import (
	"slices"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// A Space is a kind of ids, which are unique within their kind.
type Space uint8

// The spaces.
const (
	User Space = iota
	Agent
	Thought
	Call
	Terminal
	Plan
	Compaction
	Message // of messages between sessions
)

// Rename returns an update with other ids: the update itself if they are the same, or one without ids; otherwise a copy.
// Those of subagents are sessions, and are left alone.
func Rename(u acp.SessionUpdate, id func(Space, string) string) acp.SessionUpdate {
	switch v := u.(type) {
	case *acp.AgentMessageChunk:
		return withID(u, v, Agent, v.MessageID, id, func(c *acp.AgentMessageChunk) *acp.MessageID { return &c.MessageID })
	case *acp.AgentThoughtChunk:
		return withID(u, v, Thought, v.MessageID, id, func(c *acp.AgentThoughtChunk) *acp.MessageID { return &c.MessageID })
	case *acp.TerminalOutputChunk:
		return withID(u, v, Terminal, v.TerminalID, id, func(c *acp.TerminalOutputChunk) *acp.TerminalID { return &c.TerminalID })
	case *acp.UserMessageChunk:
		return withID(u, v, User, v.MessageID, id, func(c *acp.UserMessageChunk) *acp.MessageID { return &c.MessageID })
	case *acp.UserMessage:
		return withID(u, v, User, v.MessageID, id, func(c *acp.UserMessage) *acp.MessageID { return &c.MessageID })
	case *acp.AgentMessage:
		return withID(u, v, Agent, v.MessageID, id, func(c *acp.AgentMessage) *acp.MessageID { return &c.MessageID })
	case *acpv2.AgentThought:
		return withID(u, v, Thought, v.MessageID, id, func(c *acpv2.AgentThought) *acp.MessageID { return &c.MessageID })
	case *acpv2.SessionMessage:
		return withID(u, v, Message, v.MessageID, id, func(c *acpv2.SessionMessage) *acp.MessageID { return &c.MessageID })
	case *acpv2.SessionMessageChunk:
		return withID(u, v, Message, v.MessageID, id, func(c *acpv2.SessionMessageChunk) *acp.MessageID { return &c.MessageID })
	case *acpv2.CompactionUpdate:
		return withID(u, v, Compaction, v.CompactionID, id, func(c *acpv2.CompactionUpdate) *acpv2.CompactionID { return &c.CompactionID })
	case *acpv2.CompactionSummaryChunk:
		return withID(u, v, Compaction, v.CompactionID, id, func(c *acpv2.CompactionSummaryChunk) *acpv2.CompactionID { return &c.CompactionID })
	case *acp.TerminalUpdate:
		return withID(u, v, Terminal, v.TerminalID, id, func(c *acp.TerminalUpdate) *acp.TerminalID { return &c.TerminalID })
	case *acpv2.PlanRemoved:
		return withID(u, v, Plan, v.PlanID, id, func(c *acpv2.PlanRemoved) *acpv2.PlanID { return &c.PlanID })
	case *acp.ToolCallUpdate:
		c := RenameCall(*v, id)
		return &c
	case *acpv2.ToolCallContentChunk:
		c := *v
		c.ToolCallID = acp.ToolCallID(id(Call, string(c.ToolCallID)))
		c.Content = withTerminal(c.Content, id)
		return &c
	case *acpv2.PlanUpdate:
		return withPlanID(v, id)
	case *acpv2.CursorUpdate:
		c := *v
		c.Anchor = renameAnchor(c.Anchor, id)
		return &c
	}
	return u
}

// renameAnchor replaces the id of what a cursor is beside. The ids of cursors are the agent's, and left alone: they are
// given back to it.
func renameAnchor(a acpv2.CursorAnchor, id func(Space, string) string) acpv2.CursorAnchor {
	message := func(in Space, m acpv2.CursorMessageAnchor) *acpv2.CursorMessageAnchor {
		m.MessageID = acp.MessageID(id(in, string(m.MessageID)))
		return &m
	}
	switch a := a.(type) {
	case *acpv2.CursorUserMessageAnchor:
		return (*acpv2.CursorUserMessageAnchor)(message(User, acpv2.CursorMessageAnchor(*a)))
	case *acpv2.CursorAgentMessageAnchor:
		return (*acpv2.CursorAgentMessageAnchor)(message(Agent, acpv2.CursorMessageAnchor(*a)))
	case *acpv2.CursorAgentThoughtAnchor:
		return (*acpv2.CursorAgentThoughtAnchor)(message(Thought, acpv2.CursorMessageAnchor(*a)))
	case *acpv2.CursorSessionMessageAnchor:
		return (*acpv2.CursorSessionMessageAnchor)(message(Message, acpv2.CursorMessageAnchor(*a)))
	case *acpv2.CursorToolCallAnchor:
		c := *a
		c.ToolCallID = acp.ToolCallID(id(Call, string(c.ToolCallID)))
		return &c
	case *acpv2.CursorCompactionAnchor:
		c := *a
		c.CompactionID = acpv2.CompactionID(id(Compaction, string(c.CompactionID)))
		return &c
	}
	return a
}

// withID returns u, which is v, or a copy of it with its own id replaced.
func withID[T any, I ~string](u acp.SessionUpdate, v *T, in Space, was I, id func(Space, string) string, field func(*T) *I) acp.SessionUpdate {
	now := I(id(in, string(was)))
	if now == was {
		return u
	}
	c := *v
	*field(&c) = now
	return any(&c).(acp.SessionUpdate)
}

// RenameCall returns a tool call with its own id and those of its terminals replaced.
func RenameCall(c acp.ToolCallUpdate, id func(Space, string) string) acp.ToolCallUpdate {
	c.ToolCallID = acp.ToolCallID(id(Call, string(c.ToolCallID)))
	list, ok := c.Content.Get()
	if ok && slices.ContainsFunc(list, func(x acp.ToolCallContent) bool { _, is := x.(*acp.TerminalContent); return is }) {
		list = slices.Clone(list)
		for i, x := range list {
			list[i] = withTerminal(x, id)
		}
		c.Content = acp.Set(list)
	}
	return c
}

func withTerminal(x acp.ToolCallContent, id func(Space, string) string) acp.ToolCallContent {
	t, ok := x.(*acp.TerminalContent)
	if !ok {
		return x
	}
	c := *t
	c.TerminalID = acp.TerminalID(id(Terminal, string(c.TerminalID)))
	return &c
}

func withPlanID(u *acpv2.PlanUpdate, id func(Space, string) string) *acpv2.PlanUpdate {
	c := *u
	of := func(p acpv2.PlanID) acpv2.PlanID { return acpv2.PlanID(id(Plan, string(p))) }
	switch p := c.Plan.(type) {
	case *acpv2.PlanItems:
		p2 := *p
		p2.PlanID = of(p.PlanID)
		c.Plan = &p2
	case *acpv2.PlanMarkdown:
		p2 := *p
		p2.PlanID = of(p.PlanID)
		c.Plan = &p2
	case *acpv2.PlanFile:
		p2 := *p
		p2.PlanID = of(p.PlanID)
		c.Plan = &p2
	}
	return &c
}

// RenameSubject returns what a request for permission is about with other ids, or about itself if it has none.
func RenameSubject(about acpv2.RequestPermissionSubject, id func(Space, string) string) acpv2.RequestPermissionSubject {
	switch v := about.(type) {
	case *acp.ToolCallPermissionSubject:
		c := *v
		c.ToolCall = RenameCall(v.ToolCall, id)
		return &c
	case *acpv2.CommandPermissionSubject:
		c := *v
		if v.ToolCallID != "" {
			c.ToolCallID = acp.ToolCallID(id(Call, string(v.ToolCallID)))
		}
		if v.TerminalID != "" {
			c.TerminalID = acp.TerminalID(id(Terminal, string(v.TerminalID)))
		}
		return &c
	}
	return about
}
