package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// Bounds of the sessions of subagents.
const (
	maxChildName = 1 << 10 // bytes of the name that the agent gives one
	maxChildren  = 1024    // that a client knows in a session at a time, and that an agent has from its start on
)

// childOf returns what clients call the session of a subagent. No session of another agent has such a name, whatever the
// agent calls its own.
func childOf(session string, child acp.SessionID) acp.SessionID {
	return acp.SessionID(session) + "." + child
}

// childIn returns the subagent that a session of the agent is of, or "" for the agent's own.
func childIn(cs *acp.ClientSession) acp.SessionID {
	if cs == nil || cs.Parent() == nil { // without one, it is about a request
		return ""
	}
	return cs.ID()
}

// withChild returns an update of a session, or of a subagent of it, as clients get it. own is what the agent calls the session,
// and names has the names of its messages in the log.
func withChild(session string, own acp.SessionID, names *naming, u acp.SessionUpdate) acp.SessionUpdate {
	u = renamed(u, func(id acp.SessionID) acp.SessionID {
		if id == own {
			return acp.SessionID(session)
		}
		return childOf(session, id)
	})
	switch u := u.(type) { // a copy, if it is one of these
	case *acp.SubagentUpdate:
		u.Capabilities = acpv2.Patch[acpv2.SubagentSessionCapabilities]{} // clients cannot call it
	case *acp.SessionMessage:
		for _, id := range []*acpv2.Patch[acp.MessageID]{&u.SenderMessageID, &u.RecipientMessageID} {
			if v, ok := id.Get(); ok {
				*id = acpv2.Set(names.message(v))
			}
		}
	}
	return u
}

// renamed returns an update with other names for the sessions that it names.
func renamed(u acp.SessionUpdate, name func(acp.SessionID) acp.SessionID) acp.SessionUpdate {
	switch u := u.(type) {
	case *acp.SubagentUpdate:
		c := *u
		c.SessionID = name(u.SessionID)
		return &c
	case *acp.SessionMessage:
		c := *u
		for _, id := range []*acpv2.Patch[acp.SessionID]{&c.SenderSessionID, &c.RecipientSessionID} {
			if v, ok := id.Get(); ok {
				*id = acpv2.Set(name(v))
			}
		}
		return &c
	}
	return u
}

// adopted returns an update of a session as it is in a fork of it, whose subagents have other names.
func adopted(u records.Update, from, to string) (records.Update, error) {
	u.Stamp = records.Stamp{}
	rename := func(id acp.SessionID) acp.SessionID {
		if string(id) == from {
			return acp.SessionID(to)
		}
		if name, ok := strings.CutPrefix(string(id), from+"."); ok {
			return childOf(to, acp.SessionID(name))
		}
		return id
	}
	if u.Child != "" {
		u.Child = rename(u.Child)
	}
	if !bytes.Contains(u.Update, subagentUpdate) && !bytes.Contains(u.Update, sessionMessage) {
		return u, nil
	}
	said, err := acpv2.UnmarshalSessionUpdate(u.Update)
	if err == nil {
		u.Update, err = json.Marshal(renamed(said, rename))
	}
	return u, err
}

// children are the sessions of subagents that a client knows by a session. It is safe for concurrent use.
type children struct {
	g   *Gateway
	as  *acp.AgentSession // of the parent
	pos *position         // of the parent, in whose log they are; nil if the client is not sent positions

	mu sync.Mutex
	by map[acp.SessionID]*acp.AgentSession
}

// of returns the session of a subagent.
func (c *children) of(id acp.SessionID) *acp.AgentSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.by[id]; s != nil {
		return s
	}
	if len(c.by) == maxChildren {
		c.drop()
	}
	if c.by == nil {
		c.by = make(map[acp.SessionID]*acp.AgentSession)
	}
	s := c.as.Child(id)
	c.by[id] = s
	if c.pos != nil {
		c.g.positions.Store(positionKey{c.as.Conn().Conn(), id}, c.pos)
	}
	return s
}

// forget is called when nothing more is sent to the client.
func (c *children) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
}

func (c *children) drop() {
	if c.pos != nil {
		for id := range c.by {
			c.g.positions.CompareAndDelete(positionKey{c.as.Conn().Conn(), id}, c.pos)
		}
	}
	c.by = nil
}

// introduced returns a channel that is closed when the log announces a subagent. It reports false for one that is dropped,
// as there are too many or its name is too long.
func (b *backend) introduced(child acp.SessionID) (ch chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ch, ok = b.children[child]; ok {
		return ch, true
	}
	if len(b.children) == maxChildren || len(child) > maxChildName {
		return nil, false
	}
	if b.children == nil {
		b.children = make(map[acp.SessionID]chan struct{})
	}
	ch = make(chan struct{})
	b.children[child] = ch
	return ch, true
}

// told returns what is to be called when an update is in the log, or never will be. What a subagent does comes beside what
// its parent does, and must not be in the log before the log announces it.
func (b *backend) told(u *acp.Update) func() {
	s, ok := u.Update.(*acp.SubagentUpdate)
	if !ok {
		return func() {}
	}
	ch, ok := b.introduced(s.SessionID)
	if !ok {
		return func() {}
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		select {
		case <-ch:
		default:
			close(ch)
		}
	}
}

// wait waits until the log announces a subagent, of which an update has come. It reports whether it does. The update of one
// that is dropped is as well.
func (b *backend) wait(ctx context.Context, child acp.SessionID, u *acp.Update, told func()) bool {
	ch, ok := b.introduced(child)
	if !ok {
		b.s.logger().Error("gateway: an update is dropped: there are too many subagents, or the name of its one is too long", "subagents", maxChildren, "bytes", maxChildName)
		b.stream.dropped(u.Frame)
		told()
		return false
	}
	select {
	case <-ch:
		return true
	case <-ctx.Done():
	case <-b.conn.Done():
	}
	return false
}

