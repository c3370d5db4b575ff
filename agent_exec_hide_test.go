package acp

import (
	"strings"
	"testing"
)

// TestHiding: a text is hidden however it is cut into pieces, and nothing else is lost.
func TestHiding(t *testing.T) {
	const all = "key=sk-secret-secret\nsk-secret sk-secret-secret-more sk-sk-secret-secret"
	want := "key=•••\nsk-secret •••-more sk-•••"
	for size := 1; size <= len(all); size++ {
		h := hiding{texts: []string{"", "sk-secret-secret", "other"}}
		var got strings.Builder
		for at := 0; at < len(all); at += size {
			got.Write(h.next([]byte(all[at:min(at+size, len(all))]), false))
		}
		got.Write(h.next(nil, true))
		if got.String() != want {
			t.Fatalf("in pieces of %d: %q, want %q", size, got.String(), want)
		}
	}
	if got := string((&hiding{}).next([]byte("x"), false)); got != "x" {
		t.Errorf("nothing to hide: %q", got)
	}
}
