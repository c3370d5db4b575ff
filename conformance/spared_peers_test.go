package conformance

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An oddity is a peer that does something unusual that the protocol allows. None of
// the rules may fail on it, and those of seen have to pass.
type oddity struct {
	odd   defect
	rules []string // patterns of the rules that are tried
	seen  []string // ids of rules that pass, in each version they are of
	but   []string // rules that do fail: what the peer does is advised against
	unset []string // rules that are unseen
}

var oddAgents = map[string]oddity{
	"reads a second file": {
		odd:   asksMore("fs/read_text_file", func(p map[string]any) { p["path"] = "/check/AGENTS.md" }),
		rules: []string{"agent/file"},
		seen:  []string{"agent/file/read-failed", "agent/file/read-large", "agent/file/read"},
	},
	"reads another file first": {
		odd:   asksFirst("fs/read_text_file", func(p map[string]any) { p["path"] = "/check/AGENTS.md" }),
		rules: []string{"agent/file"},
		seen:  []string{"agent/file/read-failed", "agent/file/read-large", "agent/file/read"},
	},
	"asks for permission twice": {
		odd:   asksMore("session/request_permission", func(p map[string]any) { p["title"] = "And this?" }),
		rules: []string{"agent/permission", "agent/leniency"},
		seen:  []string{"agent/permission/allowed", "agent/permission/rejected", "agent/permission/failed", "agent/leniency/outcome-members"},
	},
	"writes a second file": {
		odd:   asksMore("fs/write_text_file", func(p map[string]any) { p["path"] = "/check/log.txt" }),
		rules: []string{"agent/file"},
		seen:  []string{"agent/file/write", "agent/file/write-failed", "agent/file/write-null"},
	},
	"does not load a session that is open": {
		odd:   notOpen,
		rules: []string{"agent/history"},
		seen:  []string{"agent/history/load", "agent/history/load-after-close", "agent/history/behind"},
	},
	"does not load a session that is open, and closes none": {
		odd:   lacking("session.close", notOpen),
		rules: []string{"agent/history"},
		seen:  []string{"agent/history/load-restarted"},
	},
	"forgets sessions that are closed": {
		odd: after("session/close", func(w *between, f *flying) {
			if f.request() && (f.method == "session/load" || f.method == "session/resume") {
				refuse("-32002")(w, f)
				return
			}
			w.pass(f)
		}),
		rules: []string{"agent/history/load", "agent/history/load-after-close", "agent/history/behind", "agent/history/after-close"},
		but:   []string{"agent/history/load-after-close", "agent/history/after-close"},
		unset: []string{"agent/history/load"},
	},
	"starts a second command": {
		odd:   asksMore("terminal/create", func(map[string]any) {}),
		rules: []string{"agent/terminal"},
		seen:  []string{"agent/terminal/signal", "agent/terminal/create-failed"},
	},
}

// asksMore is an agent that asks for something more when it has got an answer, and
// goes on when it has got that.
func asksMore(method string, change func(params map[string]any)) defect {
	return func(w *between, f *flying) {
		switch kept, _ := w.state["kept"].(string); {
		case f.from == Agent && f.request() && f.method == method:
			w.state["params"] = f.msg["params"]
		case f.from == Client && f.reply && f.method == method && kept == "":
			w.state["kept"] = f.line
			w.more(method, change)
			return
		case f.from == Client && f.reply && kept != "" && strings.HasPrefix(f.id, `"more-`):
			w.state["kept"] = nil
			w.peer.write(kept + "\n")
			return
		}
		w.pass(f)
	}
}

// asksFirst is an agent that asks for something else before.
func asksFirst(method string, change func(params map[string]any)) defect {
	return func(w *between, f *flying) {
		switch kept, _ := w.state["kept"].(string); {
		case f.from == Agent && f.request() && f.method == method:
			w.state["params"], w.state["kept"] = f.msg["params"], f.line
			w.more(method, change)
			return
		case f.from == Client && f.reply && kept != "" && strings.HasPrefix(f.id, `"more-`):
			w.state["kept"] = nil
			w.checker.write(kept + "\n")
			return
		}
		w.pass(f)
	}
}

// notOpen is an agent that refuses to load a session that is open on the same connection.
func notOpen(w *between, f *flying) {
	switch {
	case f.reply && f.method == "session/new":
		w.state["open "+f.str("result.sessionId")] = true
	case f.request() && f.method == "session/close":
		delete(w.state, "open "+f.str("params.sessionId"))
	case f.request() && f.method == "session/load" && w.state["open "+f.str("params.sessionId")] != nil:
		refuse("-32602")(w, f)
		return
	}
	w.pass(f)
}

// more makes another request like the last one.
func (w *between) more(method string, change func(params map[string]any)) {
	n, _ := w.state["more"].(int)
	w.state["more"] = n + 1
	params := maps.Clone(w.state["params"].(map[string]any))
	change(params)
	w.checker.write(encode(map[string]any{"jsonrpc": "2.0", "id": "more-" + strconv.Itoa(n), "method": method, "params": params}) + "\n")
}

