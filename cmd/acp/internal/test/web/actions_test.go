//go:build unix

package web

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
)

// pageOf opens the page in a browser of another user, who types the code of acp devices pair.
func (r *rig) pageOf(user, role string) *chromium.Tab {
	r.t.Helper()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(self, "devices", "pair", "--user", user, "--role", role, "--name", user)
	cmd.Env = r.environment()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGKILL) // unless it has ended
		_ = cmd.Wait()
	}()
	line, _ := bufio.NewReader(out).ReadString('\n')
	fields := strings.Fields(line)
	if len(fields) != 5 {
		r.t.Fatalf("acp devices pair says %q %s", line, stderr.String())
	}
	tb := chromium.Open(r.t, "http://"+r.address+"/")
	tb.Until(`document.activeElement?.id === "code"`)
	tb.Type("#code", fields[4])
	tb.Press("Enter")
	tb.Until(`document.querySelector(".list")`)
	return tb
}

// hands runs a test with the mouse, and with the keyboard alone.
func hands(t *testing.T, r *rig, f func(t *testing.T, h *hand, id string)) {
	t.Helper()
	for _, how := range []string{"mouse", "keyboard"} {
		t.Run(how, func(t *testing.T) {
			id := r.session()
			tb := chromium.Open(t, "about:blank")
			r.pairAt(tb, r.address)
			tb.Go("http://" + r.address + "/#/" + id)
			tb.Until(`document.querySelector("#prompt") && !document.querySelector("[aria-busy=true]")`)
			h := &hand{Tab: tb, t: t, keys: how == "keyboard"}
			f(t, h, id)
			quiet(t, tb)
		})
	}
}

// rowOf is an expression for the row of a session in the list.
func rowOf(id string) string {
	return fmt.Sprintf(`document.querySelector('.rows li[data-id="%s"]')`, id)
}

// TestRename: who renames a session sees the name at once, and so does who has it open elsewhere.
func TestRename(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	hands(t, r, func(t *testing.T, h *hand, id string) {
		other := h.Another("http://" + r.address + "/#/" + id)
		other.Until(`document.querySelector(".head h1")`)
		h.Do("Page.bringToFront", chromium.Object{}, nil) // or it draws nothing
		h.do("Rename …")
		h.Until(`document.querySelector("dialog[open]").contains(document.activeElement)`)
		h.sees()
		h.press(named("dialog[open] button", "Cancel"))
		h.Until(`!document.querySelector("dialog[open]")`)
		h.do("Rename …")
		h.write(selected("dialog[open] input"), "The "+t.Name())
		h.press(named("dialog[open] button.primary", "Rename"))
		h.Until(`!document.querySelector("dialog[open]")`)
		for _, tb := range []*chromium.Tab{h.Tab, other} {
			tb.Until(fmt.Sprintf(`document.querySelector(".head h1").textContent === %q && %s.querySelector(".title").textContent === %[1]q`, "The "+t.Name(), rowOf(id)))
		}
	})
}

// TestFork: a fork is another session, which begins with what was said, and goes on by itself.
func TestFork(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	hands(t, r, func(t *testing.T, h *hand, id string) {
		prompt(h, "say before")
		h.Until(answers("before") + ` && !document.querySelector(".working")`)
		h.do("Fork")
		h.Until(fmt.Sprintf(`location.hash.startsWith("#/") && location.hash !== "#/%s" && document.querySelector("#prompt")`, id))
		h.Until(answers("before"))
		prompt(h, "say after")
		h.Until(answers("after") + ` && !document.querySelector(".working")`)
		var fork string
		h.Eval(`location.hash.slice(2)`, &fork)
		h.Until(rowOf(fork) + ` && ` + rowOf(id))
		h.Go("http://" + r.address + "/#/" + id)
		h.Until(fmt.Sprintf(`location.hash === "#/%s" && `, id) + answers("before"))
		var got []string
		if h.Eval(prompts, &got); len(got) != 1 {
			t.Errorf("the session has the prompts %q", got)
		}
	})
}

// TestArchive: a session that is archived is at the end of the list, and comes back.
func TestArchive(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	hands(t, r, func(t *testing.T, h *hand, id string) {
		h.Until(rowOf(id))
		h.do("Archive")
		h.Until(`document.querySelector("section[aria-label=Archived]") && !` + rowOf(id))
		h.press(selected(`section[aria-label=Archived] h2 button`))
		h.Until(rowOf(id) + `?.closest("section").getAttribute("aria-label") === "Archived"`)
		h.do("Take from the archive")
		h.Until(rowOf(id) + `?.closest("section").getAttribute("aria-label") === "Idle"`)
	})
}

