//go:build unix

package web

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
)

var update = flag.Bool("update", false, "write the pictures of the documentation")

// shown opens a conversation in which there is everything, with a question.
func shown(r *rig) *chromium.Tab {
	r.t.Helper()
	id := r.session()
	tb := r.page("#/" + id)
	prompt(tb, "demo")
	tb.Until(says("What I did") + ` && !document.querySelector(".working")`)
	prompt(tb, "ask Delete the old build?")
	tb.Until(`document.querySelector(".ask .options button")`)
	return tb
}

// fits is an expression that tells what is wider than the window.
const fits = `JSON.stringify([document.documentElement, document.body, ...document.querySelectorAll(".app, .list, .talk, .head, .scroll, .entries, .foot, .ask, .composer, dialog[open]")]
	.filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "hidden" || e.getBoundingClientRect().right > innerWidth + 1)
	.map((e) => e.tagName + "." + e.className + " " + e.scrollWidth + ">" + e.clientWidth))`

// TestWidths: nothing is cut off or scrolls sideways on a phone, and when everything is twice as large.
func TestWidths(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	tb := shown(r)
	for name, m := range map[string]chromium.Object{
		"360 pixels":  {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true},
		"200 percent": {"width": 640, "height": 400, "deviceScaleFactor": 2, "mobile": false},
		"wide":        {"width": 1920, "height": 1080, "deviceScaleFactor": 1, "mobile": false},
	} {
		t.Run(name, func(t *testing.T) {
			tb.Do("Emulation.setDeviceMetricsOverride", m, nil)
			tb.Drawn()
			for _, where := range []string{"talk", "help", "new", "list"} {
				switch where {
				case "help", "new":
					tb.Eval(`document.activeElement.blur()`, nil)
					tb.Press(map[string]string{"help": "?", "new": "n"}[where])
					tb.Until(`document.querySelector("dialog[open]")`)
				case "list":
					tb.Eval(`void (location.hash = "")`, nil)
					tb.Until(`document.querySelector(".list .row")`)
				}
				var wide string
				if tb.Eval(fits, &wide); wide != "[]" {
					t.Errorf("%s: %s", where, wide)
				}
				tb.Press("Escape")
				tb.Until(`!document.querySelector("dialog[open]")`)
			}
			tb.Eval(`void history.back()`, nil)
			tb.Until(`document.querySelector(".talk")`)
		})
	}
}

// TestKeyboard: a session is begun, a prompt sent and a question answered without a mouse.
func TestKeyboard(t *testing.T) {
	r := newRig(t)
	tb := r.page("")
	tb.Until(`document.body.innerText.includes("No sessions yet")`)
	tb.Press("n")
	tb.Until(`document.querySelector("dialog[open]") && document.querySelector("dialog").contains(document.activeElement)`)
	tb.Until(fmt.Sprintf(`document.querySelector("dialog input").value === %q`, r.project)) // is proposed
	tb.Do("Input.insertText", chromium.Object{"text": r.project}, nil)
	tb.Press("Enter")
	tb.Until(`document.querySelector("#prompt") && !document.querySelector("dialog[open]") && !document.querySelector("[aria-busy=true]")`)
	tb.Eval(`document.activeElement.blur()`, nil)
	tb.Press("i")
	tb.Until(`document.activeElement.id === "prompt"`)
	tb.Eval(`document.activeElement.select()`, nil) // a new session has the focus there a moment after it is open, so that the key may be text
	tb.Do("Input.insertText", chromium.Object{"text": "ask May I?"}, nil)
	tb.Press("Enter")
	tb.Until(`document.querySelector(".ask")`)
	// A question does not take the focus from somebody who writes.
	tb.Until(`document.activeElement.id === "prompt"`)
	tb.Press("Escape", "1")
	tb.Until(says("answered: allow_once"))
	tb.Press("?")
	tb.Until(`document.querySelector("dialog[open]")`)
	tb.Press("Escape")
	tb.Until(`!document.querySelector("dialog[open]")`)
	// Everything that can be clicked is reached by Tab, and seen when it is.
	(&hand{Tab: tb, t: t, keys: true}).walk("the page")
}

