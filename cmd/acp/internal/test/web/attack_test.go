//go:build unix

package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
)

// attackBatch is how many attacks are in one turn: the page draws all of them.
const attackBatch = 100

// readAttacks returns the corpus.
func readAttacks(file string) (all []string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		var attack string
		if json.Unmarshal([]byte(line), &attack) == nil {
			all = append(all, attack)
		}
	}
	return all, nil
}

// attack has an agent say attacks in everything that it can fill, and ask for a permission and a form.
func attack(t *acp.Turn, file string, from int) error {
	all, err := readAttacks(file)
	if err != nil {
		return err
	}
	all = all[from:min(from+attackBatch, len(all))]
	s := t.Session()
	var commands []acp.SlashCommand
	var entries []acp.PlanEntry
	var fields []acpv2.ElicitationProperty
	var answers []acp.PermissionOption
	var choices acpv2.SessionConfigSelectOptionList
	for i, a := range all {
		commands = append(commands, acp.SlashCommand{Name: fmt.Sprintf("c%d", i), Description: a, Input: &acpv2.TextCommandInput{Hint: a}})
		entries = append(entries, acp.PlanEntry{Content: a, Status: acp.PlanEntryStatusPending, Priority: acp.PlanEntryPriorityLow})
		choices = append(choices, acpv2.SessionConfigSelectOption{Value: acpv2.SessionConfigValueID(fmt.Sprint("v", i)), Name: a, Description: a})
		if i < 30 {
			answers = append(answers, acp.PermissionOption{OptionID: acp.PermissionOptionID(fmt.Sprint("o", i)), Name: a, Kind: acp.PermissionOptionKindAllowOnce})
			fields = append(fields, acpv2.ElicitationProperty{Name: fmt.Sprintf("f%d", i), Schema: &acpv2.StringPropertySchema{Title: a, Description: a}})
		}
		id := acp.ToolCallID(fmt.Sprintf("t%d-%d", from, i))
		err = errors.Join(err,
			t.Send(&acp.AgentMessage{MessageID: acp.MessageID(fmt.Sprintf("m%d-%d", from, i)), Content: acp.Set([]acp.ContentBlock{acp.Text(a)})}),
			t.Send(&acp.ToolCallUpdate{ToolCallID: id, Title: acp.Set(a), Kind: acp.Set(acp.ToolKindEdit), Status: acp.Set(acp.ToolCallStatusFailed),
				Locations: acp.Set([]acp.ToolCallLocation{{Path: "/" + a}}), Content: acp.Set([]acp.ToolCallContent{&acpv2.Content{Content: acp.Text(a)}})}),
		)
	}
	sub := acp.SessionID(fmt.Sprint("sub", from))
	err = errors.Join(err, t.Think(strings.Join(all, "\n\n")), t.Notice(acp.NoticeSeverityWarning, all[0], strings.Join(all, "\n")),
		t.Subagent(&acp.SubagentUpdate{SessionID: sub, Title: acp.Set(all[0]), Description: acp.Set(strings.Join(all, "\n"))}),
		s.Child(sub).Say(strings.Join(all, "\n\n")),
		s.SetOptions(acp.SessionConfigOption{ConfigID: "mode", Name: all[0], Description: all[0], Category: acp.SessionConfigOptionCategoryMode, Kind: &acp.SessionConfigSelect{CurrentValue: "v0", Options: choices}}),
		s.SetTitle(strings.ToValidUTF8(all[0], "?")), s.SetCommands(commands...), t.Send(&acp.PlanUpdate{Plan: &acpv2.PlanItems{PlanID: "p", Entries: entries}}))
	if err != nil {
		return err
	}
	if _, err := t.Ask(acp.Permission{Title: all[0], Command: strings.Join(all, "\n"), Cwd: "/" + all[0], Options: answers}); err != nil {
		return err
	}
	_, err = t.Elicit(acp.FormRequest{Message: strings.Join(all, "\n\n"), Schema: acp.ElicitationSchema{Title: all[0], Properties: fields}})
	return errors.Join(err, t.Say(fmt.Sprintf("\n\nover %d", from)))
}

