package conformance

// strictly refuses requests of a method for which a test holds, as an agent does
// that lets nothing pass that it does not know.
func strictly(method string, test func(f *flying) bool) defect {
	return of(Client, onRequest(method, when(test, refuse("-32602"))))
}

// present tells whether something that is not null is at a path.
func present(path string) func(f *flying) bool {
	return func(f *flying) bool { return f.get(path) != nil }
}

// block returns a member of the first block of a prompt, as JSON, "" if it has none.
func (f *flying) block(key string) string {
	blocks, _ := f.get("params.prompt").([]any)
	if len(blocks) == 0 {
		return ""
	}
	block, _ := blocks[0].(map[string]any)
	if v, ok := block[key]; ok {
		return encode(v)
	}
	return ""
}

// blockOf limits a defect to prompts whose first block has a type, as JSON.
func blockOf(kind string, d defect) defect {
	return of(Client, onRequest("session/prompt", when(func(f *flying) bool { return f.block("type") == kind }, d)))
}

func init() {
	defects(Agent, map[string]defect{
		"leniency/new-members":         strictly("session/new", present("params._unknown")),
		"leniency/new-meta":            strictly("session/new", present("params._meta._x")),
		"leniency/malformed-meta":      strictly("session/new", func(f *flying) bool { return f.kind("params._meta") == "number" }),
		"leniency/null-lists":          strictly("session/new", func(f *flying) bool { return f.kind("params.mcpServers") == "null" }),
		"leniency/null-list-members":   strictly("session/list", func(f *flying) bool { return f.kind("params.cursor") == "null" }),
		"leniency/list-members":        strictly("session/list", present("params._unknown")),
		"leniency/prompt-members":      strictly("session/prompt", func(f *flying) bool { return f.block("_later") != "" }),
		"leniency/annotations":         strictly("session/prompt", func(f *flying) bool { return f.block("annotations") == "5" }),
		"leniency/unknown-role":        strictly("session/prompt", func(f *flying) bool { return len(f.block("annotations")) > 10 }),
		"leniency/unknown-block":       blockOf(`"check_unknown"`, refuse("-32603")),
		"leniency/unknown-block-lives": blockOf(`"_check_unknown"`, hangUp),
		"leniency/known-block":         blockOf(`"resource_link"`, set("params.prompt", `[{"type":"text","text":"hello"}]`)),
		"leniency/typeless-block":      blockOf("", set("params.prompt", `[{"type":"text","text":"hello"}]`)),
		"leniency/typeless-server": of(Client, onRequest("session/new", when(func(f *flying) bool {
			servers, _ := f.get("params.mcpServers").([]any)
			return len(servers) > 0
		}, set("params.mcpServers", "[]")))),
		"leniency/replay-from": of(Client, onRequest("session/resume", when(func(f *flying) bool { return f.str("params.replayFrom.type") == "_check_unknown" },
			unset("params.replayFrom")))),
		"leniency/unknown-outcome": of(Client, when(func(f *flying) bool { return f.reply && f.str("result.outcome.outcome") == "_check_unknown" },
			func(w *between, f *flying) {
				set("result.outcome", `{"outcome":"selected","optionId":"allow_once"}`)(w, f)
			})),
		"leniency/null-outcome":    of(Client, when(func(f *flying) bool { return f.reply && f.kind("result.outcome") == "null" }, hangUp)),
		"leniency/outcome-members": of(Client, when(func(f *flying) bool { return f.reply && f.get("result._y") != nil }, drop)),
		"leniency/cancel-members":  of(Client, onNotification("session/cancel", when(func(f *flying) bool { return f.get("params.reason") != nil }, drop))),
		"leniency/exact-members":   strictly("session/new", present("params.MCPServers")),
		"leniency/empty-answer":    of(Client, when(func(f *flying) bool { return f.reply && f.get("result") == nil && f.get("error") == nil }, hangUp)),
		"leniency/two-outcomes":    of(Client, when(func(f *flying) bool { return f.reply && f.get("result") != nil && f.get("error") != nil }, unset("error"))),
	})
}
