package exec

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestEscaped holds that no line of --json has characters that a terminal would heed, or that change how
// what is around them looks, and that the value stays the same.
func TestEscaped(t *testing.T) {
	text := "a\x1b\x7f\u0085\u202e\u2066\u2028\u2029\u200bü😀"
	data, err := appendLine(nil, noteLine{Type: "note", Text: text})
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(data), "\x1b\x7f\u0085\u202e\u2066\u2028\u2029\u200b") || !strings.Contains(string(data), "ü😀") {
		t.Errorf("%q", data)
	}
	var back noteLine
	if err := json.Unmarshal(data, &back); err != nil || back.Text != text {
		t.Errorf("%q, %v", back.Text, err)
	}
}
