//go:build unix

package web

import (
	"fmt"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
)

// TestSuggested: the empty field has the first prompt that the agent suggests, without what is not seen. Tab takes it without
// sending it, typing and Escape hide it, the agent's next list takes its place, a page that is loaded again has it still, and a
// phone has a button.
func TestSuggested(t *testing.T) {
	r := newRig(t)
	id := r.session()
	tb := r.page("#/" + id)
	offers := func(text string) string {
		return fmt.Sprintf(`document.querySelector("#prompt")?.placeholder === %q`, text)
	}
	const none = "Write a prompt"
	prompt(tb, "suggest ^Run ^the tests|Stop")
	tb.Until(offers("Run the tests"))
	tb.Type("#prompt", "x")
	tb.Until(offers(none))
	tb.Press("Backspace")
	tb.Until(offers("Run the tests"))
	tb.Press("Tab")
	tb.Until(`document.querySelector("#prompt").value === "Run the tests" && document.activeElement.id === "prompt"`)
	var sent bool
	if tb.Eval(says("echo"), &sent); sent {
		t.Error("Tab has sent the prompt")
	}
	tb.Press("Enter")
	tb.Until(says("echo: Run the tests") + " && " + offers(none)) // it is the same list
	prompt(tb, "suggest Go on")
	tb.Until(offers("Go on"))
	tb.Go("about:blank")
	tb.Go("http://" + r.address + "/#/" + id)
	tb.Until(offers("Go on"))
	tb.Eval(`document.querySelector("#prompt").focus()`, nil)
	tb.Press("Escape")
	tb.Until(offers(none))
	prompt(tb, "suggest Commit it")
	tb.Until(offers("Commit it"))
	prompt(tb, "suggest")
	tb.Until(offers(none))

	tb.Do("Emulation.setTouchEmulationEnabled", chromium.Object{"enabled": true}, nil)
	tb.Do("Emulation.setDeviceMetricsOverride", chromium.Object{"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": true}, nil)
	tb.Until(`matchMedia("(hover: none) and (pointer: coarse)").matches`)
	tb.Type("#prompt", "suggest On the phone")
	tb.Click(".composer .primary")
	tb.Until(`document.querySelector(".suggestion")?.textContent === "On the phone"`)
	tb.Click(".suggestion")
	tb.Until(`document.querySelector("#prompt").value === "On the phone" && !document.querySelector(".suggestion")`)
	quiet(t, tb)
}
