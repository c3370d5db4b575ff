package digest

import (
	"strconv"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// summarise says which kind of update it is, if it is one, and what a request or
// notification is about.
func summarise(method string, params []byte) (kind, summary string) {
	if method == "session/update" {
		u := find(params, "update")
		return short(member(u, "sessionUpdate")), update(u)
	}
	return "", about(method, params)
}

func about(method string, params []byte) string {
	switch method {
	case "initialize":
		return join("version "+raw(params, "protocolVersion"), peer(params, "clientInfo", "info"))
	case "session/new", "session/load", "session/resume", "session/fork":
		return cut(member(params, "cwd"))
	case "session/prompt":
		return cut(blocks(find(params, "prompt")))
	case "session/request_permission":
		return cut(first(member(params, "title"), member(params, "toolCall", "title"), member(params, "toolCall", "toolCallId")))
	case "session/set_mode":
		return cut(member(params, "modeId"))
	case "session/set_config_option":
		return join(member(params, "configId"), raw(params, "value"))
	case "fs/read_text_file", "fs/write_text_file":
		return cut(member(params, "path"))
	case "terminal/create":
		words := []string{member(params, "command")}
		elements(find(params, "args"), func(v []byte) bool {
			words = append(words, text(v))
			return len(words) < 32
		})
		return cut(strings.Join(words, " "))
	case "$/cancel_request":
		return join("request", raw(params, "requestId"))
	}
	return cut(first(member(params, "terminalId"), member(params, "message"), member(params, "title"),
		member(params, "methodId"), member(params, "path"), member(params, "name")))
}

// result says what an answer tells.
func result(method string, v []byte) string {
	switch method {
	case "initialize":
		return join("version "+raw(v, "protocolVersion"), peer(v, "agentInfo", "info"))
	case "session/new", "session/fork":
		return cut(member(v, "sessionId"))
	case "session/prompt":
		return cut(member(v, "stopReason"))
	case "session/request_permission":
		return join(member(v, "outcome", "outcome"), member(v, "outcome", "optionId"))
	case "session/list":
		n := 0
		elements(find(v, "sessions"), func([]byte) bool { n++; return true })
		return strconv.Itoa(n) + " sessions"
	case "fs/read_text_file":
		return cut(member(v, "content"))
	case "terminal/create":
		return cut(member(v, "terminalId"))
	case "terminal/output":
		return cut(member(v, "output"))
	case "terminal/wait_for_exit":
		return join("status "+raw(v, "exitCode"), member(v, "signal"))
	}
	if len(v) <= len("{}") {
		return ""
	}
	return line(v)
}

// update says what an update tells.
func update(u []byte) string {
	var s string
	switch member(u, "sessionUpdate") {
	case "user_message", "agent_message", "agent_thought":
		s = blocks(find(u, "content"))
	case "tool_call", "tool_call_update":
		s = join(member(u, "status"), first(member(u, "title"), member(u, "toolCallId")))
	case "plan", "plan_update":
		done, all := 0, 0
		entries := find(u, "entries")
		if entries == nil {
			entries = find(u, "plan", "entries")
		}
		elements(entries, func(v []byte) bool {
			all++
			if member(v, "status") == "completed" {
				done++
			}
			return true
		})
		s = strconv.Itoa(done) + " of " + strconv.Itoa(all) + " done"
	case "state_update":
		s = join(member(u, "state"), member(u, "stopReason"))
	case "current_mode_update":
		s = member(u, "currentModeId")
	case "session_info_update", "notice":
		s = member(u, "title")
	case "usage_update":
		s = raw(u, "used") + " of " + raw(u, "size")
	case "terminal_update", "terminal_output_chunk":
		s = first(member(u, "command"), member(u, "terminalId"))
	case "available_commands_update":
		n := 0
		elements(find(u, "availableCommands"), func([]byte) bool { n++; return true })
		s = strconv.Itoa(n) + " commands"
	default:
		s = block(find(u, "content"))
	}
	return cut(s)
}

// blocks returns the text of blocks of content.
func blocks(list []byte) string {
	var b strings.Builder
	elements(list, func(v []byte) bool {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(block(v))
		return b.Len() < 8*maxLine
	})
	return b.String()
}

// block returns the text of a block, or what it is.
func block(v []byte) string {
	switch kind := member(v, "type"); kind {
	case "text":
		return member(v, "text")
	case "":
		return ""
	case "resource_link":
		return "[" + first(member(v, "name"), member(v, "uri")) + "]"
	default:
		return "[" + kind + "]"
	}
}

// failure returns the code and the message of an error.
func failure(v []byte) (int, string) {
	code := raw(v, "code")
	n, _ := strconv.Atoi(code)
	return n, join(code, member(v, "message"))
}

// peer names an implementation.
func peer(v []byte, names ...string) string {
	for _, name := range names {
		if info := find(v, name); info != nil {
			return strings.TrimSpace(member(info, "name") + " " + member(info, "version"))
		}
	}
	return ""
}

// raw returns what a member is in a line: of a string its text, else the JSON.
func raw(v []byte, name string) string {
	m := find(v, name)
	if len(m) > 0 && m[0] == '"' {
		return cut(text(m))
	}
	return line(m)
}

func first(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

func join(a, b string) string {
	switch {
	case a == "" || b == "":
		return cut(a + b)
	default:
		return cut(a + " · " + b)
	}
}

func cut(s string) string {
	if len(s) > 8*maxLine {
		s = s[:8*maxLine]
	}
	return safetext.Line(s, maxLine)
}
