package conformance

import "strings"

// withID limits a defect to requests of an id, as JSON.
func withID(id string, d defect) defect {
	return of(Client, when(func(f *flying) bool { return f.id == id }, d))
}

// written limits a defect to lines of the checker that contain a text.
func written(text string, d defect) defect {
	return of(Client, when(func(f *flying) bool { return strings.Contains(f.line, text) }, d))
}

// answering gives the answer to a request of one id another one.
func answering(id, as string) defect {
	return of(Agent, when(func(f *flying) bool { return f.reply && f.id == id }, set("id", as)))
}

// notFound is the answer to an unknown request, with an id as JSON.
func notFound(id string) defect {
	return reply(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"Method not found"}}`)
}

func init() {
	defects(Agent, map[string]defect{
		"envelope/id-kinds":         answering(`"70001"`, `70001`),
		"envelope/id-zero":          withID(`0`, drop), // taken for no id
		"envelope/id-negative":      answering(`-7`, `7`),
		"envelope/id-large":         answering(`9007199254740991`, `9.007199254740991e15`),
		"envelope/id-uuid":          withID(`"0192f0c4-6f3e-7d70-9d1c-2f6f4b1f0a55"`, notFound("null")), // only integers are read
		"envelope/id-empty":         withID(`""`, drop),
		"envelope/id-text":          of(Agent, when(func(f *flying) bool { return f.reply && strings.Contains(f.id, "世") }, set("id", `"\"\\/ \u2028 é 世 \ud83d\ude00 </script>"`))),
		"envelope/id-fraction":      withID(`1.5`, notFound("1")),
		"envelope/id-null":          withID(`null`, drop),
		"envelope/id-null-answered": withID(`null`, drop),
		"envelope/id-object":        written(`"id":[1]`, notFound(`[1]`)),
		"envelope/no-jsonrpc":       written(`"no-version"`, notFound(`"no-version"`)),
		"envelope/other-jsonrpc":    written(`"jsonrpc":"1.0"`, notFound(`"old"`)),
		"envelope/method-kind":      written(`"method":5`, drop),
		"envelope/empty":            of(Client, when(func(f *flying) bool { return f.line == `{"jsonrpc":"2.0"}` }, drop)),
		"envelope/malformed-lives":  of(Client, when(func(f *flying) bool { return f.line == `{}` }, hangUp)),
		"envelope/unknown-members":  written(`"_trace"`, refuse("-32600")),
		"envelope/member-order": of(Client, when(func(f *flying) bool { return strings.HasPrefix(f.line, `{"params":{"method"`) }, func(w *between, f *flying) {
			notFound(`"inner"`)(w, f) // found by searching the text
		})),
		"envelope/spelling":           written(`\u0069d`, drop),
		"envelope/exact-case":         written(`"Method"`, notFound(`"case"`)),
		"envelope/duplicate-members":  written(`/dup-2"`, hangUp),
		"envelope/stray-error":        written(`"stray"`, reply(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"unknown id"}}`)),
		"envelope/malformed-response": written(`"error":"text"`, reply(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`)),
	})
}
