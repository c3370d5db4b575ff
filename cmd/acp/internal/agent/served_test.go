package agent

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/internal/standin"
)

// TestKilledKnowledge kills the agent with SIGKILL after its model has read and changed files.
// When the session is loaded again it knows what the model has seen: what has changed
// meanwhile is neither overwritten nor taken for its twin, and what the model has done is
// known as its own.
func TestKilledKnowledge(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process is killed in another way")
	}
	const twins = "def a():\n    self.commit()\n    self.log(\"saved\")\n\ndef b():\n    if x:\n        self.commit()\n        self.log(\"saved\")\n"
	call := func(name, path string, more ...any) standin.Call {
		args := map[string]any{"path": path}
		for i := 0; i < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return standin.Call{Name: name, Args: args}
	}
	change := func(path, old, now string) standin.Call {
		return call("edit", path, "edits", []map[string]any{{"old": old, "new": now}})
	}
	var mu sync.Mutex
	var results []string
	service := standin.New(standin.Options{Strict: true, Script: func(r *standin.Request) standin.Step {
		mu.Lock()
		defer mu.Unlock()
		results = r.Results
		step := standin.Step{Text: []string{"Done."}}
		switch r.Answers {
		case 0:
			step.Calls = []standin.Call{
				call("read", "user.txt"), call("read", "a.py"), call("read", "kept.txt"),
				call("write", "mine.txt", "text", "one\n"), change("mine.txt", "one", "two"),
			}
		case 2:
			step.Calls = []standin.Call{
				call("write", "user.txt", "text", "v2\n"),
				change("a.py", "        self.commit()\n        self.log(\"saved\")\n", "        done()\n"),
				change("mine.txt", "one", "two"),
				call("write", "kept.txt", "text", "v2\n"), call("write", "mine.txt", "text", "three\n"),
			}
		}
		return step
	}})
	defer service.Close()
	k := start(t, 2, func(k *talk) { k.api = "messages " + service.URL })
	k.write("user.txt", "v1\n")
	k.write("kept.txt", "v1\n")
	k.write("a.py", twins)
	k.process()
	k.open()
	k.tell("/mode auto")
	k.tell("/run echo $PPID > parent.pid")
	k.tell("Read.")
	id := k.session.ID()
	kill(t, k.agentPID())
	_ = k.conn.Close()

	k.write("user.txt", "v1\nUSER LINE\n")
	changed := strings.Replace(twins, "        self.log(\"saved\")", "        self.log(\"stored\")", 1)
	k.write("a.py", changed)
	k.process()
	s, err := k.conn.Load(t.Context(), id, acp.SessionConfig{Cwd: k.cwd})
	if err != nil {
		t.Fatal(err)
	}
	k.session = s
	k.tell("Go on.")
	mu.Lock()
	defer mu.Unlock()
	if len(results) < 5 {
		t.Fatalf("%q", results)
	}
	for i, want := range []string{
		"+USER LINE", "since you read it, the user or a command has changed it", "you have made this edit already", "Changed `kept.txt`", "Changed `mine.txt`",
	} {
		contains(t, results[len(results)-5+i], want)
	}
	for name, want := range map[string]string{"user.txt": "v1\nUSER LINE\n", "a.py": changed, "kept.txt": "v2\n", "mine.txt": "three\n"} {
		if got := k.read(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if faults := service.Faults(); len(faults) > 0 {
		t.Errorf("the service has refused: %v", faults)
	}
}

// TestKilledBetween: the agent was killed after it has changed a file, and before it could keep
// that. The change is its own all the same.
func TestKilledBetween(t *testing.T) {
	const edit = `{"path":"doc/notes.txt","edits":[{"old":"second","new":"2nd"}]}`
	w, with := scripted(t, `
use read {"path":"doc/notes.txt"}
---
use edit `+edit+`
---
say Done.
---
use edit `+edit+`
use write {"path":"doc/notes.txt","text":"all\n"}
---
say Done again.`)
	k := start(t, 2, with)
	k.tell("/mode full")
	contains(t, k.tell("Go."), "Done.")
	if err := k.conn.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(k.dir, string(k.session.ID())+suffix)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(data), `"kind":"intent"`)
	if at < 0 {
		t.Fatal("there is no intent")
	}
	at += strings.IndexByte(string(data[at:]), '\n') + 1
	if err := os.WriteFile(name, data[:at], 0o600); err != nil {
		t.Fatal(err)
	}
	k.connect()
	s, err := k.conn.Load(t.Context(), k.session.ID(), acp.SessionConfig{Cwd: k.cwd})
	if err != nil {
		t.Fatal(err)
	}
	k.session = s
	contains(t, k.tell("Go on."), "Done.") // the script counts the answers, of which one is missing
	contains(t, k.tell("And again."), "Done again.")
	contains(t, w.last(), "you have made this edit already", "Changed `doc/notes.txt`")
	if got := k.read("doc/notes.txt"); got != "all\n" {
		t.Errorf("%q", got)
	}
}