// saved returns the name and the content of the one file in a directory, once it is complete.
func saved(t *testing.T, tb *chromium.Tab, dir string) (name, content string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); tb.Drawn() {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 1 || strings.HasSuffix(all[0].Name(), ".crdownload") || strings.HasPrefix(all[0].Name(), ".") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, all[0].Name()))
		if err != nil {
			t.Fatal(err)
		}
		return all[0].Name(), string(data)
	}
	t.Fatal("no file was saved")
	return "", ""
}

// TestExport: the file that is saved is the session as acp sessions export writes it.
func TestExport(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	hands(t, r, func(t *testing.T, h *hand, id string) {
		prompt(h, "demo")
		h.Until(`document.querySelector(".head h1").textContent === "Mend the clock" && ` + says("What I did") + ` && !document.querySelector(".working")`)
		dir := t.TempDir()
		h.Do("Page.setDownloadBehavior", chromium.Object{"behavior": "allow", "downloadPath": dir}, nil)
		h.do("Export as Markdown")
		name, content := saved(t, h.Tab, dir)
		if name != "Mend-the-clock.md" {
			t.Errorf("the file is %s", name)
		}
		for _, text := range []string{"demo", "## What I did", "```go\nfunc now(", "go test ./...", "+func now(clock func() time.Time) string {"} {
			if !strings.Contains(content, text) {
				t.Errorf("%q is not in it:\n%s", text, content)
			}
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "sessions", "export", "--at", "http://"+r.address+"/acp", id, "-o", "-", "--format", "markdown")
		cmd.Env = r.environment()
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(out), content); diff != "" {
			t.Errorf("acp sessions export writes something else than the page saves: %s", diff)
		}
	})
}

// TestShare: a session that is shared is in the list of the other user, who sees in it what the role permits, until the
// share is taken back.
func TestShare(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	bob := r.pageOf("bob", "approver")
	bob.Until(`document.querySelector(".empty")`)
	hands(t, r, func(t *testing.T, h *hand, id string) {
		prompt(h, "say shared words")
		// The title that a first prompt makes comes a little later, and moves the button of the menu.
		h.Until(answers("shared words") + ` && !document.querySelector(".working") && document.querySelector(".head h1").textContent === "say shared words"`)
		h.do("Share …")
		h.Until(`document.querySelector("dialog[open]")?.textContent.includes("It is shared with nobody.")`)
		h.write(selected("dialog[open] input"), "bob")
		h.press(named("dialog[open] button.primary", "Share"))
		h.Until(`document.querySelector("dialog[open] .people-list .name")?.textContent === "bob"`)

		bob.Until(rowOf(id))
		bob.Go("http://" + r.address + "/#/" + id)
		bob.Until(answers("shared words") + ` && document.querySelector(".watch") && !document.querySelector("#prompt")`) // a viewer
		bob.Until(rowOf(id) + `.textContent.includes("'s")`)

		// Another role counts at once.
		role := selected(`dialog[open] select[aria-label="Role of bob"]`)
		if h.keys {
			h.tabTo(role)
			h.Press("ArrowDown")
		} else {
			h.choose(role, "prompter")
		}
		h.Until(role + `.value === "prompter"`)
		bob.Until(`document.querySelector("#prompt")`)

		h.press(named("dialog[open] button", "Remove bob"))
		h.Until(`document.querySelector("dialog[open]").textContent.includes("It is shared with nobody.")`)
		bob.Until(`!` + rowOf(id))
		h.Press("Escape")
		h.Until(`!document.querySelector("dialog[open]")`)
		bob.Go("http://" + r.address + "/?again#/" + id)
		bob.Until(`document.querySelector(".scroll .bad") && !document.querySelector(".message")`)
	})
}

// choose chooses in a list that the browser opens over the page, which no mouse of a test reaches.
func (h *hand) choose(element, value string) {
	h.t.Helper()
	h.Until(element)
	h.Eval(fmt.Sprintf(`void ((e) => { e.value = %q; e.dispatchEvent(new Event("change", {bubbles: true})); })(%s)`, value, element), nil)
	h.Drawn()
}

