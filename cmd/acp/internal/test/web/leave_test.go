//go:build unix

package web

import (
	"testing"

	"github.com/goacp/acp/internal/long"
)

// TestLeave: a question stays open when a page whose prompt it is about leaves the session, or takes a prompt back that waits.
func TestLeave(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	tb := shown(r)
	var at string
	tb.Eval(`location.hash`, &at)
	for range 3 {
		tb.Eval(`void (location.hash = "")`, nil)
		tb.Until(`document.querySelector(".list .row") && !document.querySelector(".talk")`)
		tb.Eval(`void (location.hash = "`+at+`")`, nil)
		tb.Until(`document.querySelector(".message.agent") && !document.querySelector("[aria-busy=true]")`)
		tb.Until(`document.querySelector(".ask .options button")`)
	}
	tb.Eval(`void document.querySelector("#prompt").focus()`, nil)
	prompt(tb, "say next")
	tb.Until(`document.querySelector(".sending")?.textContent.includes("Take back")`)
	tb.Click(".sending .buttons button")
	tb.Until(`!document.querySelector(".sending") && document.querySelector("#prompt").value === "say next"`)
	tb.Until(`document.querySelector(".ask .options button")`)
	tb.Eval(`void (location.hash = "")`, nil)
	tb.Until(`document.querySelector(".list .row") && !document.querySelector(".talk")`)
	tb.Eval(`void (location.hash = "`+at+`")`, nil)
	tb.Until(`document.querySelector(".ask .options button")`)
}
