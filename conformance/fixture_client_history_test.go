package conformance

import (
	"strings"
	"time"
)

// reopened limits a defect to the answers that open a session again.
func reopened(d defect) defect {
	return func(w *between, f *flying) {
		if f.from == Agent && f.reply && (f.method == "session/load" || f.method == "session/resume") {
			d(w, f)
			return
		}
		w.pass(f)
	}
}

// whileReopened limits a defect to what the agent sends between a request that opens a
// session again and the next prompt.
func whileReopened(d defect) defect {
	return func(w *between, f *flying) {
		switch {
		case f.from == Client && f.request() && (f.method == "session/load" || f.method == "session/resume"):
			w.state["reopening"] = true
		case f.from == Client && f.method == "session/prompt":
			delete(w.state, "reopening")
		case f.from == Agent && w.state["reopening"] != nil:
			d(w, f)
			return
		}
		w.pass(f)
	}
}

// answeredBefore limits a defect to what comes behind the answer to one of methods.
func answeredBefore(d defect, methods ...string) defect {
	return func(w *between, f *flying) {
		if f.from == Agent && w.state["answered before"] != nil {
			d(w, f)
			return
		}
		if f.reply && named(methods...)(f.method) {
			w.state["answered before"] = true
		}
		w.pass(f)
	}
}

// emptyList tells updates with an empty list at a path.
func emptyList(path string) func(f *flying) bool {
	return func(f *flying) bool {
		list, ok := f.get("params.update." + path).([]any)
		return ok && len(list) == 0
	}
}

// anyWay takes one defect for what is about session/load, and another one otherwise.
func anyWay(load, other defect) defect {
	return func(w *between, f *flying) {
		if f.method == "session/load" {
			load(w, f)
			return
		}
		other(w, f)
	}
}

// promptOld is a prompt to the session that the agent has said is not there.
const promptOld = `{"jsonrpc":"2.0","id":"defect","method":"session/prompt","params":{"sessionId":"check-old","prompt":[{"type":"text","text":"x"}]}}`

var listed = func(test func(f *flying) bool, d defect) defect {
	return of(Agent, onReply("session/list", when(test, d)))
}

func init() {
	defects(Client, map[string]defect{
		"history/replay": whileReopened(update("", when(having("Which files"), hangUp))),
		"history/long":   whileReopened(update("agent_message_chunk", when(func(f *flying) bool { return f.n > 2000 }, hangUp))), // a queue that is full
		"history/empty": reopened(when(func(f *flying) bool {
			return f.get("result") != nil && f.get("error") == nil && (having(`"modes"`)(f) || having(`"configOptions"`)(f))
		}, hangUp)),
		"history/resume":  in("1", onRequest("session/resume", set("params.sessionId", `"check-older"`))),
		"history/late":    answeredBefore(update("", when(having("Late?"), hangUp)), "session/load", "session/resume"),
		"history/unknown": whileReopened(update("_check_unknown", complain)),
		"history/at-work": whileReopened(update("state_update", when(func(f *flying) bool { return f.str("params.update.state") == "running" }, hangUp))),
		"history/asked":   whileReopened(of(Agent, onRequest("_check/unknown", drop))),
		"history/slow":    anyWay(impatient("session/load", 2*time.Second), impatient("session/resume", 2*time.Second)),
		"history/lost":    reopened(when(func(f *flying) bool { return hasErrorCode(f, "-32002") }, says(promptOld))),
		"history/refused": reopened(when(func(f *flying) bool { return hasErrorCode(f, "400") }, says(promptOld))),
		"history/null-answer": reopened(when(func(f *flying) bool { return f.kind("result") == "null" }, func(w *between, f *flying) { // taken for no result
			w.on(f, `{"jsonrpc":"2.0","id":`+f.id+`,"error":{"code":-32603,"message":"no result"}}`)
		})),
		"history/list": listed(func(f *flying) bool { return strings.Contains(f.line, `"yesterday"`) }, hangUp),
		"history/list-null": listed(isNull("result.nextCursor"),
			says(`{"jsonrpc":"2.0","id":"defect","method":"session/list","params":{"cursor":null}}`)),
		"history/list-pages":   of(Client, onRequest("session/list", when(func(f *flying) bool { return f.str("params.cursor") != "" }, set("params.cursor", `"p 2/☂"`)))),
		"history/list-refused": stuck(func(f *flying) bool { return f.reply && f.method == "session/list" && f.get("error") != nil }),

		"command/first": func(w *between, f *flying) { // it has no session to put them to
			if w.count["clientsession/prompt"] == 0 {
				update("available_commands_update", hangUp)(w, f)
				return
			}
			w.pass(f)
		},
		"command/input":         items("availableCommands", func(m map[string]any) bool { return m["name"] == "dim" }, hangUp),
		"command/emptied":       update("available_commands_update", when(emptyList("availableCommands"), hangUp)),
		"command/odd":           items("availableCommands", func(m map[string]any) bool { return m["name"] == "" }, complain),
		"command/between":       stuck(having("comes between turns")),
		"command/other-session": update("available_commands_update", when(equal("params.sessionId", "_check_other"), hangUp)),

		"option/unasked":      update("config_option_update", says(`{"jsonrpc":"2.0","id":"defect","method":"session/set_config_option","params":{"sessionId":"$session","configId":"model","value":"a"}}`)),
		"option/mode-unasked": update("current_mode_update", says(`{"jsonrpc":"2.0","id":"defect","method":"session/set_mode","params":{"sessionId":"$session","modeId":"ask"}}`)),
		"option/removed":      update("config_option_update", when(having("_check_effort"), hangUp)),
		"option/groups":       update("config_option_update", when(having(`"name":"G"`), hangUp)),
		"option/unfit":        update("config_option_update", when(having(`"gone"`), hangUp)),
		"option/between":      stuck(having(`"Later"`)),
	})
}
