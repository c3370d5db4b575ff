package conformance

import (
	"slices"
	"strings"
)

// having tells lines that hold a text.
func having(text string) func(f *flying) bool {
	return func(f *flying) bool { return strings.Contains(f.line, text) }
}

// toClient limits a defect to what the agent sends and a test holds for.
func toClient(test func(f *flying) bool, d defect) defect { return of(Agent, when(test, d)) }

// stuck makes a peer that does nothing more, and neither leaves, once a line was
// on its way that a test holds for.
func stuck(test func(f *flying) bool) defect {
	return func(w *between, f *flying) {
		if w.state["stuck"] == nil && test(f) {
			w.state["stuck"] = true
		}
		if w.state["stuck"] == nil {
			w.pass(f)
		}
	}
}

// freeze is stuck for what is only known within other defects, which have to be
// within mayFreeze.
func freeze(w *between, _ *flying) { w.state["frozen"] = true }

func mayFreeze(d defect) defect {
	return func(w *between, f *flying) {
		if w.state["frozen"] == nil {
			d(w, f)
		}
	}
}

// says sends a line to the side that what passes comes from.
func says(line string) defect {
	return func(w *between, f *flying) {
		w.pass(f)
		w.back(f, f.expand(line))
	}
}

// complain answers what needs no answer.
func complain(w *between, f *flying) {
	says(`{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"defect"}}`)(w, f)
}

// ends tells the end of a turn.
func ends(f *flying) bool {
	return f.from == Agent && (f.reply && f.method == "session/prompt" && f.get("result.stopReason") != nil ||
		f.str("params.update.state") == "idle" && f.get("params.update.stopReason") != nil)
}

// ended limits a defect to what comes behind the end of a turn, before the next.
func ended(d defect) defect {
	return func(w *between, f *flying) {
		switch over := w.state["ended"] != nil; {
		case f.from == Client && f.method == "session/prompt":
			delete(w.state, "ended")
		case ends(f) && !over:
			w.state["ended"] = true
		case f.from == Agent && over:
			d(w, f)
			return
		}
		w.pass(f)
	}
}

// noneOf limits a defect to updates with a member at a path that is none of values.
func noneOf(path string, d defect, values ...string) defect {
	return update("", when(func(f *flying) bool {
		v := f.get("params.update." + path)
		s, _ := v.(string)
		return v != nil && !slices.Contains(values, s)
	}, d))
}

// anyItem reports whether a test holds for an item of the list at a path.
func anyItem(f *flying, path string, test func(item map[string]any) bool) bool {
	list, _ := f.get(path).([]any)
	return slices.ContainsFunc(list, func(v any) bool {
		m, _ := v.(map[string]any)
		return test(m)
	})
}

// items limits a defect to updates with such an item.
func items(path string, test func(item map[string]any) bool, d defect) defect {
	return update("", when(func(f *flying) bool { return anyItem(f, "params.update."+path, test) }, d))
}

func lacks(keys ...string) func(map[string]any) bool {
	return func(item map[string]any) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return item[k] == nil })
	}
}

func typed(types ...string) func(map[string]any) bool {
	return func(item map[string]any) bool {
		s, ok := item["type"].(string)
		return ok && !slices.Contains(types, s)
	}
}

var kinds = []string{
	"user_message_chunk", "user_message", "agent_message_chunk", "agent_message", "agent_thought_chunk", "agent_thought", "tool_call",
	"tool_call_update", "tool_call_content_chunk", "terminal_update", "terminal_output_chunk", "plan", "plan_update",
	"available_commands_update", "current_mode_update", "config_option_update", "session_info_update", "usage_update",
	"state_update", "notice", "compaction_update", "compaction_summary_chunk", "cursor_update", "replay_complete",
}

func isNull(path string) func(f *flying) bool {
	return func(f *flying) bool {
		at := strings.LastIndexByte(path, '.')
		m, _ := f.get(path[:at]).(map[string]any)
		v, ok := m[path[at+1:]]
		return ok && v == nil
	}
}

