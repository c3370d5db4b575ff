package conformance

import "strings"

// lacking is a peer that does not offer a capability, in the words of version 2,
// with a defect d.
func lacking(path string, d defect) defect {
	return func(w *between, f *flying) {
		if !f.reply || f.method != "initialize" {
			d(w, f)
			return
		}
		where := "result.capabilities." + path
		if encode(f.get("result.protocolVersion")) == "1" {
			where = "result.agentCapabilities." + inVersion1(path)
		}
		if path == "authMethods" {
			where = "result.authMethods"
		}
		unset(where)(w, f)
	}
}

// about limits a defect to messages in which a text is.
func about(text string, d defect) defect {
	return when(func(f *flying) bool { return strings.Contains(f.line, text) }, d)
}

// from limits a defect to the nth message and later ones, of its kind.
func from(n int, d defect) defect {
	return when(func(f *flying) bool { return f.n >= n }, d)
}

// after limits a defect to what passes after a message of the client.
func after(method string, d defect) defect {
	return func(w *between, f *flying) {
		if f.from == Client && !f.reply && f.method == method {
			w.state["after "+method] = true
			w.pass(f)
			return
		}
		if w.state["after "+method] != nil {
			d(w, f)
			return
		}
		w.pass(f)
	}
}

// during limits a defect to what the agent sends before it answers a request.
func during(method string, d defect) defect {
	return func(w *between, f *flying) {
		if f.method == method {
			w.state["during "+method] = f.request()
		}
		if w.state["during "+method] == true && f.from == Agent {
			d(w, f)
			return
		}
		w.pass(f)
	}
}

// retold is a defect by which an answer comes before the updates that belong
// ahead of it: updates between the request and the answer wait.
func retold(method string) defect {
	return func(w *between, f *flying) {
		held, _ := w.state["held"].([]string)
		switch {
		case f.request() && f.method == method:
			w.state["held"] = []string{}
		case held != nil && f.from == Agent && f.method == "session/update":
			w.state["held"] = append(held, f.line)
			return
		case held != nil && f.reply && f.method == method:
			w.pass(f)
			for _, line := range held {
				w.on(f, line)
			}
			w.state["held"] = nil
			return
		}
		w.pass(f)
	}
}

var noSession = "no-such-session"

