package agent

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/transcript"
)

// TestKeptOutput: of a command that prints more than is kept as it comes, the beginning
// and the end are kept, and how it ended.
func TestKeptOutput(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	k := start(t, 2)
	k.tell("/run head -c 6000000 /dev/zero | tr '\\0' x; exit 3")
	if err := k.conn.Close(); err != nil {
		t.Fatal(err)
	}
	pieces, tail, exit := 0, 0, int64(-1)
	k.kept(k.session.ID(), func(e entry) {
		switch u := e.update.(type) {
		case *acp.TerminalOutputChunk:
			data, err := u.Bytes()
			if tail > 0 {
				t.Error("a piece follows the end of the output")
			}
			if pieces += len(data); err != nil {
				t.Error(err)
			}
		case *acp.TerminalUpdate:
			if out, ok := u.Output.Get(); ok {
				data, err := out.Bytes()
				if tail = len(data); err != nil {
					t.Error(err)
				}
			}
			if status, ok := u.ExitStatus.Get(); ok && status.ExitCode != nil {
				exit = *status.ExitCode
			}
		}
	})
	if pieces > maxKeptOutput || pieces < maxKeptOutput-64<<10 || tail != outputTail || exit != 3 {
		t.Errorf("%d bytes in pieces, the last %d bytes, exit status %d", pieces, tail, exit)
	}
}

// TestSettled: what ran when the program died ends when the session comes back, and
// cannot be cancelled any more.
func TestSettled(t *testing.T) {
	var mu sync.Mutex
	fold := transcript.New(transcript.Config{})
	k := start(t, 2, func(k *talk) {
		k.client.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			mu.Lock()
			defer mu.Unlock()
			fold.Apply(u.Update)
		}
	})
	var drafts []journal.Draft
	for _, update := range []string{
		`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"Run","status":"in_progress","capabilities":{"cancel":{}}}`,
		`{"sessionUpdate":"terminal_update","terminalId":"t","command":"sleep 60","capabilities":{"cancel":{}}}`,
	} {
		drafts = append(drafts, journal.Draft{Kind: journal.KindUpdate, Data: []byte(update)})
	}
	dead, err := stored(k.dir).create("sess_dead", about{Cwd: k.cwd}, drafts...)
	if err == nil {
		err = dead.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.conn.Load(t.Context(), "sess_dead", acp.SessionConfig{Cwd: k.cwd}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	told := strings.Join(entries(t, fold.Snapshot()), "\n")
	for _, want := range []string{`"status":"cancelled"`, `"signal":"KILL"`} {
		if !strings.Contains(told, want) {
			t.Errorf("%s is missing in\n%s", want, told)
		}
	}
	if strings.Contains(told, `"cancel":`) {
		t.Errorf("it can still be cancelled:\n%s", told)
	}
}

// TestSettledPatch: of a call that was about to change several files, each one is judged by itself.
func TestSettledPatch(t *testing.T) {
	const (
		interrupted = "The agent was interrupted. "
		more        = " Whether more of the patch was done is not known: look at its other files."
		one         = "*** Begin Patch\n*** Update File: a\n"
	)
	now := map[string]string{"/a": "new", "/b": "old", "/c": "other"}
	hash := func(path string) (string, error) { return now[path], nil }
	for _, tc := range []struct {
		name, tool, patch string
		intents           []*intent
		want              string
		done              int
	}{
		{"the second was not done", "patch", one + "*** Update File: b\n*** Delete File: z\n", []*intent{
			{Path: "/a", Before: "old", After: "new"}, {Path: "/b", Before: "old", After: "new"},
		}, "This was done: /a is as it was to become. This was not done: /b is as it was before." + more, 1},
		{"the last was done", "run", "apply_patch <<'E'\n" + one + "*** Add File: b\n", []*intent{
			{Path: "/c", Before: "old", After: "new"}, {Path: "/a", Before: "old", After: "new"},
		}, "It is not known whether this was done: /c is neither as it was before nor as it was to become. Read it first. " +
			"This was done: /a is as it was to become." + more, 1},
		{"a move", "patch", one + "*** Move to: b\n", []*intent{
			{Path: "/gone", Before: "old"}, {Path: "/a", After: "new"},
		}, "This was done: /gone is as it was to become. This was done: /a is as it was to become.", 2},
		{"one file", "patch", one, []*intent{{Path: "/b", Before: "old", After: "new"}}, "This was not done: /b is as it was before.", 0},
		{"none", "patch", one + "*** Add File: b\n", nil, "This was not done.", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			input, err := json.Marshal(map[string]string{"patch": tc.patch})
			if err != nil {
				t.Fatal(err)
			}
			var u unsettled
			u.see(entry{message: &model.Message{Role: model.Assistant, Parts: []model.Part{&model.ToolUse{ID: "1", Name: tc.tool, Input: input}}}})
			for _, in := range tc.intents {
				in.ID = "1"
				u.see(entry{intent: in})
			}
			added := u.settle(hash)
			if len(added) != 1 || len(u.done) != tc.done {
				t.Fatalf("%d messages, %d done", len(added), len(u.done))
			}
			if got := messageText(added[0]); strings.TrimSpace(got) != "failed: "+interrupted+tc.want {
				t.Errorf("it says %q", got)
			}
		})
	}
}