// TestSearch: the list has those sessions that have all words, in the title or in the directory, and all again without words.
func TestSearch(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	other := r.session()
	hands(t, r, func(t *testing.T, h *hand, id string) {
		prompt(h, "demo")
		h.Until(rowOf(id) + `?.textContent.includes("Mend the clock") && ` + rowOf(other))
		if h.keys {
			h.letter("/")
			h.Until(`document.activeElement?.id === "search"`)
			h.sees()
		}
		h.write(selected("#search"), "clock MEND")
		h.Until(rowOf(id) + ` && !` + rowOf(other))
		if h.keys {
			h.tabTo(rowOf(id) + `?.querySelector("a")`)
		}
		h.write(selected("#search"), "clock nothing")
		h.Until(`document.querySelector(".rows .empty")?.textContent === "Nothing found."`)
		h.write(selected("#search"), filepath.Base(r.project))
		h.Until(rowOf(id) + ` && ` + rowOf(other))
	})
}

// TestOptions: an option that is changed reaches the agent, and all pages have it.
func TestOptions(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	hands(t, r, func(t *testing.T, h *hand, id string) {
		prompt(h, "options")
		model, loud := selected(".agent-options select"), selected(".agent-options input[type=checkbox]")
		h.Until(model + `?.value === "small" && !` + loud + `.checked && !document.querySelector(".working")`)
		other := h.Another("http://" + r.address + "/#/" + id)
		other.Until(model + `?.value === "small"`)
		h.Do("Page.bringToFront", chromium.Object{}, nil)
		if h.keys {
			h.letter("o")
			h.Until(`document.activeElement === ` + model)
			h.sees()
			h.Press("ArrowDown")
			h.tabTo(loud)
			h.space()
		} else {
			h.choose(model, "large")
			h.click(loud)
		}
		for _, tb := range []*chromium.Tab{h.Tab, other} {
			tb.Until(model + `.value === "large" && ` + loud + `.checked`)
		}
		prompt(h, "chosen")
		h.Until(answers("large, loud: true"))
	})
}

// space presses the space bar.
func (h *hand) space() {
	h.t.Helper()
	p := chromium.Object{"type": "keyDown", "key": " ", "code": "Space", "windowsVirtualKeyCode": 32, "text": " "}
	h.Do("Input.dispatchKeyEvent", p, nil)
	p["type"] = "keyUp"
	delete(p, "text")
	h.Do("Input.dispatchKeyEvent", p, nil)
	h.Drawn()
}

// TestForm: a form of the agent is filled in and sent. What is needed and missing is said first.
func TestForm(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	hands(t, r, func(t *testing.T, h *hand, id string) {
		prompt(h, "form")
		name := selected(".ask form input")
		h.Until(name)
		if h.keys {
			h.letter("q")
			h.Until(`document.activeElement === ` + name)
			h.sees()
		}
		h.press(named(".ask form button.primary", "Submit"))
		h.Until(`document.querySelector(".ask form .bad")?.textContent === "This is needed." && document.activeElement === ` + name)
		h.sees()
		h.write(name, "Ann")
		h.press(named(".ask form button.primary", "Submit"))
		h.Until(`!document.querySelector(".ask") && ` + answers(`form: {"name":"Ann"}`))
		prompt(h, "form")
		h.Until(name)
		for range 100 { // what is pressed right after the last question went answers nothing
			var there bool
			if h.Eval(`document.querySelector(".ask") !== null`, &there); !there {
				break
			}
			h.press(named(".ask form button", "Decline"))
		}
		h.Until(`!document.querySelector(".ask") && ` + answers(`form: null`))
	})
}

// TestSend: Ctrl+Enter sends a prompt, and stops what runs first. A button does the same.
func TestSend(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	hands(t, r, func(t *testing.T, h *hand, id string) {
		send := func(text string, button string) {
			h.write(selected("#prompt"), text)
			if h.keys {
				h.modified("Enter", 13)
			} else {
				h.click(named(".composer button", button))
			}
		}
		send("say one", "Send")
		h.Until(answers("one") + ` && !document.querySelector(".working")`)
		send("wait", "Send")
		h.Until(says("waiting") + ` && document.querySelector(".stop")`)
		send("say two", "Stop and send")
		h.Until(answers("two") + ` && ` + says("Stopped") + ` && !document.querySelector(".working, .sending")`)
		var got []string
		if h.Eval(prompts, &got); fmt.Sprint(got) != "[say one wait say two]" {
			t.Errorf("the prompts are %q", got)
		}
	})
}

