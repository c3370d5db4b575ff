package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/cmd/acp/internal/withheld"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A bench is a session that lends a tool what it needs.
type bench struct {
	out     *acp.Output
	session *acp.AgentSession
	jobs    Jobs
	files   *Files
	served  *served.Record
	// meanwhile is called, once, while the user is asked; nil if nothing happens then.
	meanwhile func()
	web       *http.Client
	cwd       string
	ignores   bool
	deny      string // a word of paths that a rule denies
	denyPath  string // the end of a path that a rule denies
	ask       string // a word of paths that a rule wants asked about
	askKind   acp.ToolKind
	refuse    bool
	asked     []About
	plan      []acp.PlanEntry
}

func (b *bench) Output() *acp.Output          { return b.out }
func (b *bench) Drafted() *acp.ToolCallHandle { return nil }
func (b *bench) Session() *acp.AgentSession   { return b.session }
func (b *bench) Jobs() *Jobs                  { return &b.jobs }
func (b *bench) Background()                  {}
func (b *bench) Files() *Files                { return b.files }
func (b *bench) Served() *served.Record       { return b.served }
func (b *bench) MCP() *Servers                { return nil }
func (b *bench) Skill(name string) (string, bool) {
	return filepath.Join(b.cwd, "skills", name), name == "known"
}
func (b *bench) Web() *http.Client    { return b.web }
func (b *bench) Keys() *withheld.Keys { return nil }
func (b *bench) Cwd() string          { return b.cwd }
func (b *bench) Roots() []string      { return []string{b.cwd} }
func (b *bench) Ignores() bool        { return b.ignores }
func (b *bench) Restricted() bool     { return b.deny+b.denyPath+b.ask != "" }

// Harmless is that of no command, so that all of them are asked about.
func (b *bench) Harmless(acphost.Request) acphost.Harmless {
	return acphost.Harmless{Why: "it is a test"}
}
func (b *bench) Intend(Intent) error          { return nil }
func (b *bench) SetPlan(plan []acp.PlanEntry) { b.plan = plan }

func (b *bench) Judge(req acphost.Request) acphost.Verdict {
	for _, p := range append(req.Paths, req.Command) {
		if b.deny != "" && strings.Contains(filepath.Base(p), b.deny) || b.denyPath != "" && strings.HasSuffix(filepath.ToSlash(p), b.denyPath) {
			return acphost.Verdict{Effect: acphost.EffectDeny, Rule: "a rule"}
		}
		if b.ask != "" && strings.Contains(filepath.Base(p), b.ask) && (b.askKind == "" || req.Kind == string(b.askKind)) {
			return acphost.Verdict{Effect: acphost.EffectAsk, Rule: "another rule"}
		}
	}
	return acphost.Verdict{}
}

func (b *bench) Permit(_ context.Context, _ *acp.ToolCallHandle, q Question) error {
	b.asked = append(b.asked, q.About)
	if do := b.meanwhile; do != nil {
		b.meanwhile = nil
		do()
	}
	if b.refuse || b.Judge(q.Request).Effect == acphost.EffectDeny {
		return &Refusal{Why: "not permitted"}
	}
	return nil
}

func (b *bench) Hints() Hints {
	return Hints{
		ReadOn:     func(_ string, line uint32) string { return fmt.Sprintf("read on with from: %d", line) },
		ReadLine:   func(line, column uint32) string { return fmt.Sprintf("from: %d, column: %d shows more", line, column) },
		ReplaceAll: "set all", ReadAsks: "read", Ignored: "ignored: true",
	}
}

// use runs a tool in a turn of an agent in memory.
func (b *bench) use(t *testing.T, tool Tool, input string) (res Result, err error) {
	t.Helper()
	agent := &acp.Agent{
		NewSession: func(context.Context, *acp.AgentSession) error { return nil },
		Prompt: func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
			b.out, b.session = turn.Output, turn.Session()
			res, err = tool.Run(ctx, b, json.RawMessage(input))
			return acp.StopEndTurn, nil
		},
	}
	conn, _ := acptest.Pair(t, agent, &acp.Client{MaxVersion: 2})
	s, e := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: b.cwd})
	if e != nil {
		t.Fatal(e)
	}
	if _, e := s.Prompt(t.Context(), acp.Text("go")).Wait(); e != nil {
		t.Fatal(e)
	}
	return res, err
}

