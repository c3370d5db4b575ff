package summary

import (
	"strconv"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/record/frame"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/internal/wire"
)

// summarise returns what a request or notification is about.
func summarise(e *frame.Envelope) string {
	if e.Method == "session/update" {
		return update(e.Kind, e.Update)
	}
	return about(e.Method, e.Params)
}

// about says in a few words what the parameters of a method contain.
func about(method string, params []byte) string {
	switch method {
	case "initialize", "proxy/initialize", "_proxy/initialize":
		return join("version "+raw(params, "protocolVersion"), peer(params, "clientInfo", "info"))
	case "session/new", "session/load", "session/resume", "session/fork":
		return cut(frame.Member(params, "cwd"))
	case "session/prompt":
		return cut(blocks(frame.Find(params, "prompt")))
	case "session/request_permission":
		return cut(first(frame.Member(params, "title"), frame.Member(params, "toolCall", "title"), frame.Member(params, "toolCall", "toolCallId")))
	case "session/set_mode":
		return cut(frame.Member(params, "modeId"))
	case "session/set_config_option":
		return join(frame.Member(params, "configId"), raw(params, "value"))
	case "fs/read_text_file", "fs/write_text_file":
		return cut(frame.Member(params, "path"))
	case "terminal/create":
		words := []string{frame.Member(params, "command")}
		elements(frame.Find(params, "args"), func(v []byte) bool {
			words = append(words, frame.Text(v))
			return len(words) < 32
		})
		return cut(strings.Join(words, " "))
	case "$/cancel_request":
		return join("request", raw(params, "requestId"))
	}
	return cut(first(frame.Member(params, "terminalId"), frame.Member(params, "message"), frame.Member(params, "title"),
		frame.Member(params, "methodId"), frame.Member(params, "path"), frame.Member(params, "name")))
}

// result returns what an answer says.
func result(method string, v []byte) string {
	switch method {
	case "initialize", "proxy/initialize", "_proxy/initialize":
		return join("version "+raw(v, "protocolVersion"), peer(v, "agentInfo", "info"))
	case "session/new", "session/fork":
		return cut(frame.Member(v, "sessionId"))
	case "session/prompt":
		return cut(frame.Member(v, "stopReason"))
	case "session/request_permission":
		return join(frame.Member(v, "outcome", "outcome"), frame.Member(v, "outcome", "optionId"))
	case "session/list":
		n := 0
		elements(frame.Find(v, "sessions"), func([]byte) bool { n++; return true })
		return strconv.Itoa(n) + " sessions"
	case "fs/read_text_file":
		return cut(frame.Member(v, "content"))
	case "terminal/create":
		return cut(frame.Member(v, "terminalId"))
	case "terminal/output":
		return cut(frame.Member(v, "output"))
	case "terminal/wait_for_exit":
		return join("status "+raw(v, "exitCode"), frame.Member(v, "signal"))
	}
	if len(v) <= len("{}") {
		return ""
	}
	return line(v)
}

// update returns what an update says.
func update(kind string, u []byte) string {
	var s string
	switch kind {
	case "user_message", "agent_message", "agent_thought", "session_message":
		s = blocks(frame.Find(u, "content"))
	case "tool_call", "tool_call_update":
		s = join(frame.Member(u, "status"), first(frame.Member(u, "title"), frame.Member(u, "toolCallId")))
	case "plan", "plan_update":
		done, all := 0, 0
		entries := frame.Find(u, "entries")
		if entries == nil {
			entries = frame.Find(u, "plan", "entries")
		}
		elements(entries, func(v []byte) bool {
			all++
			if frame.Member(v, "status") == "completed" {
				done++
			}
			return true
		})
		s = strconv.Itoa(done) + " of " + strconv.Itoa(all) + " done"
	case "plan_removed":
		s = frame.Member(u, "planId")
	case "subagent_update":
		s = first(frame.Member(u, "title"), frame.Member(u, "sessionId"))
	case "compaction_update":
		s = join(frame.Member(u, "status"), frame.Member(u, "error"))
	case "state_update":
		s = join(frame.Member(u, "state"), frame.Member(u, "stopReason"))
	case "current_mode_update":
		s = frame.Member(u, "currentModeId")
	case "session_info_update", "notice":
		s = frame.Member(u, "title")
	case "usage_update":
		s = raw(u, "used") + " of " + raw(u, "size")
	case "terminal_update", "terminal_output_chunk":
		s = first(frame.Member(u, "command"), frame.Member(u, "terminalId"))
	case "available_commands_update":
		s = count(frame.Find(u, "availableCommands")) + " commands"
	case "config_option_update":
		s = count(frame.Find(u, "configOptions")) + " options"
	case "prompt_suggestions_update":
		s = count(frame.Find(u, "suggestions")) + " suggestions"
	case "cursor_update":
		s = join(frame.Member(u, "cursorId"), join(frame.Member(u, "anchor", "position"), frame.Member(u, "anchor", "type")))
	case "replay_complete":
		s = "that was the history"
	default:
		s = block(frame.Find(u, "content"))
	}
	return cut(s)
}

// count returns how many elements an array has.
func count(list []byte) string {
	n := 0
	elements(list, func([]byte) bool { n++; return true })
	return strconv.Itoa(n)
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
	switch kind := frame.Member(v, "type"); kind {
	case "text":
		return frame.Member(v, "text")
	case "":
		return ""
	case "resource_link":
		return "[" + first(frame.Member(v, "name"), frame.Member(v, "uri")) + "]"
	default:
		return "[" + kind + "]"
	}
}

// failure returns the code and the message of an error.
func failure(v []byte) (int, string) {
	code := raw(v, "code")
	n, _ := strconv.Atoi(code)
	return n, join(code, frame.Member(v, "message"))
}

// peer names an implementation.
func peer(v []byte, names ...string) string {
	for _, name := range names {
		if info := frame.Find(v, name); info != nil {
			return strings.TrimSpace(frame.Member(info, "name") + " " + frame.Member(info, "version"))
		}
	}
	return ""
}

// raw returns what a member is, in a line: the text of a string, otherwise the JSON.
func raw(v []byte, name string) string {
	m := frame.Find(v, name)
	if len(m) > 0 && m[0] == '"' {
		return cut(frame.Text(m))
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

// elements calls f for the elements of an array until it returns false.
func elements(data []byte, f func(v []byte) bool) {
	var d wire.Decoder
	d.Reset(data, false)
	if d.Peek() != '[' {
		return
	}
	for ok := d.FirstElem(); ok; ok = d.NextElem() {
		if !f(d.Raw()) {
			return
		}
	}
}
