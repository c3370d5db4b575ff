package shown

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

func TestLimitOf(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	clock := at.Local().Format("Mon 15:04")
	for _, tt := range []struct {
		limit, want string
		warns       bool
	}{
		{`{"status":"allowed"}`, "limit allowed", false},
		{`{"status":"allowed_warning","rateLimitType":"five_hour","utilization":0.914,"resetsAt":1800000000}`, "5-hour limit 91% used, resets " + clock, true},
		{`{"status":"rejected","rateLimitType":"seven_day","utilization":1,"resetsAt":1800000000000}`, "weekly limit reached, resets " + clock, true},
		{`{"status":"allowed_warning","rateLimitType":"one_month","utilization":93}`, "one month 93% used", true},
		{`{"status":"allowed_warning","utilization":"x","resetsAt":{}}`, "limit warning", true},
		{`{"status":"\u001b[31mx\ny"}`, "limit x y", true},
		{`{"status":7}`, "", false}, {`{}`, "", false}, {`null`, "", false}, {`[1]`, "", false},
	} {
		l := LimitOf(json.RawMessage(`{"_claude/rateLimit":` + tt.limit + `}`))
		got := ""
		if l != nil {
			got = l.String()
		}
		if got != tt.want || l.Warns(at.Add(-time.Hour)) != tt.warns {
			t.Errorf("%s: %q, %v; want %q", tt.limit, got, l.Warns(at.Add(-time.Hour)), tt.want)
		}
		if l != nil && !l.Resets.IsZero() && l.Warns(at) {
			t.Errorf("%s warns when it has been reset", tt.limit)
		}
	}
}

func TestModels(t *testing.T) {
	const opus = `{"model":"opus","token_count":{"totalTokens":12,"inputTokens":10,"outputTokens":2}}`
	for _, tt := range []struct{ quota, want string }{
		{`{"token_count":null,"model_usage":[]}`, ""},
		{`{"token_count":{"totalTokens":5},"model_usage":[` + opus + `,{"model":"x","token_count":null},{"model":1},7]}`, "opus 12"},
		{`{"model_usage":[` + strings.Repeat(opus+",", 30) + opus + `]}`, strings.TrimSpace(strings.Repeat("opus 12 ", maxModels))},
		{`{"model_usage":[{"model":"a\u001b]0;x\u0007b","token_count":{"totalTokens":-1}}]}`, "ab 0"},
		{`{"model_usage":{}}`, ""}, {`null`, ""}, {`"x"`, ""},
	} {
		var got []string
		for _, m := range Models(json.RawMessage(`{"quota":` + tt.quota + `}`)) {
			got = append(got, fmt.Sprint(m.Model, " ", m.Tokens))
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", tt.quota, diff)
		}
	}
}

func TestParentTaskAndAsync(t *testing.T) {
	c := transcript.New(transcript.Config{})
	for _, u := range []string{
		`{"sessionUpdate":"tool_call_update","toolCallId":"p","title":"Task"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"Read","_meta":{"claudeCode":{"toolName":"Read","parentToolUseId":"p"}}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"d","title":"Read","_meta":{"claudeCode":{"parentToolUseId":"d"}}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"e","title":"Read","_meta":{"claudeCode":"x"}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"f","title":"Read","_meta":{"claudeCode":{"parentToolUseId":"gone"}}}`,
	} {
		v, err := acpv2.UnmarshalSessionUpdate([]byte(u))
		if err != nil {
			t.Fatal(err)
		}
		c.Apply(v)
	}
	snap := c.Snapshot()
	for id, want := range map[acpv2.ToolCallID]bool{"p": false, "c": true, "d": false, "e": false, "f": false} {
		if p := Parent(snap, snap.ToolCall(id)); (p != nil) != want || p != nil && p.ID != "p" {
			t.Errorf("the parent of %s is %v", id, p)
		}
	}
	for raw, want := range map[string]string{
		`{"type":"_claude/task","taskId":"t","description":"Watch\u001b[2J the\nbuild"}`: "Watch the build",
		`{"type":"_claude/task","taskId":"t"}`:                                           "a task of the agent (_claude/task)",
		`{"type":"_x"}`:                                                                  "a task of the agent (_x)",
	} {
		var head struct{ Type string }
		_ = json.Unmarshal([]byte(raw), &head)
		if got := Task(&acpv2.UnknownBackgroundWork{Type: head.Type, Raw: json.RawMessage(raw)}); got != want {
			t.Errorf("%s: %q", raw, got)
		}
	}
	if Task(&acpv2.BackgroundTerminal{TerminalID: "t"}) != "" {
		t.Error("a command is a task")
	}
	for meta, want := range map[string]bool{`{"codex":{"delivery":"async"}}`: true, `{"codex":{"delivery":"inline"}}`: false, `{"codex":[]}`: false, ``: false} {
		if Async(json.RawMessage(meta)) != want {
			t.Errorf("%s: async is not %v", meta, want)
		}
	}
}

// TestLongMeta: metadata that is very long is not read, since it would be for each drawing.
func TestLongMeta(t *testing.T) {
	for size, want := range map[int]string{maxMeta: "opus", maxMeta + 1: "", 4 << 20: ""} {
		meta := `{"_claude/model":"opus"`
		meta += strings.Repeat(" ", size-len(meta)-1) + "}"
		if got := Model(json.RawMessage(meta)); got != want {
			t.Errorf("%d bytes: %q", size, got)
		}
	}
}

// FuzzVendor: whatever metadata says, what is shown of it is safe and bounded.
func FuzzVendor(f *testing.F) {
	for _, s := range []string{
		`{"_claude/rateLimit":{"status":"allowed_warning","rateLimitType":"five_hour","utilization":0.9,"resetsAt":1800000000},"_claude/model":"opus"}`,
		`{"quota":{"token_count":null,"model_usage":[{"model":"m","token_count":{"totalTokens":1}}]}}`,
		`{"claudeCode":{"toolName":"Bash","parentToolUseId":"p"},"codex":{"delivery":"async"}}`,
		`{"type":"_claude/task","taskId":"t","description":"d"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, meta []byte) {
		check := func(s string, limit int) {
			if len(s) > limit || strings.ContainsFunc(s, unicode.IsControl) {
				t.Errorf("%q", s)
			}
		}
		check(Model(meta), maxVendor+3)
		if l := LimitOf(meta); l != nil {
			check(l.String(), 3*maxVendor)
			l.Warns(time.Unix(0, 0))
		}
		for _, m := range Models(meta) {
			check(m.Model, maxVendor+3)
		}
		Async(meta)
		check(Task(&acpv2.UnknownBackgroundWork{Type: "_claude/task", Raw: meta}), 203+maxVendor)
	})
}
