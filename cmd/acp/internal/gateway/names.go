package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ids"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// A naming gives what an agent sends its names in the log. Ids of an agent are unique within its life at most, so each of
// them is kept as <life>.<id>, where the life is how often the agent of the session was started. A piece of a message
// without an id gets <life>.m<event>, where the event is the one that began the message: that follows from the log and from
// what holds the agent alone, so a gateway that takes the agent over continues the message. For tool calls see [ids.Calls].
// It is safe for concurrent use.
type naming struct {
	life string         // with its dot
	turn *atomic.Uint64 // the record of the prompt that has begun last

	mu      sync.Mutex
	of      map[acp.SessionID]*names // of the agent's session, which is "", and of each subagent
	prompts map[string]string        // by the id that the agent has for the message of a prompt, that of its record
}

// maxPromptNames bounds the prompts that are known by the agent's ids. Beyond that, all are forgotten.
const maxPromptNames = 4096

// prompted is called with the agent's own id for the message of a prompt.
func (n *naming) prompted(id acp.MessageID, prompt string) {
	if id == "" || prompt == "" || len(id) > ids.MaxID {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.prompts == nil || len(n.prompts) >= maxPromptNames {
		n.prompts = make(map[string]string)
	}
	n.prompts[string(id)] = prompt
}

// names are those of one session.
type names struct {
	left   map[string]string // calls that earlier lives have left open, if the agent remembers them: their names, by id
	calls  *ids.Calls
	pieces ids.Pieces
	open   acp.MessageID // of the message that is being written, if the agent has given it no id
	made   uint64        // messages of agents whose events have no numbers
}

func newNaming(life int, turn *atomic.Uint64) *naming {
	return &naming{life: strconv.Itoa(life) + ".", turn: turn, of: make(map[acp.SessionID]*names)}
}

// begins is called where the log has the start of the life.
func (n *naming) begins() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.of)
}

// names returns those of a session. The caller holds n.mu.
func (n *naming) names(child acp.SessionID) *names {
	if x := n.of[child]; x != nil {
		return x
	}
	x := &names{calls: ids.NewCalls(n.life)}
	if len(n.of) <= maxChildren { // whose updates are dropped beyond that
		n.of[child] = x
	}
	return x
}

// bounds is called with what ends the messages that are being written.
func (n *naming) bounds() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end()
}

// end ends the messages that are being written. The caller holds n.mu.
func (n *naming) end() {
	for _, x := range n.of {
		x.pieces.End()
	}
}

// update returns an update as it is kept. child is the subagent that it is about, or "", and event that in which it has
// come, or 0.
func (n *naming) update(child acp.SessionID, u *acp.Update, event uint64) acp.SessionUpdate {
	n.mu.Lock()
	defer n.mu.Unlock()
	x := n.names(child)
	switch u.Update.(type) {
	case *acp.AgentMessageChunk, *acp.AgentThoughtChunk, *acp.UserMessageChunk:
		made, begins := x.pieces.Take(u)
		if begins {
			x.made++
			if event == 0 {
				event = x.made
			}
			x.open = acp.MessageID(n.life + "m" + strconv.FormatUint(event, 10))
		}
		return ids.Rename(u.Update, func(_ ids.Space, id string) string {
			if made != "" {
				return string(x.open)
			}
			return n.life + id
		})
	}
	call, _ := u.Update.(*acp.ToolCallUpdate)
	said := ids.Rename(u.Update, func(in ids.Space, id string) string {
		if in == ids.Call && call != nil {
			return n.call(x, call)
		}
		if prompt, ok := n.prompts[id]; ok && in == ids.User && child == "" { // which a cursor may be beside
			return prompt
		}
		return n.name(x, in, id)
	})
	x.pieces.Mention(said)
	return said
}

// call returns the name of a call of which something is said.
func (n *naming) call(x *names, u *acp.ToolCallUpdate) string {
	id := string(u.ToolCallID)
	if name, ok := x.left[id]; ok {
		if u.Title.IsZero() && u.Kind.IsZero() {
			return name
		}
		delete(x.left, id) // it begins
	}
	return x.calls.Take(u, n.turn.Load())
}

// name returns the name of what an id means now.
func (n *naming) name(x *names, in ids.Space, id string) string {
	switch {
	case id == "":
		return ""
	case in == ids.Call:
		if name, ok := x.left[id]; ok {
			return name
		}
		return x.calls.Name(id)
	}
	return n.life + id
}

