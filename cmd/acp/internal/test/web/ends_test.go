//go:build unix

package web

import (
	"testing"

	"github.com/goacp/acp/internal/long"
)

// TestEndsReloaded: how turns have ended, and who has decided what, is there when the page is loaded again, and in the list. A
// turn that failed can be tried again, and a question that is put aside comes back.
func TestEndsReloaded(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	id := r.session()
	tb := r.page("#/" + id)
	tb.Size(360, 640)
	tb.Eval(moment, nil)
	prompt(tb, "touch make it")
	tb.Until(`document.querySelector(".ask [data-answer]")`)
	shown := ""
	if tb.Eval(`document.querySelector(".working")?.textContent ?? ""`, &shown); shown != "Waiting for an answer" {
		t.Errorf("while a question is open the page says %q", shown)
	}
	tb.Eval(`(later(), document.querySelector(".ask .dismiss").click())`, nil)
	tb.Until(`!document.querySelector(".ask") && document.querySelector(".folded")?.textContent.includes("make it")`)
	tb.Eval(`document.querySelector(".folded button").click()`, nil)
	tb.Until(`document.querySelector(".ask [data-answer]")`)
	tb.Eval(`(later(), document.querySelector("#prompt").focus())`, nil) // where the focus is after a prompt was sent
	tb.Press("1")
	const decided = `/Allowed once by .+, \d/.test(document.querySelector(".tool .decided")?.textContent ?? "")`
	tb.Until(decided + ` && document.querySelector(".tool.status-completed")`)
	prompt(tb, "wait")
	tb.Until(says("waiting"))
	tb.Eval(`document.querySelector(".stop").click()`, nil)
	tb.Until(says("Stopped"))
	prompt(tb, "fail too busy")
	const failed = `document.querySelector(".turn.error")?.textContent === "The turn failed: too busy"`
	tb.Until(failed)
	tb.Do("Page.reload", struct{}{}, nil)
	tb.Until(failed + ` && ` + says("Stopped") + ` && ` + decided)
	for _, wrong := range []string{
		`![...document.querySelectorAll(".message.user h3")].every((h) => h.textContent === "You")`,
		`document.querySelector("#prompt").value !== ""`,
		`(document.querySelector(".tool summary").click(), false)`,
	} {
		is := false
		if tb.Eval(wrong, &is); is {
			t.Errorf("after a reload: %s", wrong)
		}
	}
	tb.Until(`document.querySelector(".tool .ansi")?.textContent.startsWith("ok\ntouched")`)
	tb.Eval(`[...document.querySelectorAll(".turn button")].find((b) => b.textContent === "Try again").click()`, nil)
	tb.Until(`document.querySelectorAll(".turn.error").length === 2`)
	tb.Eval(`void (location.hash = "")`, nil)
	tb.Until(`document.querySelector(".row.failed .failure")?.textContent.includes("failed")`)
	quiet(t, tb)
}
