package jsonrpc

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestErrorDetail holds the shapes in which agents give the reason of an error.
func TestErrorDetail(t *testing.T) {
	const internal = "Internal error"
	long := strings.Repeat("x", 2000)
	tests := []struct {
		name    string
		message string
		data    string
		detail  string
		text    string // of Error
	}{
		{"no data", internal, ``, "", "Internal error (-32603)"},
		{"details", internal, `{"details":"Invalid session identifier \"a\""}`, `Invalid session identifier "a"`, `Internal error: Invalid session identifier "a" (-32603)`},
		{"detail", internal, `{"detail":"why"}`, "why", "Internal error: why (-32603)"},
		{"message", internal, `{"message":"quota exceeded"}`, "quota exceeded", "Internal error: quota exceeded (-32603)"},
		{"message that is JSON", internal, `{"message":"{\"error\":{\"message\":\"scripted failure\",\"type\":\"x\"}}"}`, "scripted failure", "Internal error: scripted failure (-32603)"},
		{"message that begins like JSON", internal, `{"message":"{oops"}`, "{oops", "Internal error: {oops (-32603)"},
		{"message that is JSON without a reason", internal, `{"message":"{\"a\":1}"}`, `{"a":1}`, `Internal error: {"a":1} (-32603)`},
		{"error text", internal, `{"error":"no key"}`, "no key", "Internal error: no key (-32603)"},
		{"a string", internal, `"plain"`, "plain", "Internal error: plain (-32603)"},
		{"a string that is JSON", internal, `"{\"error\":{\"message\":\"deep\"}}"`, "deep", "Internal error: deep (-32603)"},
		{"path and reason", "Invalid params", `{"path":"params.cwd","reason":"missing"}`, "params.cwd: missing", "Invalid params: params.cwd: missing (-32603)"},
		{"reason before details", internal, `{"details":"b","reason":"a"}`, "a", "Internal error: a (-32603)"},
		{"details before message", internal, `{"message":"b","details":"a"}`, "a", "Internal error: a (-32603)"},
		{"another type", internal, `{"message":7,"details":"a"}`, "a", "Internal error: a (-32603)"},
		{"nothing of it", internal, `{"sessionId":"s"}`, "", "Internal error (-32603)"},
		{"a number", internal, `17`, "", "Internal error (-32603)"},
		{"an array", internal, `["a"]`, "", "Internal error (-32603)"},
		{"null", internal, `null`, "", "Internal error (-32603)"},
		{"not JSON", internal, `{oops`, "", "Internal error (-32603)"},
		{"said already", "Unknown session: a", `{"details":"unknown session"}`, "", "Unknown session: a (-32603)"},
		{"no message", "", `{"details":"why"}`, "why", "why (error -32603)"},
		{"nothing at all", "", ``, "", "error -32603"},
		{"correlation", internal, `{"correlationId":"0123456789abcdef"}`, "", "Internal error (-32603, correlationId 0123456789abcdef)"},
		{"correlation and details", internal, `{"correlationId":"c1","details":"why"}`, "why", "Internal error: why (-32603, correlationId c1)"},
		{"odd correlation", internal, `{"correlationId":"a b\u001b"}`, "", "Internal error (-32603)"},
		{"long correlation", internal, `{"correlationId":"` + long + `"}`, "", "Internal error (-32603)"},
		{"lines", internal, `{"details":" a\r\n\tb\u2028c "}`, "a b c", "Internal error: a b c (-32603)"},
		{"escapes", internal, `{"details":"\u001b[31mred\u0007\u202e\u2066\u0085x\u200b"}`, "[31mred x", "Internal error: [31mred x (-32603)"},
		{"invalid UTF-8", internal, "{\"details\":\"a\xffb\"}", "a\ufffdb", "Internal error: a\ufffdb (-32603)"},
		{"long", internal, `{"details":"` + long + `"}`, long[:497] + "…", "Internal error: " + long[:497] + "… (-32603)"},
		{"too much data", internal, `{"details":"` + strings.Repeat("x", 64<<10) + `"}`, "", "Internal error (-32603)"},
		{"nested beyond reason", internal, `{"error":{"error":{"error":{"error":{"error":{"error":{"error":"a"}}}}}}}`, "", "Internal error (-32603)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &Error{Code: CodeInternalError, Message: tt.message, Data: json.RawMessage(tt.data)}
			if diff := cmp.Diff(tt.detail, e.Detail()); diff != "" {
				t.Errorf("Detail (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.text, e.Error()); diff != "" {
				t.Errorf("Error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestErrorJSON holds that an error has its wire form in encoding/json, too.
func TestErrorJSON(t *testing.T) {
	for _, text := range []string{
		`{"code":-32000,"message":"Authentication required"}`,
		`{"code":7,"message":"é\n","data":{"a":[1,null]}}`,
		`{"code":0,"message":"","data":null}`,
	} {
		var e Error
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		for _, v := range []any{e, &e, struct{ *Error }{&e}} {
			got, err := json.Marshal(v)
			if err != nil || string(got) != text {
				t.Errorf("%T: got %s, %v, want %s", v, got, err, text)
			}
		}
	}
	for _, text := range []string{`{"message":"a"}`, `{"code":1}`, `{"code":"1","message":"a"}`, `7`, `[]`} {
		if e := (Error{Code: 5}); json.Unmarshal([]byte(text), &e) == nil || e.Code != 5 {
			t.Errorf("%s: read as %+v", text, e)
		}
	}
	if got, err := json.Marshal((*Error)(nil)); err != nil || string(got) != "null" {
		t.Errorf("nil: got %s, %v", got, err)
	}
	err := error(ErrAuthRequired)
	if got, _ := json.Marshal(map[string]any{"error": err}); string(got) != `{"error":{"code":-32000,"message":"Authentication required"}}` {
		t.Errorf("in a map: got %s", got)
	}
	var back *Error
	if uerr := json.Unmarshal([]byte(`{"code":-32000,"message":"x"}`), &back); uerr != nil || !errors.Is(back, ErrAuthRequired) {
		t.Errorf("got %v, %v", back, uerr)
	}
}

// FuzzErrorDetail holds that what is shown of an error's data is bounded, one
// line, and printable, whatever the data is.
func FuzzErrorDetail(f *testing.F) {
	for _, s := range []string{`"a"`, `{"details":"a"}`, `{"message":"{\"error\":{\"message\":\"\\u001b[0m\"}}"}`, `{"error":{"error":"\ud800"}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e := &Error{Code: 1, Message: "m", Data: data}
		text := e.Detail()
		if len(text) > maxDetail || !utf8.ValidString(text) {
			t.Errorf("got %q", text)
		}
		for _, r := range e.Error() {
			if !unicode.IsPrint(r) {
				t.Errorf("%q holds %q", text, r)
			}
		}
	})
}