// TestSendNow: Ctrl+S, or a button, gives a message to the turn that runs. An agent that cannot be steered gets it as a prompt.
func TestSendNow(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	hands(t, r, func(t *testing.T, h *hand, id string) {
		prompt(h, "wait")
		h.Until(says("waiting") + ` && document.querySelector(".stop")`)
		h.write(selected("#prompt"), "say now")
		if h.keys {
			h.modified("s", 83)
		} else {
			h.click(named(".composer button", "Send now"))
		}
		h.Until(`document.querySelector(".sending .status")?.textContent === "Waits for another prompt" && document.querySelector("#prompt").value === ""`)
		h.click(selected(".stop"))
		h.Until(says("Stopped") + ` && !document.querySelector(".stop")`) // which cancels what waits, too
	})
}

// TestStop: what runs is stopped by the button, and by Ctrl+. from where the prompt is written.
func TestStop(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	hands(t, r, func(t *testing.T, h *hand, id string) {
		prompt(h, "wait")
		h.Until(says("waiting") + ` && document.querySelector(".stop")`)
		if h.keys {
			h.modified(".", 190)
		} else {
			h.click(selected(".stop"))
		}
		h.Until(says("Stopped") + ` && !document.querySelector(".stop")`)
	})
}

// TestCopy: the link and the ID of a session are on the clipboard.
func TestCopy(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	hands(t, r, func(t *testing.T, h *hand, id string) {
		for _, name := range []string{"clipboard-read", "clipboard-write"} {
			h.Permit("http://"+r.address, name, "granted")
		}
		for entry, want := range map[string]string{"Copy link": "http://" + r.address + "/#/" + id, "Copy ID": id} {
			h.do(entry)
			h.Until(`document.querySelector(".toast")?.textContent.includes("was copied")`)
			h.Until(fmt.Sprintf(`navigator.clipboard.readText().then((t) => { globalThis.clip = t; }), globalThis.clip === %q`, want))
		}
	})
}

// TestDelete: a session is deleted only by who says so twice, and is gone from all lists then.
func TestDelete(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	hands(t, r, func(t *testing.T, h *hand, id string) {
		other := h.Another("http://" + r.address + "/")
		other.Until(rowOf(id))
		h.Do("Page.bringToFront", chromium.Object{}, nil)
		h.do("Delete …")
		h.Until(`document.activeElement === ` + named("dialog[open] button", "Keep")) // Enter alone deletes nothing
		if h.keys {
			h.sees()
		}
		h.press(named("dialog[open] button", "Keep"))
		h.Until(`!document.querySelector("dialog[open]") && ` + rowOf(id))
		h.do("Delete …")
		h.press(named("dialog[open] button", "Delete for good"))
		h.Until(`!document.querySelector("dialog[open]") && location.hash === "" && !` + rowOf(id))
		other.Until(`!` + rowOf(id))
		h.Go("http://" + r.address + "/?again#/" + id)
		h.Until(`document.querySelector(".scroll .bad")`)
	})
}

// TestDialogs: in all dialogs, the focus comes with Tab to everything that can be used, is seen there, and does not leave the
// dialog. It returns to where it was.
func TestDialogs(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	tb := shown(r)
	h := &hand{Tab: tb, t: t, keys: true}
	h.Until(`document.querySelector(".rows li")`)
	h.letter("c")
	h.Until(`document.activeElement === document.querySelector(".scroll")`)
	h.walk("the page")
	for _, d := range []struct {
		name string
		open func()
	}{
		{"keys", func() { h.letter("?") }},
		{"new session", func() { h.letter("n") }},
		{"settings", func() { h.letter(","); h.Until(named("dialog[open] button.primary", "Pair")) }},
		{"rename", func() { h.do("Rename …") }},
		{"share", func() {
			h.do("Share …")
			h.Until(`document.querySelector("dialog[open]")?.textContent.includes("shared with nobody")`)
		}},
		{"delete", func() { h.do("Delete …") }},
	} {
		h.letter("c")
		d.open()
		h.Until(`document.querySelector("dialog[open]").contains(document.activeElement)`)
		h.walk(d.name)
		h.Press("Escape")
		h.Until(`!document.querySelector("dialog[open]")`)
		var back bool
		if h.Eval(`document.activeElement?.matches(".scroll, .menu-button")`, &back); !back {
			t.Errorf("%s: the focus does not return", d.name)
			continue
		}
		h.sees()
	}
	// What would not be seen is noticed.
	var why string
	h.Eval(`(document.activeElement.style.outline = "none", `+unseen+`)`, &why)
	if why == "" {
		t.Error("nobody would notice that the focus is not seen")
	}
}
