//go:build unix

package web

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestForkFromHere: a message where the agent forks the session has a button for that, also on a page that is loaded later; the new
// session has what was said up to there.
func TestForkFromHere(t *testing.T) {
	r := newRig(t)
	id := r.session()
	tb := r.page("#/" + id)
	prompt(tb, "say no button")
	tb.Until(says("no button"))
	prompt(tb, "cursor keep this")
	prompt(tb, "cursor not this")
	tb.Until(`document.querySelectorAll(".fork button").length === 2`)
	tb.Go("about:blank")
	tb.Go("http://" + r.address + "/#/" + id)
	tb.Until(`document.querySelectorAll(".fork button").length === 2`)
	tb.Click(".fork button")
	tb.Until(fmt.Sprintf(`location.hash !== "#/%s" && %s`, id, says("keep this")))
	var wrong bool
	if tb.Eval(says("not this")+` || document.querySelectorAll(".fork button").length > 0`, &wrong); wrong {
		t.Error("the copy has more than what was said before")
	}
	quiet(t, tb)
}

// TestSkill: a skill is among the commands, as one, and is invoked by its name. A tool call that a subagent does leads to what
// that does.
func TestSkill(t *testing.T) {
	r := newRig(t)
	id := r.session()
	tb := r.page("#/" + id)
	prompt(tb, "skill")
	tb.Type("#prompt", "/pol")
	tb.Until(`document.querySelector(".offers")?.textContent.includes("skill: make it shine")`)
	tb.Eval(`document.querySelector("#prompt").select()`, nil)
	prompt(tb, "/polish this")
	tb.Until(says("the skill polish"))
	tb.Until(`[...document.querySelectorAll(".message.user")].some((m) => m.textContent.includes("/polish this"))`)
	prompt(tb, "part")
	tb.Until(`document.querySelector(".tool .body button")?.textContent === "Show the subagent"`)
	tb.Click(".tool .body button")
	quiet(t, tb)
}

// TestBeginWith: a new session begins with what was chosen of the options that the agent has, before there is a session.
func TestBeginWith(t *testing.T) {
	r := newRig(t)
	id := r.session()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "choosy"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tb := r.page("#/" + id)
	tb.Until(`document.querySelector("#prompt")`)
	tb.Eval(`document.activeElement.blur()`, nil)
	tb.Press("n")
	tb.Until(`document.querySelector("dialog form input, form.form input")`)
	tb.Eval(`document.querySelector(".begins summary").click()`, nil)
	tb.Until(`document.querySelector(".begins .note")?.textContent.includes("not here")`)
	tb.Eval(`document.querySelector("form.form input").select()`, nil)
	tb.Type("form.form input", dir)
	tb.Until(fmt.Sprintf(`document.querySelector("form.form input").value === %q && !document.querySelector(".begins").open`, dir))
	tb.Eval(`document.querySelector(".begins summary").click()`, nil)
	tb.Until(`document.querySelector(".begins select")?.value === "small"`)
	tb.Eval(`{ const s = document.querySelector(".begins select"); s.value = "large"; s.dispatchEvent(new Event("change", { bubbles: true })); }`, nil)
	tb.Until(`document.querySelector(".begins select")?.value === "large"`)
	tb.Eval(`document.querySelector(".begins input[type=checkbox]").click()`, nil)
	tb.Until(`document.querySelector(".begins input[type=checkbox]").checked`)
	tb.Click("form.form .primary")
	tb.Until(fmt.Sprintf(`location.hash !== "" && location.hash !== "#/%s" && document.querySelector("#prompt")`, id))
	prompt(tb, "chosen")
	tb.Until(says("large, loud: true"))
	quiet(t, tb)
}
