package view

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Every kind of entry at three widths, folded and unfolded. The same with colours is the same text.
func TestScreens(t *testing.T) {
	for name, updates := range screens() {
		t.Run(name, func(t *testing.T) {
			c := conversation(t, updates)
			if name == "permission" {
				askAll(t, c)
			}
			var b strings.Builder
			for _, width := range []int{40, 80, 140} {
				for _, open := range []bool{false, true} {
					if open && width != 80 {
						continue
					}
					ls := screen(t, c, plainTheme(), width, open)
					coloured := screen(t, c, fullTheme(), width, open)
					for i, l := range coloured {
						coloured[i] = strings.TrimRight(sequences.ReplaceAllString(l, ""), " ")
					}
					if diff := cmp.Diff(ls, coloured); diff != "" {
						t.Errorf("width %d: text (-plain +coloured):\n%s", width, diff)
					}
					head := fmt.Sprint("width ", width)
					if open {
						head += ", unfolded"
					}
					fmt.Fprintf(&b, "=== %s\n%s\n", head, strings.Join(ls, "\n"))
				}
			}
			golden(t, name, b.String())
		})
	}
}

func screen(t *testing.T, c *transcript.Conversation, th *Theme, width int, open bool) []string {
	tr := New(th)
	child := conversation(t, `{"sessionUpdate":"agent_message","messageId":"x","content":[{"type":"text","text":"Looking for tests"}]}
		{"sessionUpdate":"tool_call_update","toolCallId":"y","title":"Read a_test.go","status":"completed"}`).Snapshot()
	tr.SetOptions(Options{Cwd: "/w", Child: func(id acpv2.SessionID) *transcript.Snapshot {
		if id == "s2" {
			return child
		}
		return nil
	}})
	tr.SetWidth(width)
	s := c.Snapshot()
	tr.Set(s, nil)
	if open {
		for e := range s.Entries() {
			if !tr.Expanded(e.Seq()) {
				tr.Toggle(e.Seq())
			}
		}
	}
	ls := drawAll(tr)
	checkLines(t, ls, width)
	if th.plain { // spaces at the end have a background where there are colours
		for i, l := range ls {
			ls[i] = strings.TrimRight(l, " ")
		}
	}
	return ls
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// askAll asks for permissions with every sort of answer.
func askAll(t *testing.T, c *transcript.Conversation) {
	options := []acpv2.PermissionOption{
		{OptionID: "y", Name: "Allow once", Kind: acpv2.PermissionOptionKindAllowOnce},
		{OptionID: "n", Name: "Reject", Kind: acpv2.PermissionOptionKindRejectOnce},
	}
	for _, o := range []acpv2.RequestPermissionOutcome{
		nil,
		&acpv2.SelectedPermissionOutcome{OptionID: "y"},
		&acpv2.SelectedPermissionOutcome{OptionID: "n"},
		&acpv2.SelectedPermissionOutcome{OptionID: "other"},
		&acpv2.CancelledPermissionOutcome{},
	} {
		seq, _ := c.Asked(&acpv2.RequestPermissionRequest{
			SessionID: "s", Title: "Run a command", Options: options,
			Subject: &acpv2.CommandPermissionSubject{Command: "rm -rf build && make all", Cwd: "/w"},
		})
		if o != nil {
			c.Answered(seq, o)
		}
	}
}

func screens() map[string]string {
	text := func(kind, id, s string) string {
		return `{"sessionUpdate":"` + kind + `","messageId":"` + id + `","content":[{"type":"text","text":` + quote(s) + `}]}` + "\n"
	}
	tool := func(id, rest string) string {
		return `{"sessionUpdate":"tool_call_update","toolCallId":"` + id + `",` + rest + "}\n"
	}
	content := func(s string) string {
		return `"content":[{"type":"content","content":{"type":"text","text":` + quote(s) + `}}]`
	}
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %d\n", i+1)
		}
		return b.String()
	}
	markdown := "# Heading one\n\nA paragraph with **bold**, *italic*, `code`, ~~struck~~ and a [link](https://example.com/page) that wraps. &lt;tag&gt; <b>html</b>\nA line of its own. https://example.org\n\n## Two\n\n1. first\n2. second\n   - nested\n   - [x] done\n   - [ ] open\n\n> quoted\n> text\n\n| Name | Value | Notes |\n|:-----|------:|-------|\n| a | 1 | short |\n| 世界 🙂 | 1000 | a longer note that has to be wrapped in its cell |\n\n```go\nfunc main() {\n\tfmt.Println(\"hello\") // a comment that is long enough to be wrapped on narrow screens\n}\n```\n\n---\nImage: ![alt](pic.png), [evil](javascript:alert(1)) and [file](file:///w/a.go).\n[ref]: http://example.com"
	return map[string]string{
		"markdown": text("agent_message", "a", markdown),
		"messages": text("user_message", "u", "A question of the user's that is long enough to be wrapped at most of the widths there are, or so one would think.\n\n  - indented\n# no heading") +
			text("agent_thought", "t", "**Thinking** about it,\nat length, which is folded to one line until somebody wants to read all of it.") +
			text("agent_message", "a", "Short answer.") +
			`{"sessionUpdate":"agent_message","messageId":"b","content":[{"type":"text","text":"With more:"},{"type":"image","data":"AAAAAAAA","mimeType":"image/png"},{"type":"audio","data":"AAAA","mimeType":"audio/wav"},{"type":"resource_link","name":"notes","title":"The notes","uri":"https://example.com/n","mimeType":"text/plain","size":123456,"description":"what was said"},{"type":"resource","resource":{"uri":"file:///w/x.txt","text":"inside\nthe file","mimeType":"text/plain"}},{"type":"resource","resource":{"uri":"file:///w/x.bin","blob":"AAAA"}},{"type":"hologram","x":1},{"type":"text","text":"The end."}]}` + "\n",
		"tools": tool("1", `"title":"Read /w/main.go","kind":"read","status":"completed","locations":[{"path":"/w/main.go","line":12}],`+content(lines(30))) +
			tool("2", `"title":"List files","status":"pending"`) +
			tool("3", `"title":"Fetch https://example.com/a/very/long/address/that/has/to/be/wrapped/somewhere/or/other","kind":"fetch","status":"in_progress"`) +
			tool("4", `"title":"Search for x","kind":"search","status":"completed","rawInput":{"pattern":"x","path":"/w"},"rawOutput":{"n":3},"locations":[{"path":"/w/a.go","line":1},{"path":"/w/b.go","line":2},{"path":"/w/c.go"},{"path":"/elsewhere/d.go"}],`+content("Found **3** matches\n\n"+lines(20))) +
			tool("5", `"title":"Delete /w/old.txt","kind":"delete","status":"failed",`+content("permission denied")) +
			tool("6", `"title":"go vet ./...","name":"shell","kind":"execute","status":"completed",`+content("```\n"+lines(20)+"```")) +
			tool("7", `"title":"Long task","kind":"think","status":"cancelled"`) +
			tool("8", `"title":"Paused","kind":"move","status":"paused"`) +
			tool("9", `"kind":"switch_mode","status":"warp"`),
		"diffs": tool("1", `"title":"Edit /w/main.go","kind":"edit","status":"completed","locations":[{"path":"/w/main.go","line":9}],"content":[{"type":"diff","changes":[{"operation":"modify","path":"/w/main.go"}],"patch":{"format":"git_patch","text":`+quote(examplePatch)+`}}]`) +
			tool("2", `"title":"Write new.txt","kind":"edit","status":"completed","content":[{"type":"diff","changes":[{"operation":"add","path":"/w/new.txt"}],"patch":{"format":"git_patch","text":`+quote("diff --git a/w/new.txt b/w/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/w/new.txt\n@@ -0,0 +1,60 @@\n+"+strings.ReplaceAll(strings.TrimSpace(lines(60)), "\n", "\n+")+"\n")+`}}]`) +
			tool("3", `"title":"Move things","kind":"move","status":"completed","content":[{"type":"diff","changes":[{"operation":"move","oldPath":"/w/a","path":"/w/b"},{"operation":"delete","path":"/w/c"},{"operation":"modify","path":"/w/pic.png","fileType":"binary"},{"operation":"transmogrify","path":"/w/z"}]}]`),
		"terminals": tool("1", `"title":"Run the tests","kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":"T"}]`) +
			`{"sessionUpdate":"terminal_update","terminalId":"T","command":"go test ./...","cwd":"/w"}
			{"sessionUpdate":"terminal_output_chunk","terminalId":"T","data":"b2sgIGEKb2sgIGIKG1szMW1GQUlMG1swbSBjCm9rIGQKb2sgZQpvayBmCm9rIGcKb2sgaApvayBpCm9rIGoKb2sgawpvayBsCm9rIG0K"}
			{"sessionUpdate":"terminal_update","terminalId":"U","command":"make","cwd":"/w/sub","exitStatus":{"exitCode":2}}
			{"sessionUpdate":"terminal_output_chunk","terminalId":"U","data":"MTAlDTEwMCUKZG9uZQo="}
			{"sessionUpdate":"terminal_update","terminalId":"V","command":"sleep 100","exitStatus":{"signal":"SIGKILL"}}
			{"sessionUpdate":"terminal_update","terminalId":"W","command":"true","exitStatus":{"exitCode":0}}
			`,
		"plans": `{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[{"content":"Read the code","status":"completed","priority":"high"},{"content":"Fix the crash, which is a step with a long description that has to be wrapped","status":"in_progress","priority":"high"},{"content":"Run the tests","status":"pending","priority":"medium"},{"content":"Something else","status":"cancelled","priority":"low"}]}}
			{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"q","content":"1. **one**\n2. two"}}
			{"sessionUpdate":"plan_update","plan":{"type":"file","planId":"r","uri":"file:///w/plan.md"}}
			{"sessionUpdate":"plan_update","plan":{"type":"mindmap","planId":"s","x":1}}
			`,
		"notices": `{"sessionUpdate":"notice","severity":"info","title":"Model changed"}
			{"sessionUpdate":"notice","severity":"warning","title":"Rate limit near","description":"Only **5** requests left."}
			{"sessionUpdate":"notice","severity":"error","title":"Lost the server"}
			{"sessionUpdate":"notice","severity":"fatal","title":"Odd"}
			{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed","summary":[{"type":"text","text":"What was said before."}]}
			{"sessionUpdate":"compaction_update","compactionId":"d","status":"failed","error":"too long"}
			{"sessionUpdate":"mystery","x":1}
			`,
		"subagents": `{"sessionUpdate":"subagent_update","sessionId":"s2","title":"Explore the tests","description":"Finds what is flaky","cwd":"/w/sub","state":{"state":"running"}}
			{"sessionUpdate":"subagent_update","sessionId":"s3","title":"Done already","state":{"state":"idle","stopReason":"end_turn"}}
			{"sessionUpdate":"subagent_update","sessionId":"s4","state":{"state":"requires_action"}}
			{"sessionUpdate":"session_message","messageId":"m","senderSessionId":"s2","content":[{"type":"text","text":"Two are flaky."}]}
			`,
		"permission": "",
	}
}

