package backend

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// A space is a kind of ids, which are unique within their kind.
type space uint8

const (
	userIDs space = iota
	agentIDs
	thoughtIDs
	callIDs
	terminalIDs
	planIDs
	compactionIDs
	messageIDs // of messages between sessions
)

// An ident is an id with its kind.
type ident struct {
	space space
	id    string
}

// identities distinguish what an agent sends now from what was kept before the agent was started:
// ids are unique within one life of an agent only. Agents count them from 1 again, and so does the
// library where it invents them, so that an update would change an entry of another day.
type identities struct {
	kept map[ident]struct{}         // ids of earlier lives
	own  map[ident]string           // what replaces those that are used again
	tag  string                     // begins the replacements
	of   func(space, string) string // id
}

// newIdentities returns the identities for what follows a conversation, or nil if there is none.
func newIdentities(was *transcript.Snapshot) *identities {
	if was.Len() == 0 {
		return nil
	}
	x := &identities{
		kept: make(map[ident]struct{}, was.Len()),
		own:  map[ident]string{},
		// Several processes may continue one conversation at the same time.
		tag: "r" + strings.ToLower(rand.Text()[:6]) + "-",
	}
	x.of = x.id
	for e := range was.Entries() {
		if i, ok := identOf(e); ok {
			x.kept[i] = struct{}{}
		}
	}
	return x
}

// identOf returns the id of an entry. ok is false for entries without an id of the agent.
func identOf(e transcript.Entry) (ident, bool) {
	i := ident{id: e.EntryID()}
	switch e := e.(type) {
	case *transcript.Message:
		switch e.Role {
		case transcript.RoleUser:
			i.space = userIDs
		case transcript.RoleThought:
			i.space = thoughtIDs
		default:
			i.space = agentIDs
		}
	case *transcript.ToolCall:
		i.space = callIDs
	case *transcript.Terminal:
		i.space = terminalIDs
	case *transcript.Plan:
		i.space = planIDs
	case *transcript.Compaction:
		i.space = compactionIDs
	case *transcript.SessionMessage:
		i.space = messageIDs
	default: // those of subagents are sessions
		return i, false
	}
	return i, true
}

// id returns what replaces an id of the agent's. The caller holds the session's order.
func (x *identities) id(in space, id string) string {
	i := ident{in, id}
	if _, used := x.kept[i]; !used {
		return id
	}
	own, ok := x.own[i]
	if !ok {
		own = x.tag + id
		x.own[i] = own
	}
	return own
}

// peek returns what replaces an id, or would replace it.
func (x *identities) peek(in space, id string) string {
	if _, used := x.kept[ident{in, id}]; used {
		return x.tag + id
	}
	return id
}

// isNew reports whether an id occurred in an earlier life only.
func (x *identities) isNew(in space, id string) bool {
	i := ident{in, id}
	_, used := x.kept[i]
	return used && x.own[i] == ""
}

// update returns an update with its ids replaced.
func (x *identities) update(u acp.SessionUpdate) acp.SessionUpdate {
	if x == nil {
		return u
	}
	return withIDs(u, x.of)
}

