package conformance

import "strings"

// deafAfter is a peer that does not notice the end of its input once a test held
// for something that passed.
func deafAfter(test func(f *flying) bool) defect {
	return func(w *between, f *flying) {
		w.stay = w.stay || test(f)
		w.pass(f)
	}
}

func init() {
	defects(Agent, map[string]defect{
		"lifecycle/end-of-input":          deafAfter(func(*flying) bool { return true }),
		"lifecycle/exit-status":           func(w *between, f *flying) { w.status = 1; w.pass(f) },
		"lifecycle/end-before-initialize": deafAfter(func(f *flying) bool { return f.from == Client && f.notification() && f.method == "_check/unknown" }),
		"lifecycle/hang-up": func(w *between, f *flying) {
			w.undead = w.undead || f.from == Client && f.method == "session/prompt" && strings.HasPrefix(prompted(f), "!burst")
			w.pass(f)
		},
		"lifecycle/end-closes": func(w *between, f *flying) { w.held = true; w.pass(f) },
		"lifecycle/end-in-a-turn": deafAfter(func(f *flying) bool {
			return f.request() && f.method == "session/prompt" && prompted(f) == "!hang"
		}),
		"lifecycle/end-with-a-question": deafAfter(func(f *flying) bool { return f.from == Agent && f.request() }),
		"lifecycle/end-flushes": func(w *between, f *flying) { // it writes when there is nothing more to read
			if f.from == Agent && f.reply && f.method == "_check/unknown" {
				return
			}
			w.pass(f)
		},
		"lifecycle/unfinished-line": deafAfter(func(f *flying) bool { return f.cut && f.msg != nil }),
		"lifecycle/half-a-message":  deafAfter(func(f *flying) bool { return f.cut && f.msg == nil }),
		"lifecycle/silent-end": func(w *between, f *flying) {
			w.pass(f)
			if f.from == Client && w.last == nil {
				w.last = func() {
					w.checker.write(`{"jsonrpc":"2.0","id":"bye","method":"_goodbye","params":{}}` + "\n")
				}
			}
		},
	})
}
