package conformance

// withoutText limits a defect to requests of a method without a member at a path, or
// with one that is no text.
func withoutText(method, path string, d defect) defect {
	return of(Client, onRequest(method, when(func(f *flying) bool { return f.str(path) == "" }, d)))
}

func init() {
	defects(Agent, map[string]defect{
		"error/new-params":      withoutText("session/new", "params.cwd", refuse("-32603")),
		"error/new-without-cwd": withoutText("session/new", "params.cwd", set("params.cwd", `"/"`)),
		"error/prompt-params":   withoutText("session/prompt", "params.sessionId", refuse("-32603")),
		"error/prompt-refused": of(Client, onRequest("session/prompt", when(func(f *flying) bool { return f.get("params.prompt") == nil },
			set("params.prompt", `[{"type":"text","text":"hello"}]`)))),
		"error/load-params":   withoutText("session/load", "params.sessionId", refuse("-32002")),
		"error/resume-params": withoutText("session/resume", "params.sessionId", refuse("400")),
		"error/list-params": of(Client, onRequest("session/list", when(func(f *flying) bool { _, ok := f.get("params.cursor").(map[string]any); return ok },
			unset("params.cursor")))),
		"error/close-params":  withoutText("session/close", "params.sessionId", result(`{}`)),
		"error/delete-params": withoutText("session/delete", "params.sessionId", result(`{}`)),
		"error/option-params": withoutText("session/set_config_option", "params.configId", refuse("-32603")),
		"error/login-params": of(Client, func(w *between, f *flying) {
			if f.request() && (f.method == "authenticate" || f.method == "auth/login") && f.str("params.methodId") == "" {
				refuse("-32000")(w, f)
				return
			}
			w.pass(f)
		}),
		"error/method-named": onRequest("_check/unknown", refuse("-32601")),
		"error/no-echo": of(Client, func(w *between, f *flying) {
			if f.request() && f.method == "_check/unknown" && f.get("params.key") != nil {
				w.back(f, `{"jsonrpc":"2.0","id":`+f.id+`,"error":{"code":-32601,"message":"Method not found","data":`+encode(encode(f.msg))+`}}`)
				return
			}
			w.pass(f)
		}),
		"error/after-failure": of(Client, func(w *between, f *flying) {
			if f.request() && f.method == "session/prompt" && prompted(f) == "!fail" {
				return
			}
			w.pass(f)
		}),
		"error/failure-code": of(Agent, onReply("session/prompt", when(func(f *flying) bool { return encode(f.get("error.code")) == "-32603" },
			set("error.code", "-32600")))),
	})
}

// prompted returns the text of the first block of a prompt.
func prompted(f *flying) string {
	blocks, _ := f.get("params.prompt").([]any)
	if len(blocks) == 0 {
		return ""
	}
	block, _ := blocks[0].(map[string]any)
	text, _ := block["text"].(string)
	return text
}