// withIDs returns an update with other ids: the update itself if they are the same, otherwise a
// copy.
func withIDs(u acp.SessionUpdate, id func(space, string) string) acp.SessionUpdate {
	switch v := u.(type) {
	case *acp.AgentMessageChunk:
		return withID(u, v, agentIDs, v.MessageID, id, func(c *acp.AgentMessageChunk) *acp.MessageID { return &c.MessageID })
	case *acp.AgentThoughtChunk:
		return withID(u, v, thoughtIDs, v.MessageID, id, func(c *acp.AgentThoughtChunk) *acp.MessageID { return &c.MessageID })
	case *acp.TerminalOutputChunk:
		return withID(u, v, terminalIDs, v.TerminalID, id, func(c *acp.TerminalOutputChunk) *acp.TerminalID { return &c.TerminalID })
	case *acp.UserMessageChunk:
		return withID(u, v, userIDs, v.MessageID, id, func(c *acp.UserMessageChunk) *acp.MessageID { return &c.MessageID })
	case *acp.UserMessage:
		return withID(u, v, userIDs, v.MessageID, id, func(c *acp.UserMessage) *acp.MessageID { return &c.MessageID })
	case *acp.AgentMessage:
		return withID(u, v, agentIDs, v.MessageID, id, func(c *acp.AgentMessage) *acp.MessageID { return &c.MessageID })
	case *acpv2.AgentThought:
		return withID(u, v, thoughtIDs, v.MessageID, id, func(c *acpv2.AgentThought) *acp.MessageID { return &c.MessageID })
	case *acpv2.SessionMessage:
		return withID(u, v, messageIDs, v.MessageID, id, func(c *acpv2.SessionMessage) *acp.MessageID { return &c.MessageID })
	case *acpv2.SessionMessageChunk:
		return withID(u, v, messageIDs, v.MessageID, id, func(c *acpv2.SessionMessageChunk) *acp.MessageID { return &c.MessageID })
	case *acpv2.CompactionUpdate:
		return withID(u, v, compactionIDs, v.CompactionID, id, func(c *acpv2.CompactionUpdate) *acpv2.CompactionID { return &c.CompactionID })
	case *acpv2.CompactionSummaryChunk:
		return withID(u, v, compactionIDs, v.CompactionID, id, func(c *acpv2.CompactionSummaryChunk) *acpv2.CompactionID { return &c.CompactionID })
	case *acp.TerminalUpdate:
		return withID(u, v, terminalIDs, v.TerminalID, id, func(c *acp.TerminalUpdate) *acp.TerminalID { return &c.TerminalID })
	case *acpv2.PlanRemoved:
		return withID(u, v, planIDs, v.PlanID, id, func(c *acpv2.PlanRemoved) *acpv2.PlanID { return &c.PlanID })
	case *acp.ToolCallUpdate:
		c := withCallIDs(*v, id)
		return &c
	case *acpv2.ToolCallContentChunk:
		c := *v
		c.ToolCallID = acp.ToolCallID(id(callIDs, string(c.ToolCallID)))
		c.Content = withTerminal(c.Content, id)
		return &c
	case *acpv2.PlanUpdate:
		return withPlanID(v, id)
	}
	return u
}

// withID returns u, which is v, or a copy of it with its own id replaced.
func withID[T any, I ~string](u acp.SessionUpdate, v *T, in space, was I, id func(space, string) string, field func(*T) *I) acp.SessionUpdate {
	now := I(id(in, string(was)))
	if now == was {
		return u
	}
	c := *v
	*field(&c) = now
	return any(&c).(acp.SessionUpdate)
}

// withCallIDs returns a tool call with its own id and those of its terminals replaced.
func withCallIDs(c acp.ToolCallUpdate, id func(space, string) string) acp.ToolCallUpdate {
	c.ToolCallID = acp.ToolCallID(id(callIDs, string(c.ToolCallID)))
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

func withTerminal(x acp.ToolCallContent, id func(space, string) string) acp.ToolCallContent {
	t, ok := x.(*acp.TerminalContent)
	if !ok {
		return x
	}
	c := *t
	c.TerminalID = acp.TerminalID(id(terminalIDs, string(c.TerminalID)))
	return &c
}

func withPlanID(u *acpv2.PlanUpdate, id func(space, string) string) *acpv2.PlanUpdate {
	c := *u
	of := func(p acpv2.PlanID) acpv2.PlanID { return acpv2.PlanID(id(planIDs, string(p))) }
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

// subject returns what a request for permission is about, with its ids replaced.
func (x *identities) subject(about acpv2.RequestPermissionSubject) acpv2.RequestPermissionSubject {
	switch v := about.(type) {
	case *acp.ToolCallPermissionSubject:
		c := *v
		c.ToolCall = withCallIDs(v.ToolCall, x.of)
		return &c
	case *acpv2.CommandPermissionSubject:
		c := *v
		if v.ToolCallID != "" {
			c.ToolCallID = acp.ToolCallID(x.id(callIDs, string(v.ToolCallID)))
		}
		if v.TerminalID != "" {
			c.TerminalID = acp.TerminalID(x.id(terminalIDs, string(v.TerminalID)))
		}
		return &c
	}
	return about
}
