package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/cmd/acp/internal/agent/window"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// longWork is a script whose conversation does not fit into its window.
const longWork = `
window 12000
when was replaced by a summary
use read {"path":"main.go"}
---
when Make it
say I look.
use plan {"steps":[{"text":"look at it","status":"completed"},{"text":"change it","status":"in_progress"}]}
use run {"command":"echo no such thing; exit 3"}
use edit {"path":"main.go","edits":[{"old":"println(\"one\")","new":"println(\"two\")"}]}
---
when Changed
use read {"path":"big1.txt"}
---
when bigone
use read {"path":"big2.txt"}
---
when The conversation is about to be replaced
say <<END
## Goal
Two lines.
## Next action
Look at main.go once more.
END
---
when package main
say Done.
---
always
when And now
say Nothing more.
`

// TestCompact: a conversation that nearly fills the window is replaced by a short one
// which has what must not be lost, and the turn continues.
func TestCompact(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		w, with := scripted(t, longWork)
		k := start(t, v, with)
		k.write("big1.txt", strings.Repeat("bigone and more of it\n", 700))
		k.write("big2.txt", strings.Repeat("bigtwo and more of it\n", 1500))
		k.tell("/mode full")
		got := k.tell("Make it print two.", acp.Text("And be quick."))
		contains(t, got, "Done.")
		if v == 2 {
			contains(t, got, "compaction", "Look at main.go once more.")
		}
		n := slices.IndexFunc(w.requests, func(r *model.Request) bool { return len(r.Tail) > 0 })
		if n < 0 {
			t.Fatal("no summary was asked for")
		}
		for _, r := range w.requests {
			strict(t, r.Messages)
		}
		if p := w.requests[n]; p.Prefix != w.requests[0].Prefix || p.Tail[0].(*model.Text).Text != window.Ask || p.Effort != w.requests[0].Effort {
			t.Error("the request for a summary does not begin like the others")
		}
		was, now := w.requests[n].Messages, w.requests[n+1].Messages
		text := messageText(now[0])
		contains(t, text, "Working directory: "+k.cwd, "\nShell: "+tool.Shell()+"\n", "## Next action\nLook at main.go once more.", "[in_progress] change it",
			k.cwd+"/main.go", "echo no such thing; exit 3", "exit status 3", "\nMake it print two.\n", "\nAnd be quick.\n")
		if strings.Contains(text, "bigone and more of it") || len(now) >= len(was) {
			t.Errorf("%d messages of %d, the first:\n%s", len(now), len(was), text)
		}
		contains(t, k.tell("/usage"), "Requests to `script/script`: 6", "Context window:")

		// A session that is loaded continues with the short conversation.
		k.reopen()
		k.tell("And now?")
		again := w.requests[len(w.requests)-1].Messages
		strict(t, again)
		if diff := cmp.Diff(asJSON(t, now), asJSON(t, again[:len(now)])); diff != "" {
			t.Errorf("the conversation after it was loaded (-want +got)\n%s", diff)
		}
		contains(t, k.tell("/usage"), "Requests to `script/script`: 7")
	})
}

func asJSON(t *testing.T, messages []*model.Message) []string {
	t.Helper()
	var all []string
	for _, m := range messages {
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(data))
	}
	return all
}

// TestCompactAtOverflow: a model that refuses a conversation as too long, although that
// was not to be expected, gets a short one.
func TestCompactAtOverflow(t *testing.T) {
	w, with := scripted(t, `
when There is no summary
say I continue.
---
when Make it
use read {"path":"big.txt"}
---
when bigone
fail overflow that is too much
---
when The conversation is about to be replaced
fail overflow that, too
`)
	k := start(t, 2, with)
	k.write("big.txt", strings.Repeat("bigone and more of it\n", 1900))
	contains(t, k.tell("Make it so."), "I continue.", "The model has written no summary.")
	contains(t, messageText(w.requests[3].Messages[0]), "Make it so.")
	if text := messageText(w.requests[2].Messages[2]); len(text) > 500 {
		t.Errorf("what is to be summarized still has %d bytes of a result", len(text))
	}
}

