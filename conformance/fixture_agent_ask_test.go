package conformance

import "strings"

// answered limits a defect to what the client answers to requests of a method,
// if a text is in it.
func answered(method, text string, d defect) defect {
	return of(Client, onReply(method, about(text, d)))
}

// offering is an agent that believes that the client offers everything.
func offering(path string) defect {
	return func(w *between, f *flying) {
		where := "params.capabilities." + path
		if encode(f.get("params.protocolVersion")) == "1" {
			where = "params.clientCapabilities." + path
		}
		value := `true`
		if strings.HasPrefix(path, "elicitation") {
			value = `{}`
		}
		onRequest("initialize", set(where, value))(w, f)
	}
}

const (
	permitting = "session/request_permission"
	eliciting  = "elicitation/create"
)

func init() {
	defects(Agent, map[string]defect{
		"permission/allowed":         answered(permitting, `"optionId":"allow`, drop),
		"permission/rejected":        answered(permitting, `"optionId":"reject`, drop),
		"permission/dismissed":       answered(permitting, `"cancelled"`, drop),
		"permission/failed":          answered(permitting, `"error"`, drop),
		"permission/unknown-option":  answered(permitting, "check-no-such-option", hangUp),
		"permission/unknown-outcome": answered(permitting, "_check_later", drop),
		"permission/cancelled-turn": func(w *between, f *flying) { // it does not listen while it asks
			switch {
			case f.request() && f.method == permitting:
				w.state["asks"] = true
			case f.notification() && f.method == "session/cancel" && w.state["asks"] == true:
				return
			}
			w.pass(f)
		},
		"permission/withdrawn": answered(permitting, "-32800", hangUp),
		"permission/waits":     update("state_update", when(func(f *flying) bool { return f.str("params.update.state") == "requires_action" }, drop)),

		"file/read":              answered("fs/read_text_file", "4711", set("result.content", `"something else"`)),
		"file/read-failed":       answered("fs/read_text_file", "the disk is gone", drop),
		"file/read-large":        answered("fs/read_text_file", "0123456", when(func(f *flying) bool { return len(f.line) > 1<<16 }, hangUp)),
		"file/read-not-offered":  offering("fs.readTextFile"),
		"file/write":             answered("fs/write_text_file", `"result":{}`, drop),
		"file/write-null":        answered("fs/write_text_file", `"result":null`, instead(`{"jsonrpc":"2.0","id":$id,"error":{"code":-32603,"message":"no result"}}`)),
		"file/write-failed":      answered("fs/write_text_file", "the disk is full", hangUp),
		"file/write-not-offered": offering("fs.writeTextFile"),

		"terminal/create-failed": answered("terminal/create", "no terminals left", drop),
		"terminal/wait-failed":   answered("terminal/wait_for_exit", "no such terminal", drop),
		"terminal/signal":        answered("terminal/wait_for_exit", "SIGKILL", drop),
		"terminal/not-offered":   offering("terminal"),

		"elicitation/accepted":         answered(eliciting, `"accept"`, drop),
		"elicitation/declined":         answered(eliciting, `"decline"`, drop),
		"elicitation/dismissed":        answered(eliciting, `"cancel"`, drop),
		"elicitation/failed":           answered(eliciting, "there is no window", hangUp),
		"elicitation/unknown-action":   answered(eliciting, "_check_later", drop),
		"elicitation/form-not-offered": offering("elicitation.form"),
		"elicitation/link":             answered(eliciting, `"accept"`, drop),

		"option/set":           onReply("session/set_config_option", set("result.configOptions", `[]`)),
		"option/switch":        onRequest("session/set_config_option", about(`"boolean"`, refuse("-32602"))),
		"option/unknown":       onRequest("session/set_config_option", about("check-no-such-option", result(`{"configOptions":[]}`))),
		"option/unknown-value": onRequest("session/set_config_option", about("check-no-such-value", result(`{"configOptions":[]}`))),
		"option/complete": onReply("session/set_config_option", func(w *between, f *flying) { // only the first one
			if list, _ := f.get("result.configOptions").([]any); len(list) > 1 {
				f.msg = put(f.msg, []string{"result", "configOptions"}, list[:1]).(map[string]any)
			}
			w.passMsg(f)
		}),
		"option/unknown-kind": onRequest("session/set_config_option", about("_check_kind", result(`{"configOptions":[]}`))),
		"mode/set":            onRequest("session/set_mode", refuse("-32601")),
		"mode/unknown":        onRequest("session/set_mode", about("check-no-such-mode", result(`{}`))),

		"auth/login": func(w *between, f *flying) { // it forgets at once
			if f.request() && (f.method == "authenticate" || f.method == "auth/login") {
				w.state["in"] = true
			}
			if w.state["in"] == true && f.request() && f.method == "session/new" {
				refuse("-32000")(w, f)
				return
			}
			w.pass(f)
		},
		"auth/logout": func(w *between, f *flying) {
			if f.request() && (f.method == "logout" || f.method == "auth/logout") {
				refuse("-32603")(w, f)
				return
			}
			w.pass(f)
		},
		"auth/unknown-method": func(w *between, f *flying) {
			if f.request() && strings.Contains(f.line, "check-no-such-method") {
				result(`{}`)(w, f)
				return
			}
			w.pass(f)
		},
		"auth/login-not-offered":  lacking("authMethods", when(func(f *flying) bool { return f.request() && strings.Contains(f.line, "check-no-such-method") }, result(`{}`))),
		"auth/logout-not-offered": lacking("auth.logout", onRequest("logout", result(`{}`))),

		"mcp/unknown-transport": onRequest("session/new", about("_check_transport", set("params.mcpServers", `[]`))),
		"mcp/no-command": onRequest("session/new", when(func(f *flying) bool {
			return strings.Contains(f.line, `"check"`) && !strings.Contains(f.line, `"command"`)
		}, set("params.mcpServers", `[]`))),
		"mcp/no-type": onRequest("session/new", when(func(f *flying) bool {
			return strings.Contains(f.line, `"check"`) && !strings.Contains(f.line, `"type"`)
		}, set("params.mcpServers", `[]`))),
		"mcp/same-name":        onRequest("session/new", about("/check/no/other", set("params.mcpServers", `[]`))),
		"mcp/http-not-offered": lacking("session.mcp.http", onRequest("session/new", about("127.0.0.1:9/mcp", set("params.mcpServers", `[]`)))),
		"mcp/sse-not-offered":  lacking("session.mcp.sse", onRequest("session/new", about("127.0.0.1:9/sse", set("params.mcpServers", `[]`)))),
		"mcp/stdio-connects":   onRequest("session/new", about("/probe-", set("params.mcpServers", `[]`))),
		"mcp/http-connects":    onRequest("session/new", about("/probe-", set("params.mcpServers", `[]`))),
		"mcp/stdio-gone":       onRequest("session/new", about("/check/no/such/command", hangUp)),
		"mcp/http-gone":        onRequest("session/new", about("127.0.0.1:9/mcp", hangUp)),
	})
}
