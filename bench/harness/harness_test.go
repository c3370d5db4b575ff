package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/internal/standin"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestReused: what a model reads counts, in its order, whatever the order in the request
// and wherever its cache is marked.
func TestReused(t *testing.T) {
	first := segments("messages", []byte(`{"messages":[{"role":"user","content":"a","cache_control":{"type":"ephemeral"}}],"system":"s","tools":[{"name":"t"}]}`))
	next := segments("messages", []byte(`{"tools":[{"name":"t"}],"system":"s","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`))
	if got := reused(first, next); got != 1 {
		t.Errorf("%v of %q in %q", got, first, next)
	}
	other := segments("messages", []byte(`{"tools":[{"name":"u"}],"system":"s","messages":[{"role":"user","content":"a"}]}`))
	if got := reused(first, other); got <= 0 || got > 0.3 {
		t.Errorf("%v", got)
	}
	if reused(nil, next) != 0 || segments("chat", []byte("[")) != nil {
		t.Error("something out of nothing")
	}
}

// TestCalls: an op is called by the names of an agent's own tools, with all that they
// require.
func TestCalls(t *testing.T) {
	r := &standin.Request{Tools: []string{"replace", "exec_command"}, Schemas: map[string]json.RawMessage{
		"replace":      json.RawMessage(`{"properties":{"file_path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"},"instruction":{"type":"string"},"n":{"type":"integer"},"all":{"type":"boolean"}},"required":["file_path","instruction","n","all"]}`),
		"exec_command": json.RawMessage(`{"properties":{"cmd":{"type":"string"},"sandbox_permissions":{"type":"string"}},"required":["cmd"]}`),
	}}
	o := op{do: "edit", path: "/f", old: "a", new: "b"}
	for shell, want := range map[bool]string{
		false: `{"all":false,"file_path":"/f","instruction":"as asked","n":1,"new_string":"b","old_string":"a"}`,
		true:  `{"cmd":"apply_patch \u003c\u003c'END'\n*** Begin Patch\n*** Update File: /f\n@@\n-a\n+b\n*** End Patch\nEND","justification":"as asked","sandbox_permissions":"require_escalated"}`,
	} {
		c, err := o.call(r, shell)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(c.Args); err != nil || string(got) != strings.ReplaceAll(want, `\n`, "\\n") {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	if _, err := (op{do: "read", path: "/f"}).call(r, false); err == nil {
		t.Error("a tool that there is not")
	}
}

// TestVerdict: what became of a file.
func TestVerdict(t *testing.T) {
	for text, want := range map[string]string{
		replaced("Helo", "Hello"): "right", source: "refused", strings.ReplaceAll(replaced("Helo", "Hello"), "\t", "    "): "right, with other blanks", "x": "WRONG",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := is(replaced("Helo", "Hello"))(dir, "", true); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestMCP: the server with sixty tools.
func TestMCP(t *testing.T) {
	var out bytes.Buffer
	serveMCP("sixty", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"odd"}
`), &out)
	if got := out.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, `"tool_59"`) || !strings.Contains(got, "-32601") {
		t.Errorf("%.300s", got)
	}
}

// TestReport: a result is in the document, and a failure, too.
func TestReport(t *testing.T) {
	got := report([]result{{agent: "a", version: "1", task: "fix", requests: 3, bytes: 1500, first: 500, verdict: "right", reuse: []float64{1, 0.5}}, {agent: "a", version: "1", task: "long", err: os.ErrNotExist}})
	for _, want := range []string{"| first request, kB | 0.5 |", "| 75.0 |", "| 3, 1.5, right |", "failed: file does not exist"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}