func init() {
	defects(Agent, map[string]defect{
		"session/new":                    onReply("session/new", set("result.sessionId", `""`)),
		"session/relative-cwd":           onRequest("session/new", when(func(f *flying) bool { return f.str("params.cwd") == "some/where" }, result(`{"sessionId":"x"}`))),
		"session/without-servers":        onRequest("session/new", when(func(f *flying) bool { return f.get("params.mcpServers") == nil }, refuse("-32602"))),
		"session/additional-directories": onRequest("session/new", about(`"additionalDirectories"`, refuse("-32602"))),
		"session/relative-directory":     onRequest("session/new", about(`some/where`, result(`{"sessionId":"x"}`))),
		"session/at-once": func(w *between, f *flying) { // takes one request at a time
			open, _ := w.state["open"].(int)
			switch {
			case f.method != "session/new":
			case f.request() && open > 0:
				return
			case f.request():
				w.state["open"] = open + 1
			case f.reply:
				w.state["open"] = open - 1
			}
			w.pass(f)
		},
		"session/many": onRequest("session/new", from(15, refuse("-32603"))),
		"session/apart": func(w *between, f *flying) { // every session hears everything
			all, _ := w.state["all"].([]string)
			if f.reply && f.method == "session/new" {
				w.state["all"] = append(all, f.str("result.sessionId"))
			}
			w.pass(f)
			if f.from == Agent && f.str("params.update.sessionUpdate") == "agent_message_chunk" {
				for _, id := range all {
					if mine := f.str("params.sessionId"); id != mine {
						w.on(f, strings.Replace(f.line, encode(mine), encode(id), 1))
					}
				}
			}
		},
		"session/close":  onRequest("session/close", refuse("-32603")),
		"session/closed": after("session/close", onRequest("session/prompt", result(`{"stopReason":"end_turn","messageId":"m"}`))),
		"session/close-running": after("session/close", func(w *between, f *flying) {
			if f.reply && f.method == "session/prompt" || f.str("params.update.state") == "idle" {
				return
			}
			w.pass(f)
		}),
		"session/close-unknown": onRequest("session/close", about(noSession, refuse("-32603"))),
		"session/close-other":   after("session/close", onRequest("session/prompt", refuse("-32002"))),
		"session/close-frees":   onRequest("session/close", result(`{}`)),
		"session/delete":        onRequest("session/delete", result(`{}`)),
		"session/delete-listed": func(w *between, f *flying) { // nothing is gone, as it seems
			if f.request() && f.method == "session/delete" {
				w.state["gone"] = f.str("params.sessionId")
			}
			if id, _ := w.state["gone"].(string); id != "" && f.reply && f.method == "session/list" {
				list, _ := f.get("result.sessions").([]any)
				f.msg = put(f.msg, []string{"result", "sessions"}, append(list, map[string]any{"sessionId": id, "cwd": "/"})).(map[string]any)
				w.passMsg(f)
				return
			}
			w.pass(f)
		},
		"session/delete-unknown":     onRequest("session/delete", about(noSession, refuse("-32603"))),
		"session/load-not-offered":   lacking("session.load", onRequest("session/load", result(`{}`))),
		"session/resume-not-offered": lacking("session.resume", onRequest("session/resume", result(`{}`))),
		"session/list-not-offered":   lacking("session.list", onRequest("session/list", result(`{"sessions":[]}`))),
		"session/close-not-offered":  lacking("session.close", onRequest("session/close", result(`{}`))),
		"session/delete-not-offered": lacking("session.delete", onRequest("session/delete", result(`{}`))),
		"session/fork-not-offered":   lacking("session.fork", onRequest("session/fork", result(`{"sessionId":"x"}`))),

		"history/load":             retold("session/load"),
		"history/load-after-close": after("session/close", onRequest("session/load", refuse("-32002"))),
		"history/load-restarted":   lacking("session.close", retold("session/load")),
		"history/behind": func(w *between, f *flying) { // it says it once more
			if f.request() && (f.method == "session/load" || f.method == "session/resume") {
				w.state["again"] = encode(f.get("params.sessionId"))
			}
			w.pass(f)
			if f.reply && (f.method == "session/load" || f.method == "session/resume") {
				w.on(f, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":`+w.state["again"].(string)+
					`,"update":{"sessionUpdate":"user_message_chunk","messageId":"old","content":{"type":"text","text":"again"}}}}`)
			}
		},
		"history/replay-ids":     during("session/resume", update("user_message", set("params.update.messageId", `"another"`))),
		"history/directories":    onRequest("session/resume", about(`"additionalDirectories"`, refuse("-32602"))),
		"history/load-unknown":   onRequest("session/load", about(noSession, result(`{}`))),
		"history/replay":         retold("session/resume"),
		"history/replay-unknown": onRequest("session/resume", when(func(f *flying) bool { return f.get("params.replayFrom") != nil }, set("params.replayFrom", `{"type":"start"}`))),
		"history/state":          after("session/resume", update("state_update", drop)),
		"history/no-replay": func(w *between, f *flying) {
			if f.reply && f.method == "session/resume" {
				w.on(f, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":`+encode(w.state["resumed"])+
					`,"update":{"sessionUpdate":"user_message_chunk","messageId":"old","content":{"type":"text","text":"again"}}}}`)
			}
			if f.request() && f.method == "session/resume" {
				w.state["resumed"] = f.get("params.sessionId")
			}
			w.pass(f)
		},
		"history/unknown":     onRequest("session/resume", about(noSession, result(`{}`))),
		"history/goes-on":     after("session/resume", onRequest("session/prompt", refuse("-32002"))),
		"history/after-close": after("session/close", onRequest("session/resume", refuse("-32002"))),
		"history/restart": func(w *between, f *flying) { // what another process has saved is not found
			switch {
			case f.reply && f.method == "session/new":
				w.state["made "+f.str("result.sessionId")] = true
			case f.request() && (f.method == "session/load" || f.method == "session/resume"):
				if id := f.str("params.sessionId"); w.state["made "+id] == nil {
					refuse("-32002")(w, f)
					return
				}
			}
			w.pass(f)
		},
		"history/listed":         onReply("session/list", set("result.sessions", `[]`)),
		"history/list":           onReply("session/list", set("result.nextCursor", `"0"`)),
		"history/list-directory": onRequest("session/list", unset("params.cwd")),
		"history/list-cursor":    onRequest("session/list", about("_check no cursor", unset("params.cursor"))),

		"draft/fork": onRequest("session/fork", func(w *between, f *flying) { // the session itself
			result(`{"sessionId":`+encode(f.get("params.sessionId"))+`}`)(w, f)
		}),
		"draft/fork-unknown":          onRequest("session/fork", about(noSession, result(`{"sessionId":"x"}`))),
		"draft/archive":               onRequest("session/archive", result(`{}`)),
		"draft/unarchive":             onRequest("session/unarchive", result(`{}`)),
		"draft/archive-filter":        onRequest("session/list", about("_check_some", unset("params.archived"))),
		"draft/title":                 onReply("session/set_title", set("result.title", `"Something else"`)),
		"draft/title-empty":           onRequest("session/set_title", about(`"  "`, result(`{"title":""}`))),
		"draft/status":                onReply("session/status", set("result.status", `"saved"`)),
		"draft/status-unknown":        onRequest("session/status", about(noSession, result(`{"status":"saved"}`))),
		"draft/system-prompt":         onRequest("session/new", about(`"append"`, refuse("-32602"))),
		"draft/system-prompt-mode":    onRequest("session/new", about("_check_mode", unset("params.systemPrompt"))),
		"draft/system-prompt-content": onRequest("session/new", about(`"image"`, unset("params.systemPrompt"))),
		"draft/providers":             onReply("providers/list", unset("result.providers")),
		"draft/provider-unknown":      onRequest("providers/set", about("no-such-provider", result(`{}`))),
		"draft/auth-status":           onRequest("auth/status", refuse("-32000")),
	})
}
