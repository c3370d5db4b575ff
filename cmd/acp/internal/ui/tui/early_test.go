package tui

import (
	"os"
	"testing"
)

// TestEarly: the first read, and no other, turns what a terminal makes of Enter before it is in raw
// mode back into Enter, but not in a paste.
func TestEarly(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	in := &keyboard{File: r}
	for _, part := range [][2]string{
		{"one\ntwo\n\x1b[200~three\r\nfour\x1b[201~", "one\rtwo\r\x1b[200~three\r\nfour\x1b[201~"},
		{"five\nsix", "five\nsix"},
	} {
		if _, err := w.WriteString(part[0]); err != nil {
			t.Fatal(err)
		}
		var b [64]byte
		if n, err := in.Read(b[:]); err != nil || string(b[:n]) != part[1] {
			t.Errorf("%q: %q, %v, want %q", part[0], b[:n], err, part[1])
		}
	}
}
