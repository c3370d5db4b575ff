package host

import (
	"strconv"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// continued returns a conversation that begins with that of another session. Ids are unique within a
// session only, so those of the other one are changed: what is told now must not continue what was
// told there. Questions about permissions are left out, and of what is known of the session as a
// whole only the title stays.
func continued(was, now *transcript.Snapshot) *transcript.Conversation {
	tag := "s" + strconv.Itoa(was.Len()) + "-"
	c := transcript.New(store.Bounds())
	for e := range was.Entries() {
		if u := e.Update(); u != nil {
			c.Apply(apart(u, tag))
		}
	}
	if title := was.Session().Title; title != "" {
		c.Apply(&acp.SessionInfoUpdate{Title: acp.Set(title)})
	}
	for _, u := range updatesOf(now) {
		c.Apply(u)
	}
	return c
}

// setApart keeps what was said in a session that the agent has forgotten apart from what is said in
// the new one of the same id, though both stay one conversation for the user.
func (s *Session) setApart() {
	s.order.Lock()
	defer s.order.Unlock()
	s.journal.sync()
	was := s.Snapshot()
	if was.Len() == 0 {
		return
	}
	c := continued(was, new(transcript.Snapshot))
	if commands := was.Session().Commands; commands != nil {
		c.Apply(&acp.AvailableCommandsUpdate{AvailableCommands: commands})
	}
	s.journal.put(item{fresh: c, event: store.Event{Time: time.Now()}})
}

// adopt takes over the conversation of a session that the agent does not have any more.
func (s *Session) adopt(old *Session) {
	s.journal.sync()
	was := old.Snapshot()
	if was.Len() == 0 {
		return
	}
	s.mu.Lock()
	if s.title == "" {
		s.title = old.title
	}
	s.mu.Unlock()
	s.journal.await(item{fresh: continued(was, s.Snapshot()), event: store.Event{Time: time.Now()}})
}

// apart changes the ids in an update that makes a whole entry.
func apart(u acp.SessionUpdate, tag string) acp.SessionUpdate {
	switch v := u.(type) {
	case *acp.UserMessage:
		c := *v
		c.MessageID = acp.MessageID(tag) + c.MessageID
		return &c
	case *acp.AgentMessage:
		c := *v
		c.MessageID = acp.MessageID(tag) + c.MessageID
		return &c
	case *acpv2.AgentThought:
		c := *v
		c.MessageID = acp.MessageID(tag) + c.MessageID
		return &c
	case *acpv2.SessionMessage:
		c := *v
		c.MessageID = acp.MessageID(tag) + c.MessageID
		return &c
	case *acpv2.CompactionUpdate:
		c := *v
		c.CompactionID = acpv2.CompactionID(tag) + c.CompactionID
		return &c
	case *acp.TerminalUpdate:
		c := *v
		c.TerminalID = acp.TerminalID(tag) + c.TerminalID
		return &c
	case *acp.ToolCallUpdate:
		c := *v
		c.ToolCallID = acp.ToolCallID(tag) + c.ToolCallID
		if list, ok := c.Content.Get(); ok {
			content := make([]acp.ToolCallContent, len(list))
			for i, x := range list {
				if t, ok := x.(*acp.TerminalContent); ok {
					t := *t
					t.TerminalID = acp.TerminalID(tag) + t.TerminalID
					x = &t
				}
				content[i] = x
			}
			c.Content = acp.Set(content)
		}
		return &c
	case *acpv2.PlanUpdate:
		c := *v
		switch p := c.Plan.(type) {
		case *acpv2.PlanItems:
			p2 := *p
			p2.PlanID = acpv2.PlanID(tag) + p2.PlanID
			c.Plan = &p2
		case *acpv2.PlanMarkdown:
			p2 := *p
			p2.PlanID = acpv2.PlanID(tag) + p2.PlanID
			c.Plan = &p2
		case *acpv2.PlanFile:
			p2 := *p
			p2.PlanID = acpv2.PlanID(tag) + p2.PlanID
			c.Plan = &p2
		}
		return &c
	}
	return u
}
