package conformance

import (
	"encoding/json"
	"strings"
)

// reading limits a defect to fs/read_text_file with params that a test holds for.
func reading(test func(f *flying) bool, d defect) defect {
	return onRequest("fs/read_text_file", when(test, d))
}

func isString(path string) func(f *flying) bool {
	return func(f *flying) bool { _, ok := f.get(path).(string); return ok }
}

func not(test func(f *flying) bool) func(f *flying) bool {
	return func(f *flying) bool { return !test(f) }
}

func equal(path, text string) func(f *flying) bool {
	return func(f *flying) bool { return f.str(path) == text }
}

// content changes what is read from a file.
func content(change func(text string) string) defect {
	return onReply("fs/read_text_file", when(isString("result.content"), func(w *between, f *flying) {
		f.msg = put(f.msg, []string{"result", "content"}, change(f.str("result.content"))).(map[string]any)
		w.passMsg(f)
	}))
}

// more changes a number of a request.
func more(path string, by int64) defect {
	return func(w *between, f *flying) {
		if n, ok := f.get(path).(json.Number); ok {
			v, _ := n.Int64()
			f.msg = put(f.msg, strings.Split(path, "."), v+by).(map[string]any)
		}
		w.passMsg(f)
	}
}

// running limits a defect to terminal/create of a command.
func running(name string, d defect) defect {
	return onRequest("terminal/create", when(equal("params.command", name), d))
}

var unknownTerminal = equal("params.terminalId", "_check_none")

func init() {
	defects(Client, map[string]defect{
		"fs/not-offered":       onRequest("initialize", unset("params.clientCapabilities")),
		"fs/write-not-offered": onRequest("initialize", unset("params.clientCapabilities.fs.writeTextFile")),
		"fs/missing":           reading(equal("params.path", "/check/no/such/file"), result(`{"content":""}`)),
		"fs/directory":         reading(equal("params.path", "/check"), result(`{"content":"there.txt\n"}`)),
		"fs/relative":          reading(func(f *flying) bool { p := f.str("params.path"); return p != "" && p[0] != '/' }, result(`{"content":"one\n"}`)),
		"fs/other-session":     onRequest("fs/read_text_file", when(equal("params.sessionId", "_check_other"), result(`{"content":"one\n"}`))),
		"fs/bad-params":        reading(not(isString("params.path")), result(`{"content":""}`)),
		"fs/written":           content(func(s string) string { return strings.TrimSuffix(s, "\n") }),
		"fs/replaced":          onRequest("fs/write_text_file", when(equal("params.content", "short\n"), set("params.content", `"short\ng text\nwith two lines\n"`))),
		"fs/exact":             content(func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }),
		"fs/empty":             onRequest("fs/write_text_file", when(equal("params.content", ""), refuse("-32602"))),
		"fs/line":              reading(isNumber("params.line"), more("params.line", 1)),
		"fs/limit":             reading(isNumber("params.limit"), more("params.limit", 1)),
		"fs/null-line":         reading(isNull("params.line"), refuse("-32602")),
		"fs/beyond":            reading(having(`"line":1000`), unset("params.line")),
		"fs/large":             content(func(s string) string { return s[:min(len(s), 1<<20)] }),
		"fs/bad-write":         onRequest("fs/write_text_file", when(not(isString("params.content")), set("params.content", `""`))),
		"fs/no-way":            onRequest("fs/write_text_file", when(equal("params.path", "/check"), result(`{}`))),

		"fs/no-path":      reading(func(f *flying) bool { return strings.Contains(f.str("params.path"), "\x00") }, result(`{"content":"one\n"}`)), // cut at the NUL
		"fs/upwards":      reading(having("/../.."), hangUp),
		"fs/far":          reading(having("4294967295"), refuse("-32602")),
		"fs/endless-link": reading(having("acp-check-loop"), drop),
		"fs/outward-link": reading(having("acp-check-out"), hangUp),
		"fs/named-pipe":   reading(having("acp-check-pipe"), drop),

		"terminal/flood":         onReply("terminal/output", when(having(`y\ny\n`), set("result.truncated", `false`))),
		"terminal/many":          onReply("terminal/output", when(having(`mine\n`), set("result.output", `"another\nmine\n"`))),
		"terminal/frees":         onRequest("terminal/release", result(`{}`)),
		"terminal/not-offered":   onRequest("initialize", unset("params.clientCapabilities.terminal")),
		"terminal/output":        onReply("terminal/output", set("result.output", `""`)),
		"terminal/exit-code":     onReply("terminal/wait_for_exit", set("result.exitCode", `0`)),
		"terminal/arguments":     onReply("terminal/output", when(having("$HOME"), set("result.output", `"a b / x q\n"`))),
		"terminal/env":           onRequest("terminal/create", unset("params.env")),
		"terminal/cwd":           running("pwd", refuse("-32602")),
		"terminal/null-members":  onRequest("terminal/create", when(isNull("params.args"), refuse("-32602"))),
		"terminal/running":       running("sleep", drop),
		"terminal/kill":          onRequest("terminal/kill", result(`{}`)),
		"terminal/kill-ended":    killEnded,
		"terminal/released":      onRequest("terminal/release", result(`{}`)),
		"terminal/unknown":       onRequest("terminal/wait_for_exit", when(unknownTerminal, drop)),
		"terminal/no-command":    running("acp-check-no-such-command", drop),
		"terminal/byte-limit":    onRequest("terminal/create", unset("params.outputByteLimit")),
		"terminal/other-session": onRequest("terminal/output", when(equal("params.sessionId", "_check_other"), result(`{"output":"hello\n","truncated":false}`))),
		"terminal/bad-params":    onRequest("terminal/create", when(not(isString("params.command")), result(`{"terminalId":"t0"}`))),

		"elicitation/not-offered": onRequest("initialize", func(w *between, f *flying) {
			f.msg = put(f.msg, []string{"params", "capabilities", "elicitation"}, errAbsent).(map[string]any)
			unset("params.clientCapabilities.elicitation")(w, f)
		}),
		"elicitation/form":             onReply("elicitation/create", set("result.action", `"submit"`)),
		"elicitation/fields":           onRequest("elicitation/create", when(having(`"oneOf"`), refuse("-32602"))),
		"elicitation/unknown-field":    onRequest("elicitation/create", when(having("_check_map"), hangUp)),
		"elicitation/link":             onRequest("elicitation/create", when(equal("params.mode", "url"), refuse("-32602"))),
		"elicitation/odd-link":         onRequest("elicitation/create", when(having("javascript:"), result(`{"action":"accept"}`))),
		"elicitation/unknown-mode":     onRequest("elicitation/create", when(having("_check_telepathy"), result(`{"action":"accept"}`))),
		"elicitation/withdrawn":        onRequest("elicitation/create", when(having("Still?"), drop)),
		"elicitation/complete-unknown": onNotification("elicitation/complete", when(equal("params.elicitationId", "_check_none"), complain)),
	})
}

// killEnded refuses to kill a command that has ended.
func killEnded(w *between, f *flying) {
	switch {
	case f.method == "terminal/create":
		delete(w.state, "exited")
	case f.method == "terminal/wait_for_exit" && f.reply:
		w.state["exited"] = true
	case f.method == "terminal/kill" && f.request() && w.state["exited"] != nil:
		refuse("-32602")(w, f)
		return
	}
	w.pass(f)
}
