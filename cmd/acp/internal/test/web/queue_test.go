//go:build unix

package web

import (
	"slices"
	"testing"

	"github.com/goacp/acp/internal/long"
)

// TestQueuedSay: each of several prompts that wait says how many come before it.
func TestQueuedSay(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	tb := r.page("#/" + r.session())
	prompt(tb, "wait")
	tb.Until(`document.querySelector("button.stop") && !document.querySelector(".sending")`)
	prompt(tb, "say two")
	tb.Until(`document.querySelectorAll(".sending .buttons").length === 1`)
	prompt(tb, "say three")
	tb.Until(`document.querySelectorAll(".sending .buttons").length === 2`)
	const status = `[...document.querySelectorAll(".sending .status")].map((e) => e.textContent)`
	tb.Until(status + `[1] === "Waits for 2 other prompts"`)
	var got []string
	if tb.Eval(status, &got); !slices.Equal(got, []string{"Waits for another prompt", "Waits for 2 other prompts"}) {
		t.Error(got)
	}
	quiet(t, tb)
}
