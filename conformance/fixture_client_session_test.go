package conformance

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// unaskedPrompt is a prompt that nobody has asked for.
const unaskedPrompt = `{"jsonrpc":"2.0","id":"defect","method":"session/prompt","params":{"sessionId":"none","prompt":[{"type":"text","text":"x"}]}}`

// refusedWith limits a defect to errors of a code that answer a method.
func refusedWith(method, code string, d defect) defect {
	return onReply(method, when(func(f *flying) bool { return hasErrorCode(f, code) }, d))
}

func hasErrorCode(f *flying, code string) bool {
	c, _ := f.get("error.code").(json.Number)
	return c.String() == code
}

// impatient has the client hang up when a request is not answered in time.
func impatient(method string, limit time.Duration) defect {
	return func(w *between, f *flying) {
		switch {
		case f.method != method:
		case f.reply:
			w.state["answered"] = true
		case f.from == Client:
			time.AfterFunc(limit, func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.state["answered"] == nil {
					w.cut()
				}
			})
		}
		w.pass(f)
	}
}

// isNumber tells messages that have a number at a path.
func isNumber(path string) func(f *flying) bool {
	return func(f *flying) bool { _, ok := f.get(path).(json.Number); return ok }
}

// welcome answers initialize as an agent of version 2 does that is in order.
var welcome = instead(`{"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":2,"info":{"name":"x","version":"1"},"capabilities":{"session":{}}}}`)

func anyOf(tests ...func(f *flying) bool) func(f *flying) bool {
	return func(f *flying) bool {
		return slices.ContainsFunc(tests, func(test func(f *flying) bool) bool { return test(f) })
	}
}

// reason tells the end of a turn for a reason.
func reason(r string) func(f *flying) bool {
	return func(f *flying) bool {
		return ends(f) && (f.str("result.stopReason") == r || f.str("params.update.stopReason") == r)
	}
}

// promptRefused tells errors of a code that answer a prompt.
func promptRefused(code string) func(f *flying) bool {
	return func(f *flying) bool { return f.reply && f.method == "session/prompt" && hasErrorCode(f, code) }
}

// allowed answers a permission request.
func allowed(option string) defect {
	return result(`{"outcome":{"outcome":"selected","optionId":` + option + `}}`)
}

func hasOption(test func(map[string]any) bool) func(f *flying) bool {
	return func(f *flying) bool { return anyItem(f, "params.options", test) }
}

func offers(id string) func(f *flying) bool {
	return hasOption(func(o map[string]any) bool { return o["optionId"] == id })
}

func permissionWith(test func(f *flying) bool, d defect) defect {
	return onRequest("session/request_permission", when(test, d))
}