func (b *bench) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.cwd, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTools: what each tool makes of its input.
func TestTools(t *testing.T) {
	type row struct {
		name, input string
		change      func(*bench)
		said        string
		status      acp.ToolCallStatus
		err         string // instead of a result
		asked       []About
	}
	const done, failed = acp.ToolCallStatusCompleted, acp.ToolCallStatusFailed
	rows := []row{
		{name: "read", input: `{"path":"a.txt"}`, said: "Lines 1–3 of `a.txt`.", status: done},
		{name: "read", input: `{"path":"a.txt","from":2,"lines":1}`, said: "Lines 2–2 of `a.txt`, which has 3.", status: done},
		{name: "read", input: `{"path":"a.txt","from":9}`, said: "`a.txt` has no line 9: it has 3 lines.", status: done},
		{name: "read", input: `{"path":"."}`, said: "`.` is a directory with 2 entries.", status: done},
		{name: "read", input: `{"path":"none"}`, said: "`none`: there is no such file.", status: failed},
		{name: "read", input: `{"path":"/"}`, change: func(b *bench) { b.refuse = true }, said: "Not permitted.", status: failed, asked: []About{AboutRead}},
		{name: "read", input: `{"path":"a.txt","line":1}`, err: "unknown field"},
		{name: "read", input: `[]`, err: "does not fit"},
		{name: "read", input: ``, err: "empty"},
		{name: "search", input: `{"pattern":"t[wh]"}`, said: "2 matching lines in 1 file.", status: done},
		{name: "search", input: `{"pattern":"one","glob":"*.go"}`, said: "1 matching line in 1 file.", status: done},
		{name: "search", input: `{"pattern":"one"}`, change: func(b *bench) { b.deny = "b.go" },
			said: "1 matching line in 1 file. Left out, since a rule forbids reading: 1 file.", status: done},
		{name: "search", input: `{"pattern":"("}`, err: "missing closing )"},
		{name: "search", input: `{"pattern":""}`, err: "missing"},
		{name: "find", input: `{"glob":"*.go"}`, said: "1 file found.", status: done},
		{name: "find", input: `{"glob":"*"}`, change: func(b *bench) { b.deny = "b.go" },
			said: "1 file found. Left out, since a rule forbids reading: 1 file.", status: done},
		{name: "find", input: `{"glob":"none"}`, said: "0 files found: none of the 2 files in `.` fits the glob `none`.", status: done},
		{name: "find", input: `{"glob":""}`, err: "missing"},
		{name: "edit", input: `{"path":"a.txt","edits":[{"old":"two","new":"2"}]}`, said: "Changed `a.txt`: line 2.", status: done, asked: []About{AboutEdit}},
		{name: "edit", input: `{"path":"a.txt","edits":[{"old":"two","new":"2"},{"old":"four","new":"4"}]}`,
			said: "`a.txt`: the old text \"four\" is not in the file.", status: failed},
		{name: "edit", input: `{"path":"a.txt","edits":[{"old":"t","new":"x"}]}`,
			said: "`a.txt`: the old text \"t\" is in the file 2 times: give more of what surrounds it, or set all.", status: failed},
		{name: "edit", input: `{"path":"a.txt","edits":[]}`, err: "missing"},
		{name: "edit", input: `{"path":"a.txt","edits":[{"old":"","new":"x"}]}`, err: "empty"},
		{name: "edit", input: `{"path":"b.go","edits":[{"old":"one","new":"1"}]}`, change: func(b *bench) { b.deny = "b.go" },
			said: "Not permitted.", status: failed, asked: []About{AboutEdit}},
		{name: "write", input: `{"path":"d/new.txt","text":"a\nb\n"}`, said: "Created `d/new.txt` with 2 lines.", status: done, asked: []About{AboutEdit}},
		{name: "write", input: `{"path":"a.txt","text":"one\ntwo\nthree\n"}`, said: "`a.txt` is like that already.", status: done},
		{name: "write", input: `{"path":"a.txt","text":"x"}`, change: func(b *bench) { b.refuse = true }, said: "Not permitted.", status: failed, asked: []About{AboutEdit}},
		{name: "write", input: `{"path":"a.txt"} {}`, err: "more than one"},
		{name: "run", input: `{"command":"exit 3"}`, said: "The command has failed with exit status 3.", status: failed, asked: []About{AboutRun + "exit 3"}},
		{name: "run", input: `{"command":"exit 0"}`, said: "The command has succeeded.", status: done, asked: []About{AboutRun + "exit 0"}},
		{name: "run", input: `{"command":" "}`, err: "missing"},
		{name: "plan", input: `{"steps":[{"text":"a","status":"completed"},{"text":"b","status":"in_progress"}]}`,
			said: "1 of 2 steps are done. Now: 2. `b`", status: done},
		{name: "plan", input: `{"steps":[]}`, said: "There is no plan any more.", status: done},
		{name: "plan", input: `{"steps":[{"text":"a","status":"later"}]}`, err: "status"},
		{name: "plan", input: `{"steps":[{"text":" ","status":"pending"}]}`, err: "empty"},
	}
	tools := map[string]Tool{}
	for _, tool := range All() {
		tools[tool.Name] = tool
	}
	for _, r := range rows {
		if r.name == "run" && runtime.GOOS == "windows" {
			r.input = strings.Replace(r.input, "exit", "exit /b", 1)
		}
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{cwd: dir}
		b.write(t, "a.txt", "one\ntwo\nthree\n")
		b.write(t, "b.go", "one\n")
		if r.change != nil {
			r.change(b)
		}
		res, err := b.use(t, tools[r.name], r.input)
		if r.err != "" {
			if err == nil || !strings.Contains(err.Error(), r.err) {
				t.Errorf("%s %s: %v, want an error with %q", r.name, r.input, err, r.err)
			}
			continue
		}
		if err != nil || filepath.ToSlash(res.Said) != r.said || res.Status != r.status {
			t.Errorf("%s %s: %q, %s, %v; want %q, %s", r.name, r.input, res.Said, res.Status, err, r.said, r.status)
		}
		if diff := cmp.Diff(r.asked, b.asked); diff != "" {
			t.Errorf("%s %s: asked about %s", r.name, r.input, diff)
		}
	}
}

