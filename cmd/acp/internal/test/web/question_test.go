//go:build unix

package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
)

// late has questions with a text in them that globalThis.hold has reach the page only when arrive() is called, with a text that
// they have.
const late = `(() => {
	const real = WebSocket.prototype.addEventListener, held = [];
	globalThis.held = held;
	globalThis.arrive = (text) => { for (const h of held.filter((h) => h.data.includes(text))) { held.splice(held.indexOf(h), 1); h.go(); } };
	WebSocket.prototype.addEventListener = function(kind, f, ...rest) {
		if (kind !== "message") return real.call(this, kind, f, ...rest);
		return real.call(this, kind, (e) => {
			const go = () => typeof f === "function" ? f.call(this, e) : f.handleEvent(e);
			if (globalThis.hold && typeof e.data === "string" && e.data.includes("request_permission") && e.data.includes(hold)) held.push({data: e.data, go});
			else go();
		}, ...rest);
	};
})()`

// TestQuestionsOvertaken: of two questions that come again after a reconnect, the second one first, what is pressed for the
// one that stood there does not answer the other, and they stand in their order once both are there.
func TestQuestionsOvertaken(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	id := r.session()
	w := newWire(t, r.address)
	tb := chromium.Open(t, "about:blank")
	r.pairAt(tb, w.Addr().String())
	tb.Do("Page.addScriptToEvaluateOnNewDocument", chromium.Object{"source": late}, nil)
	tb.Go("http://" + w.Addr().String() + "/#/" + id)
	prompt(tb, "both This?|That?")
	tb.Until(`document.querySelectorAll(".ask").length === 2`)
	const order = `[...document.querySelectorAll(".ask h3")].map((h) => h.textContent)`
	var before, after []string
	tb.Eval(order, &before) // which one the gateway was asked first is not known
	tb.Eval(moment, nil)
	tb.Eval(`(document.activeElement.blur(), globalThis.hold = "request_permission")`, nil)
	w.cut(false)
	tb.Until(`new Set(held.map((h) => h.data)).size === 2 && !document.querySelector(".ask")`)
	tb.Eval(`later()`, nil) // the connection may be lost for long
	tb.Eval(fmt.Sprintf(`arrive(%q)`, before[1]), nil)
	tb.Until(`document.querySelectorAll(".ask").length === 1 && document.querySelector(".ask h3").textContent === ` + strconv.Quote(before[1]))
	tb.Press("1")
	tb.Eval(`void document.querySelector(".ask [data-answer]").click()`, nil)
	tb.Drawn()
	tb.Eval(`arrive("")`, nil)
	tb.Until(`document.querySelectorAll(".ask").length === 2`)
	if tb.Eval(order, &after); !slices.Equal(after, before) {
		t.Errorf("the order is %q, and was %q", after, before)
	}
	tb.Press("1") // and this one stands there for a moment only
	tb.Drawn()
	tb.Until(`document.querySelectorAll(".ask").length === 2`)
	tb.Eval(`later()`, nil)
	tb.Press("1")
	tb.Until(`document.querySelectorAll(".ask").length === 1`)
	tb.Until(says(before[0] + " answered: allow_once"))
	tb.Eval(`later()`, nil)
	tb.Press("1")
	tb.Until(`!document.querySelector(".ask, .working") && ` + says(before[1]+" answered: allow_once"))
}

// TestTakenBack: a prompt that waits for another one is taken back into the field, with its files, and does not run but when
// it is sent again.
func TestTakenBack(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	tb := r.page("#/" + r.session())
	prompt(tb, "wait")
	tb.Until(`document.querySelector("button.stop") && !document.querySelector(".sending")`)
	tb.Eval(`void (() => {
		const files = new DataTransfer();
		files.items.add(new File(["a note"], "notes.txt", { type: "text/plain" }));
		dispatchEvent(new DragEvent("drop", { dataTransfer: files }));
	})()`, nil)
	tb.Until(`document.querySelector(".attached .name")`)
	prompt(tb, "say two")
	tb.Until(`document.querySelector(".sending")?.textContent.includes("Waits for another prompt") && !document.querySelector(".attached")`)
	tb.Click(".sending .buttons button")
	tb.Until(`document.querySelector("#prompt").value === "say two" && document.querySelector(".attached .name")?.textContent === "notes.txt" && !document.querySelector(".sending")`)
	tb.Click("button.stop")
	tb.Until(`!document.querySelector("button.stop")`)
	tb.Click(".composer button.primary")
	tb.Until(says("two") + ` && !document.querySelector(".sending, .working")`)
	tb.Until(`document.querySelector(".message.user details.other summary")?.textContent === "notes.txt"`)
	var got []string
	if tb.Eval(prompts, &got); len(got) != 2 || got[0] != "wait" || !strings.HasPrefix(got[1], "say two") || !strings.Contains(got[1], "a note") {
		t.Error(got)
	}
	quiet(t, tb)
}

// TestTakenBackLost: a prompt is not lost that is taken back as the connection ends. It is neither sent again by itself, then
// or after the page is loaded again, nor can it be taken back twice.
func TestTakenBackLost(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	w := newWire(t, r.address)
	tb := chromium.Open(t, "about:blank")
	r.pairAt(tb, w.Addr().String())
	tb.Go("http://" + w.Addr().String() + "/#/" + r.session())
	prompt(tb, "wait")
	tb.Until(`document.querySelector("button.stop") && !document.querySelector(".sending")`)
	prompt(tb, "say two")
	tb.Until(`document.querySelector(".sending")?.textContent.includes("Waits for another prompt")`)
	w.silence()
	tb.Click(".sending .buttons button")
	tb.Until(`document.querySelector(".sending .buttons button:disabled")?.textContent === "Taking back …"`)
	w.cut(false)
	const lost = `document.querySelector(".sending.failed")?.textContent.includes("the connection ended while it was taken back") && document.querySelectorAll(".sending .buttons button:enabled").length === 2`
	tb.Until(lost)
	tb.Do("Page.reload", chromium.Object{}, nil)
	tb.Until(lost + ` && document.querySelector("button.stop")`)
	tb.Click(".sending .buttons button:last-child")
	tb.Until(`!document.querySelector(".sending")`)
}
