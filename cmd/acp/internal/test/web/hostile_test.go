//go:build unix

package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
)

// turns is a character that changes the order of others, and hostileText a text with it that a page must not take for its own.
const (
	turns       = 0x202e
	hostileText = `"><img src=x onerror=pwned=1><svg onload=pwned=1><script>pwned=1</script>` + "\u202eend"
)

// hostileName is one that an agent can have in the configuration.
const hostileName = "<svg\u00a0onload=pwned=1>\u202eend"

// hostile has an agent say the text where attack does not, ask for a visit of an address, and fail.
func hostile(t *acp.Turn, text, name string) error {
	raw, _ := json.Marshal(map[string]string{text: text})
	value, group := acpv2.SessionConfigValueID("v"), acpv2.SessionConfigGroupID("g")
	err := errors.Join(
		t.Send(&acp.UsageUpdate{Used: 1, Size: 2, Cost: acp.Set(acpv2.Cost{Amount: 1, Currency: name})}),
		t.Session().SetOptions(
			acp.SessionConfigOption{ConfigID: "model", Name: text, Description: text, Category: acp.SessionConfigOptionCategoryModel, Kind: &acp.SessionConfigSelect{
				CurrentValue: value, Options: acpv2.SessionConfigSelectGroupList{{GroupID: group, Name: text, Options: []acpv2.SessionConfigSelectOption{{Value: value, Name: text, Description: text}}}},
			}},
			acp.SessionConfigOption{ConfigID: "bool", Name: text, Description: text, Kind: &acpv2.SessionConfigBoolean{}},
		),
		t.Send(&acp.ToolCallUpdate{ToolCallID: "mcp", Name: acp.Set(text), Title: acp.Set("mcp__" + text), Kind: acp.Set(acp.ToolKind(text)), Status: acp.Set(acp.ToolCallStatusFailed),
			RawInput: raw}),
	)
	if err != nil {
		return err
	}
	if _, _, err := t.ElicitURL(acp.LinkRequest{Message: text, URL: "javascript:pwned=1//" + text}); err != nil {
		return err
	}
	return &acp.Failure{Message: text, Reason: "hostile"}
}

// hostileBatch is how many attacks of the corpus are in one text.
const hostileBatch = 115

// hostileTexts returns the text that the agent says for a prompt: attacks of a file, from the Nth on, if it names them.
func hostileTexts(from int, file string) (text, name string, err error) {
	if file == "" {
		return hostileText, hostileName, nil
	}
	all, err := readAttacks(file)
	if err != nil {
		return "", "", err
	}
	text = strings.Join(all[from:min(from+hostileBatch, len(all))], " ")
	return text, text, nil
}

