//go:build unix

package main

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/long"
)

// conversation.js has the cases of TestConversation, each a function, and a gateway for them.
//
//go:embed testdata/conversation.js
var cases []byte

// TestConversation: what a conversation of the page has of a session, over a gateway that fails, is slow, or sends more in
// the meantime, each at its worst moment. Each case says what is wrong.
func TestConversation(t *testing.T) {
	long.Test(t)
	tb, _ := openBundle(t, map[string][]byte{
		"cases.js": cases,
		"":         []byte(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Cases</title><link rel="icon" href="data:,"><script type="module" src="/cases.js"></script></head><body></body></html>`),
	}, nil, "conversation.ts", "kept.ts", "link.ts", "outbox.ts")
	tb.Until("globalThis.cases")
	var names []string
	tb.Eval("Object.keys(cases)", &names)
	if len(names) < 9 {
		t.Fatalf("there are %d cases", len(names))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			var wrong string
			tb.Eval("cases['"+name+"']().then(() => '', (err) => err.stack ?? String(err))", &wrong)
			if wrong != "" {
				t.Error(wrong)
			}
		})
	}
	if wrong := tb.Wrong(); len(wrong) > 0 {
		t.Errorf("the console: %s", strings.Join(wrong, "\n"))
	}
}
