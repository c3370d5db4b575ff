//go:build unix

package web

import (
	"testing"

	"github.com/goacp/acp/internal/long"
)

// TestSubagent: what a subagent does is below its name, and not among what the agent says; as it comes, and on a page that
// is opened later.
func TestSubagent(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	id := r.session()
	live := r.page("#/" + id)
	prompt(live, "delegate I have found it.")
	for i, tb := range []tab{live, r.page("#/" + id)} {
		tb.Until(says("searched"))
		tb.Until(`document.querySelector(".subagent h3")?.textContent.includes("Searcher")`)
		tb.Until(`document.querySelector(".subagent details")?.textContent.includes("I have found it.")`)
		var entries []string
		tb.Eval(`[...document.querySelectorAll(".subagent details article")].map((e) => e.textContent.trim())`, &entries)
		if len(entries) != 2 || entries[0] != "TaskSearch it." {
			t.Errorf("page %d: %q", i, entries)
		}
		var own string
		tb.Eval(`[...document.querySelectorAll(".message.agent")].filter((m) => !m.closest(".subagent")).map((m) => m.textContent).join("|")`, &own)
		if own != "Agentsearched" {
			t.Errorf("page %d: the agent says %q", i, own)
		}
		tb.Eval(`void document.querySelector(".subagent summary").click()`, nil)
		quiet(t, tb)
	}
}