func init() {
	defects(Client, map[string]defect{
		"update/turn-ends": stuck(ends),
		"update/malformed": onNotification("session/update", when(func(f *flying) bool {
			_, ok := f.get("params.update.sessionUpdate").(string)
			return !ok
		}, complain)),
		"update/other-session":     onNotification("session/update", when(func(f *flying) bool { return f.str("params.sessionId") == "_check_other" }, hangUp)),
		"update/every":             update("usage_update", when(func(f *flying) bool { return f.get("params.update.cost") != nil }, hangUp)),
		"update/null-members":      update("session_info_update", when(isNull("params.update.title"), hangUp)),
		"update/tool-unannounced":  unannounced("tool_call_update", hangUp),
		"update/chunk-unannounced": unannounced("terminal_output_chunk", hangUp),
		"update/tool-terminal":     items("content", func(m map[string]any) bool { return m["type"] == "terminal" }, hangUp),
		"update/tool-again":        announcedTwice,
		"update/lists":             items("availableCommands", lacks("name", "description"), hangUp),
		"update/empty-lists": mayFreeze(update("available_commands_update", when(func(f *flying) bool {
			v, ok := f.get("params.update.availableCommands").([]any)
			return ok && len(v) == 0
		}, freeze))),
		"update/characters": toClient(having(`\u0000`), hangUp),
		"update/numbers":    toClient(having("18446744073709551615"), hangUp),
		"update/meta":       toClient(isNull("params._meta"), hangUp),
		"update/markup":     toClient(having("jndi:"), says(`{"jsonrpc":"2.0","id":"run","method":"session/prompt","params":{"sessionId":"$session","prompt":[{"type":"text","text":"/x"}]}}`)),
		"update/cursor":     update("cursor_update", hangUp),
		"history/complete":  update("replay_complete", hangUp),
		"update/late":       mayFreeze(ended(update("agent_message_chunk", freeze))),
		"update/snapshot": mayFreeze(func(w *between, f *flying) {
			if ends(f) && w.state["idle"] != nil {
				freeze(w, f)
			}
			if f.from == Agent && f.get("params.update.state") != nil {
				w.state["idle"] = nil
				if ends(f) {
					w.state["idle"] = true
				}
			}
			w.pass(f)
		}),

		"unknown/update":       noneOf("sessionUpdate", hangUp, kinds...),
		"unknown/content":      noneOf("content.type", hangUp, "text", "image", "audio", "resource", "resource_link"),
		"unknown/tool-kind":    noneOf("kind", hangUp, "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other", ""),
		"unknown/tool-status":  noneOf("status", complain, "pending", "in_progress", "paused", "completed", "failed", "cancelled", "open", ""),
		"unknown/tool-content": items("content", typed("content", "diff", "terminal", "text", "image", "resource_link"), hangUp),
		"unknown/members":      toClient(having(`"_check":`), hangUp),
		"unknown/plan":         noneOf("plan.type", hangUp, "items"),
		"unknown/plan-values":  items("entries", func(m map[string]any) bool { return m["priority"] == "_check" }, complain),
		"unknown/option":       items("configOptions", typed("select", "boolean"), hangUp),
		"unknown/mode":         update("current_mode_update", when(func(f *flying) bool { return f.str("params.update.currentModeId") != "ask" }, hangUp)),
		"unknown/state": noneOf("state", says(`{"jsonrpc":"2.0","id":"next","method":"session/prompt","params":{"sessionId":"$session","prompt":[{"type":"text","text":"x"}]}}`),
			"running", "idle", "requires_action"),
		"unknown/background": items("background", typed("terminal", "tool_call", "subagent"), hangUp),
		"unknown/command":    items("availableCommands", typed("command"), hangUp),
	})
}

// unannounced limits a defect to the first update of a kind about a tool call or
// terminal.
func unannounced(kind string, d defect) defect {
	return func(w *between, f *flying) {
		id := f.str("params.update.toolCallId") + f.str("params.update.terminalId")
		known := w.state["announced "+id] != nil
		if id != "" && f.str("params.update.sessionUpdate") == kind && !known && strings.Contains(id, "announced") {
			d(w, f)
			return
		}
		w.state["announced "+id] = true
		w.pass(f)
	}
}

// announcedTwice fails on a tool call that begins again after its end.
func announcedTwice(w *between, f *flying) {
	id := f.str("params.update.toolCallId")
	done := id != "" && w.state["done "+id] != nil
	switch f.str("params.update.status") {
	case "completed":
		w.state["done "+id] = true
	case "pending":
		if done {
			w.cut()
			return
		}
	}
	w.pass(f)
}
