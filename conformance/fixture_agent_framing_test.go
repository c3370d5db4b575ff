package conformance

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

func init() {
	defects(Agent, map[string]defect{
		"framing/blank-lines":     when(func(f *flying) bool { return f.from == Client && strings.TrimSpace(f.line) == "" }, reply(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`)),
		"framing/carriage-return": when(func(f *flying) bool { return strings.HasSuffix(f.line, "\r") }, drop),
		"framing/byte-order-mark": when(func(f *flying) bool { return strings.HasPrefix(f.line, "\ufeff") }, drop),
		"framing/in-pieces":       of(Client, when(func(f *flying) bool { return f.reads > 3 }, drop)),
		"framing/cut-character": of(Client, when(func(f *flying) bool { return f.reads > 1 && strings.Contains(f.line, "😀") }, func(w *between, f *flying) {
			w.on(f, strings.ReplaceAll(f.line, "😀", "\ufffd\ufffd"))
		})),
		"framing/together":     of(Client, when(func(f *flying) bool { return f.reads == 0 }, drop)), // only the first line of a read is looked at
		"framing/invalid-utf8": when(func(f *flying) bool { return !utf8.ValidString(f.line) }, hangUp),
		"framing/noise":        of(Client, when(func(f *flying) bool { return f.line == "hello" }, hangUp)),
		"framing/two-on-a-line": when(func(f *flying) bool { return strings.Contains(f.line, "two-2") }, func(w *between, f *flying) {
			for _, id := range []string{"two-1", "two-2"} {
				w.back(f, `{"jsonrpc":"2.0","id":"`+id+`","error":{"code":-32601,"message":"Method not found"}}`)
			}
		}),
		"framing/batch": when(func(f *flying) bool { return strings.HasPrefix(f.line, "[{") }, func(w *between, f *flying) {
			for range strings.Count(f.line, "_check/unknown") { // one for each of them
				w.back(f, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches"}}`)
			}
		}),
		"framing/empty-batch":   when(func(f *flying) bool { return f.line == "[]" }, drop),
		"framing/after-batch":   when(func(f *flying) bool { return f.line == "[]" }, hangUp),
		"framing/other-values":  of(Client, when(func(f *flying) bool { return f.line == "null" }, drop)),
		"framing/long-line":     of(Client, when(func(f *flying) bool { return len(f.line) > 1<<16 }, hangUp)), // as bufio.Scanner has it
		"framing/longer-line":   of(Client, when(func(f *flying) bool { return len(f.line) > 4<<20 }, drop)),
		"framing/too-long-line": of(Client, when(func(f *flying) bool { return len(f.line) > 32<<20 }, hangUp)),
		"framing/deep":          of(Client, when(func(f *flying) bool { return nested(f.line) > 100 }, drop)),
		"framing/too-deep":      of(Client, when(func(f *flying) bool { return nested(f.line) > 10_000 }, hangUp)), // a stack that overflows
	})
}

// reply sends a line back in the place of passing on.
func reply(line string) defect {
	return func(w *between, f *flying) { w.back(f, line) }
}

// nested returns how many arrays are open at most, in a line without brackets in
// strings.
func nested(line string) int {
	return len(line) - len(bytes.TrimLeft([]byte(line[strings.Index(line, "[")+1:]), "["))
}
