//go:build unix

package web

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
)

// An axe looks for what keeps people out of a page. It is in node_modules.
type axe struct {
	t      *testing.T
	script string
}

func newAxe(t *testing.T) *axe {
	t.Helper()
	script, err := os.ReadFile("../../web/node_modules/axe-core/axe.min.js")
	if err != nil {
		if os.Getenv("ACP_AXE") == "require" {
			t.Fatal(err)
		}
		t.Skip("axe is not there: npm ci in cmd/acp/internal/web")
	}
	return &axe{t, string(script)}
}

// look fails if axe finds something that is serious or critical.
func (a *axe) look(tb *chromium.Tab, where string) {
	a.t.Helper()
	var there bool
	if tb.Eval(`"axe" in globalThis`, &there); !there {
		tb.Eval(a.script+`; 0`, nil)
	}
	var found []string
	tb.Eval(`axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations
		.filter((v) => v.impact === "serious" || v.impact === "critical")
		.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 160) + " " + n.any.concat(n.all).map((x) => x.message).join("; ").slice(0, 200)).join(" | ")))`, &found)
	for _, v := range found {
		a.t.Errorf("%s: %s", where, v)
	}
}

// looks are the colours and the sizes in which a page is looked at.
func looks(tb *chromium.Tab, f func(how string)) {
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{1280, 360} {
			tb.Scheme(scheme)
			tb.Size(width, 800)
			tb.Drawn()
			f(fmt.Sprintf("%s, %d pixels", scheme, width))
		}
	}
}

// TestAccessible: axe finds nothing serious in any view of the page and in any dialog, in light and dark colours, wide and
// narrow.
func TestAccessible(t *testing.T) {
	long.Test(t)
	a := newAxe(t)
	r := newRig(t)
	tb := shown(r)
	h := &hand{Tab: tb, t: t, keys: true}
	looks(tb, func(how string) {
		tb.Until(`document.querySelector(".ask .options button")`)
		a.look(tb, how+", a conversation with a question")
		for _, d := range []struct {
			name string
			open func()
		}{
			{"keys", func() { h.letter("?") }},
			{"new session", func() { h.letter("n"); tb.Until(`document.querySelector("dialog[open] select")`) }},
			{"settings", func() { h.letter(","); tb.Until(named("dialog[open] button.primary", "Pair")) }},
			{"rename", func() { h.do("Rename …") }},
			{"share", func() {
				h.do("Share …")
				h.write(selected("dialog[open] input"), "bob")
				tb.Press("Enter")
				tb.Until(`document.querySelector("dialog[open] .people-list .name")?.textContent === "bob"`)
			}},
			{"delete", func() { h.do("Delete …") }},
			{"pairing", func() {
				h.letter(",")
				tb.Until(named("dialog[open] button.primary", "Pair"))
				tb.Click("dialog form button.primary")
				tb.Until(`document.querySelector(".invitation .qr")`)
			}},
		} {
			d.open()
			tb.Until(`document.querySelector("dialog[open]")`)
			a.look(tb, how+", "+d.name)
			tb.Press("Escape")
			tb.Until(`!document.querySelector("dialog[open]")`)
		}
		h.letter("m")
		tb.Until(`document.querySelector(".menu")`)
		a.look(tb, how+", the menu")
		tb.Press("Escape")
		tb.Until(`!document.querySelector(".menu")`)
		tb.Eval(`void (document.querySelector(".unfold")?.offsetParent && document.querySelector(".unfold").click())`, nil)
		tb.Type("#prompt", "/")
		tb.Until(`document.querySelector("#offers")`)
		a.look(tb, how+", what completes a command")
		tb.Press("Escape")
		tb.Eval(`void document.querySelector("#prompt").select()`, nil)
		tb.Do("Input.insertText", chromium.Object{"text": "say next"}, nil)
		tb.Press("Enter")
		tb.Until(`document.querySelector(".sending")?.textContent.includes("Take back")`)
		a.look(tb, how+", a prompt that waits")
		tb.Click(".sending .buttons button")
		tb.Until(`!document.querySelector(".sending") && document.querySelector("#prompt").value === "say next"`)
		tb.Eval(`void (document.querySelector("#prompt").select(), document.execCommand("delete"))`, nil)
		tb.Until(`document.querySelector("#prompt").value === ""`)
	})
	list := tb.Another("http://" + r.address + "/")
	list.Until(`document.querySelector(".list .row.waits")`)
	looks(list, func(how string) { a.look(list, how+", the list") })

	// Another session: a form with all kinds of fields, options, and a connection that fails.
	w := newWire(t, r.address)
	form := chromium.Open(t, "about:blank")
	r.pairAt(form, w.Addr().String())
	form.Go("http://" + w.Addr().String() + "/#/" + r.session())
	prompt(form, "options")
	form.Until(`document.querySelector(".agent-options select") && !document.querySelector(".working")`)
	prompt(form, "form")
	form.Until(`document.querySelector(".ask form")`)
	form.Click(".ask form button.primary")
	form.Until(`document.querySelector(".ask form .bad")?.textContent`)
	looks(form, func(how string) { a.look(form, how+", a form with a mistake") })
	w.cut(true)
	form.Until(`document.body.innerText.includes("No connection")`)
	looks(form, func(how string) { a.look(form, how+", no connection") })
}

