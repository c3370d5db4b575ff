package conformance

// waiting has the client's process not end while a request is unanswered.
func waiting(method string) defect {
	return func(w *between, f *flying) {
		if f.method == method {
			w.undead = !f.reply
		}
		w.pass(f)
	}
}

func init() {
	defects(Client, map[string]defect{
		"end/gone-at-start":   waiting("initialize"),
		"end/gone-at-session": waiting("session/new"),
		"stderr/flood":        func(w *between, f *flying) { w.deaf = true; w.pass(f) },
		"stderr/noise":        func(w *between, f *flying) { w.deaf = true; w.pass(f) },
		"end/last-words": toClient(ends, func(w *between, f *flying) { // it takes the end for a failure
			w.status = 1
			w.pass(f)
		}),
		"end/gone-in-turn": toClient(having("and then"), func(w *between, f *flying) {
			w.undead = true
			w.pass(f)
		}),
	})
}