// TestPrint: what is printed is the conversation, all of it, and nothing else.
func TestPrint(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	tb := r.page("#/" + r.session())
	prompt(tb, "demo")
	tb.Until(says("What I did") + ` && !document.querySelector(".working")`)
	const n = 150 // paragraphs, which are several windows and pages
	prompt(tb, fmt.Sprintf("lines %d", n))
	tb.Until(answers("end") + ` && !document.querySelector(".working")`)
	prompt(tb, "ask Delete the old build?")
	tb.Until(`document.querySelector(".ask .options button")`)
	tb.Do("Emulation.setEmulatedMedia", chromium.Object{"media": "print"}, nil)
	tb.Drawn()
	var got struct {
		Text   string   // as it is to be seen
		Cut    []string // what is not all there
		Height float64
		Others []string
	}
	tb.Eval(`({
		Text: document.body.innerText, Height: document.documentElement.scrollHeight,
		Others: [...document.querySelectorAll(".list, .foot, .toast, .latest, .back")].filter((e) => e.checkVisibility()).map((e) => e.className),
		Cut: [document.body, ...document.querySelectorAll("#page, .app, .talk, .scroll, .entries, .entries > *, .entries pre")]
			.filter((e) => e.getBoundingClientRect().height === 0 && e.textContent || getComputedStyle(e).overflowY !== "visible" && e.scrollHeight > e.clientHeight + 1).map((e) => e.outerHTML.slice(0, 120)),
	})`, &got)
	for _, text := range []string{
		"demo", "Read clock.go", "Edit clock.go", "func now(clock func() time.Time) string", "Find where the clock is read", "$ go test ./...", "FAIL",
		"What I did", "an hour ahead", "winter", "line 0 is one of many", fmt.Sprintf("line %d is one of many", n-1), "ask Delete the old build?",
	} {
		if !strings.Contains(got.Text, text) {
			t.Errorf("%q is not printed", text)
		}
	}
	if len(got.Others) > 0 || len(got.Cut) > 0 {
		t.Errorf("printed beside it: %q; cut off: %q", got.Others, got.Cut)
	}
	var pdf struct{ Data []byte }
	tb.Do("Page.printToPDF", chromium.Object{"paperHeight": 11, "scale": 1}, &pdf)
	const page = 11 * 96 // pixels
	if pages := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(pdf.Data, -1)); float64(pages) < got.Height/page {
		t.Errorf("%.0f pixels are printed on %d pages", got.Height, pages)
	}
}

// TestPictures takes the pictures of the documentation, with -update.
func TestPictures(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	tb := shown(r)
	for name, f := range map[string]func(){
		"page-light.png": func() { tb.Scheme("light"); tb.Size(1280, 860) },
		"page-dark.png":  func() { tb.Scheme("dark"); tb.Size(1280, 860) },
		"page-phone.png": func() { tb.Scheme("light"); tb.Size(360, 740) },
	} {
		f()
		data := tb.Shot()
		if *update {
			if err := os.WriteFile(filepath.Join("..", "..", "..", "..", "..", "docs", "screens", name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	quiet(t, tb)
}

// escaped fails if a character is anywhere on a page that shows.
func escaped(t *testing.T, tb *chromium.Tab, where string, char int) {
	t.Helper()
	var found []string
	tb.Eval(fmt.Sprintf(`(() => {
		const c = String.fromCodePoint(%d), found = document.title.includes(c) ? ["the title"] : [];
		for (const e of document.querySelectorAll("body *")) {
			for (const a of e.attributes) if (a.value.includes(c) && !(e.tagName === "OPTION" && a.name === "value")) found.push(e.tagName + " " + a.name);
			for (const n of e.childNodes) if (n.nodeType === 3 && n.data.includes(c)) found.push(e.tagName + "." + e.className + ": " + n.data);
		}
		return found;
	})()`, char), &found)
	for _, f := range found {
		t.Errorf("%#x, %s: %q", char, where, f)
	}
}

// TestNames: characters that are not seen, or that change the order of others, are written as escapes in names that agents
// choose, wherever the page shows them.
func TestNames(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	for _, char := range []int{0x202e, 0x2066, 0x7} {
		tb := r.page("#/" + r.session())
		shows := func(where string, names ...string) {
			t.Helper()
			for _, name := range names {
				tb.Until(fmt.Sprintf(`document.body.textContent.includes(%q + "\\u{%x}end")`, name, char))
			}
			escaped(t, tb, where, char)
		}
		prompt(tb, fmt.Sprintf("names %d", char))
		tb.Until(`document.querySelector(".ask .options")`)
		shows("a question", "title", "option", "value", "notice", "description", "question", "run", "cwd", "allow", "reject")
		tb.Type("#prompt", "/")
		tb.Until(`document.querySelector("#offers")`)
		shows("commands", "command", "about", "hint")
		tb.Press("Escape")
		tb.Click(".ask [data-answer]")
		// What is pressed right after a question went answers nothing.
		tb.Until(`document.querySelector(".ask form")`)
		shows("a form", "schema", "form", "field", "about", "x", "y")
		tb.Until(`((document.querySelector(".ask [data-answer]") ?? [...document.querySelectorAll(".ask button")].find((b) => b.textContent === "Decline"))?.click(), !document.querySelector(".ask, .working"))`)
	}
}

// TestLetters: who does not want letters to act by themselves switches them off, also for a page that is loaded again.
func TestLetters(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	tb := r.page("")
	tb.Until(`document.querySelector(".list .empty")`)
	tb.Press(",")
	tb.Click("#letters")
	tb.Press("Escape")
	tb.Until(`!document.querySelector("dialog[open]")`)
	for range 2 {
		for _, key := range []string{"n", "?", ",", "/"} {
			tb.Press(key)
		}
		var open bool
		if tb.Eval(`!!document.querySelector("dialog[open]") || document.activeElement?.id === "search"`, &open); open {
			t.Error("a letter has done something")
		}
		tb.Do("Page.reload", chromium.Object{}, nil)
		tb.Until(`document.querySelector(".list .empty")`)
	}
}