// TestText: what a language model learns from a tool.
func TestText(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	long := strings.Repeat("0123456789 line\n", 10_000)
	for _, r := range []struct {
		tool  Tool
		input string
		wants []string
		most  int
	}{
		{Read, `{"path":"a.txt"}`, []string{"one\n\ttwo\n"}, 0},
		{Read, `{"path":"."}`, []string{"a.txt\n", "long.txt\n"}, 0},
		{Read, `{"path":"long.txt"}`, []string{"0123456789 line\n", "[lines 1-2000 of 10000; read on with from: 2001]"}, MaxText},
		{Search, `{"pattern":"two"}`, []string{"a.txt:2: \ttwo\n1 matching line in 1 file."}, 0},
		{Search, `{"pattern":"line"}`, []string{"Only the first 200 are shown"}, maxResult},
		{Find, `{"glob":"*.txt"}`, []string{"a.txt\n", "2 files found."}, 0},
		{Edit, `{"path":"a.txt","edits":[{"old":"  two\nthree","new":"x"}]}`, []string{"the old text is not in the file"}, 0},
		{Run, `{"command":"echo out; echo err >&2; exit 3"}`, []string{"out\n", "err\n", "exit status 3"}, 0},
		{Run, `{"command":"cat long.txt; echo the end"}`, []string{"0123456789 line\n", "[lines 257-8977 of 10001 are left out here; read job:1 with from: 257 shows them]\n", "line\nthe end\nThe command has succeeded."}, outputHead + outputTail},
	} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{cwd: dir}
		b.write(t, "a.txt", "one\n\ttwo\n")
		b.write(t, "long.txt", long)
		res, err := b.use(t, r.tool, r.input)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range r.wants {
			if !strings.Contains(res.Text, want) {
				t.Errorf("%s %s: there is no %q in\n%.300s\n…\n%s", r.tool.Name, r.input, want, res.Text, res.Text[max(0, len(res.Text)-300):])
			}
		}
		if most := r.most + 200; r.most > 0 && len(res.Text) > most {
			t.Errorf("%s %s: %d bytes, want at most %d", r.tool.Name, r.input, len(res.Text), most)
		}
	}
}

// TestSchemas: the schemas are such, and accept what the tools accept and nothing else.
func TestSchemas(t *testing.T) {
	inputs := map[string]any{
		"read": ReadInput{Path: "a", From: 1, Lines: 2, Column: 1}, "find": FindInput{Glob: "*.go", Path: "a", Ignored: true},
		"search": SearchInput{Pattern: "a", Path: "b", Glob: "*", Show: "files", Context: 1, Ignored: true},
		"edit":   EditInput{Path: "a", Edits: []Replacement{{Old: "a", New: "b"}}, All: true},
		"write":  WriteInput{Path: "a", Text: "b"}, "run": RunInput{Command: "a", Seconds: 5, Background: true},
		"job": JobInput{ID: "1", Do: "wait", Seconds: 5}, "fetch": FetchInput{URL: "http://a"}, "ask": AskInput{Question: "a", Options: []string{"b"}},
		"patch": PatchInput{Patch: "a"},
		"plan":  PlanInput{Steps: []Step{{"a", acp.PlanEntryStatusPending}}},
	}
	for _, tool := range append(All(), Patch) {
		var schema jsonschema.Schema
		if err := json.Unmarshal(tool.Schema, &schema); err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
		data, err := json.Marshal(inputs[tool.Name])
		if err != nil {
			t.Fatal(err)
		}
		var value map[string]any
		if err := json.Unmarshal(data, &value); err != nil || len(value) == 0 {
			t.Fatalf("%s has no input here: %v", tool.Name, err)
		}
		if err := resolved.Validate(value); err != nil {
			t.Errorf("%s: %s: %v", tool.Name, data, err)
		}
		value["other"] = true
		if resolved.Validate(value) == nil {
			t.Errorf("%s accepts a member that it does not know", tool.Name)
		}
	}
}
