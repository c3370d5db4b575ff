//go:build unix

package web

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
)

// asked counts what a page asks of the history, by before and after. What is after is refused if globalThis.refused is set.
const asked = `(() => {
	globalThis.asked = {before: 0, after: 0};
	const real = WebSocket.prototype.send;
	WebSocket.prototype.send = function(data) {
		if (typeof data === "string" && data.includes("/history\"")) asked[data.includes("\"after\":") ? "after" : "before"]++;
		return real.call(this, globalThis.refused ? data.replace(/"after":\d+/, "\"after\":-1") : data);
	};
})()`

// scroll is a statement of a page in which somebody scrolls the conversation. to is where to, in pixels, as an expression
// in which s is what scrolls.
func scroll(to string) string {
	return `{
		const s = document.querySelector(".scroll");
		s.dispatchEvent(new WheelEvent("wheel", {bubbles: true})); // it is somebody who scrolls
		s.scrollTop = ` + to + `;
	}`
}

// look gives a page a function that notes the numbers of the messages that are drawn, and scrolls to an end of them.
var look = `void (() => {
	globalThis.seen = new Set(), globalThis.wrong = [], globalThis.mostDrawn = 0;
	globalThis.look = (to) => {
		const all = [...document.querySelectorAll(".message.agent")].map((m) => Number(m.textContent.match(/message (\d+)/)[1]));
		all.forEach((n, i) => {
			seen.add(n);
			if (i > 0 && n !== all[i - 1] + 1 && wrong.length < 10) wrong.push(all[i - 1] + " is followed by " + n);
		});
		mostDrawn = Math.max(mostDrawn, all.length);
		if (to) ` + scroll(`to === "top" ? 0 : s.scrollHeight`) + `
	};
})()`

// A sight is what look has noted.
type sight struct {
	Seen, Low, High int // messages, and the least and the greatest of their numbers
	Drawn           int // the most that were drawn at once
	Wrong           []string
}

// complete fails unless each message up to the last one that was seen was seen, in order and not too many of them at once.
func (g *sight) complete(t *testing.T, tb *chromium.Tab) {
	t.Helper()
	var text string
	tb.Eval(`JSON.stringify({seen: seen.size, low: [...seen].reduce((a, b) => Math.min(a, b)), high: [...seen].reduce((a, b) => Math.max(a, b)), drawn: mostDrawn, wrong})`, &text)
	if err := json.Unmarshal([]byte(text), g); err != nil {
		t.Fatal(err)
	}
	if g.Seen != g.High+1 || g.Low != 0 || len(g.Wrong) > 0 {
		t.Errorf("%d messages were seen, from %d to %d; %q", g.Seen, g.Low, g.High, g.Wrong)
	}
	if g.Drawn > 700 {
		t.Errorf("%d messages were drawn", g.Drawn)
	}
}

// TestWindow: somebody scrolls from the end of a long session to its beginning, and back, while the agent works. What is far
// away is dropped and fetched again; each message is there once and in order, what comes meanwhile is counted, and the way to
// the end is short.
func TestWindow(t *testing.T) {
	long.Test(t)
	const n = 12_000
	r := newRig(t)
	id := r.session()
	conn := r.client(&acp.Client{})
	defer conn.Close()
	s, err := conn.Load(t.Context(), acp.SessionID(id), acp.SessionConfig{Cwd: r.project})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(t.Context(), acp.Text(fmt.Sprintf("messages %d", n))).Wait(); err != nil {
		t.Fatal(err)
	}
	tb := chromium.Open(t, "about:blank")
	r.pairAt(tb, r.address)
	tb.Do("Page.addScriptToEvaluateOnNewDocument", chromium.Object{"source": asked}, nil)
	tb.Go("http://" + r.address + "/#/" + id)
	tb.Until(says(fmt.Sprintf("message %d", n-1)))
	_ = s.Prompt(t.Context(), acp.Text(fmt.Sprintf("messages 1000000 20000 %d", n)))
	tb.Until(says(fmt.Sprintf("message %d", n)))
	tb.Eval(look, nil)
	const first = `(look("top"), seen.has(0) && document.querySelector(".message.agent").textContent.includes("message 0"))`
	far(tb, first)
	tb.Until(`/^\d+\+? new ↓$/.test(document.querySelector("#latest")?.textContent) && /^Go to the end: \d+\+? new$/.test(document.querySelector("#latest").ariaLabel)`)

	// At once to the end, from there to the beginning again, and back step by step.
	tb.Click("#latest")
	tb.Until(`!document.querySelector("#latest") && document.querySelector(".working")`)
	tb.Eval(`(look("top"), seen.clear())`, nil)
	far(tb, first)
	tb.Eval(`(asked.after = 0, globalThis.refused = true, seen.clear())`, nil)
	const next = `[...document.querySelectorAll(".entries > .earlier button")].find((b) => b.textContent === "Show what comes next")`
	far(tb, `(look("end"), !!(document.querySelector(".remark") && `+next+`))`)
	tb.Eval(`(refused = false, globalThis.last = Math.max(...seen))`, nil)
	tb.Until(`(` + next + `?.click(), globalThis.look(), Math.max(...seen) > last)`) // one that was refused may be on its way still
	far(tb, `(look("end"), !document.querySelector("#latest") && document.querySelector(".working") !== null)`)
	var got sight
	if got.complete(t, tb); got.High < n {
		t.Errorf("the last message that was seen is %d", got.High)
	}
	var after int
	tb.Eval(`asked.after`, &after)
	// The window has 6,500 updates at most, and the latest ones are kept beside it.
	if after < (n-6000)/1000 {
		t.Errorf("what is later was fetched %d times: it was not dropped", after)
	}
	quiet(t, tb)
}

