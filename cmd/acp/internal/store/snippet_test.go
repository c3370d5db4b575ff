package store

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAround(t *testing.T) {
	many := strings.Repeat("w ", 1000)
	tests := []struct{ text, words, want string }{
		{"", "x", ""},
		{"one", "one", "one"},
		{"say one and two", "two", "say one and two"},
		{"a b c d e f g h one, i", "one", "…c d e f g h one, i"},
		{"one " + many, "one", "one" + strings.Repeat(" w", 11) + "…"},
		{many + "Ones", "one", "…w w w w w w Ones"},
		{many + "(one)", "one", "…w w w w w (one)"},
		{"someone " + many + "one", "one", "…w w w w w w one"},
		{many + "Café", "cafe", "…w w w w w w Café"},
		{many + "cafe", "Café", "…w w w w w w cafe"},
		{many + "cafe\u0301s", "cafes", "…w w w w w w cafe\u0301s"},
		{many + "x y", "Y x", "…w w w w w w x y"},
		{"not there", "x", "not there"},
		{strings.Repeat("ж", 1000) + "-one " + strings.Repeat("ж", 1000), "one", "…" + strings.Repeat("ж", 199) + "-one " + strings.Repeat("ж", 198) + "…"},
	}
	for _, tt := range tests {
		if got := around(tt.text, searchWords(tt.words)); got != tt.want {
			t.Errorf("%.30q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func FuzzAround(f *testing.F) {
	f.Add("say one and two", "one")
	f.Add("\xff\u0301", "\u0301")
	f.Fuzz(func(t *testing.T, text, query string) {
		if got := around(text, searchWords(query)); len(got) > 2*snippetBytes+20 {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// TestSearchOften: a word that is there again and again is found as soon as any other.
func TestSearchOften(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "s.db"))
	k := Key{"a", "s1"}
	data := []byte(`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"` + strings.Repeat("again ", maxText/6) + `"}}`)
	if err := s.Append(t.Context(), k, []Event{{Kind: EventUpdate, Data: data}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it took hours
	defer cancel()
	found, err := s.List(ctx, Query{Text: "again"})
	if err != nil || len(found) != 1 || !strings.HasPrefix(found[0].Snippet, "again again") {
		t.Errorf("%v, %v", found, err)
	}
}