// TestCompactInVain: a conversation that cannot be made shorter ends with one clear error,
// and is kept as it was.
func TestCompactInVain(t *testing.T) {
	w, with := scripted(t, "window 2000\nwhen The conversation is about to be replaced\nsay short\n---\nsay never")
	k := start(t, 2, with)
	long := strings.Repeat("These are many words. ", 300)
	reply, err := k.session.Prompt(t.Context(), acp.Text(long)).Wait()
	if err == nil || !strings.Contains(err.Error(), "after it was summarized") {
		t.Errorf("%+v, %v", reply, err)
	}
	if len(w.requests) != 1 {
		t.Errorf("%d requests", len(w.requests))
	}
}

// TestCompactCommand: /compact does it when the user wants it.
func TestCompactCommand(t *testing.T) {
	_, with := scripted(t, "when The conversation is about to be replaced\nsay All read.\n---\nwhen Look\nuse read {\"path\":\"big.txt\"}\n---\nwhen bigone\nsay I see.")
	k := start(t, 2, with)
	contains(t, k.tell("/compact"), "There is no conversation")
	k.write("big.txt", strings.Repeat("bigone and more of it\n", 1900))
	k.tell("Look.")
	contains(t, k.tell("/compact"), "All read.")
	if got := k.tell("/compact now"); !strings.Contains(got, "Nothing may follow") {
		t.Error(got)
	}
}

// TestTruncated: a server that reads only a part of what it was sent is found out.
func TestTruncated(t *testing.T) {
	w, with := scripted(t, "say one\nusage input=4000 output=5\n---\nuse write {\"path\":\"a\",\"text\":\"b\"}\nusage input=2048 output=5")
	k := start(t, 2, with)
	local := w.Model
	w.Model = localModel{local}
	k.tell("First.")
	_, err := k.session.Prompt(t.Context(), acp.Text("Second.")).Wait()
	if err == nil || !strings.Contains(err.Error(), "has read only 2048 tokens") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(k.cwd, "a")); err == nil {
		t.Error("a tool was run")
	}
}

// TestCountsUncached: a server that counts only what was not in its cache is not taken for one that has left out something: the
// answer is kept, with a warning.
func TestCountsUncached(t *testing.T) {
	w, with := scripted(t, "say one\nusage input=300 output=1\n---\nuse write {\"path\":\"a\",\"text\":\"b\"}\nusage input=40 output=5\n---\nsay two\nusage input=35 output=5")
	k := start(t, 2, with)
	w.Model = localModel{w.Model}
	if got := k.tell("First."); !strings.Contains(got, "one") || strings.Count(got, "notice: The server may not have read the whole conversation.") != 1 {
		t.Error(got)
	}
	if got := k.tell("Second."); !strings.Contains(got, "two") || strings.Contains(got, "notice:") {
		t.Error(got)
	}
	if k.read("a") != "b\n" && k.read("a") != "b" {
		t.Error("the tool was not run")
	}
}

type localModel struct{ model.Model }

func (m localModel) Info() model.Info {
	i := m.Model.Info()
	i.Local = true
	return i
}

// TestMisses: /usage says how often the provider's cache was missed, and why.
func TestMisses(t *testing.T) {
	_, with := scripted(t, "say a\nusage write=9000 output=5\n---\nsay b\nusage read=9000 input=10 output=5\n---\nsay c\nusage input=9100 output=5")
	k := start(t, 2, with)
	for i := range 3 {
		k.tell(fmt.Sprint(i))
	}
	contains(t, k.tell("/usage"), "The cache was missed 1 time (the provider's own reasons): 9010 tokens were read again")
}

// TestChangedLines: what is kept of changed files says which are not as they were left.
func TestChangedLines(t *testing.T) {
	dir := t.TempDir()
	var c conversation
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	c.change(file("same", "a"), hashText("x"))
	c.change(file("same", "a"), hashText("a"))
	c.change(file("other", "b"), hashText("a"))
	c.change(file("gone", ""), hashText("a"))
	c.change(file("deleted", ""), "")
	c.change(dir, hashText("a"))
	c.change("", "")
	want := []string{"same", "other (changed since", "gone (it is not there", "deleted (deleted)", " (it cannot be read"}
	got := changedLines(c.changed)
	if len(got) != len(want) || got[0] != filepath.Join(dir, "same") {
		t.Fatalf("%q", got)
	}
	for i, l := range got {
		if !strings.Contains(l, want[i]) {
			t.Errorf("%q, not %q", l, want[i])
		}
	}
}
