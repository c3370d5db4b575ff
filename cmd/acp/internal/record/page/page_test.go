//go:build unix

package page

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/trace"
)

var updateScreens = flag.Bool("update", false, "write the pictures of docs/screens anew")

// serve shows records in a page. Recordings are checked by the rules of the protocol, others by those
// that the demo breaks.
func serve(t *testing.T, opts Options, recs ...*trace.Record) (*Server, *chromium.Tab) {
	t.Helper()
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if !opts.Recorded {
		s.fold.check = &broken{}
	}
	for _, r := range recs {
		s.Feed(r)
	}
	tb := chromium.Open(t, s.URL())
	t.Cleanup(func() {
		if list := tb.Wrong(); len(list) > 0 && !t.Failed() {
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
	long.Test(t)
	_, tb := serve(t, demoOptions(), demo()...)
	tb.Until(`document.querySelectorAll('.row').length > 10`)
	check := func(name string) {
		t.Helper()
		data := tb.Shot()
		if len(data) > 200<<10 {
			t.Errorf("%s has %d bytes", name, len(data))
		}
		if *updateScreens {
			if err := os.WriteFile(screens(name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	var fonts int
	tb.Eval(`new Set([...document.querySelectorAll('.row')].map((r) => getComputedStyle(r).font)).size`, &fonts)
	if fonts != 1 {
		t.Errorf("rows have %d fonts", fonts)
	}
	for _, scheme := range []string{"light", "dark"} {
		tb.Scheme(scheme)
		tb.Press("1", "g")
		tb.Until(selected + ` === 1`)
		// A question and its answer in the one, what is wrong in the other.
		if scheme == "light" {
			tb.Press(strings.Fields(strings.Repeat("j ", 27))...)
			tb.Until(selected + ` === 28`)
		} else {
			tb.Press("n", "n")
			tb.Until(selected + ` === 39`)
		}
		check("web-frames-" + scheme + ".png")
		tb.Press("2")
		tb.Until(`document.querySelectorAll('.conversation article').length > 5`)
		check("web-transcript-" + scheme + ".png")
		tb.Press("3")
		check("web-violations-" + scheme + ".png")
	}
	tb.Press("1", "Escape", "Escape", "f")
	tb.Scheme("light")
	tb.Size(420, 760)
	check("web-narrow.png")
	tb.Press("n")
	tb.Press("N", "Enter")
	tb.Until(focused + ` === 'detail'`)
	check("web-narrow-frame.png")
	var text string
	tb.Eval(`document.getElementById('detail').innerText`, &text)
	if strings.Contains(text, "null") || strings.Contains(text, "undefined") {
		t.Errorf("a notification is shown as %q", text)
	}
	// Nothing is wider than the window.
	var wide int
	tb.Eval(`document.documentElement.scrollWidth`, &wide)
	if wide > 420 {
		t.Errorf("the page is %d wide in a window of 420", wide)
	}
}

// TestContrast holds the colours of texts apart from their grounds.
func TestContrast(t *testing.T) {
	_, tb := serve(t, demoOptions(), demo()...)
	tb.Until(`document.querySelectorAll('.row').length > 10`)
	for _, scheme := range []string{"light", "dark"} {
		tb.Scheme(scheme)
		var poor []string
		tb.Eval(`(() => {
			const at = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
			const light = (hex) => {
				const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
				return .2126 * r + .7152 * g + .0722 * b;
			};
			const ratio = (a, b) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
			const pairs = [];
			for (const text of ['text', 'soft']) for (const ground of ['ground', 'raised', 'sunken', 'striped', 'accent-ground', 'bad-ground', 'warn-ground', 'info-ground']) pairs.push([text, ground]);
			for (const text of ['out', 'in', 'good', 'bad', 'warn', 'info', 'accent', 'string', 'number', 'word', 'key']) for (const ground of ['ground', 'striped', 'raised']) pairs.push([text, ground]);
			pairs.push(['bad', 'bad-ground'], ['warn', 'warn-ground'], ['text', 'plus'], ['text', 'minus'], ['key', 'warn-ground'], ['string', 'warn-ground']);
			return pairs.filter(([a, b]) => !(ratio(light(at(a)), light(at(b))) >= 4.5)).map(([a, b]) => a + ' on ' + b + ' ' + ratio(light(at(a)), light(at(b))).toFixed(2));
		})()`, &poor)
		if len(poor) > 0 {
			t.Errorf("%s: %q", scheme, poor)
		}
	}
}
