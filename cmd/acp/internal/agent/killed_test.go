package agent

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/standin"
)

var kills = flag.Int("kills", 12, "how often TestKilledConversation kills the agent")

// TestKilledConversation kills the agent with SIGKILL at random points of a turn in which a
// model reads in parallel, edits and runs commands. The session loads, nothing that was
// shown is lost, what is sent to the model next is valid, and no edit is done twice or
// forgotten: the model knows the file as it is.
func TestKilledConversation(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	n := *kills
	if !long.All() {
		n = min(n, 5)
	}
	var script strings.Builder
	script.WriteString("pace 2ms\nsay I read first.\nuse read {\"path\":\"main.go\"}\nuse read {\"path\":\"doc/notes.txt\"}\n")
	for i := range 12 {
		fmt.Fprintf(&script, "---\nsay Now I count to %d.\nuse edit {\"path\":\"count.txt\",\"edits\":[{\"old\":\"n=%d;\",\"new\":\"n=%d;\"}]}\nuse read {\"path\":\"count.txt\"}\nuse run {\"command\":\"true\"}\n", i+1, i, i+1)
	}
	script.WriteString("---\nsay Done.\n")
	// Each interface, with a service that refuses what the real ones refuse.
	apis := []string{"", "messages", "responses", "chat", "patches"}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 9))
	ends := map[string]int{}
	for i := range n {
		after := time.Duration(rng.IntN(500)) * time.Millisecond
		api := apis[i%len(apis)]
		if api != "" { // the service does not pause between words, as the script does
			after /= 4
		}
		ends[killedConversation(t, script.String(), api, after)]++
		if t.Failed() {
			t.Fatalf("%s killed after %v", api, after)
		}
	}
	t.Logf("how far the turns were: %v", ends)
}

// killedConversation kills the agent a while after a prompt, and says what it did then.
func killedConversation(t *testing.T, script, api string, after time.Duration) string {
	t.Helper()
	var service *standin.Server
	if api != "" {
		service = standin.New(standin.Options{Strict: true, Script: counting})
		defer service.Close()
	}
	var mu sync.Mutex
	var shown, told strings.Builder
	replaying := false
	k := start(t, 2, func(k *talk) {
		k.client.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			mu.Lock()
			defer mu.Unlock()
			if replaying {
				told.WriteString(u.Text())
				return
			}
			shown.WriteString(u.Text())
		}
		if api != "" {
			k.api = api + " " + service.URL
			return
		}
		k.scriptFile = filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(k.scriptFile, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	k.write("count.txt", "n=0;\n")
	k.process()
	k.open()
	k.tell("/mode auto")
	k.tell("/run echo $PPID > parent.pid")
	mu.Lock()
	shown.Reset()
	mu.Unlock()
	id := k.session.ID()
	reply := k.session.Prompt(t.Context(), acp.Text("Count."))
	timer := time.NewTimer(after) // when to kill is what the test varies
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
	kill(t, k.agentPID())
	_, _ = reply.Wait()
	mu.Lock()
	was := shown.String()
	replaying = true
	mu.Unlock()

	k.process()
	s, err := k.conn.Load(t.Context(), id, acp.SessionConfig{Cwd: k.cwd})
	if err != nil {
		t.Errorf("the session does not load: %v", err)
		return ""
	}
	k.session = s
	mu.Lock()
	if !strings.Contains(told.String(), was) {
		t.Errorf("shown:\n%s\ntold again:\n%s", was, told.String())
	}
	mu.Unlock()
	if api != "" {
		k.tell("Go on.") // the service takes the conversation
	}
	if err := k.conn.Close(); err != nil {
		t.Error(err)
	}
	if service != nil && len(service.Faults()) > 0 {
		t.Errorf("the service has refused: %v", service.Faults())
	}
	messages := k.messages(id)
	strict(t, messages)
	// How far the model believes to be, and how far the file is.
	believed := 0
	var all strings.Builder
	for _, m := range messages {
		all.WriteString(messageText(m))
	}
	believed = strings.Count(all.String(), "Changed `count.txt`: ") + strings.Count(all.String(), "This was done: ")
	if got, want := k.read("count.txt"), fmt.Sprintf("n=%d;\n", believed); got != want {
		t.Errorf("the file has %q, and the model believes %q:\n%s", got, want, all.String())
	}
	if strings.Contains(all.String(), "neither as it was") || strings.Contains(all.String(), "is not in the file") {
		t.Errorf("an edit was lost or done twice, the file is %q:\n%s", k.read("count.txt"), all.String())
	}
	return fmt.Sprintf("%d edits", believed)
}

// counting answers like the script, with thoughts. It stops once it is to go on.
func counting(r *standin.Request) standin.Step {
	last := r.Users[len(r.Users)-1]
	if strings.Contains(last, "Go on.") || r.Answers > 12 {
		return standin.Step{Text: []string{"Done."}}
	}
	call := func(name string, args map[string]any) standin.Call { return standin.Call{Name: name, Args: args} }
	if r.Answers == 0 {
		return standin.Step{Thought: "I read first.", Text: []string{"I ", "read ", "first."}, Calls: []standin.Call{
			call("read", map[string]any{"path": "main.go"}), call("read", map[string]any{"path": "doc/notes.txt"}),
		}}
	}
	i := r.Answers - 1
	edit := []map[string]any{{"old": fmt.Sprintf("n=%d;", i), "new": fmt.Sprintf("n=%d;", i+1)}}
	change := call("edit", map[string]any{"path": "count.txt", "edits": edit})
	if slices.Contains(r.Tools, "apply_patch") {
		text := fmt.Sprintf("*** Begin Patch\n*** Update File: count.txt\n@@\n-n=%d;\n+n=%d;\n*** End Patch\n", i, i+1)
		change = standin.Call{Name: "apply_patch", Args: text}
	}
	return standin.Step{Thought: fmt.Sprintf("%d comes next.", i+1), Text: []string{fmt.Sprintf("Now I count to %d.", i+1)}, Calls: []standin.Call{
		change,
		call("read", map[string]any{"path": "count.txt"}), call("run", map[string]any{"command": "true"}),
	}}
}

// messages returns the conversation with the model as the journal has it, settled.
func (k *talk) messages(id acp.SessionID) []*model.Message {
	k.t.Helper()
	var u unsettled
	k.kept(id, u.see)
	if added := u.settle(hashOf); len(added) > 0 {
		k.t.Errorf("%d messages were not settled when the session was loaded", len(added))
	}
	return u.messages
}
