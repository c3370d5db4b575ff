package backend

import (
	"slices"
	"strconv"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
)

// maxSeen bounds the entries that are remembered to distinguish new ones from changes of old ones.
// Between two pieces of a message there are few.
const maxSeen = 256

// pieces keeps the pieces of a message together. Agents of version 1 need not say which message a
// piece belongs to; consecutive pieces are one message. Whatever stands between two of them ends
// it: permission requests, which are not updates, and entries of every kind. The session's mu
// guards it.
type pieces struct {
	id     acp.MessageID // invented for the message that is being written, or ""
	broken bool          // something else has come since
	splits int           // how many messages were ended by that
	prefix string        // of the rest of this one
	seen   []string      // the latest entries, the oldest first
}

// ends records that something other than a message came.
func (p *pieces) ends() { p.broken = true }

// take applies an update. If the piece begins a message of its own, it returns a prefix for the id
// that the library has invented, otherwise "".
func (p *pieces) take(u *acp.Update) string {
	id, made := madeUp(u)
	switch {
	case !made:
		if key := entryOf(u.Update); key != "" && p.isNew(key) {
			p.ends()
		}
		return ""
	case id != p.id:
		p.id, p.broken, p.prefix = id, false, ""
	case p.broken:
		p.splits++
		p.broken, p.prefix = false, "p"+strconv.Itoa(p.splits)+"-"
	}
	return p.prefix
}

// isNew reports whether an entry was not seen yet.
func (p *pieces) isNew(key string) bool {
	if len(key) > 1 && slices.Contains(p.seen, key) {
		return false
	}
	if len(p.seen) == maxSeen {
		p.seen = slices.Delete(p.seen, 0, 1)
	}
	p.seen = append(p.seen, key)
	return true
}

// madeUp returns the id of the message that a piece belongs to, if the library has invented it.
func madeUp(u *acp.Update) (acp.MessageID, bool) {
	if u.V1 == nil {
		return "", false
	}
	var told acpv1.MessageID
	switch v := u.V1.Update.(type) {
	case *acpv1.AgentMessageChunk:
		told = v.MessageID
	case *acpv1.AgentThoughtChunk:
		told = v.MessageID
	case *acpv1.UserMessageChunk:
		told = v.MessageID
	default:
		return "", false
	}
	if told != "" {
		return "", false
	}
	switch v := u.Update.(type) {
	case *acp.AgentMessageChunk:
		return v.MessageID, true
	case *acp.AgentThoughtChunk:
		return v.MessageID, true
	case *acp.UserMessageChunk:
		return v.MessageID, true
	}
	return "", false
}

// entryOf returns a key of the entry that an update makes or changes, or "" for none and for
// messages. An update that makes an entry each time has a key of one character.
func entryOf(u acp.SessionUpdate) string {
	switch u := u.(type) {
	case *acp.ToolCallUpdate:
		return "tool " + string(u.ToolCallID)
	case *acp.PlanUpdate:
		if items, ok := u.Plan.(*acp.PlanItems); ok {
			return "plan " + string(items.PlanID)
		}
		return "plan"
	case *acp.CompactionUpdate:
		return "compaction " + string(u.CompactionID)
	case *acp.SubagentUpdate:
		return "subagent " + string(u.SessionID)
	case *acp.Notice:
		return "n"
	case *acp.UnknownSessionUpdate:
		return "u"
	}
	return ""
}

// isEmpty reports whether an update is a piece of a message of the agent's without content. Some
// agents send one after each tool call.
func isEmpty(u acp.SessionUpdate) bool {
	var c *acp.ContentChunk
	switch u := u.(type) {
	case *acp.AgentMessageChunk:
		c = (*acp.ContentChunk)(u)
	case *acp.AgentThoughtChunk:
		c = (*acp.ContentChunk)(u)
	default:
		return false
	}
	text, ok := c.Content.(*acp.TextContent)
	return ok && text.Text == "" && len(c.Meta) == 0
}

// says reports whether an update is something that the agent says or does: not a thought, and not a
// setting of the session.
func says(u acp.SessionUpdate) bool {
	switch u := u.(type) {
	case *acp.AgentMessageChunk, *acp.ToolCallUpdate, *acp.ToolCallContentChunk, *acp.TerminalUpdate, *acp.PlanUpdate,
		*acp.Notice, *acp.CompactionUpdate, *acp.SubagentUpdate, *acp.SessionMessage, *acp.SessionMessageChunk,
		*acp.UnknownSessionUpdate:
		return true
	case *acp.AgentMessage:
		content, _ := u.Content.Get()
		return len(content) > 0
	}
	return false
}
