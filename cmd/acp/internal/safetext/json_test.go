package safetext

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestJSON(t *testing.T) {
	for in, want := range map[string]string{
		`"plain ü 日"`: `"plain ü 日"`, "\"\u202e\"": `"\u202e"`, "\"\u009b\x7f\"": `"\u009b\u007f"`, "\"\U000E0041x\"": `"\udb40\udc41x"`, "": "",
	} {
		got := string(JSON([]byte(in)))
		if got != want {
			t.Errorf("%q becomes %s, want %s", in, got, want)
		}
		var a, b string
		if in != "" && (json.Unmarshal([]byte(in), &a) != nil || json.Unmarshal([]byte(got), &b) != nil || a != b) {
			t.Errorf("%q means something else: %s", in, got)
		}
	}
}

func TestPrintJSON(t *testing.T) {
	var b bytes.Buffer
	if err := PrintJSON(&b, []string{"<&>\u202e\x1b\n"}); err != nil || b.String() != `["<&>\u202e\u001b\n"]`+"\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
	if err := PrintJSON(&b, func() {}); err == nil {
		t.Error("a function is JSON")
	}
}
