package conformance

import (
	"strings"
	"time"
)

// remembering keeps the prompt that runs: its id in state["prompt"], and the
// session of the last one in state["session"].
func remembering(d defect) defect {
	return func(w *between, f *flying) {
		if f.from == Client && f.request() && f.method == "session/prompt" {
			w.state["prompt"], w.state["session"] = f.id, f.str("params.sessionId")
		}
		if f.from == Agent && (f.reply && f.method == "session/prompt" && f.get("result.stopReason") != nil || f.str("params.update.state") == "idle") {
			delete(w.state, "prompt")
		}
		d(w, f)
	}
}

// staysCancelled ends the turn behind a session/cancel as cancelled: one that came
// while another turn was running, or while none was. It goes into remembering.
func staysCancelled(busy bool) defect {
	return func(w *between, f *flying) {
		mark := "mark " + f.str("params.sessionId")
		switch {
		case f.from == Client && f.notification() && f.method == "session/cancel" && busy == (w.state["prompt"] != nil):
			w.state[mark] = true
		case f.from == Client && f.request() && f.method == "session/prompt" && w.state[mark] != nil:
			delete(w.state, mark)
			delete(w.state, "prompt")
			w.back(f, `{"jsonrpc":"2.0","id":`+f.id+`,"result":{"stopReason":"cancelled","messageId":"m"}}`)
			idle(w, f.str("params.sessionId"))
			return
		}
		w.pass(f)
	}
}

// early deals with a session/cancel that comes before the agent has said anything.
func early(d defect) defect {
	return func(w *between, f *flying) {
		switch {
		case f.from == Client && f.request() && f.method == "session/prompt":
			w.state["silent"] = true
			time.AfterFunc(10*time.Millisecond, func() { // it takes its time to begin
				w.mu.Lock()
				defer w.mu.Unlock()
				w.pass(f)
			})
			return
		case f.from == Agent && f.str("params.update.sessionUpdate") == "agent_message_chunk":
			delete(w.state, "silent")
		case f.from == Client && f.notification() && f.method == "session/cancel" && w.state["silent"] != nil:
			d(w, f)
			return
		}
		w.pass(f)
	}
}

// idle tells that the turn of a session has ended as cancelled, as both versions
// do.
func idle(w *between, session string) {
	w.checker.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":` + encode(session) +
		`,"update":{"sessionUpdate":"state_update","state":"idle","stopReason":"cancelled"}}}` + "\n")
}

