package host

import (
	"strconv"
	"time"

	"github.com/goacp/acp"
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
	return withIDs(u, func(_ space, id string) string { return tag + id })
}
