package conformance

import "strings"

// prompting is a defect in what becomes of prompts with a type of content.
func prompting(content string, d defect) defect {
	return onRequest("session/prompt", about(`"type":"`+content+`"`, d))
}

const aReceipt = `{"stopReason":"end_turn","messageId":"m"}`

func init() {
	defects(Agent, map[string]defect{
		"prompt/receipts": onReply("session/prompt", set("result.messageId", `"m"`)),
		"prompt/echo":     update("user_message", set("params.update.content", `[{"type":"text","text":"Say h?llo ??"}]`)),
		"prompt/running":  update("state_update", when(func(f *flying) bool { return f.str("params.update.state") == "running" }, drop)),
		"prompt/order": update("agent_message_chunk", func(w *between, f *flying) { // every other piece is late
			if late, _ := w.state["late"].(string); late != "" {
				w.state["late"] = ""
				w.pass(f)
				w.on(f, late)
				return
			}
			if strings.Contains(f.line, `2`) {
				w.state["late"] = f.line
				return
			}
			w.pass(f)
		}),
		"prompt/slow-client": update("agent_message_chunk", from(2500, hangUp)),
		"prompt/large-piece": update("agent_message_chunk", when(func(f *flying) bool { return len(f.line) > 1<<16 }, func(w *between, f *flying) {
			w.on(f, f.line[:1<<16])
			w.on(f, f.line[1<<16:])
		})),
		"prompt/characters": update("agent_message_chunk", func(w *between, f *flying) {
			w.on(f, strings.Map(func(c rune) rune {
				if c > 0xffff {
					return '\ufffd'
				}
				return c
			}, f.line))
		}),
		"prompt/empty":    onRequest("session/prompt", about(`"prompt":[]`, result(aReceipt))),
		"prompt/link":     prompting("resource_link", refuse("-32602")),
		"prompt/image":    prompting("image", refuse("-32602")),
		"prompt/audio":    prompting("audio", refuse("-32602")),
		"prompt/embedded": prompting("resource", refuse("-32602")),

		"prompt/image-not-offered":    lacking("session.prompt.image", prompting("image", result(aReceipt))),
		"prompt/audio-not-offered":    lacking("session.prompt.audio", prompting("audio", result(aReceipt))),
		"prompt/embedded-not-offered": lacking("session.prompt.embeddedContext", prompting("resource", result(aReceipt))),

		"prompt/busy": func(w *between, f *flying) { // a second prompt is forgotten
			busy, _ := w.state["busy"].(int)
			switch {
			case f.method != "session/prompt":
			case f.reply:
				w.state["busy"] = busy - 1
			case busy > 0:
				return
			default:
				w.state["busy"] = busy + 1
			}
			w.pass(f)
		},
		"prompt/queue": func(w *between, f *flying) { // one prompt at a time
			busy, _ := w.state[f.str("params.sessionId")].(bool)
			switch {
			case f.str("params.update.state") == "idle":
				w.state[f.str("params.sessionId")] = false
			case f.request() && f.method == "session/prompt" && busy:
				refuse("-32600")(w, f)
				return
			case f.request() && f.method == "session/prompt":
				w.state[f.str("params.sessionId")] = true
			}
			w.pass(f)
		},
		"prompt/sessions-at-once": func(w *between, f *flying) { // one turn at a time, for all sessions
			if f.request() && f.method == "session/prompt" {
				if w.state["turn"] != nil && w.state["turn"] != f.str("params.sessionId") {
					return
				}
				if strings.Contains(f.line, "!hang") {
					w.state["turn"] = f.str("params.sessionId")
				}
			}
			if f.notification() && f.method == "session/cancel" {
				delete(w.state, "turn")
			}
			w.pass(f)
		},
		"prompt/eight": func(w *between, f *flying) { // seven sessions are enough
			if f.request() && f.method == "session/prompt" {
				busy, _ := w.state["busy"].(map[string]bool)
				if busy == nil {
					busy = map[string]bool{}
					w.state["busy"] = busy
				}
				busy[f.str("params.sessionId")] = true
				if len(busy) > 7 {
					return
				}
			}
			w.pass(f)
		},
		"prompt/again": onRequest("session/prompt", func(w *between, f *flying) {
			turns, _ := w.state[f.str("params.sessionId")].(int)
			w.state[f.str("params.sessionId")] = turns + 1
			if turns < 3 {
				w.pass(f)
			}
		}),
		"prompt/refusal": func(w *between, f *flying) {
			if f.str("result.stopReason") == "refusal" || f.str("params.update.stopReason") == "refusal" {
				w.on(f, strings.Replace(f.line, `"refusal"`, `"end_turn"`, 1))
				return
			}
			w.pass(f)
		},
		"prompt/failure": onRequest("session/prompt", about("!fail", hangUp)),
		"prompt/usage": func(w *between, f *flying) {
			w.on(f, strings.ReplaceAll(f.line, `"totalTokens":30`, `"totalTokens":"30"`))
		},
		"prompt/grease":   onRequest("session/new", about("checkLater", refuse("-32602"))),
		"prompt/requests": onRequest("_check/unknown", when(func(f *flying) bool { return f.n%1000 == 999 }, drop)),

		"prompt/burst": update("agent_message_chunk", when(func(f *flying) bool { return f.n%3000 == 2500 }, drop)), // a queue that loses what it has no room for
		"prompt/second": func(w *between, f *flying) { // the second prompt ends the turn of the first
			running, _ := w.state["running"].(string)
			session := f.str("params.sessionId")
			switch {
			case f.request() && f.method == "session/prompt" && running == session:
				w.peer.write(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + encode(session) + `}}` + "\n")
			case f.request() && f.method == "session/prompt":
				w.state["running"] = session
			case f.reply && f.get("result.stopReason") != nil || f.str("params.update.state") == "idle":
				delete(w.state, "running")
			}
			w.pass(f)
		},
		"prompt/frees": func(w *between, f *flying) {
			if f.request() && f.method == "session/prompt" {
				w.leak += 10 << 20
			}
			w.pass(f)
		},

		"command/prompt":  onRequest("session/prompt", when(func(f *flying) bool { return prompted(f) == "/plan" }, refuse("-32602"))),
		"command/unknown": onRequest("session/prompt", when(func(f *flying) bool { return strings.HasPrefix(prompted(f), "/check-no") }, drop)),

		"tool/shown": func(w *between, f *flying) {
			if s := f.str("params.update.status"); s == "completed" {
				return
			}
			w.pass(f)
		},
		"tool/plan": func(w *between, f *flying) {
			if kind := f.str("params.update.sessionUpdate"); strings.HasPrefix(kind, "plan") {
				return
			}
			w.pass(f)
		},
		"tool/cancel":                  onRequest("tool_call/cancel", result(`{}`)),
		"tool/cancel-unknown":          onRequest("tool_call/cancel", about("no-such-call", result(`{}`))),
		"tool/terminal-cancel-unknown": onRequest("terminal/cancel", result(`{}`)),
	})
}
