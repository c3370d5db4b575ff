//go:build unix

package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
)

// A hand does what people do on a page, with the mouse or with the keyboard alone. What it acts on is an expression for an
// element.
type hand struct {
	*chromium.Tab
	t    *testing.T
	keys bool
}

// named is an expression for the element of a selector that has a text, or is called so.
func named(selector, text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%q)].find((e) => e.checkVisibility() && (e.textContent.trim() === %q || e.getAttribute("aria-label") === %[2]q || e.querySelector(":scope > span")?.textContent === %[2]q))`, selector, text)
}

// selected is an expression for the element of a selector.
func selected(selector string) string { return fmt.Sprintf(`document.querySelector(%q)`, selector) }

// unseen is an expression for why nobody would see that the focus is where it is, or "": the element has a mark around it
// that is as wide as a line, in the window, above everything else, and not cut off.
const unseen = `(() => {
	const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect();
	if (!e || e === document.body) return "nothing has it";
	if (s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 2) return "outline: " + s.outline;
	const strip = (c) => c.replaceAll(" ", "");
	if (/^rgba\(.*,0\)$/.test(strip(s.outlineColor))) return "outline: " + s.outline;
	for (let p = e; p; p = p.parentElement) {
		const o = getComputedStyle(p);
		if (Number(o.opacity) < .99 || o.visibility !== "visible") return "it is transparent in " + p.className;
	}
	if (r.width < 4 || r.height < 4) return "its size is " + r.width + " × " + r.height;
	const w = parseFloat(s.outlineWidth) + parseFloat(s.outlineOffset);
	const seen = {left: 0, top: 0, right: innerWidth, bottom: innerHeight};
	for (let p = e.parentElement; p; p = p.parentElement) {
		const o = getComputedStyle(p), b = p.getBoundingClientRect();
		if (o.overflowX !== "visible" || o.overflowY !== "visible") {
			seen.left = Math.max(seen.left, b.left); seen.right = Math.min(seen.right, b.right);
			seen.top = Math.max(seen.top, b.top); seen.bottom = Math.min(seen.bottom, b.bottom);
		}
		if (p.tagName === "DIALOG" || p.popover) break; // lies over the page
	}
	// Two of four sides show where it is; what scrolls may be higher than the window.
	const sides = [r.left - w >= seen.left - .5, r.right + w <= seen.right + .5, r.top - w >= seen.top - .5, r.bottom + w <= seen.bottom + .5].filter(Boolean).length;
	if (sides < 3) return "the mark is cut off on " + (4 - sides) + " sides: " + JSON.stringify([r.left - w, r.top - w, r.right + w, r.bottom + w]) + " in " + JSON.stringify(seen);
	const x = (Math.max(r.left, seen.left) + Math.min(r.right, seen.right)) / 2, y = (Math.max(r.top, seen.top) + Math.min(r.bottom, seen.bottom)) / 2, top = document.elementFromPoint(x, y);
	if (top && !e.contains(top) && !top.contains(e) && !e.labels?.[0]?.contains(top)) return "it is under " + top.outerHTML.slice(0, 100);
	return "";
})()`

// focused is an expression that says what has the focus.
const focused = `document.activeElement.outerHTML.slice(0, 120)`

// sees fails if nobody would see where the focus is.
func (h *hand) sees() {
	h.t.Helper()
	var why, what string
	if h.Eval(unseen, &why); why != "" {
		h.Eval(focused, &what)
		h.t.Errorf("the focus is not seen: %s: %s", why, what)
	}
}

// tabTo presses Tab until an element has the focus.
func (h *hand) tabTo(element string) {
	h.t.Helper()
	h.Until(element)
	for range 200 {
		var there bool
		if h.Eval(fmt.Sprintf(`document.activeElement === (%s)`, element), &there); there {
			h.sees()
			return
		}
		h.Press("Tab")
	}
	h.t.Fatalf("Tab does not reach %s", element)
}

// click presses the button of the mouse where an element is.
func (h *hand) click(element string) {
	h.t.Helper()
	var at *struct{ X, Y float64 }
	for at == nil { // it may be drawn anew in between
		h.Until(fmt.Sprintf(`(%s) && !(%[1]s).disabled`, element))
		h.Eval(fmt.Sprintf(`void (%s)?.scrollIntoView({block: "nearest"})`, element), nil)
		h.Drawn()
		h.Eval(fmt.Sprintf(`(() => { const r = (%s)?.getBoundingClientRect(); return r ? {X: r.left + r.width / 2, Y: r.top + r.height / 2} : null; })()`, element), &at)
	}
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		p := chromium.Object{"type": kind, "x": at.X, "y": at.Y}
		if kind != "mouseMoved" {
			p["button"], p["clickCount"] = "left", 1
		}
		h.Do("Input.dispatchMouseEvent", p, nil)
	}
	h.Drawn()
}

// press presses a button, or follows a link.
func (h *hand) press(element string) {
	h.t.Helper()
	if !h.keys {
		h.click(element)
		return
	}
	h.tabTo(element)
	h.Until(fmt.Sprintf(`!(%s).disabled`, element))
	h.Press("Enter")
}

// write writes a text in a field, in place of what is there.
func (h *hand) write(element, text string) {
	h.t.Helper()
	if h.keys {
		h.tabTo(element)
	} else {
		h.click(element)
	}
	h.Eval(fmt.Sprintf(`(%s).select()`, element), nil)
	h.Do("Input.insertText", chromium.Object{"text": text}, nil)
	h.Drawn()
}

// letter presses one of the keys that do something outside of texts.
func (h *hand) letter(key string) {
	h.t.Helper()
	var writes bool
	if h.Eval(`document.activeElement?.matches("input, textarea, select")`, &writes); writes {
		h.Press("Escape") // which goes to the list otherwise, on a phone
	}
	h.Until(`!document.activeElement?.matches("input, textarea, select") && !document.querySelector("dialog[open]")`)
	h.Press(key)
}

// modified presses a key together with Ctrl.
func (h *hand) modified(key string, code int) {
	h.t.Helper()
	p := chromium.Object{"type": "rawKeyDown", "key": key, "code": key, "modifiers": 2, "windowsVirtualKeyCode": code}
	h.Do("Input.dispatchKeyEvent", p, nil)
	p["type"] = "keyUp"
	h.Do("Input.dispatchKeyEvent", p, nil)
	h.Drawn()
}

// do chooses an entry of the menu of the open session.
func (h *hand) do(entry string) {
	h.t.Helper()
	item := named(".menu [role=menuitem]", entry)
	if !h.keys {
		for open := false; !open; { // a title that comes meanwhile moves the button away
			h.click(selected(".head .menu-button"))
			h.Eval(`!!document.querySelector(".menu")`, &open)
		}
		h.click(item)
		return
	}
	h.letter("m")
	h.Until(`document.querySelector(".menu")?.contains(document.activeElement)`)
	for range 20 {
		h.sees()
		var there bool
		if h.Eval(fmt.Sprintf(`document.activeElement === (%s)`, item), &there); there {
			h.Press("Enter")
			return
		}
		h.Press("ArrowDown")
	}
	h.t.Fatalf("the menu has no %s", entry)
}

// walk presses Tab until the focus was everywhere twice, since what it scrolls to may bring something else, and fails if it is not seen on the way, or does not come to something
// that can be clicked in what is before the user: the page, or what lies over it.
func (h *hand) walk(where string) {
	h.t.Helper()
	h.Eval(`void (globalThis.passed = new Set(), globalThis.begins = null, globalThis.rounds = 0)`, nil)
	for range 300 {
		h.Press("Tab")
		var over bool
		h.Eval(`(() => {
			const e = document.activeElement;
			if (e === document.body || e.tagName === "DIALOG") return false;
			passed.add(e);
			begins ??= e;
			return e === begins && rounds++ === 2;
		})()`, &over)
		if over {
			break
		}
		var why, what string
		h.Eval(`document.activeElement === document.body || document.activeElement.tagName === "DIALOG" ? "" : `+unseen, &why)
		if why != "" {
			h.Eval(focused, &what)
			h.t.Errorf("%s: the focus is not seen: %s: %s", where, why, what)
		}
	}
	var missed []string
	h.Eval(`[...(document.querySelector("dialog[open]") ?? document).querySelectorAll("button, a[href], input, select, textarea, summary, [tabindex='0']")]
		.filter((e) => e.checkVisibility({visibilityProperty: true}) && !e.disabled && !e.closest("[popover]") && !passed.has(e))
		.filter((e) => e.id !== "latest") // which goes once the focus has come to the last entry; its key is G
		// Of radio buttons, the one that is chosen has the focus, and the arrows reach the others.
		.filter((e) => !(e.type === "radio" && !e.checked && [...passed].some((p) => p.name === e.name)))
		.map((e) => e.outerHTML.slice(0, 120))`, &missed)
	if len(missed) > 0 {
		h.t.Errorf("%s: Tab does not reach %s", where, strings.Join(missed, "\n"))
	}
}