// TestOddAgents holds that rules do not fail on agents that are in order, but unlike
// most.
func TestOddAgents(t *testing.T) {
	oddities(t, oddAgents, func(ctx context.Context, o oddity) (*Report, error) {
		return CheckAgent(ctx, openAgent(o.odd), Options{Experimental: true, Only: o.rules, MCPProbe: openProbe})
	})
}

func oddities(t *testing.T, all map[string]oddity, check func(context.Context, oddity) (*Report, error)) {
	for name, o := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				report, err := check(t.Context(), o)
				time.Sleep(time.Minute) // peers end in their own time
				if err != nil {
					t.Fatal(err)
				}
				o.judge(t, report)
			})
		})
	}
}

func (o *oddity) judge(t *testing.T, report *Report) {
	t.Helper()
	failed, passed, unseen := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range report.Results {
		switch r.Status {
		case Fail, Broken:
			failed[r.Rule.ID] = true
			if !slices.Contains(o.but, r.Rule.ID) {
				t.Errorf("%s in version %d: %s: %s\n%s", r.Rule.ID, r.Version, r.Status, r.Why, seenText(r))
			}
		case Pass:
			passed[r.Rule.ID] = true
		case Unseen:
			unseen[r.Rule.ID] = true
		}
	}
	for _, id := range o.seen {
		if !passed[id] || unseen[id] {
			t.Errorf("%s did not pass", id)
		}
	}
	for _, id := range o.but {
		if !failed[id] {
			t.Errorf("%s did not fail", id)
		}
	}
	for _, id := range o.unset {
		if !unseen[id] || passed[id] {
			t.Errorf("%s is not unseen", id)
		}
	}
}

var oddClients = map[string]oddity{
	// What is left out takes long, and asks for what nobody knows all the time.
	"does not answer unknown requests": {
		odd:   of(Agent, onRequest("", when(isUnasked, drop))),
		rules: []string{"client/answer", "client/dispatch/unknown-request", "client/dispatch/unknown-plain", "client/dispatch/agents-method", "client/dispatch/string-id", "client/framing/escapes", "client/permission", "client/initialize", "client/command", "client/turn", "client/update", "client/fs"},
		seen:  []string{"client/command/emptied", "client/command/input", "client/initialize/least", "client/initialize/null-members", "client/fs/no-way", "client/permission/answered"},
		but:   []string{"client/answer/unknown-method", "client/dispatch/unknown-request"},
		unset: []string{"client/dispatch/string-id", "client/dispatch/unknown-plain", "client/dispatch/agents-method", "client/framing/escapes"},
	},
	"answers a write with null": {
		odd:   onReply("fs/write_text_file", when(func(f *flying) bool { return f.get("result") != nil }, set("result", `null`))),
		rules: []string{"client/fs", "client/envelope"},
		seen:  []string{"client/fs/written", "client/fs/replaced"},
	},
	"ends each file with a line feed": {
		odd:   onRequest("fs/write_text_file", lineEnd),
		rules: []string{"client/fs"},
		seen:  []string{"client/fs/written", "client/fs/replaced", "client/fs/bad-write", "client/fs/line"},
		but:   []string{"client/fs/exact", "client/fs/empty"},
	},
	"takes a missing file for an empty one": {
		odd:   onReply("fs/read_text_file", when(func(f *flying) bool { return f.get("error.code") != nil && encode(f.get("error.code")) == "-32002" }, instead(`{"jsonrpc":"2.0","id":$id,"result":{"content":""}}`))),
		rules: []string{"client/fs"},
		but:   []string{"client/fs/missing", "client/fs/directory", "client/fs/endless-link", "client/fs/named-pipe", "client/fs/other-session"},
		unset: []string{"client/fs/upwards", "client/fs/no-path"},
	},
}

// isUnasked reports whether a client need not have what is requested of it.
func isUnasked(f *flying) bool {
	return f.method != "session/request_permission" && !strings.HasPrefix(f.method, "fs/") && !strings.HasPrefix(f.method, "terminal/") && !strings.HasPrefix(f.method, "elicitation/")
}

// lineEnd adds what editors do to a text that is written.
func lineEnd(w *between, f *flying) {
	if text, ok := f.get("params.content").(string); ok && !strings.HasSuffix(text, "\n") {
		set("params.content", encode(text+"\n"))(w, f)
		return
	}
	w.pass(f)
}

// TestOddClients is the same for clients.
func TestOddClients(t *testing.T) {
	oddities(t, oddClients, func(ctx context.Context, o oddity) (*Report, error) {
		return CheckClient(ctx, acceptClient(o.odd), Options{Experimental: true, Only: o.rules})
	})
}
