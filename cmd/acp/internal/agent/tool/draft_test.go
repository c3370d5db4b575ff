package tool

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestCloseJSON: wherever a text breaks off, what is there of it is JSON, and it is never
// more than what was written.
func TestCloseJSON(t *testing.T) {
	const whole = `{"path":"a\"b.go","edits":[{"old":"x\\","new":"y\n\u00e9\ud83d\ude00"},{"old":"[{,","new":"}]","all":true}],"n":[1,-2.5e3,null],"all":false}`
	if !json.Valid([]byte(whole)) {
		t.Fatal("the text of the test")
	}
	for i := range len(whole) {
		got, ok := closeJSON([]byte(whole[:i]))
		if i == 0 {
			if ok {
				t.Error("nothing is JSON")
			}
			continue
		}
		if !ok {
			t.Errorf("%s: not closed: %s", whole[:i], got)
			continue
		}
		var in struct {
			Path  string
			Edits []Replacement
		}
		if err := json.Unmarshal(got, &in); err != nil {
			t.Errorf("%s: %v", got, err)
		}
		if !strings.HasPrefix(`a"b.go`, in.Path) || len(in.Edits) > 2 {
			t.Errorf("%s: %+v", got, in)
		}
	}
	for _, bad := range []string{"", "]", "}{", "x", `{"a":1}}`, "[}"} {
		if got, ok := closeJSON([]byte(bad)); ok {
			t.Errorf("%q is closed as %q", bad, got)
		}
	}
}

func FuzzCloseJSON(f *testing.F) {
	f.Add([]byte(`{"path":"a","edits":[{"old":"\u00`))
	f.Add([]byte(`[[,{"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		was := string(text)
		got, ok := closeJSON(text)
		if ok && !json.Valid(got) {
			t.Errorf("%q is closed as %q", text, got)
		}
		if string(text) != was {
			t.Error("the text was changed")
		}
	})
}