func init() {
	defects(Client, map[string]defect{
		"initialize/first":           onRequest("initialize", set("params.protocolVersion", `"2"`)),
		"initialize/waits":           onRequest("initialize", behind(`{"jsonrpc":"2.0","id":"early","method":"session/new","params":{"cwd":"/check","mcpServers":[]}}`)),
		"initialize/unknown-members": onReply("initialize", when(having(`"_unknown"`), hangUp)),
		"initialize/least": onReply("initialize", when(func(f *flying) bool {
			return f.get("result.agentInfo") == nil && f.get("result.info.version") == nil || f.get("result.info.version") == ""
		}, hangUp)),
		"initialize/null-members":       onReply("initialize", when(isNull("result._meta"), hangUp)),
		"initialize/salvage":            onReply("initialize", when(anyOf(isNumber("result.agentCapabilities.promptCapabilities"), isNumber("result.capabilities.session.prompt")), hangUp)),
		"initialize/unknown-login":      onReply("initialize", when(func(f *flying) bool { return anyItem(f, "result.authMethods", typed("agent", "terminal")) }, hangUp)),
		"initialize/later-version":      onReply("initialize", when(having("999"), welcome)),
		"initialize/no-version":         onReply("initialize", when(func(f *flying) bool { return f.get("result.info") != nil && f.get("result.protocolVersion") == nil }, welcome)),
		"initialize/refused":            refusedWith("initialize", "-32603", welcome),
		"initialize/unsupported":        refusedWith("initialize", "-32022", welcome),
		"initialize/slow":               impatient("initialize", 2*time.Second),
		"initialize/early-notification": of(Agent, onNotification("_check/early", hangUp)),
		"initialize/early-request":      of(Agent, onRequest("_check/early", drop)),
		"initialize/earlier-version":    in("1", update("agent_message_chunk", when(having("no messageId"), complain))),

		"session/odd-id": of(Client, onRequest("session/prompt", when(func(f *flying) bool { return strings.Contains(f.str("params.sessionId"), "☂") }, set("params.sessionId", `"../a b/"`)))),
		"session/long-id": of(Client, onRequest("session/prompt", when(func(f *flying) bool { return len(f.str("params.sessionId")) > 255 }, func(w *between, f *flying) {
			set("params.sessionId", `"`+f.str("params.sessionId")[:255]+`"`)(w, f)
		}))),
		"session/least":           onReply("session/new", when(isNull("result._meta"), hangUp)),
		"session/most":            onReply("session/new", when(having(`"Model"`), hangUp)),
		"session/unknown-members": onReply("session/new", when(having(`"_check"`), hangUp)),
		"session/salvage":         onReply("session/new", when(anyOf(isNumber("result.modes"), func(f *flying) bool { return f.str("result.availableCommands") != "" }), hangUp)),
		"session/early-update":    update("session_info_update", when(func(f *flying) bool { return f.str("params.sessionId") == "early" }, hangUp)),
		"session/refused":         refusedWith("session/new", "-32603", says(unaskedPrompt)),
		"session/odd-error":       refusedWith("session/new", "400", says(unaskedPrompt)),
		"session/login":           refusedWith("session/new", "-32000", says(unaskedPrompt)),
		"session/login-retry":     of(Client, onRequest("session/new", when(func(f *flying) bool { return f.n == 1 }, drop))),
		"session/slow":            impatient("session/new", 2*time.Second),
		"session/no-id":           onReply("session/new", when(func(f *flying) bool { return f.get("result") != nil && f.get("result.sessionId") == nil }, says(unaskedPrompt))),

		"session/empty-answer":      onReply("session/new", when(func(f *flying) bool { return f.get("result") == nil && f.get("error") == nil }, says(unaskedPrompt))),
		"session/two-outcomes":      onReply("session/new", when(func(f *flying) bool { return f.get("result") != nil && f.get("error") != nil }, says(unaskedPrompt))),
		"session/second":            of(Client, onRequest("session/prompt", when(func(f *flying) bool { return f.n > 1 && f.str("params.sessionId") == "check-first" }, set("params.sessionId", `"check-1st"`)))),
		"session/second-updates":    update("", when(equal("params.update.title", "Aside"), hangUp)),
		"session/second-permission": of(Agent, onRequest("session/request_permission", when(equal("params.sessionId", "check-first"), drop))),

		"turn/silent": func(w *between, f *flying) {
			switch {
			case f.str("params.update.sessionUpdate") == "agent_message_chunk":
				w.state["spoke"] = true
			case f.from == Client && f.method == "session/prompt":
				delete(w.state, "spoke")
			}
			if w.state["stuck"] == nil && ends(f) && w.state["spoke"] == nil {
				w.state["stuck"] = true
			}
			if w.state["stuck"] == nil {
				w.pass(f)
			}
		},
		"turn/limits":         stuck(reason("max_tokens")),
		"turn/requests":       stuck(reason("max_turn_requests")),
		"turn/refusal":        stuck(reason("refusal")),
		"turn/cancelled":      stuck(reason("cancelled")),
		"turn/unknown-reason": stuck(reason("_check_bored")),
		"turn/failed":         stuck(promptRefused("-32603")),
		"turn/odd-error":      stuck(promptRefused("429")),
		"turn/login":          stuck(promptRefused("-32000")),
		"turn/lost-session":   stuck(promptRefused("-32002")),
		"turn/members":        stuck(func(f *flying) bool { return ends(f) && strings.Contains(f.line, `"_check"`) }),
		"turn/error":          stuck(reason("error")),
		"turn/receipt-late": mayFreeze(in("2", func(w *between, f *flying) {
			switch {
			case f.method == "session/prompt":
				w.state["open"] = !f.reply
			case f.from == Agent && f.str("params.update.state") == "running" && w.state["open"] == true:
				freeze(w, f)
			}
			w.pass(f)
		})),
		"turn/patient": of(Client, onRequest("session/prompt", func(w *between, f *flying) {
			w.pass(f)
			time.AfterFunc(3*time.Second, func() {
				w.on(f, f.expand(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"$session"}}`))
			})
		})),
		"turn/again": stuck(func(f *flying) bool { return f.from == Agent && f.str("params.update.content.text") == "two" }),

		"permission/answered":        onReply("session/request_permission", set("result.outcome", `{"outcome":"selected","optionId":"always"}`)),
		"permission/two":             onReply("session/request_permission", when(func(f *flying) bool { return f.n == 1 }, drop)),
		"permission/other-options":   permissionWith(offers("b-1"), allowed(`"yes"`)),
		"permission/one-option":      permissionWith(offers("only"), allowed(`"allow_once"`)),
		"permission/odd-options":     permissionWith(hasOption(func(o map[string]any) bool { return o["optionId"] == "" }), allowed(`"a b/☂"`)),
		"permission/unknown-kind":    permissionWith(offers("strange"), allowed(`"strange"`)),
		"permission/no-options":      permissionWith(shapeless, allowed(`"allow_once"`)),
		"permission/other-session":   permissionWith(func(f *flying) bool { return f.str("params.sessionId") == "_check_other" }, allowed(`"yes"`)),
		"permission/rich":            permissionWith(having(`"rich"`), refuse("-32602")),
		"permission/exact-members":   permissionWith(having(`"OPTIONS"`), allowed(`"never"`)),
		"permission/many":            permissionWith(func(f *flying) bool { return f.n%32 == 31 }, drop),
		"permission/unknown-subject": permissionWith(having("_check_spaceship"), hangUp),
		"permission/after-the-turn": func(w *between, f *flying) {
			switch {
			case ends(f):
				w.state["over"] = true
			case f.from == Agent && f.method != "session/prompt" && f.request() && w.state["over"] != nil && f.method == "session/request_permission":
				return
			case f.from == Agent && f.method == "session/update":
				delete(w.state, "over")
			}
			w.pass(f)
		},
	})
}