// TestHostile: nothing that an agent, another client or the configuration can fill runs on the page, and each is shown, with
// what changes the order of characters written out.
func TestHostile(t *testing.T) {
	long.Test(t)
	file, err := filepath.Abs("../../web/testdata/xss.txt")
	if err != nil {
		t.Fatal(err)
	}
	corpus, err := readAttacks(file)
	if err != nil || len(corpus) < 500 {
		t.Fatal(len(corpus), err)
	}
	var agents []byte
	for _, name := range agentNames(append([]string{hostileName}, corpus...)) {
		key, _ := json.Marshal(name)
		agents = fmt.Appendf(agents, "[agents.%s]\ncommand = \"sh\"\n", key)
	}
	config := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(config, agents, 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, "--config", config)
	pipe := filepath.Join(r.home, "pipe")
	refused := func(name, why string) (dir string) {
		t.Helper()
		dir = filepath.Join(r.home, name)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "refused"), []byte(why), 0o600)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	id := r.session()
	conn := r.client(&acp.Client{})
	defer conn.Close()
	s, err := conn.Load(t.Context(), acp.SessionID(id), acp.SessionConfig{Cwd: r.project})
	if err != nil {
		t.Fatal(err)
	}
	tb := chromium.Open(t, "about:blank")
	r.pairAt(tb, r.address)
	tb.Permit("http://"+r.address, "notifications", "granted")
	watches(tb)
	tb.Go("http://" + r.address + "/#/" + id)
	// says waits until something has the text, as it is to be read, and looks at the whole page.
	says := func(where, selector string) {
		t.Helper()
		tb.Until(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => (e.textContent + " " + (e.title || "") + " " + (e.label || "")).includes("\\u{202e}end"))`, selector))
		tb.Drawn()
		harmless(t, tb, where)
		escaped(t, tb, where, turns)
	}

	prompt(tb, "hostile")
	says("the usage", ".head .cost")
	says("a model", ".agent-options option")
	says("a group of models", ".agent-options optgroup")
	says("an option", ".agent-options label")
	says("what an option is about", ".agent-options label[title]")
	says("a tool", ".entries .tool, .entries article")
	tb.Until(`document.querySelector(".ask .address")?.textContent.includes("%E2%80%AEend")`)
	says("why it is asked", ".ask h3")
	tb.Until(`((document.querySelector(".ask [data-answer]") ?? [...document.querySelectorAll(".ask button")].find((b) => b.textContent === "Decline"))?.click(), !document.querySelector(".ask, .working"))`)
	says("the error of a turn", ".turn.error, .turn")

	// The same fields with all attacks of the corpus, and prompts of another client.
	var batches []string
	for from := 0; from < len(corpus); from += hostileBatch {
		prompt(tb, fmt.Sprintf("hostile %d %s", from, file))
		tb.Until(`document.querySelector(".ask .address")?.textContent.includes("pwned") && document.querySelector(".agent-options label")?.title.includes("pwned") && document.querySelector(".head .cost")`)
		tb.Eval(`void document.querySelectorAll(".entries summary").forEach((s) => { s.parentElement.open = true; })`, nil)
		tb.Drawn()
		harmless(t, tb, fmt.Sprintf("attacks from %d", from))
		tb.Until(`((document.querySelector(".ask [data-answer]") ?? [...document.querySelectorAll(".ask button")].find((b) => b.textContent === "Decline"))?.click(), !document.querySelector(".ask, .working"))`)
		text, _, err := hostileTexts(from, file)
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, text)
		if _, err := s.Prompt(t.Context(), acp.Text("say "+text)).Wait(); err != nil {
			t.Fatal(err)
		}
		tb.Until(`[...document.querySelectorAll(".message.user")].at(-1)?.textContent.includes("pwned") && !document.querySelector(".working")`)
		tb.Drawn()
		harmless(t, tb, fmt.Sprintf("what was said and has failed, from %d", from))
	}

	// What is queued here, and what another client has sent.
	if err := mkfifo(pipe); err != nil {
		t.Fatal(err)
	}
	turn := s.Prompt(t.Context(), acp.Text("held "+pipe+" "+hostileText))
	tb.Until(`document.querySelector(".stop")`)
	says("a prompt of another client", ".message.user:not(.sending)")
	tb.Type("#prompt", hostileText)
	tb.Press("Enter")
	says("a prompt that waits", ".sending")
	for i, text := range batches {
		prompt(tb, "say "+text)
		tb.Until(fmt.Sprintf(`document.querySelectorAll(".sending").length === %d`, i+2))
		tb.Drawn()
		harmless(t, tb, fmt.Sprintf("prompts that wait, with the attacks of batch %d", i))
	}
	if err := os.WriteFile(pipe, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	says("a question", ".ask h3")
	tb.Eval(`void document.querySelector(".ask [data-answer]").click()`, nil)
	tb.Until(`!document.querySelector(".ask")`)
	if _, err := turn.Wait(); err != nil {
		t.Fatal(err)
	}
	tb.Until(`!document.querySelector(".sending, .working")`)

	// What begins a session, and why one is not begun.
	tb.Eval(`void document.activeElement.blur()`, nil)
	tb.Press("n")
	says("an agent of the configuration", "dialog option")
	tb.Until(fmt.Sprintf(`document.querySelectorAll("dialog option").length >= %d`, len(corpus)*9/10)) // few differ only in white space
	tb.Type("dialog input", refused("refused", hostileText))
	tb.Click("dialog button.primary")
	says("why a session is refused", "#new-wrong")
	for i, text := range batches {
		why := fmt.Sprintf("refusal %d", i)
		tb.Eval(`document.querySelector("dialog input").select()`, nil)
		tb.Type("dialog input", refused(why, why+" "+text))
		tb.Click("dialog button.primary")
		tb.Until(fmt.Sprintf(`document.querySelector("#new-wrong")?.textContent.includes(%q)`, why))
		tb.Drawn()
		harmless(t, tb, fmt.Sprintf("why sessions are refused, with the attacks of batch %d", i))
	}
	tb.Press("Escape")
	tb.Until(`!document.querySelector("dialog[open]")`)

	// A device that calls itself something.
	link := invite(tb)
	_, ticket, _ := strings.Cut(link, "#t=")
	var status int
	tb.Eval(fmt.Sprintf(`fetch("/login", {method: "POST", credentials: "omit", headers: {"Content-Type": "application/json"}, body: JSON.stringify({ticket: %q, secret: "0123456789abcdef0123456789abcdef", name: %q})}).then((r) => r.status)`, ticket, hostileText), &status)
	if status != 202 {
		t.Errorf("the device has got %d", status)
	}
	tb.Until(`document.querySelector(".invitation b")`)
	tb.Drawn()
	harmless(t, tb, "a device")
	escaped(t, tb, "a device", turns)
	tb.Eval(`void [...document.querySelectorAll(".invitation button")].find((b) => b.textContent === "Approve").click()`, nil)
	tb.Press("Escape")
	tb.Until(`!document.querySelector("dialog[open]")`)

	// A notification is text, whatever it says.
	title, _ := json.Marshal(hostileText)
	tb.Deliver("http://"+r.address, `{"kind":"question","session":"s_other","title":`+string(title)+`}`)
	worker := tb.Worker()
	untilNotified(t, worker, "A session waits for an answer|"+strings.ReplaceAll(hostileText, "\u202e", `\u{202e}`)+"|s_other")
	harmless(t, tb, "a notification")
	worker.Eval(`void (() => {
		const show = registration.showNotification.bind(registration);
		self.shown = 0;
		registration.showNotification = (...what) => show(...what).finally(() => { self.shown++; });
	})()`, nil)
	for _, attack := range corpus {
		title, _ := json.Marshal(attack)
		tb.Deliver("http://"+r.address, `{"kind":"question","session":"s_attack","title":`+string(title)+`}`)
	}
	var pwned bool
	worker.Eval(fmt.Sprintf(`(async () => {
		for (const end = Date.now() + 15000; self.shown < %d && Date.now() < end;) await new Promise((done) => setTimeout(done, 20));
		return self.shown < %[1]d || typeof pwned !== "undefined";
	})()`, len(corpus)), &pwned)
	if pwned {
		t.Error("notifications of the attacks are not shown, or have run a script in the worker")
	}
	harmless(t, tb, "notifications of the attacks")

	// A link to a session that is shared, as others follow it, which names something else.
	tb.Go("http://" + r.address + "/?#/" + "%22%3E%3Cimg%20src=x%20onerror=pwned=1%3E%E2%80%AEend")
	tb.Until(`document.querySelector(".scroll .bad, .scroll [role=alert]")`)
	tb.Drawn()
	harmless(t, tb, "a link")
	escaped(t, tb, "a link", turns)
	const linked = 20 // at once, which a slow browser can follow in the time that it is given
	for from := 0; from < len(corpus); from += linked {
		links(t, tb, corpus[from:min(from+linked, len(corpus))])
		tb.Drawn()
		harmless(t, tb, fmt.Sprintf("links, from attack %d", from))
	}
}

// links follows a link to a session for each name, and waits until the page says that there is none.
func links(t *testing.T, tb *chromium.Tab, names []string) {
	t.Helper()
	list, _ := json.Marshal(names)
	var silent []string
	// A browser ignores navigation beyond some hundred in ten seconds, without an error.
	tb.Eval(fmt.Sprintf(`(async () => {
		const silent = [], wait = (ms) => new Promise((done) => setTimeout(done, ms));
		const go = async (hash) => {
			for (location.hash = hash; location.hash !== hash; location.hash = hash) await wait(200);
		};
		const says = () => document.querySelector(".scroll .bad, .scroll [role=alert]");
		for (const name of %s) {
			await go("");
			for (let i = 0; says() && i < 1000; i++) await wait(10);
			await go("#/" + encodeURIComponent(name));
			for (let i = 0; !says() && i < 1000; i++) await wait(10);
			if (!says()) silent.push(name);
		}
		return silent;
	})()`, list), &silent)
	if len(silent) > 0 {
		t.Errorf("the page says nothing of %q", silent)
	}
}

// agentNames makes names of agents of texts: without what would make a command line of one, and each once.
func agentNames(texts []string) (names []string) {
	for _, text := range texts {
		name := strings.TrimLeft(strings.Map(func(c rune) rune {
			if c <= ' ' || c == 0x7f || strings.ContainsRune("/\\\"'", c) {
				return '\u00a0'
			}
			return c
		}, text), "-")
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
