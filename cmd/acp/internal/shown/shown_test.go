package shown

import (
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

func TestTitle(t *testing.T) {
	execute := acp.Set(acp.ToolKindExecute)
	for _, tt := range []struct {
		name string
		call acp.ToolCallUpdate
		want string
	}{
		{"a title that is no command", acp.ToolCallUpdate{Title: acp.Set("demo shell"), Kind: execute, RawInput: []byte(`{"command":"touch x","commands":["touch x"]}`)}, "demo shell: touch x"},
		{"no title", acp.ToolCallUpdate{Name: acp.Set("bash"), Kind: execute, RawInput: []byte(`{"command":"touch x"}`)}, "bash: touch x"},
		{"nothing but the kind", acp.ToolCallUpdate{Kind: execute, RawInput: []byte(`{"command":["sh","-c","touch x"]}`)}, "execute: touch x"},
		{"a title that has it", acp.ToolCallUpdate{Title: acp.Set("`touch  x`"), Kind: execute, RawInput: []byte(`{"command":"touch x"}`)}, "`touch  x`"},
		{"a title that has its beginning", acp.ToolCallUpdate{Title: acp.Set("touch one two three four five…"), Kind: execute, RawInput: []byte(`{"command":"touch one two three four five six"}`)}, "touch one two three four five six"},
		{"a title that was cut", acp.ToolCallUpdate{Title: acp.Set("Running: touch k1.txt && echo do…"), Kind: execute, RawInput: []byte(`{"command":"touch k1.txt && echo done"}`)}, "Running: touch k1.txt && echo done"},
		{"a title that was cut with dots", acp.ToolCallUpdate{Title: acp.Set("`touch k1.txt ..."), Kind: execute, RawInput: []byte(`{"command":"touch k1.txt && echo done"}`)}, "`touch k1.txt && echo done"},
		{"a title that was cut and is about another", acp.ToolCallUpdate{Title: acp.Set("Running: touch k2…"), Kind: execute, RawInput: []byte(`{"command":"touch k1.txt"}`)}, "Running: touch k2…: touch k1.txt"},
		{"a title that ends with an ellipsis", acp.ToolCallUpdate{Title: acp.Set("Working…"), Kind: execute, RawInput: []byte(`{"command":"ls"}`)}, "Working…: ls"},
		{"a title that has its beginning as a whole", acp.ToolCallUpdate{Title: acp.Set("go test ./... -run TestParser"), Kind: execute, RawInput: []byte(`{"command":"go test ./... -run TestParser; curl x"}`)}, "go test ./... -run TestParser: go test ./... -run TestParser; curl x"},
		{"a title with a word that has it", acp.ToolCallUpdate{Title: acp.Set("List the tools"), Kind: execute, RawInput: []byte(`{"command":"ls"}`)}, "List the tools: ls"},
		{"a question", acp.ToolCallUpdate{Title: acp.Set("Run it?"), Kind: execute, RawInput: []byte(`{"command":"touch x"}`)}, "Run it? touch x"},
		{"in a text only", acp.ToolCallUpdate{Title: acp.Set("Bash"), Kind: execute, Content: acp.Set([]acp.ToolCallContent{
			&acp.BlockContent{Content: acp.Text("Requesting approval to Running: touch x")}})}, "Bash: touch x"},
		{"not known", acp.ToolCallUpdate{Title: acp.Set("demo shell"), Kind: execute}, "demo shell"},
		{"an edit", acp.ToolCallUpdate{Title: acp.Set("Edit x"), Kind: acp.Set(acp.ToolKindEdit), RawInput: []byte(`{"command":"str_replace"}`)}, "Edit x"},
	} {
		tt.call.ToolCallID = "c"
		c := transcript.New(transcript.Config{})
		c.Apply(&tt.call)
		s := c.Snapshot()
		if got := Title(s.ToolCall("c")); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		p := &transcript.Permission{Subject: &acpv2.ToolCallPermissionSubject{ToolCall: acp.ToolCallUpdate{ToolCallID: "c"}}}
		command, _ := Asked(s, p)
		if got, _ := Command(s.ToolCall("c")); got != command {
			t.Errorf("%s: asked about %q", tt.name, command)
		}
	}
	if command, certain := Asked(transcript.New(transcript.Config{}).Snapshot(), &transcript.Permission{Subject: &acpv2.CommandPermissionSubject{Command: "ls"}}); command != "ls" || !certain {
		t.Errorf("%q, %t", command, certain)
	}
}
