package backend

import (
	"crypto/rand"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/ids"
	"github.com/goacp/acp/transcript"
)

// An ident is an id with its kind.
type ident struct {
	space ids.Space
	id    string
}

// identities distinguish what an agent sends now from what was kept before the agent was started:
// ids are unique within one life of an agent only. Agents count them from 1 again, and so does the
// library where it invents them, so that an update would change an entry of another day.
type identities struct {
	kept map[ident]struct{}             // ids of earlier lives
	own  map[ident]string               // what replaces those that are used again
	tag  string                         // begins the replacements
	of   func(ids.Space, string) string // id
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
			i.space = ids.User
		case transcript.RoleThought:
			i.space = ids.Thought
		default:
			i.space = ids.Agent
		}
	case *transcript.ToolCall:
		i.space = ids.Call
	case *transcript.Terminal:
		i.space = ids.Terminal
	case *transcript.Plan:
		i.space = ids.Plan
	case *transcript.Compaction:
		i.space = ids.Compaction
	case *transcript.SessionMessage:
		i.space = ids.Message
	default: // those of subagents are sessions
		return i, false
	}
	return i, true
}

// id returns what replaces an id of the agent's. The caller holds the session's order.
func (x *identities) id(in ids.Space, id string) string {
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

// now returns what an id means that the agent does not use again: what has replaced it, if it was replaced.
func (x *identities) now(in ids.Space, id string) string {
	if own, ok := x.own[ident{in, id}]; ok {
		return own
	}
	return id
}

// back returns the agent's id of what id has replaced, or is.
func (x *identities) back(in ids.Space, own string) string {
	if x != nil {
		if id, ok := strings.CutPrefix(own, x.tag); ok && x.own[ident{in, id}] == own {
			return id
		}
	}
	return own
}

// peek returns what replaces an id, or would replace it.
func (x *identities) peek(in ids.Space, id string) string {
	if _, used := x.kept[ident{in, id}]; used {
		return x.tag + id
	}
	return id
}

// isNew reports whether an id occurred in an earlier life only.
func (x *identities) isNew(in ids.Space, id string) bool {
	i := ident{in, id}
	_, used := x.kept[i]
	return used && x.own[i] == ""
}

// update returns an update with its ids replaced.
func (x *identities) update(u acp.SessionUpdate) acp.SessionUpdate {
	if x == nil {
		return u
	}
	return ids.Rename(u, x.of)
}
