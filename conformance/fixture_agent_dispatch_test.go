package conformance

func init() {
	defects(Agent, map[string]defect{
		"dispatch/many-at-once": of(Client, func(w *between, f *flying) { // a queue that loses what it has no room for
			if f.method == "_check/unknown" && f.n > 300 {
				return
			}
			w.pass(f)
		}),
		"dispatch/client-method":       onRequest("fs/read_text_file", refuse("-32602")),
		"dispatch/unknown-plain":       onRequest("unknown", result(`null`)),
		"dispatch/method-case":         onRequest("Session/New", set("method", `"session/new"`)),
		"dispatch/protocol-unknown":    onNotification("$/unknown", hangUp),
		"dispatch/protocol-request":    onRequest("$/unknown", drop),
		"dispatch/no-params":           withID(`"np-1"`, refuse("-32602")),
		"dispatch/null-params":         withID(`"np-2"`, refuse("-32600")),
		"dispatch/list-without-params": withID(`"np-3"`, refuse("-32602")),
		"dispatch/array-params":        withID(`"ap-1"`, set("params", `{"cwd":"/","mcpServers":[]}`)), // by position
		"dispatch/text-params":         withID(`"tp-1"`, hangUp),
		"dispatch/request-as-notification": of(Client, onNotification("session/prompt", func(w *between, f *flying) {
			w.back(f, `{"jsonrpc":"2.0","id":null,"error":{"code":-32002,"message":"Resource not found"}}`)
		})),
		"dispatch/notification-as-request": onRequest("session/cancel", drop),
		"dispatch/malformed-notification": of(Client, onNotification("session/cancel", when(func(f *flying) bool { return f.str("params.sessionId") == "" },
			reply(`{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"Invalid params"}}`)))),
		"dispatch/extension-notification": of(Client, onNotification("_check/unknown", when(func(f *flying) bool { return f.str("params.sessionId") != "" }, hangUp))),
		"dispatch/slow-client":            of(Agent, onReply("_check/unknown", when(func(f *flying) bool { return f.n > 2048 }, hangUp))), // a queue that is full
		"dispatch/cancel-race":            of(Client, onRequest("_check/unknown", when(func(f *flying) bool { return f.n%50 == 49 && f.get("params.n") != nil }, drop))),
		"dispatch/frees": onRequest("_check/unknown", func(w *between, f *flying) {
			w.leak += 100 << 10
			w.pass(f)
		}),
	})
}