func TestPermission(t *testing.T) {
	requests := []*acp.PermissionRequest{
		{Title: "Run a command", Description: "It **cleans** up.", Subject: &acpv2.CommandPermissionSubject{Command: "rm -rf build &&\n  make all TARGET=\"a long argument that has to be wrapped at most widths\"", Cwd: "/w"}},
		{Title: "Edit /w/main.go", Subject: &acpv2.ToolCallPermissionSubject{ToolCall: acpv2.ToolCallUpdate{ToolCallID: "1"}}},
		{Title: "Fetch", ToolCall: &acpv2.ToolCallUpdate{ToolCallID: "new", Title: acpv2.Set("Fetch a page"), Kind: acpv2.Set(acpv2.ToolKindFetch), RawInput: []byte(`{"url":"https://example.com"}`)}},
		{Title: "Shell", ToolCall: &acpv2.ToolCallUpdate{ToolCallID: "new2", Title: acpv2.Set("Shell"), RawInput: []byte(`{"command":["git","commit","-m","a message"]}`)}},
		{Title: "Hostile \x1b[2J\u202e title", Description: "\x1b]0;x\a"},
		{},
	}
	c := conversation(t, screens()["diffs"])
	var b strings.Builder
	for _, width := range []int{40, 140} {
		for i, req := range requests {
			ls := Permission(req, c.Snapshot(), width, plainTheme())
			checkLines(t, ls, width)
			fmt.Fprintf(&b, "=== request %d, width %d\n%s\n", i, width, strings.Join(ls, "\n"))
			checkLines(t, Permission(req, nil, width, fullTheme()), width)
		}
	}
	golden(t, "permissions", b.String())
}

func TestPlanLine(t *testing.T) {
	steps := func(statuses ...string) string {
		var es []string
		for i, s := range statuses {
			es = append(es, fmt.Sprintf(`{"content":"step %d","status":%q,"priority":"low"}`, i+1, s))
		}
		return `{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[` + strings.Join(es, ",") + `]}}`
	}
	for _, c := range []struct {
		name, in string
		width    int
		want     []string
	}{
		{"none", "", 80, nil},
		{"under way", steps("completed", "in_progress", "pending"), 80, []string{"▶ 1/3 · step 2"}},
		{"next", steps("completed", "pending"), 80, []string{"▶ 1/2 · step 2"}},
		{"cancelled counts as behind", steps("cancelled", "pending"), 80, []string{"▶ 1/2 · step 2"}},
		{"all behind", steps("completed", "completed"), 80, nil},
		{"narrow", steps("in_progress", "pending"), 12, []string{"▶ 0/2 · ste…"}},
		{"no room", steps("in_progress"), 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Plan(conversation(t, c.in).Snapshot(), c.width, plainTheme())); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}
