package conformance

func init() {
	defects(Agent, map[string]defect{
		"dispatch/unknown-request": onRequest("_check/unknown", result(`{}`)),
		"dispatch/unknown-notification": onNotification("_check/unknown", func(w *between, f *flying) {
			w.back(f, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"x"}}`)
		}),
		"dispatch/concurrent": func(w *between, f *flying) { // nothing is read while a turn runs
			running, _ := w.state["running"].(bool)
			switch {
			case f.request() && f.method == "session/prompt":
				w.state["running"] = true
			case f.reply && f.method == "session/prompt":
				w.state["running"] = false
			case f.request() && f.from == Client && running:
				return
			}
			w.pass(f)
		},

		"envelope/parse-error": func(w *between, f *flying) {
			if f.from == Client && f.msg == nil {
				return
			}
			w.pass(f)
		},
		"envelope/string-id":      of(Agent, when(func(f *flying) bool { return f.id == `"a-1"` }, set("id", `1`))),
		"envelope/stray-response": when(func(f *flying) bool { return f.id == `"nobody"` }, refuse("-32600")),

		"initialize/version":       onReply("initialize", set("result.protocolVersion", `"1"`)),
		"initialize/later-version": onRequest("initialize", when(func(f *flying) bool { return encode(f.get("params.protocolVersion")) == "999" }, refuse("-32602"))),
		"initialize/first": func(w *between, f *flying) {
			if f.request() && f.method == "session/new" && w.count["agentinitialize reply"] == 0 {
				result(`{"sessionId":"s"}`)(w, f)
				return
			}
			w.pass(f)
		},

		"prompt/ends": func(w *between, f *flying) {
			onReply("session/prompt", set("result.stopReason", `"done"`))(w, f)
		},
		"prompt/cancel": onNotification("session/cancel", drop),
		"prompt/updates-first": func(w *between, f *flying) {
			if f.request() && f.method == "session/prompt" {
				w.state["prompted"] = f.get("params.sessionId")
			}
			w.pass(f)
			if f.reply && f.method == "session/prompt" {
				w.on(f, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":`+encode(w.state["prompted"])+
					`,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"late"}}}}`)
			}
		},
		"prompt/unknown-session": onRequest("session/prompt", when(func(f *flying) bool { return f.str("params.sessionId") == "no-such-session" }, result(`{"stopReason":"end_turn","messageId":"m"}`))),
	})
}