// subject returns what a question of a session is about, as it is kept.
func (n *naming) subject(child acp.SessionID, about acp.RequestPermissionSubject) acp.RequestPermissionSubject {
	n.mu.Lock()
	defer n.mu.Unlock()
	x := n.names(child)
	of, _ := about.(*acp.ToolCallPermissionSubject)
	return ids.RenameSubject(about, func(in ids.Space, id string) string {
		if in == ids.Call && of != nil {
			return n.call(x, &of.ToolCall)
		}
		return n.name(x, in, id)
	})
}

// mentioned returns the name of a call that a question of a session mentions, or "" for "".
func (n *naming) mentioned(child acp.SessionID, call acp.ToolCallID) acp.ToolCallID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return acp.ToolCallID(n.name(n.names(child), ids.Call, string(call)))
}

// message returns the name of a message.
func (n *naming) message(id acp.MessageID) acp.MessageID {
	if id == "" {
		return ""
	}
	return acp.MessageID(n.life) + id
}

// kept is called with what the log has of the life of the agent, in order, if an earlier gateway has begun that. session is
// that of the log.
func (n *naming) kept(session string, r *engine.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch r.Kind {
	case kindPrompt:
		n.turn.Store(r.Seq)
		fallthrough
	case kindEnd, kindAsk:
		n.end()
		return
	case kindUpdate, kindChild:
	default:
		return
	}
	var head struct {
		Update struct {
			SessionUpdate string
			MessageID     acp.MessageID
		}
		Child acp.SessionID
	}
	if json.Unmarshal(r.Data, &head) != nil {
		return
	}
	x := n.names(ownName(session, head.Child))
	switch head.Update.SessionUpdate {
	case "agent_message_chunk":
		n.keptPiece(x, ids.Agent, head.Update.MessageID)
	case "agent_thought_chunk":
		n.keptPiece(x, ids.Thought, head.Update.MessageID)
	case "user_message_chunk":
		n.keptPiece(x, ids.User, head.Update.MessageID)
	case "terminal_output_chunk", "tool_call_content_chunk": // the most of what is left
	default:
		_, u, err := records.DecodeChild(r.Data)
		if err != nil {
			return
		}
		if call, ok := u.(*acp.ToolCallUpdate); ok {
			x.calls.Kept(call, n.turn.Load())
		}
		x.pieces.Mention(renamed(u, func(id acp.SessionID) acp.SessionID { return ownName(session, id) }))
	}
}

// keptPiece is kept for a piece of a message.
func (n *naming) keptPiece(x *names, kind ids.Space, message acp.MessageID) {
	number, ok := strings.CutPrefix(string(message), n.life+"m")
	if _, err := strconv.ParseUint(number, 10, 64); !ok || err != nil {
		x.pieces.End()
		return
	}
	x.open = message
	x.pieces.Resume(kind)
}

// ownName returns what the agent calls the session of a subagent.
func ownName(session string, child acp.SessionID) acp.SessionID {
	return acp.SessionID(strings.TrimPrefix(string(child), session+"."))
}

// remembers notes which calls earlier lives have left open, since the agent has its session back: it may finish them.
func (n *naming) remembers(ctx context.Context, log *engine.Engine, session string) error {
	left := make(map[string]string)
	err := log.Fold(ctx, session, 0, func(r engine.Record) error {
		if r.Kind != kindUpdate || !bytes.Contains(r.Data, []byte(`"tool_call_update"`)) {
			return nil
		}
		u, err := records.DecodeUpdate(r.Data)
		call, ok := u.(*acp.ToolCallUpdate)
		if err != nil || !ok {
			return err
		}
		name := string(call.ToolCallID)
		_, id, ok := strings.Cut(name, ".")
		if at := strings.LastIndexByte(id, '~'); at > 0 {
			if _, err := strconv.ParseUint(id[at+1:], 10, 64); err == nil { // not one of the agent's own
				id = id[:at]
			}
		}
		switch status, said := call.Status.Get(); {
		case !ok || len(id) > ids.MaxID:
		case said && ids.IsOver(status):
			delete(left, id)
		case left[id] != "" || len(left) < ids.MaxCalls:
			left[id] = name
		}
		return nil
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names("").left = left
	return err
}
