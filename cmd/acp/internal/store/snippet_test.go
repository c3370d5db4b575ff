package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
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
		at, _ := locate(tt.text, searchWords(tt.words))
		if got := around(tt.text, at); got != tt.want {
			t.Errorf("%.30q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func FuzzAround(f *testing.F) {
	f.Add("say one and two", "one")
	f.Add("\xff\u0301", "\u0301")
	f.Fuzz(func(t *testing.T, text, query string) {
		at, _ := locate(text, searchWords(query))
		if got := around(text, at); len(got) > 2*snippetBytes+20 {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// TestSearchOften: a word that is there again and again is found as soon as any other.
func TestSearchOften(t *testing.T) {
	s := openTest(t, t.TempDir())
	data := []byte(`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"` + strings.Repeat("again ", maxText/6) + `"}}`)
	write(t, s, Session{Key: key}, Event{Kind: journal.KindUpdate, Data: data})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it took hours
	defer cancel()
	found, err := s.List(ctx, Query{Text: "again"})
	if err != nil || len(found) != 1 || !strings.HasPrefix(found[0].Snippet, "again again") {
		t.Errorf("%v, %v", found, err)
	}
}