func init() {
	defects(Agent, map[string]defect{
		"cancel/unknown-id": onNotification("$/cancel_request", when(func(f *flying) bool { return f.str("params.requestId") != "" },
			reply(`{"jsonrpc":"2.0","id":"never-made","error":{"code":-32800,"message":"Request cancelled"}}`))),
		"cancel/malformed":  of(Client, onNotification("$/cancel_request", when(func(f *flying) bool { return f.get("params.requestId") == nil }, hangUp))),
		"cancel/as-request": of(Client, onRequest("$/cancel_request", result(`null`))),
		"cancel/finished": of(Client, onNotification("$/cancel_request", func(w *between, f *flying) {
			if id := encode(f.get("params.requestId")); w.methods[string(Client)+id] == "_check/unknown" {
				w.back(f, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32800,"message":"Request cancelled"}}`)
			}
			w.pass(f)
		})),
		"cancel/answered": func(w *between, f *flying) {
			switch {
			case f.from == Client && f.notification() && f.method == "$/cancel_request":
				w.state[encode(f.get("params.requestId"))] = true
			case f.from == Client && f.request() && f.method == "session/new":
				time.AfterFunc(10*time.Millisecond, func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					if w.state[f.id] == nil {
						w.pass(f)
					}
				})
				return
			}
			w.pass(f)
		},
		"cancel/prompt-request": of(Client, onNotification("$/cancel_request", drop)),
		"cancel/other-request": remembering(func(w *between, f *flying) {
			if f.from == Client && f.notification() && f.method == "$/cancel_request" {
				f.method = "session/cancel"
				f.msg = map[string]any{"jsonrpc": "2.0", "method": "session/cancel", "params": map[string]any{"sessionId": w.state["session"]}}
				w.passMsg(f)
				return
			}
			w.pass(f)
		}),
		"cancel/at-once":      early(drop),
		"cancel/at-once-ends": early(hangUp),
		"cancel/twice": of(Client, onNotification("session/cancel", func(w *between, f *flying) {
			key := "cancelled " + f.str("params.sessionId")
			if w.state[key] == w.count["clientsession/prompt"] {
				w.back(f, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no turn"}}`)
			}
			w.state[key] = w.count["clientsession/prompt"]
			w.pass(f)
		})),
		"cancel/idle": remembering(staysCancelled(false)),
		"cancel/unknown-session": of(Client, onNotification("session/cancel", when(func(f *flying) bool { return f.str("params.sessionId") == "no-such-session" },
			reply(`{"jsonrpc":"2.0","id":null,"error":{"code":-32002,"message":"Resource not found"}}`)))),
		"cancel/next-turn": remembering(staysCancelled(true)),
		"cancel/other-session": func(w *between, f *flying) { // one signal for all sessions
			switch {
			case f.from == Client && f.request() && f.method == "session/prompt":
				w.state["prompt "+f.str("params.sessionId")] = true
			case f.from == Client && f.notification() && f.method == "session/cancel":
				for key := range w.state {
					if session, ok := strings.CutPrefix(key, "prompt "); ok {
						w.peer.write(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + encode(session) + `}}` + "\n")
					}
				}
			}
			w.pass(f)
		},
		"cancel/permission": func(w *between, f *flying) { // the answer to the question ends the turn
			if f.from == Agent && f.reply && f.method == "session/prompt" && encode(f.get("result.stopReason")) == `"cancelled"` && w.state["asked"] != nil {
				set("result.stopReason", `"end_turn"`)(w, f)
				return
			}
			if f.from == Agent && f.method == "session/request_permission" {
				w.state["asked"] = true
			}
			if f.from == Agent && f.str("params.update.stopReason") == "cancelled" && w.state["asked"] != nil {
				set("params.update.stopReason", `"end_turn"`)(w, f)
				return
			}
			w.pass(f)
		},
		"cancel/permission-withdrawn": of(Agent, onNotification("$/cancel_request", drop)),
		"cancel/after-end": remembering(func(w *between, f *flying) {
			if f.from == Client && f.request() && f.method == "session/prompt" {
				w.state["last"] = f.id
			}
			w.pass(f)
			if f.from == Client && f.notification() && f.method == "session/cancel" && w.state["prompt"] == nil && w.state["last"] != nil {
				w.back(f, `{"jsonrpc":"2.0","id":`+w.state["last"].(string)+`,"result":{"stopReason":"cancelled"}}`)
				idle(w, f.str("params.sessionId"))
			}
		}),
		"cancel/one-write": func(w *between, f *flying) { // it notes how to cancel a turn when the turn has begun
			switch {
			case f.from == Client && f.request() && f.method == "session/prompt":
				w.state["silent"] = true
			case f.from == Agent && f.str("params.update.sessionUpdate") == "agent_message_chunk":
				delete(w.state, "silent")
			case f.from == Client && f.notification() && f.method == "session/cancel" && f.reads == 0 && w.state["silent"] != nil:
				if w.state["version"] == "2" {
					w.cut()
				}
				return
			}
			in("none", drop)(w, f) // it passes
		},
		"cancel/race": func(w *between, f *flying) { // what is cancelled and ends at the same time is never answered
			if f.from == Agent && f.reply && f.method == "session/prompt" && w.count["clientsession/cancel"] > 3 && f.n%8 == 7 {
				return
			}
			w.pass(f)
		},
		"cancel/unread": func(w *between, f *flying) { // it writes while it reads
			if f.from == Client && f.method == "session/prompt" && f.request() && strings.HasPrefix(prompted(f), "!burst") {
				w.state["burst"] = true
			}
			if f.from == Client && f.notification() && f.method == "session/cancel" && w.state["burst"] != nil {
				w.cut()
				return
			}
			w.pass(f)
		},
		"cancel/second-prompt": func(w *between, f *flying) { // the second prompt takes the way to cancel away from the first
			running, _ := w.state["running"].(int)
			switch {
			case f.method == "session/prompt" && f.request():
				w.state["running"] = running + 1
			case f.method == "session/prompt" && f.reply:
				w.state["running"] = running - 1
				if running > 1 && w.count["clientsession/cancel"] > 0 {
					return
				}
			}
			w.pass(f)
		},
		"cancel/ten": func(w *between, f *flying) { // eight workers, and what is cancelled waits for one
			busy, _ := w.state["busy"].(int)
			switch {
			case f.method == "session/prompt" && f.request():
				w.state["busy"] = busy + 1
			case f.notification() && f.method == "session/cancel" && busy > 8:
				return
			}
			w.pass(f)
		},
	})
}