// hold has a page send nothing for the history until release() is called.
const hold = `(() => {
	const real = WebSocket.prototype.send;
	let held = [];
	WebSocket.prototype.send = function(data) {
		if (held && typeof data === "string" && data.includes("/history\"")) held.push(() => real.call(this, data));
		else real.call(this, data);
	};
	globalThis.release = () => {
		const all = held;
		held = null;
		all.forEach((f) => f());
	};
	globalThis.isHeld = () => held?.length > 0;
})()`

// TestPlaceInside: what somebody reads in a message stays in view when what the message begins with is fetched, also while
// the message grows.
func TestPlaceInside(t *testing.T) {
	long.Test(t)
	for name, verb := range map[string]string{"a paragraph": "count 5000", "paragraphs": "lines 2000", "paragraphs that come": "lines 1000000 2000"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			id := r.session()
			conn := r.client(&acp.Client{})
			defer conn.Close()
			s, err := conn.Load(t.Context(), acp.SessionID(id), acp.SessionConfig{Cwd: r.project})
			if err != nil {
				t.Fatal(err)
			}
			turn := s.Prompt(t.Context(), acp.Text(verb))
			grows := strings.Contains(verb, "1000000")
			if !grows {
				if _, err := turn.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			tb := chromium.Open(t, "about:blank")
			r.pairAt(tb, r.address)
			tb.Do("Page.addScriptToEvaluateOnNewDocument", chromium.Object{"source": hold}, nil)
			tb.Do("Emulation.setDeviceMetricsOverride", chromium.Object{"width": 360, "height": 500, "deviceScaleFactor": 1, "mobile": false}, nil)
			const first = `Number(document.querySelector(".message.agent").textContent.match(/\d+/)?.[0])`
			for ready := false; !ready; { // until it has so much that the beginning is not fetched at first
				tb.Go("about:blank")
				tb.Go("http://" + r.address + "/#/" + id)
				tb.Until(`document.querySelector(".message.agent") && !document.querySelector("[aria-busy=true]")`)
				tb.Eval(first+` > 300`, &ready)
			}
			// place is an expression that returns how far a number is below the top of the view; that of the first one there
			// is noted, if none is.
			const place = `(() => {
				const top = document.querySelector(".scroll").getBoundingClientRect().top, walker = document.createTreeWalker(document.querySelector(".message.agent"), NodeFilter.SHOW_TEXT), range = document.createRange();
				while (walker.nextNode()) for (const word of walker.currentNode.data.matchAll(/\d+/g)) {
					range.setStart(walker.currentNode, word.index);
					range.setEnd(walker.currentNode, word.index + word[0].length);
					const at = range.getBoundingClientRect();
					if (globalThis.noted === undefined ? at.top >= top : word[0] === noted) {
						globalThis.noted = word[0];
						return Math.round(at.top - top);
					}
				}
				return 1e6;
			})()`
			tb.Until(`(() => { ` + scroll("300") + `; return isHeld(); })()`)
			tb.Drawn()
			var before, after int
			tb.Eval(`(globalThis.firstOne = `+first+`, `+place+`)`, &before)
			tb.Eval(`void release()`, nil)
			tb.Until(first + ` < firstOne && document.querySelector(".entries > .earlier button")?.textContent !== "Loading …"`)
			tb.Drawn()
			// The first paragraph has other lines then.
			if tb.Eval(place, &after); max(after-before, before-after) > 25 {
				t.Errorf("what is read is at %d px, and before it was at %d", after, before)
			}
			quiet(t, tb)
		})
	}
}

// TestLongText: of a message that grows without end the page keeps the last part, which it says, and stays at its end.
func TestLongText(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	tb := r.page("#/" + r.session())
	const n = 12_000
	prompt(tb, fmt.Sprintf("lines %d", n))
	tb.UntilFar(answers("end")+` && !document.querySelector(".working")`, `document.querySelector(".message.agent").textContent.slice(-100)`)
	var text string
	tb.Eval(`document.querySelector(".message.agent").innerText`, &text)
	text = strings.TrimSpace(text)
	if !strings.Contains(text, " characters before this are not shown.") || len(text) > 250_000 || strings.Contains(text, "show all") {
		t.Errorf("%d bytes: %.200q", len(text), text)
	}
	if !strings.HasSuffix(text, fmt.Sprintf("line %d is one of many\n\nend", n-1)) {
		t.Errorf("it ends with %q", text[max(0, len(text)-100):])
	}
	var below float64
	if tb.Eval(`(() => { const s = document.querySelector(".scroll"); return s.scrollHeight - s.scrollTop - s.clientHeight; })()`, &below); below > 2 {
		t.Errorf("the view is %v px above the end", below)
	}
	quiet(t, tb)
}

// far waits until an expression is true, for as long as each try of it comes further.
func far(tb *chromium.Tab, expression string) { tb.UntilFar(expression, `seen.size`) }