// watches has a tab note what the policy of its pages refuses, and what runs all the same.
func watches(tb *chromium.Tab) {
	tb.Do("Page.addScriptToEvaluateOnNewDocument", chromium.Object{"source": `
		globalThis.violations = [];
		document.addEventListener("securitypolicyviolation", (e) => violations.push([e.violatedDirective, e.blockedURI, e.sample].join(" ")));
		globalThis.alert = globalThis.confirm = globalThis.prompt = () => { globalThis.pwned = 1; };`}, nil)
}

// harmless fails if something has run, was refused, or is there that no text becomes.
func harmless(t *testing.T, tb *chromium.Tab, when string) {
	t.Helper()
	var wrong []string
	tb.Eval(`[...violations, ...(globalThis.pwned || Object.prototype.pwned ? ["it ran"] : []), ...[...document.querySelectorAll("script:not([src='/app.js']), iframe, object, embed, base, form[action], img:not([src^='data:'])")].map((e) => e.outerHTML.slice(0, 200))]`, &wrong)
	for _, w := range wrong {
		t.Errorf("%s: %s", when, w)
	}
}

// TestAttacksServed: of what an agent says through a gateway, and of what files and directories are called, nothing runs on
// the page, is styled or asks for anything: the policy of the page has nothing to refuse.
func TestAttacksServed(t *testing.T) {
	long.Test(t)
	file, err := filepath.Abs("../../web/testdata/xss.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAttacks(file)
	if err != nil || len(all) < 500 {
		t.Fatal(len(all), err)
	}
	r := newRig(t)
	r.project = filepath.Join(r.project, `"><img src=x onerror=pwned=1>`)
	if err := os.MkdirAll(r.project, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if len(a) < 200 && !strings.ContainsAny(a, "/\x00") {
			_ = os.WriteFile(filepath.Join(r.project, "@"+a), nil, 0o600) // what the system takes
		}
	}
	id := r.session()
	tb := chromium.Open(t, "about:blank")
	r.pairAt(tb, r.address)
	watches(tb)
	tb.Go("http://" + r.address + "/#/" + id)
	look := func(when string) {
		t.Helper()
		harmless(t, tb, when)
	}
	for from := 0; from < len(all); from += attackBatch {
		prompt(tb, fmt.Sprintf("attacks %d %s", from, file))
		tb.Until(`document.querySelector(".ask .options button") && document.querySelectorAll(".entries *").length > 200 && document.querySelector(".entries").textContent.includes("pwned")`)
		tb.Until(`document.querySelector(".subagent details")?.textContent.includes("pwned")`)
		tb.Eval(`void document.querySelectorAll(".entries summary").forEach((s) => { s.parentElement.open = true; })`, nil) // thoughts, subagents
		tb.Drawn()
		look(fmt.Sprintf("%d, a permission", from))
		// What is pressed right after the last question went answers nothing.
		tb.Until(`(document.querySelector(".ask .options button")?.click(), document.querySelectorAll(".ask form input").length >= 20)`)
		tb.Drawn()
		look(fmt.Sprintf("%d, a form", from))
		tb.Click(".stop")
		tb.Until(`!document.querySelector(".ask") && !document.querySelector(".stop")`)
	}
	for _, text := range []string{"/", "@"} { // commands and files
		tb.Type("#prompt", text)
		tb.Until(`[...document.querySelectorAll("[role=option]")].some((o) => o.textContent.includes("pwned"))`)
		tb.Drawn()
		look("what completes " + text)
		tb.Eval(`void document.querySelector("#prompt").select()`, nil)
	}
	tb.Go("http://" + r.address + "/#/")
	tb.Until(`document.querySelector(".rows")?.textContent.includes("pwned")`)
	look("the list")
	for _, address := range tb.Requests() {
		if !strings.HasPrefix(address, "http://"+r.address+"/") && !strings.HasPrefix(address, "ws://"+r.address+"/") && !strings.HasPrefix(address, "data:") && address != "about:blank" {
			t.Errorf("the page asks for %.200s", address)
		}
	}
	// What would be refused is noticed.
	tb.Eval(`void (document.createElement("img").src = "https://evil.example/x")`, nil)
	tb.Until(`violations.length === 1`)
}
