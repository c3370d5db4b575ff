package proxies

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
)

// Bounds of what is held back of text that comes in pieces.
const (
	maxHeld    = 16 << 10 // bytes of a text; a secret that is longer may be cut
	maxStreams = 1000     // sessions; in further ones each piece is looked at by itself
	heldFor    = 5 * time.Second
)

// lastWord is the end of a text that may be the beginning of a secret, or of what says that one follows: lines of base64, the
// name of an assignment, a way to log in, and the last word.
var lastWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:[A-Za-z0-9+/_-]{32,}\r?\n[ \t]*)*(?:(?i:bearer|basic)\s+)?(?:[\w.-]+["']?\s*[:=]\s*["']?)?[\w.+/=~:@%\\-]*$`)
})

var keyEnd = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-----END [A-Z ]*-----`) })

// unfinished returns how many bytes at the end of a text may be the beginning of a secret.
func (m *marks) unfinished(s string) int {
	if len(s) > maxHeld {
		return m.unfinished(s[len(s)-maxHeld:])
	}
	from := len(s)
	if at := lastWord().FindStringIndex(s); at != nil {
		from = at[0]
	}
	for i := range from {
		for _, form := range m.byFirst[s[i]] {
			if strings.HasPrefix(form, s[i:]) || i+len(form) > from && strings.HasPrefix(s[i:], form) {
				return len(s) - i
			}
		}
	}
	if i := strings.LastIndex(s[:from], "-----BEGIN "); i >= 0 && !keyEnd().MatchString(s[i:]) {
		from = i
	}
	return len(s) - from
}

// A piece is a part of a text that an update carries.
type piece struct {
	of   string // which text
	text string
	put  func(text string) // replaces it in the update
}

// pieceOf returns the piece of text in an update, if that is one. What is put there must still be looked at.
func (m *marks) pieceOf(update map[string]any) (p piece, ok bool) {
	kind, _ := update["sessionUpdate"].(string)
	in := func(object map[string]any, member string, ids ...any) (piece, bool) {
		text, ok := object[member].(string)
		return piece{of: fmt.Sprint(append([]any{kind}, ids...)...), text: text, put: func(text string) { object[member] = text }}, ok
	}
	content, _ := update["content"].(map[string]any)
	switch kind {
	case "tool_call_content_chunk":
		content, _ = content["content"].(map[string]any)
		fallthrough
	case "agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "session_message_chunk", "compaction_summary_chunk":
		if content["type"] == "text" {
			return in(content, "text", update["messageId"], update["toolCallId"], update["compactionId"])
		}
	case "terminal_output_chunk":
		p, ok := in(update, "data", update["terminalId"])
		data, err := base64.StdEncoding.DecodeString(p.text)
		put := p.put
		p.text, p.put = string(data), func(text string) { put(base64.StdEncoding.EncodeToString([]byte(m.text(text)))) }
		return p, ok && err == nil
	case "tool_call_update":
		meta, _ := update["_meta"].(map[string]any)
		if delta, ok := meta["terminal_output_delta"].(map[string]any); ok && content == nil {
			return in(delta, "data", delta["terminal_id"])
		}
	}
	return piece{}, false
}

// streams are the texts of sessions that come in pieces.
type streams struct {
	mu sync.Mutex
	m  map[acp.SessionID]*heldText
}

// heldText is the end of a text whose rest is still to come.
type heldText struct {
	session *acp.ProxySession
	of      string
	text    string
	last    func(text string) (json.RawMessage, error) // the last update of it, with another text
	timer   *time.Timer                                // for a text that nothing follows
}

// take returns what is held in a session, and forgets it.
func (s *streams) take(id acp.SessionID) *heldText {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.m[id]
	if h != nil {
		h.timer.Stop()
		delete(s.m, id)
	}
	return h
}

// has reports whether a text is held.
func (s *streams) has(h *heldText) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m[h.session.ID()] == h
}

// keep holds a text, for which late is called if nothing comes for long. It reports false if there are too many.
func (s *streams) keep(h *heldText, late func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.m) >= maxStreams {
		return false
	}
	if s.m == nil {
		s.m = map[acp.SessionID]*heldText{}
	}
	s.m[h.session.ID()] = h
	h.timer = time.AfterFunc(heldFor, late)
	return true
}

// late sends a text that nothing has followed: it may be the last one of a subagent, whose end nothing of its session says.
func (r *redacting) late(h *heldText) {
	r.order.Lock()
	defer r.order.Unlock()
	if r.streams.has(h) {
		_ = r.sendHeld(context.Background(), r.streams.take(h.session.ID())) // fails once the client has gone
	}
}

// flush sends what is held of a session's text.
func (r *redacting) flush(ctx context.Context, s *acp.ProxySession) error {
	if s == nil {
		return nil
	}
	r.order.Lock()
	defer r.order.Unlock()
	h := r.streams.take(s.ID())
	if h == nil {
		return nil
	}
	return r.sendHeld(ctx, h)
}

func (r *redacting) sendHeld(ctx context.Context, h *heldText) error {
	params, err := h.last(h.text)
	if err == nil {
		params, err = r.whole(params)
	}
	if err != nil {
		return err
	}
	return h.session.Notify(ctx, acp.ToClient, "session/update", params)
}

// piece replaces secrets in an update that has a piece of a text, together with what is held of that. It reports false if the
// update is another one, or all of it is held.
func (r *redacting) piece(ctx context.Context, m *acp.ProxyMessage) (held bool, err error) {
	v, err := decode(m.Params)
	if err != nil {
		return false, err
	}
	params, _ := v.(map[string]any)
	update, _ := params["update"].(map[string]any)
	p, ok := r.pieceOf(update)
	before := r.streams.take(m.Session.ID())
	if before != nil && (!ok || before.of != p.of) {
		if err := r.sendHeld(ctx, before); err != nil {
			return false, err
		}
		before = nil
	}
	if !ok {
		return false, nil
	}
	text := p.text
	if before != nil {
		text = before.text + text
	}
	n := r.unfinished(text)
	if n == 0 && before == nil {
		return false, nil // as it is
	}
	now := text[:len(text)-n]
	h := &heldText{session: m.Session, of: p.of, text: text[len(now):], last: func(text string) (json.RawMessage, error) {
		p.put(text)
		return json.Marshal(v)
	}}
	if n > 0 && !r.streams.keep(h, func() { r.late(h) }) {
		now = text
	}
	if now == "" {
		return true, nil
	}
	p.put(now)
	m.Params, err = json.Marshal(v)
	return false, err
}
