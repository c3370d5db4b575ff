//go:build unix

package web

import (
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
)

// TestLinkAsked: a link that somebody has followed logs the browser in when they say so, and not before. One that is logged
// in is told what it is until then.
func TestLinkAsked(t *testing.T) {
	r := newRig(t)
	owner := r.page("")
	owner.Until(`document.querySelector(".list .empty")?.textContent === "No sessions yet."`)
	link := invite(owner)

	phone := chromium.Open(t, link)
	phone.Until(`document.querySelector(".login h1")?.textContent === "Log in by this link?" && !document.querySelector(".login .bad")`)
	phone.Eval(`void [...document.querySelectorAll("button")].find((b) => b.textContent === "Not now").click()`, nil)
	phone.Until(`document.querySelector(".login #code")`)
	phone.Go("about:blank")
	phone.Go(link)
	phone.Until(named("button", "Log in"))
	phone.Click(".login button.primary")
	phone.Until(`document.querySelector(".login")?.textContent === "acpWaiting until somebody approves this browser …"`)

	owner.Go(link)
	owner.Until(`document.querySelector(".login")?.textContent.includes("by the name tests")`)
	owner.Eval(`void [...document.querySelectorAll("button")].find((b) => b.textContent === "Not now").click()`, nil)
	owner.Until(`document.querySelector(".list .empty") && location.hash === ""`)
	var status int
	if owner.Eval(`fetch("/whoami").then((r) => r.status)`, &status); status != 200 {
		t.Errorf("the browser that said no is no device any more: %d", status)
	}
}
