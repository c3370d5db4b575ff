//go:build unix

package web

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/cmd/acp/internal/test/firefox"
	"github.com/goacp/acp/internal/long"
)

// pageInFirefox opens the page in a Firefox, and pairs it with the token of the server as people do.
func (r *rig) pageInFirefox(address, at string) *firefox.Tab {
	r.t.Helper()
	tb := firefox.Open(r.t, "http://"+address+"/"+at)
	tb.Type("#code", token)
	tb.Press("Enter")
	tb.Until(`!document.querySelector(".login")`)
	return tb
}

// TestFirefox: in Firefox, too, somebody begins a session, sends prompts, and sees what the agent does.
func TestFirefox(t *testing.T) {
	long.Test(t)
	firefox.Need(t)
	r := newServer(t)
	r.converse(r.pageInFirefox(r.address, ""))
}

// TestFirefoxQuestion: of two browsers that are asked the same, each answers once, and the question is gone from both.
func TestFirefoxQuestion(t *testing.T) {
	long.Test(t)
	firefox.Need(t)
	r := newRig(t)
	id := r.session()
	tabs := []tab{r.page("#/" + id), r.pageInFirefox(r.address, "#/"+id)}
	for i, tb := range tabs {
		prompt(tb, fmt.Sprintf("ask Round %d?", i))
		for _, other := range tabs {
			other.Until(fmt.Sprintf(`document.querySelector(".ask")?.innerText.includes("Round %d?")`, i))
		}
		// What is pressed right after the last question went answers nothing.
		tabs[1-i].Until(`([...document.querySelectorAll(".ask .options button")].find((x) => x.innerText.includes("Allow"))?.click(), !document.querySelector(".ask"))`)
		for _, other := range tabs {
			other.Until(fmt.Sprintf(`document.querySelector(".entries").textContent.split("answered: allow_once").length === %d && !document.querySelector(".ask")`, i+2))
		}
	}
}

// TestFirefoxOutages: a page in Firefox that is loaded again in the middle of a turn, or loses its network, has everything
// once and in order.
func TestFirefoxOutages(t *testing.T) {
	long.Test(t)
	firefox.Need(t)
	r := newServer(t)
	id := r.session()
	w := newWire(t, r.address)
	tb := r.pageInFirefox(w.Addr().String(), "#/"+id)
	const n = 3000
	prompt(tb, fmt.Sprintf("count %d 500", n))
	tb.Until(reached(200))
	tb.Reload()
	tb.Until(reached(500))
	w.cut(false)
	tb.Until(`!document.querySelector("[aria-busy=true]") && (` + reached(800) + `)`) // while it loads, prompt would wait
	w.cut(true)
	tb.Until(`document.body.innerText.includes("No connection")`)
	prompt(tb, "say once")
	w.cut(false)
	tb.Until(answers("once") + ` && !document.querySelector(".sending") && !document.querySelector(".working")`)
	if diff := cmp.Diff(numbers(n)+"once", counted(tb)); diff != "" {
		t.Error(diff)
	}
}

var _ = []tab{(*chromium.Tab)(nil), (*firefox.Tab)(nil)}
