package conformance

import (
	"encoding/json"
	"strings"
	"time"
)

// greeting limits a defect to initialize requests for which a test holds.
func greeting(test func(f *flying) bool, d defect) defect {
	return of(Client, onRequest("initialize", when(test, d)))
}

// requesting tells whether an initialize asks for a version, as JSON; "" for none.
func requesting(version string) func(f *flying) bool {
	return func(f *flying) bool {
		v := f.get("params.protocolVersion")
		return v == nil && version == "" || v != nil && encode(v) == version
	}
}

// greets answers an initialize, in the version of the check, whatever it says.
func greets(w *between, f *flying) {
	version := "1"
	if f.get("params.info") != nil {
		version = "2"
	}
	set("params.protocolVersion", version)(w, f)
}

// uninitialized limits a defect to what comes ahead of initialize.
func uninitialized(d defect) defect {
	return of(Client, func(w *between, f *flying) {
		if w.count["clientinitialize"] == 0 {
			d(w, f)
			return
		}
		w.pass(f)
	})
}

// kind returns what kind of JSON value is at a path, as "object", or "" if
// nothing is there.
func (f *flying) kind(path string) string {
	at, key := f.msg, path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		at, _ = f.get(path[:i]).(map[string]any)
		key = path[i+1:]
	}
	v, ok := at[key]
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "boolean"
	case nil:
		if ok {
			return "null"
		}
	}
	return ""
}

func init() {
	defects(Agent, map[string]defect{
		"initialize/refused-lives":      uninitialized(onRequest("session/new", hangUp)),
		"initialize/early-notification": uninitialized(onNotification("_check/unknown", hangUp)),
		"initialize/early-response": uninitialized(when(func(f *flying) bool { return f.reply },
			reply(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`))),
		"initialize/early-noise": uninitialized(when(func(f *flying) bool { return f.line == "[1]" }, hangUp)),
		"initialize/pipelined": of(Client, func(w *between, f *flying) { // what comes while initialize is carried out is lost
			switch {
			case f.request() && f.method == "initialize":
				w.state["busy"] = true
				time.AfterFunc(10*time.Millisecond, func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					delete(w.state, "busy")
					w.pass(f)
				})
			case w.state["busy"] == nil:
				w.pass(f)
			}
		}),
		"initialize/minimal": greeting(func(f *flying) bool {
			return f.get("params.clientCapabilities") == nil && f.get("params.capabilities") == nil
		}, refuse("-32602")),
		"initialize/unknown-members": greeting(func(f *flying) bool { return f.get("params._unknown") != nil }, refuse("-32602")),
		"initialize/without-version": greeting(requesting(""), greets),
		"initialize/version-kind":    greeting(requesting(`"1"`), greets),
		"initialize/version-range":   greeting(requesting(`65536`), greets),
		"initialize/version-zero":    onReply("initialize", when(func(f *flying) bool { return encode(f.get("error.code")) == "-32022" }, set("error.code", "-32603"))),
		"initialize/again-after-error": of(Client, onRequest("initialize", func(w *between, f *flying) {
			if f.n > 0 {
				refuse("-32600")(w, f)
				return
			}
			w.pass(f)
		})),
		"initialize/twice": of(Client, onRequest("initialize", func(w *between, f *flying) {
			if f.n > 0 {
				return
			}
			w.pass(f)
		})),
		"initialize/again-later": of(Client, onRequest("initialize", when(func(f *flying) bool { return f.n > 0 }, result(`{"protocolVersion":2,"info":{"name":"base","version":"1"},"capabilities":{"session":{}}}`)))),
		"initialize/again-harmless": of(Client, func(w *between, f *flying) { // a connection that is not initialized any more
			switch {
			case f.request() && f.method == "initialize" && f.n > 0:
				w.state["broken"] = true
			case f.request() && f.method == "session/new" && w.state["broken"] != nil:
				refuse("-32600")(w, f)
				return
			}
			w.pass(f)
		}),
		"initialize/malformed-capabilities": greeting(func(f *flying) bool {
			return f.kind("params.clientCapabilities") == "number" || f.kind("params.capabilities") == "number"
		}, refuse("-32602")),
		"initialize/malformed-info":     greeting(func(f *flying) bool { return f.kind("params.clientInfo") == "string" }, refuse("-32602")),
		"initialize/info-required":      greeting(func(f *flying) bool { return requesting("2")(f) && f.get("params.info.version") == nil }, set("params.info", `{"name":"unknown","version":"unknown"}`)),
		"initialize/later-without-info": greeting(requesting("3"), refuse("-32602")),
		"initialize/meta":               greeting(func(f *flying) bool { return f.kind("params._meta") == "number" }, refuse("-32602")),
		"initialize/from-version-2":     greeting(func(f *flying) bool { return f.get("params.capabilities.auth") != nil }, refuse("-32602")), // the members of version 1 are missing
		"initialize/integral-version":   greeting(func(f *flying) bool { return requesting("1.0")(f) || requesting("2.0")(f) }, refuse("-32602")),
	})
}
