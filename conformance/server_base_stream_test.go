package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp/internal/pattern"
)

// serveStream sends the events of a stream to its reader.
func (c *baseConn) serveStream(w http.ResponseWriter, r *http.Request, session string) {
	s := c.s
	c.mu.Lock()
	st := c.stream(session)
	if st.reader {
		c.mu.Unlock()
		switch {
		case s.off("stream/second", session == ""), s.off("stream/second-session", session != ""):
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
		case s.off("stream/second-harmless", true):
			c.mu.Lock()
			st.queue, st.reader = nil, false
			signal(st.wake)
			c.mu.Unlock()
			w.WriteHeader(http.StatusConflict)
		default:
			w.WriteHeader(http.StatusConflict)
		}
		return
	}
	if s.off("stream/both", session != "" && c.stream("").reader) {
		c.mu.Unlock()
		w.WriteHeader(http.StatusConflict)
		return
	}
	st.reader = true
	if s.off("routing/queued-order", true) {
		slices.Reverse(st.queue[min(len(st.queue), 10):])
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		st.reader = s.off("stream/reopen", true)
		c.mu.Unlock()
	}()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	if s.off("stream/content-type", true) {
		h.Set("Content-Type", "text/plain")
	}
	if s.broken != "stream/not-cached" {
		h.Set("Cache-Control", "no-store")
	}
	flusher := http.NewResponseController(w)
	if s.broken != "stream/head-at-once" {
		w.WriteHeader(http.StatusOK)
		_ = flusher.Flush()
	}
	done := c.done
	if s.off("delete/ends-stream", session == "") || s.off("delete/ends-session-stream", session != "") {
		done = nil
	}
	keepAlive := time.NewTicker(15 * time.Second)
	defer keepAlive.Stop()
	for {
		c.mu.Lock()
		if !st.reader {
			c.mu.Unlock()
			return
		}
		queue := st.queue
		st.queue = nil
		c.mu.Unlock()
		for _, text := range queue {
			_, _ = fmt.Fprint(w, s.frame(text))
		}
		if len(queue) > 0 && !s.off("stream/unbuffered", strings.Contains(queue[0], "at-once")) {
			_ = flusher.Flush()
		}
		select {
		case <-st.wake:
		case <-done:
			return
		case <-r.Context().Done():
			return
		case <-keepAlive.C:
			if s.off("stream/keep-alive", true) {
				return // and closes the stream instead
			}
			_, _ = fmt.Fprint(w, ":\n\n")
			_ = flusher.Flush()
		}
	}
}

// frame returns a message as an event.
func (s *baseServer) frame(text string) string {
	switch s.broken {
	case "stream/data":
		if strings.Contains(text, "data-1") {
			return "data: [" + text + "]\n\n"
		}
	case "stream/unnamed":
		return "event: acp\ndata: " + text + "\n\n"
	case "stream/unicode":
		text = strings.Map(func(r rune) rune {
			if r > 0x7f {
				return '?'
			}
			return r
		}, text)
	case "stream/line-ends":
		text = strings.ReplaceAll(text, `\r`, `\n`)
	}
	return "data: " + text + "\n\n"
}

// handle is the agent: it handles a request or a notification.
func (c *baseConn) handle(v *pattern.Value) {
	s := c.s
	id, method, session := v.Get("id"), v.StringAt("method"), v.Get("params").StringAt("sessionId")
	to := session
	switch {
	case method == "" && id == nil:
		if s.broken != "post/envelope" {
			c.send("", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}`)
		}
		return
	case method == "session/cancel":
		if s.broken != "routing/cancel" {
			c.finish(session)
		}
		return
	case id == nil:
		if s.off("websocket/extension", method == "$/ping") {
			c.send("", `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`)
		}
		return
	case method == "session/new":
		c.mu.Lock()
		c.next++
		name := fmt.Sprintf("sess-%d", c.next)
		c.mu.Unlock()
		if s.off("routing/session-new", id.Text == "2") {
			to = name
		}
		c.send(to, `{"jsonrpc":"2.0","id":`+id.Text+`,"result":{"sessionId":"`+name+`"}}`)
		return
	case method == "session/prompt":
		c.prompt(id.Text, session, v)
		return
	case s.off("routing/sessions", session == "sess-2"):
		to = "sess-1"
	case s.off("routing/answer", id.Text == `"mine"`):
		to = ""
	case s.off("routing/unread", session == ""):
		c.mu.Lock()
		held := len(c.streams) > 1 && len(c.streams["sess-1"].queue) > 0
		c.mu.Unlock()
		if held {
			return // until the session is read
		}
	case s.off("routing/string-id", strings.HasPrefix(id.Text, `"7`)):
		id = number(7)
	case s.off("initialize/apart", method == "_check/second"):
		s.mu.Lock()
		for _, other := range s.conns {
			if other != c && other.over != "websocket" {
				other.send("", `{"jsonrpc":"2.0","id":`+id.Text+`,"error":{"code":-32601,"message":"Method not found"}}`)
			}
		}
		s.mu.Unlock()
	}
	c.send(to, `{"jsonrpc":"2.0","id":`+id.Text+`,"error":{"code":-32601,"message":"Method not found"}}`)
}

// prompt does what a prompt says.
func (c *baseConn) prompt(id, session string, v *pattern.Value) {
	s := c.s
	text := ""
	if blocks := v.Get("params").Get("prompt"); blocks != nil && len(blocks.Elems) > 0 {
		text = blocks.Elems[0].StringAt("text")
	}
	say := func(text string) {
		u := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + session + `","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + text + `"}}}}`
		if s.off("routing/updates", true) {
			u = strings.Replace(u, `"sessionId":"`, `"sessionId":"other-`, 1)
		}
		c.send(session, u)
		if s.off("routing/updates-only", true) {
			c.send("", u)
		}
	}
	c.mu.Lock()
	c.hanging[session] = id
	c.mu.Unlock()
	switch text {
	case "count":
		for i := range 50 {
			if s.off("routing/order", i >= 40) {
				i = 89 - i
			}
			say(fmt.Sprintf("%d ", i))
		}
	case "ask":
		to := session
		if s.off("routing/permission", true) {
			to = ""
		}
		c.mu.Lock()
		c.asked[`"p1"`] = session
		c.mu.Unlock()
		c.send(to, `{"jsonrpc":"2.0","id":"p1","method":"session/request_permission","params":{"sessionId":"`+session+
			`","toolCall":{"toolCallId":"t"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}]}}`)
		return
	case "hang":
		return
	default:
		say("hello")
	}
	c.finish(session)
}

// finish ends the turn of a session.
func (c *baseConn) finish(session string) {
	c.mu.Lock()
	id := c.hanging[session]
	delete(c.hanging, session)
	c.mu.Unlock()
	if id == "" {
		return
	}
	to := session
	if c.s.off("routing/prompt", true) {
		c.send("", `{"jsonrpc":"2.0","id":`+id+`,"result":{"stopReason":"end_turn"}}`)
	}
	c.send(to, `{"jsonrpc":"2.0","id":`+id+`,"result":{"stopReason":"end_turn"}}`)
}
