package view

import (
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// TestPermissionCommandOnce shows a command once, though the tool call that runs it is named by it.
func TestPermissionCommandOnce(t *testing.T) {
	call := &acpv2.ToolCallUpdate{ToolCallID: "c", Title: acpv2.Set("go test ./..."), RawInput: []byte(`{"command":"go test ./..."}`)}
	for _, req := range []*acp.PermissionRequest{
		{Title: "Run it?", ToolCall: call, Subject: &acpv2.CommandPermissionSubject{Command: "go test ./...", Cwd: "/w"}},
		{Title: "Run it?", ToolCall: call},
	} {
		got := strings.Join(Permission(req, nil, 80, plainTheme()), "\n")
		if strings.Count(got, "go test") != 1 {
			t.Errorf("%T:\n%s", req.Subject, got)
		}
	}
	call.Title = acpv2.Set("Test everything")
	got := strings.Join(Permission(&acp.PermissionRequest{Title: "Run it?", ToolCall: call}, nil, 80, plainTheme()), "\n")
	if !strings.Contains(got, "Test everything") {
		t.Errorf("what the call is about is not told:\n%s", got)
	}
}

func TestLineCount(t *testing.T) {
	for in, want := range map[string]int{
		"": 0, "\n\n": 0, "a": 1, "a\nb\n": 2, "```go\na\nb\n```": 2, "````\n```\na\n````\n": 2, "```\n```": 0,
		"```\na": 2, "text\n```": 2, "```": 1, "a\n\nb": 3,
	} {
		if got := lineCount(in); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}
