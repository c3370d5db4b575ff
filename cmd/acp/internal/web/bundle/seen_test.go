//go:build unix

package main

import (
	"encoding/json"
	"os"
	"testing"
)

// TestSeen: the page writes out what nobody sees as terminals do, in the same table.
func TestSeen(t *testing.T) {
	table, err := os.ReadFile("../../safetext/testdata/visible.json")
	if err != nil {
		t.Fatal(err)
	}
	tb, _ := openBundle(t, map[string][]byte{
		"cases.js": []byte(`import * as text from "/text.js"; globalThis.text = text;`),
		"":         []byte(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Cases</title><link rel="icon" href="data:,"><script type="module" src="/cases.js"></script></head><body></body></html>`),
	}, nil, "parts/text.ts")
	tb.Until("globalThis.text")
	var wrong []json.RawMessage
	tb.Eval(string(table)+`.map((r) => ({...r, got: [text.seen(r.in), text.seenLine(r.in), text.seenCode(r.in)]}))
		.filter((r) => r.got[0] !== r.visible || r.got[1] !== r.line || r.got[2] !== r.code)`, &wrong)
	for _, w := range wrong {
		t.Errorf("%s", w)
	}
}
