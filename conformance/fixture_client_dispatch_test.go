package conformance

import (
	"encoding/json"
	"strings"
	"time"
)

// unknownWith limits a defect to requests of the checker with an id.
func unknownWith(id string, d defect) defect {
	return of(Agent, when(func(f *flying) bool { return f.request() && f.id == id }, d))
}

// answeredWith changes the answers of the client to requests with an id.
func answeredWith(id string, d defect) defect {
	return of(Client, when(func(f *flying) bool { return f.reply && f.id == id }, d))
}

// another has the client answer with another id.
func another(id string) defect { return set("id", id) }

// shapeless tells params of session/request_permission that are not in order.
func shapeless(f *flying) bool {
	options, ok := f.get("params.options").([]any)
	return !ok || len(options) == 0
}

// doing limits a defect to requests of a method, as the checker names it.
func doing(test func(method string) bool, d defect) defect {
	return of(Agent, when(func(f *flying) bool { return f.request() && test(f.method) }, d))
}

func named(names ...string) func(string) bool {
	return func(method string) bool {
		for _, n := range names {
			if n == method {
				return true
			}
		}
		return false
	}
}

// later holds what passes back for a time.
func later(d time.Duration) defect {
	return func(w *between, f *flying) { time.AfterFunc(d, func() { w.pass(f) }) }
}

// noObject tells lines of the agent that are no JSON object.
func noObject(f *flying) bool {
	return f.from == Agent && f.msg == nil && strings.TrimSpace(f.line) != ""
}

func array(f *flying) bool { return noObject(f) && strings.HasPrefix(f.line, "[") }

func noJSON(f *flying) bool { return noObject(f) && decode(f.line) == nil && f.line != "null" }

// These take long in all combinations.
func init() {
	heavy = append(heavy, "client/framing/large", "client/framing/huge", "client/framing/burst", "client/framing/burst-answered", "client/framing/flood", "client/dispatch/many",
		"client/dispatch/slow-agent", "client/dispatch/frees", "client/history/long")
}

