package tap

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/goacp/acp/acphost"
)

// Bounds of what a guard remembers. At each the oldest is forgotten: nothing passes any longer for
// a session that is forgotten.
const (
	maxSessions = 4096
	maxPending  = 1024
	maxTold     = 64 // sessions whose tool calls are known, each up to 1 MiB
)

// A bounded remembers the latest values by name.
type bounded[T any] struct {
	most   int
	values map[string]T
	names  []string // oldest first
}

func (b *bounded[T]) get(name string) (T, bool) {
	v, ok := b.values[name]
	return v, ok
}

// put remembers a value, and forgets the oldest one beyond the bound.
func (b *bounded[T]) put(name string, v T) {
	if b.values == nil {
		b.values = map[string]T{}
	}
	if _, has := b.values[name]; !has {
		b.names = append(b.names, name)
		if len(b.names) > b.most {
			delete(b.values, b.names[0])
			b.names = b.names[1:]
		}
	}
	b.values[name] = v
}

func (b *bounded[T]) drop(name string) {
	if _, has := b.values[name]; !has {
		return
	}
	delete(b.values, name)
	b.names = slices.DeleteFunc(b.names, func(n string) bool { return n == name })
}

// A room is where a session works.
type room struct {
	cwd   string
	files *acphost.Files
}

// An opening is a request of the client that opens or ends a session.
type opening struct {
	method  string
	session string // "" if the answer names it
	room    *room
	before  *room // what the session was, in case the request fails
}

// roomOf returns the room of a session that a client opens. Directories must be absolute.
func roomOf(cwd string, more []string) *room {
	roots := slices.DeleteFunc(append([]string{cwd}, more...), func(dir string) bool { return !filepath.IsAbs(dir) })
	return &room{cwd: cwd, files: acphost.Dir(roots...)}
}

// clientParams are the params of the client's requests, as far as the guard needs them.
type clientParams struct {
	SessionID             string   `json:"sessionId"`
	Cwd                   string   `json:"cwd"`
	AdditionalDirectories []string `json:"additionalDirectories"`
}

// FromClient examines a frame that the client sends to the agent. It passes in any case.
func (g *Guard) FromClient(frame []byte) {
	if isText(frame) {
		return
	}
	e := parse(frame)
	if e.fault != "" {
		return
	}
	if e.method == "" {
		g.hears(&e)
		return
	}
	var p clientParams
	switch e.method {
	case "initialize", "session/new", "session/load", "session/resume", "session/fork", "session/close", "session/delete", "session/cancel", "session/prompt":
		_ = json.Unmarshal(e.params, &p) // the agent will report what is wrong with it
	default:
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	open := opening{method: e.method, session: p.SessionID}
	switch e.method {
	case "session/cancel":
		g.cancelled.put(p.SessionID, struct{}{})
		g.turnOver(p.SessionID)
		return
	case "session/prompt":
		g.cancelled.drop(p.SessionID)
		g.turnOver(p.SessionID)
		if calls, ok := g.calls.get(p.SessionID); ok {
			calls.Turn()
		}
	case "session/new", "session/fork":
		open.session, open.room = "", roomOf(p.Cwd, p.AdditionalDirectories)
	case "session/load", "session/resume":
		// The agent may use it before it answers.
		open.room = roomOf(p.Cwd, p.AdditionalDirectories)
		open.before, _ = g.rooms.get(p.SessionID)
		g.rooms.put(p.SessionID, open.room)
	}
	if e.id != nil {
		g.pending.put(string(e.id), open)
	}
}

// answered examines an answer of the agent.
func (g *Guard) answered(e *envelope) {
	g.mu.Lock()
	defer g.mu.Unlock()
	open, ok := g.pending.get(string(e.id))
	if !ok {
		return
	}
	g.pending.drop(string(e.id))
	var result struct {
		SessionID       string      `json:"sessionId"`
		ProtocolVersion json.Number `json:"protocolVersion"`
	}
	_ = json.Unmarshal(e.result, &result)
	failed := e.failed || e.result == nil
	switch open.method {
	case "session/prompt":
		g.turnOver(open.session)
	case "initialize":
		if !failed {
			g.version = result.ProtocolVersion.String()
		}
	case "session/new", "session/fork":
		if !failed && result.SessionID != "" {
			g.rooms.put(result.SessionID, open.room)
		}
	case "session/load", "session/resume":
		switch now, _ := g.rooms.get(open.session); {
		case !failed || now != open.room:
		case open.before != nil:
			g.rooms.put(open.session, open.before)
		default:
			g.rooms.drop(open.session)
		}
	case "session/close", "session/delete":
		if !failed {
			g.rooms.drop(open.session)
			g.cancelled.drop(open.session)
			g.granted.drop(open.session)
			g.calls.drop(open.session)
		}
	}
}
