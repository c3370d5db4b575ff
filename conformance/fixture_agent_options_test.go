package conformance

import "strings"

// refusesInitial is an agent that refuses a new session whose settings get what a text is in.
func refusesInitial(text string) defect {
	return onRequest("session/new", about(text, refuse("-32602")))
}

// takesInitial is an agent that gives the first choice of a new session whatever value is asked for.
func takesInitial(text string) defect {
	return func(w *between, f *flying) {
		if f.request() && f.method == "session/new" {
			w.state["initial"] = strings.Contains(f.line, text)
		}
		if f.reply && f.method == "session/new" && w.state["initial"] == true {
			f.line = strings.Replace(f.line, `"currentValue":"fast"`, `"currentValue":"other"`, 1)
		}
		w.on(f, f.line)
	}
}

func init() {
	defects(Agent, map[string]defect{
		"steering/prompt-required": onRequest(steering, result(`{"outcome":"startedNewTurn"}`)),
		"steering/behavior":        onRequest(steering, about("_check_behavior", result(`{"outcome":"failed"}`))),
		"steering/unknown":         onRequest(steering, about(noSession, result(`{"outcome":"failed"}`))),
		"options/tells":            onReply("session/options", set("result.configOptions", `"none"`)),
		"options/same":             onReply("session/options", func(w *between, f *flying) { w.on(f, strings.ReplaceAll(f.line, `"model"`, `"other"`)) }),
		"options/silent":           onReply("session/options", behind(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-1","update":{"sessionUpdate":"session_info_update","title":"x"}}}`)),
		"options/creates-nothing":  madeByOptions,
		"options/unknown":          onRequest("session/options", about(noSession, result(`{"configOptions":[]}`))),
		"options/relative":         onRequest("session/options", about(`"here"`, result(`{"configOptions":[]}`))),
		"options/unadvertised":     lacking("session.options", onRequest("session/options", result(`{"configOptions":[]}`))),
		"options/initial":          onRequest("session/new", unset("params.configOptions")),
		"options/initial-unknown":  refusesInitial("check-no-such-option"),
		"options/initial-value":    takesInitial("check-no-such-value"),
		"options/initial-mismatch": refusesInitial(`"boolean"`),
		"options/initial-type":     onRequest("session/new", about("_check_type", unset("params.configOptions"))),
	})
}

// madeByOptions lists a session more from when it was asked what one would begin with.
func madeByOptions(w *between, f *flying) {
	if f.request() && f.method == "session/options" {
		w.state["made"] = true
	}
	if f.reply && f.method == "session/list" && w.state["made"] == true {
		f.line = strings.Replace(f.line, `"sessions":[`, `"sessions":[{"sessionId":"made","cwd":"/made"},`, 1)
		f.line = strings.Replace(f.line, `"/made"},]`, `"/made"}]`, 1)
	}
	w.on(f, f.line)
}
