package tui

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/transcript"
)

// TestFlood gives the model 50,000 updates, some hundreds at a time, as the host
// does, and has it draw after each. How long that takes is told, not tested.
func TestFlood(t *testing.T) {
	kinds := map[string]func(i int) acpv2.SessionUpdate{
		"one message": func(i int) acpv2.SessionUpdate {
			return &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(fmt.Sprintf("word%d of *many* ", i))}
		},
		"paragraphs": func(i int) acpv2.SessionUpdate {
			return &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(fmt.Sprintf("word%d\n\n", i))}
		},
		"messages": func(i int) acpv2.SessionUpdate {
			return &acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(fmt.Sprint(i)), Content: acpv2.Text(fmt.Sprintf("word%d", i))}
		},
		"one line": func(i int) acpv2.SessionUpdate {
			return &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(fmt.Sprintf("word%d", i))}
		},
		"code": func(i int) acpv2.SessionUpdate {
			text := fmt.Sprintf("word%d := f(x, \"y\") // z\n", i)
			if i == 0 {
				text = "```go\n" + text
			}
			return &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(text)}
		},
		"list": func(i int) acpv2.SessionUpdate {
			return &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(fmt.Sprintf("%*s- word%d **of** `many`\n", i%3*2, "", i))}
		},
		"table": func(i int) acpv2.SessionUpdate {
			text := fmt.Sprintf("| word%d | of | many |\n", i)
			if i == 0 {
				text = "| a | b | c |\n|---|---|---|\n" + text
			}
			return &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(text)}
		},
		"thought": func(i int) acpv2.SessionUpdate {
			if i == 49_999 {
				return &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("word0 word49999")}
			}
			return &acpv2.AgentThoughtChunk{MessageID: "t", Content: acpv2.Text(fmt.Sprintf("word%d of *many* ", i))}
		},
		"terminal": func(i int) acpv2.SessionUpdate {
			if i == 0 {
				return &acpv2.ToolCallUpdate{ToolCallID: "c", Title: acpv2.Set("word0"), Status: acpv2.Set(acpv2.ToolCallStatusInProgress), Content: acpv2.Set([]acpv2.ToolCallContent{&acpv2.Terminal{TerminalID: "x"}})}
			}
			return &acpv2.TerminalOutputChunk{TerminalID: "x", Data: base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "\x1b[3%dmword%d\x1b[m of many\n", i%8, i))}
		},
		"tool output": func(i int) acpv2.SessionUpdate { // said as a whole each time
			from := max(0, i-900)
			text := strings.Repeat(fmt.Sprintf("word%d := f(x, \"y\") // z\n", i), i-from+1)
			return &acpv2.ToolCallUpdate{ToolCallID: "c", Title: acpv2.Set("word0"), Status: acpv2.Set(acpv2.ToolCallStatusInProgress), Content: acpv2.Set([]acpv2.ToolCallContent{
				&acpv2.Content{Content: acpv2.Text("```go\n" + text + "```")}})}
		},
		"diff": func(i int) acpv2.SessionUpdate { // said as a whole each time
			if i == 49_999 {
				return &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("word49999")}
			}
			n := i%2000 + 1
			text := fmt.Sprintf("diff --git a/m.go b/m.go\n--- a/m.go\n+++ b/m.go\n@@ -1,%d +1,%d @@\n", n, n+1) + strings.Repeat(" \tx := f(y, \"z\") // same\n-\told := 1\n+\tnew := 2\n", n) + fmt.Sprintf("+word%d\n", i)
			return &acpv2.ToolCallUpdate{ToolCallID: "c", Title: acpv2.Set(fmt.Sprintf("word0 word%d", i)), Status: acpv2.Set(acpv2.ToolCallStatusInProgress), Content: acpv2.Set([]acpv2.ToolCallContent{
				&acpv2.Diff{Patch: &acpv2.DiffPatch{Format: acpv2.DiffPatchFormatGitPatch, Text: text}}})}
		},
		"tool calls": func(i int) acpv2.SessionUpdate {
			status := acpv2.ToolCallStatusCompleted
			return &acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(fmt.Sprint(i)), Title: acpv2.Set(fmt.Sprintf("word%d", i)), Status: acpv2.Set(status)}
		},
	}
	for name, update := range kinds {
		t.Run(name, func(t *testing.T) {
			if !long.All() && name != "one message" && name != "terminal" {
				t.Skip("short")
			}
			r := newRig(t, 100, 40, nil).start()
			const all = 50_000
			batch := 250
			if name == "tool output" || name == "diff" {
				batch = 1000 // of which one update is enough
			}
			var worst, total time.Duration
			for i := 0; i < all; i += batch {
				var changes []transcript.Change
				for k := range batch {
					if batch > 250 && k < batch-1 && i+k > 0 {
						continue
					}
					changes = append(changes, r.talk.conv.Apply(update(i+k)))
				}
				r.m.front.changed(r.talk.id, changes)
				began := time.Now()
				r.m.Update(changedMsg{})
				r.m.View()
				d := time.Since(began)
				worst, total = max(worst, d), total+d
			}
			r.wants(fmt.Sprintf("word%d", all-1))
			t.Logf("a frame took %v at most, %v on average", worst, total/time.Duration(all/batch))
			r.keys("home")
			for range 10_000 { // the rest of the layout
				if !r.m.stale {
					break
				}
				r.send(layoutMsg{})
			}
			r.wants("word0")
		})
	}
}

// TestSpread: a small machine has threads enough for the screen, unless the user says how many; afterwards
// there are as many as before.
func TestSpread(t *testing.T) {
	was := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(was)
	t.Setenv("GOMAXPROCS", "1")
	spread()()
	back := spread()
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("%d threads against the user's will", n)
	}
	back()
	t.Setenv("GOMAXPROCS", "")
	back = spread()
	if n := runtime.GOMAXPROCS(0); n != threads {
		t.Errorf("%d threads with a screen", n)
	}
	back()
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("%d threads afterwards", n)
	}
}
