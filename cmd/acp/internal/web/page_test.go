//go:build unix

package web

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/goacp/acp/trace"
)

var updateScreens = flag.Bool("update", false, "write the pictures of docs/screens anew")

// serve shows records in a page.
func serve(t *testing.T, opts Options, recs ...*trace.Record) (*Server, *tab) {
	t.Helper()
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.fold.checks = &broken{}
	for _, r := range recs {
		s.Feed(r)
	}
	tb := open(t, s.URL())
	t.Cleanup(func() {
		if list := tb.wrong(); len(list) > 0 && !t.Failed() {
			t.Errorf("the console says: %q", list)
		}
	})
	return s, tb
}

func demoOptions() Options {
	return Options{
		Title: "claude-code", File: "~/.local/state/acp/traces/2026-11-21-claude-code.acptrace",
		Header: trace.Header{Command: []string{"claude-code-acp"}, Tool: "acp 1.0.0", Started: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC), Redacted: true},
	}
}

func TestScreens(t *testing.T) {
	_, tb := serve(t, demoOptions(), demo()...)
	tb.until(`document.querySelectorAll('.row').length > 10`)
	check := func(name string) {
		t.Helper()
		data := tb.shot()
		if len(data) > 200<<10 {
			t.Errorf("%s has %d bytes", name, len(data))
		}
		if *updateScreens {
			if err := os.WriteFile(screens(name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		tb.scheme(scheme)
		tb.press("1", "g")
		tb.until(`document.querySelector('.row.selected')`)
		for range 27 {
			tb.press("j")
		}
		check("web-frames-" + scheme + ".png")
		tb.press("2")
		tb.until(`document.querySelectorAll('.conversation article').length > 5`)
		check("web-transcript-" + scheme + ".png")
		tb.press("3")
		check("web-violations-" + scheme + ".png")
	}
}