// TestAccessibleOutside: the same for what is to be seen before a browser has become a device, and for whoever decides
// whether it becomes one.
func TestAccessibleOutside(t *testing.T) {
	long.Test(t)
	a := newAxe(t)
	r := newRig(t)
	owner := r.page("")
	owner.Until(`document.querySelector(".list .empty")?.textContent === "No sessions yet."`)
	link := invite(owner)

	login := chromium.Open(t, "http://"+r.address+"/")
	login.Until(`document.querySelector(".login #code")`)
	looks(login, func(how string) { a.look(login, how+", the login page") })
	login.Type("#code", "000000")
	login.Press("Enter")
	login.Until(`document.querySelector("#trouble").textContent`)
	looks(login, func(how string) { a.look(login, how+", a code that is wrong") })

	phone := chromium.Open(t, link)
	phone.Until(named("button", "Log in"))
	looks(phone, func(how string) { a.look(phone, how+", a link that was followed") })
	phone.Click(".login button.primary")
	phone.Until(`document.querySelector(".login")?.textContent.includes("Waiting until somebody approves")`)
	looks(phone, func(how string) { a.look(phone, how+", a browser that waits") })
	owner.Until(`document.querySelector(".invitation")?.textContent.includes("Is it yours?")`)
	looks(owner, func(how string) { a.look(owner, how+", a device that wants to join") })
	owner.Click(".invitation button.primary")
	phone.Until(`document.querySelector(".list .empty")`)
	looks(phone, func(how string) { a.look(phone, how+", an empty list") })
	owner.Until(`document.querySelector(".invitation")?.textContent.includes("has joined")`)
	looks(owner, func(how string) { a.look(owner, how+", a device that has joined") })
	owner.Click(".invitation button.primary")
	owner.Until(`document.querySelector("dialog[open] [aria-label^=Revoke]")`)
	owner.Click("dialog[open] [aria-label^=Revoke]")
	owner.Until(named("dialog[open] button", "End its access"))
	looks(owner, func(how string) { a.look(owner, how+", a device that is to be revoked") })
}

// TestHeard: a conversation is a log, and a screen reader says what the agent has said once it has ended, and
// what it asks, by a part of the page that is read as it changes.
func TestHeard(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	tb := r.page("#/" + r.session())
	prompt(tb, "say some words")
	tb.Until(`document.querySelector("#live[aria-live=polite]").textContent === "The agent: some words"`)
	tb.Until(answers("some words"))
	var log struct{ Role, Name string }
	tb.Eval(`((e) => ({Role: e.role, Name: e.ariaLabel}))(document.querySelector(".message.agent").closest("[role]"))`, &log)
	if log.Role != "log" || log.Name != "Conversation" {
		t.Errorf("the conversation is %+v", log)
	}
	prompt(tb, "ask May I?")
	tb.Until(`document.querySelector("#live").textContent === "The agent asks: May I?"`)
	tb.Click(".stop")
	tb.Until(`document.querySelector("#live").textContent === "The agent has ended"`)
	prompt(tb, "say "+filepath.Join(r.project, "file"))
	tb.Until(fmt.Sprintf(`document.querySelector("#live").textContent === %q`, "The agent: "+filepath.Join(r.project, "file")))
}