// A subagent is one that an agent has announced: the session that it works for, and its own, as the agent calls them. The
// first is "" for the one that the user has.
type subagent struct{ parent, session acp.SessionID }

// subagentUpdate is how an update that announces a subagent begins.
var subagentUpdate = []byte(`"subagent_update"`)

// sessionMessage is how one begins that names the sessions of a message between them.
var sessionMessage = []byte(`"session_message"`)

// toldOf returns the subagent that a record announces, if it does.
func toldOf(session string, r engine.Record) (subagent, bool) {
	if !bytes.Contains(r.Data, subagentUpdate) {
		return subagent{}, false
	}
	parent, u, err := records.DecodeChild(r.Data)
	s, ok := u.(*acp.SubagentUpdate)
	if err != nil || !ok {
		return subagent{}, false
	}
	name := func(id acp.SessionID) acp.SessionID {
		return acp.SessionID(strings.TrimPrefix(string(id), session+"."))
	}
	return subagent{name(parent), name(s.SessionID)}, true
}

// A family is what a stream knows of the subagents of its agent, whose updates come beside those of the agent itself. The
// zero value is empty. Its methods must be called with the lock of the stream.
type family struct {
	known  map[acp.SessionID]bool
	of     map[uint64]relative // open events that are notifications, once there is a subagent
	bytes  uint64              // of all events
	before uint64              // the last event before the prompt whose turn runs
}

// A relative is what a family knows of an open event.
type relative struct {
	session acp.SessionID // of the subagent that it is about, or ""
	end     uint64        // how many bytes of events there were with it
}

// maxOvertaken is how many bytes of events may come after one before one of another session that is recorded shows that it
// never will be, such as an update that cannot be decoded: half of what a holder has in flight, which waits for it.
const maxOvertaken = 512 << 10

// A notification is what a family has to know of an event.
type notification struct {
	ID     json.RawMessage // of a request
	Params struct {
		SessionID acp.SessionID
		Update    struct {
			SessionUpdate string
			SessionID     acp.SessionID
		}
	}
}

// notificationOf reads an event. It returns nil for one that no family has to know: has says whether there is a subagent.
func notificationOf(text []byte, has bool) *notification {
	if !has && !bytes.Contains(text, subagentUpdate) {
		return nil
	}
	n := new(notification)
	_ = json.Unmarshal(text, n) // what can be read is read: the event may be one that cannot be decoded
	if len(n.ID) > 0 {
		return nil // a request is open until it is answered
	}
	return n
}

// note looks at an event.
func (f *family) note(ev heldEvent, n *notification) {
	f.bytes += uint64(len(ev.text))
	if n == nil {
		return
	}
	m := relative{end: f.bytes}
	if f.known[n.Params.SessionID] {
		m.session = n.Params.SessionID
	}
	// That the agent is idle may end the turn, which is recorded when all that has been said is.
	if m.session != "" || !strings.HasPrefix(n.Params.Update.SessionUpdate, "state") {
		if f.of == nil {
			f.of = make(map[uint64]relative)
		}
		f.of[ev.seq] = m
	}
	if n.Params.Update.SessionUpdate == "subagent_update" {
		f.add(n.Params.Update.SessionID)
	}
}

// add adds a subagent, unless there are too many or its name is too long: then its events count as the agent's own.
func (f *family) add(id acp.SessionID) {
	if f.known == nil {
		f.known = make(map[acp.SessionID]bool)
	}
	if len(f.known) < maxChildren && len(id) <= maxChildName {
		f.known[id] = true
	}
}

// same reports whether two events are about the same session.
func (f *family) same(a, b uint64) bool { return f.of[a].session == f.of[b].session }

// overtaken reports whether an event is so far behind another one, which is settled, that it never will be.
func (f *family) overtaken(e, by uint64) bool {
	a, isOf := f.of[e]
	b, byIs := f.of[by]
	return isOf && byIs && b.end > a.end+maxOvertaken
}

// settled is called with what is open still.
func (f *family) settled(open []uint64) {
	if len(f.of) == 0 {
		return
	}
	for e := range f.of {
		if _, ok := slices.BinarySearch(open, e); !ok {
			delete(f.of, e)
		}
	}
}

// late is called at the end of a turn. It returns what is open still: an event of a subagent that was not recorded in a
// whole turn never will be, such as one that cannot be decoded.
func (f *family) late(open []uint64) []uint64 {
	if len(f.of) == 0 {
		return open
	}
	open = slices.DeleteFunc(open, func(e uint64) bool { return f.of[e].session != "" && e <= f.before })
	f.settled(open)
	return open
}

// introduce returns frames that tell the connection to an adopted agent of the subagents that it has. request is the one
// that opens the session of the agent itself.
func (f *family) introduce(a *adoption, request []byte) (frames [][]byte) {
	var opens struct {
		Params struct{ SessionID acp.SessionID }
	}
	if json.Unmarshal(request, &opens) != nil {
		return nil
	}
	for _, c := range a.children {
		f.add(c.session)
		parent := c.parent
		if parent == "" {
			parent = opens.Params.SessionID
		}
		frames = append(frames, encode(map[string]any{
			"jsonrpc": "2.0", "method": "session/update",
			"params": map[string]any{"sessionId": parent, "update": map[string]any{"sessionUpdate": "subagent_update", "sessionId": c.session}},
		}))
	}
	return frames
}

// introduces reports whether an update comes from introduce.
func (hs *heldStream) introduces(u *acp.Update) bool {
	_, ok := u.Update.(*acp.SubagentUpdate)
	return ok && hs != nil && u.Frame == 0
}
