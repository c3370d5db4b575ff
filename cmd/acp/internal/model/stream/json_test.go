package stream

import (
	"encoding/json"
	"testing"
)

func TestJoiner(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pieces []string
		want   string
	}{
		{"whole", []string{`"a"`, `"\u00e9"`, `"\ud83d\ude00"`}, "aé😀"},
		{"cut", []string{`"a\ud83d"`, `"\ude00b"`}, "a😀b"},
		{"capitals", []string{`"\uD83D"`, `"\uDE00"`}, "😀"},
		{"cut twice", []string{`"\ud83d"`, `"\ude00\ud83d"`, `"\ude01"`}, "😀😁"},
		{"half alone", []string{`"a\ud83d"`, `"b"`}, "a\uFFFDb"},
		{"backslash before", []string{`"\\ud83d"`, `"b"`}, `\ud83db`},
		{"two backslashes before", []string{`"\\\ud83d"`, `"\ude00"`}, `\😀`},
		{"no string", []string{`null`, `1`, `{}`, ``, `"`, `"x"`}, "x"},
		{"second half only", []string{`"\ude00"`}, "\uFFFD"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var j Joiner
			got := ""
			for _, p := range tc.pieces {
				got += j.Next(json.RawMessage(p))
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzJoiner(f *testing.F) {
	f.Add("a😀\\b", 3)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		raw, err := json.Marshal(text)
		if err != nil {
			t.Skip()
		}
		var want string
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		var j Joiner
		whole := j.Next(raw)
		if whole != want {
			t.Errorf("got %q, want %q", whole, want)
		}
	})
}

func TestOverflow(t *testing.T) {
	for message, want := range map[string]bool{
		"prompt is too long: 210000 tokens > 200000 maximum":                true,
		"This model's maximum context length is 8192 tokens":                true,
		"the request exceeds the available context size, try increasing it": true,
		"Rate limit reached": false,
		"":                   false,
	} {
		if got := Overflow(message); got != want {
			t.Errorf("%q: %t, want %t", message, got, want)
		}
	}
}

func TestAppendJSON(t *testing.T) {
	got, err := AppendJSON([]byte("x"), map[string]string{"a": "<&>\u2028"})
	if err != nil || string(got) != `x{"a":"<&>\u2028"}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := AppendJSON(nil, func() {}); err == nil {
		t.Error("a function has no JSON text")
	}
}

// TestAlternate: two messages of the user never follow each other.
func TestAlternate(t *testing.T) {
	const user, other = `{"role":"user","content":"{\"role\":\"tool\"}"}`, `{"role":"tool","content":"x"}`
	for _, tt := range []struct {
		before, next string
		want         bool
	}{
		{user, user, true},
		{user, other, false},
		{other, user, false},
		{``, user, false},
		{other + `,` + user, user + `,` + other, true},
		{user + `,` + other, user, false},
	} {
		if got := alternate([]byte(tt.before), []byte(tt.next)); (len(got) > 0) != tt.want {
			t.Errorf("%s %s: %s", tt.before, tt.next, got)
		}
	}
}