func init() {
	defects(Client, map[string]defect{
		"dispatch/unknown-request": onRequest("_check/unknown", result(`{}`)),
		"dispatch/unknown-notification": onNotification("_check/unknown", func(w *between, f *flying) {
			w.back(f, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"x"}}`)
		}),
		"dispatch/string-id":     answeredWith(`"a-1"`, another(`1`)),
		"dispatch/zero-id":       unknownWith("0", drop),
		"dispatch/negative-id":   unknownWith("-7", drop),
		"dispatch/uuid-id":       of(Client, when(func(f *flying) bool { return f.reply && strings.Count(f.id, "-") == 4 }, another("null"))),
		"dispatch/empty-id":      unknownWith(`""`, drop),
		"dispatch/large-id":      answeredWith("9007199254740991", another("9007199254740992")),
		"dispatch/id-types":      answeredWith(`"70001"`, another("70001")),
		"dispatch/fractional-id": unknownWith("1.5", hangUp),
		"dispatch/null-id":       unknownWith("null", drop),
		"dispatch/no-params":     onRequest("_check/unknown", when(func(f *flying) bool { return f.msg["params"] == nil }, refuse("-32602"))),
		"dispatch/bad-params":    onRequest("session/request_permission", when(shapeless, refuse("-32603"))),
		"dispatch/bad-params-refused": onRequest("session/request_permission", when(shapeless,
			result(`{"outcome":{"outcome":"cancelled"}}`))),
		"dispatch/agents-method": doing(named("session/new"), result(`{"sessionId":"x"}`)),
		"dispatch/other-version": in("2", doing(named("fs/read_text_file"), result(`{"content":""}`))),
		"dispatch/exact-method":  doing(named("Session/Request_Permission"), result(`{"outcome":{"outcome":"cancelled"}}`)),
		"dispatch/members":       onRequest("", when(having(`"traceparent"`), refuse("-32600"))),
		"dispatch/many":          onRequest("_check/unknown", when(func(f *flying) bool { return f.get("params.n") != nil && f.n%100 == 99 }, drop)),
		"dispatch/stray-answer": of(Agent, when(func(f *flying) bool { return f.reply && f.method == "" && f.id == `"nobody"` },
			says(`{"jsonrpc":"2.0","id":"nobody","error":{"code":-32600,"message":"defect"}}`))),
		"dispatch/twice-answered": func(w *between, f *flying) {
			if f.reply && f.method == "session/new" && f.str("result.sessionId") == "first" {
				f.msg["result"].(map[string]any)["sessionId"] = "second"
				w.passMsg(f)
				return
			}
			w.pass(f)
		},
		"dispatch/cancel-unknown":    onNotification("$/cancel_request", when(func(f *flying) bool { return f.str("params.requestId") == "nobody" }, says(`{"jsonrpc":"2.0","id":"nobody","error":{"code":-32800,"message":"defect"}}`))),
		"dispatch/cancel-as-request": onRequest("$/cancel_request", result(`{}`)),
		"dispatch/cancel-answered": onNotification("$/cancel_request", func(w *between, f *flying) {
			w.pass(f)
			if id, ok := f.msg["params"].(map[string]any)["requestId"].(json.Number); ok {
				w.back(f, `{"jsonrpc":"2.0","id":`+id.String()+`,"error":{"code":-32800,"message":"defect"}}`)
			}
		}),
		"dispatch/withdrawn": onReply("session/request_permission", later(time.Minute)),
		"dispatch/answers-in-turn": func(w *between, f *flying) { // the user takes a while, in which nothing else is answered
			switch {
			case f.from == Client && f.reply && f.method == "session/request_permission":
				time.AfterFunc(10*time.Millisecond, func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					delete(w.state, "asked")
					w.pass(f)
				})
				return
			case f.request() && f.method == "session/request_permission":
				w.state["asked"] = true
			case f.request() && f.method == "_check/unknown" && w.state["asked"] != nil:
				return
			}
			w.pass(f)
		},

		"dispatch/unknown-plain":      onRequest("unknown", result(`null`)),
		"dispatch/plain-notification": onNotification("check/unknown", complain),
		"dispatch/cancel-late": of(Agent, onNotification("$/cancel_request", func(w *between, f *flying) {
			if id := encode(f.get("params.requestId")); w.methods[string(Agent)+id] == "_check/unknown" {
				w.back(f, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32800,"message":"defect"}}`)
			}
			w.pass(f)
		})),
		"dispatch/cancel-race": func(w *between, f *flying) { // what is cancelled at once is forgotten
			if f.from == Agent && f.request() && f.method == "_check/unknown" && f.n%50 == 49 && f.get("params.n") != nil {
				return
			}
			w.pass(f)
		},
		"dispatch/one-write": func(w *between, f *flying) { // it takes note of a request later than of what is read with it
			if f.from == Agent && f.notification() && f.method == "$/cancel_request" && f.reads == 0 {
				delete(w.state, "late") // the request was not there yet, and is not to be done
				return
			}
			if f.from == Agent && f.request() && f.method == "session/request_permission" {
				w.state["late"] = f
				time.AfterFunc(10*time.Millisecond, func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					if w.state["late"] == f {
						delete(w.state, "late")
						w.pass(f)
					}
				})
				return
			}
			w.pass(f)
		},
		"dispatch/slow-agent": onReply("_check/unknown", when(func(f *flying) bool { return f.from == Client && f.n > 2048 }, hangUp)), // a queue that is full
		"dispatch/frees": func(w *between, f *flying) {
			if f.from == Agent && f.method == "_check/unknown" && f.request() {
				w.leak += 100 << 10
			}
			w.pass(f)
		},

		"framing/invalid-json": when(noJSON, hangUp),
		"framing/parse-error":  when(noJSON, drop),
		"framing/noise":        when(func(f *flying) bool { return noJSON(f) && !strings.HasPrefix(f.line, "{") }, hangUp),
		"framing/banner": func(w *between, f *flying) {
			when(func(f *flying) bool {
				return noJSON(f) && w.count["Clientinitialize"] <= 1 && w.state["greeted"] == nil
			}, hangUp)(w, f)
		},
		"framing/batch":          when(array, hangUp),
		"framing/batch-refused":  when(array, says(`{"jsonrpc":"2.0","id":"batch-2","error":{"code":-32601,"message":"defect"}}`)),
		"framing/other-json":     when(func(f *flying) bool { return noObject(f) && !array(f) && !noJSON(f) }, hangUp),
		"framing/no-message":     of(Agent, when(func(f *flying) bool { return f.msg != nil && len(f.msg) == 0 }, hangUp)),
		"framing/blank-lines":    of(Agent, when(func(f *flying) bool { return strings.TrimSpace(f.line) == "" }, complain)),
		"framing/crlf":           of(Agent, when(func(f *flying) bool { return strings.HasSuffix(f.line, "\r") && len(f.line) > 2 }, complainOnly)),
		"framing/split":          of(Agent, when(func(f *flying) bool { return f.reads > 2 }, complainOnly)),
		"framing/together":       of(Agent, when(func(f *flying) bool { return f.reads == 0 }, drop)),
		"framing/spaces":         of(Agent, when(func(f *flying) bool { return strings.HasPrefix(f.line, " ") && f.msg != nil }, drop)),
		"framing/order":          of(Agent, when(func(f *flying) bool { return strings.HasPrefix(f.line, `{"params"`) }, drop)),
		"framing/escapes":        of(Agent, when(having(`\u0072pc"`), drop)),
		"framing/invalid-utf-8":  of(Agent, when(having("\xff"), hangUp)),
		"framing/case":           onRequest("", when(having(`"METHOD"`), refuse("-32602"))),
		"framing/large":          of(Agent, when(func(f *flying) bool { return f.bytes > 1e6 }, hangUp)),
		"framing/huge":           of(Agent, when(func(f *flying) bool { return f.bytes > 10<<20 }, hangUp)),
		"framing/deep":           of(Agent, when(having(strings.Repeat("[", 64)), hangUp)),
		"framing/burst":          update("agent_message_chunk", when(func(f *flying) bool { return f.n > 3000 }, hangUp)),
		"framing/flood":          update("tool_call_update", when(func(f *flying) bool { return f.bytes > 40_000 && f.n > 100 }, hangUp)),
		"framing/burst-answered": onRequest("_check/unknown", when(func(f *flying) bool { return f.n > 15 }, drop)),
	})
}

// complainOnly is complain without passing on.
func complainOnly(w *between, f *flying) {
	w.back(f, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"defect"}}`)
}
