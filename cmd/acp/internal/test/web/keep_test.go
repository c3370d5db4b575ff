//go:build unix

package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
)

// wired opens the page in a browser of its own, over a wire.
func wired(r *rig, at string) (*chromium.Tab, *wire) {
	r.t.Helper()
	w := newWire(r.t, r.address)
	tb := chromium.Open(r.t, "about:blank")
	r.pairAt(tb, w.Addr().String())
	tb.Go("http://" + w.Addr().String() + "/" + at)
	return tb, w
}

// kept is an expression that returns how many records a store of the browser has; 0 if there is none.
func kept(store string) string {
	return fmt.Sprintf(`indexedDB.databases().then((all) => all.every((d) => d.name !== "acp") ? 0 : new Promise((done) => {
		const open = indexedDB.open("acp");
		open.onerror = () => done(0);
		open.onsuccess = () => {
			const count = open.result.objectStoreNames.contains(%[1]q) ? open.result.transaction(%[1]q).objectStore(%[1]q).count() : null;
			const end = (n) => { open.result.close(); done(n); };
			if (!count) return end(0);
			count.onsuccess = () => end(count.result);
		};
	}))`, store)
}

// keeps waits until a store of the browser has a number of records.
func keeps(tb *chromium.Tab, store string, n int) {
	tb.Until(fmt.Sprintf(`(window.lookingUp ??= %s.then((n) => { window.lookedUp = n; window.lookingUp = null; }), window.lookedUp === %d)`, kept(store), n))
	tb.Eval(`void (delete window.lookedUp)`, nil)
}

// worked waits until the service worker has the page.
func worked(tb *chromium.Tab) {
	tb.Until(`navigator.serviceWorker.controller`)
}

// prompts is an expression that returns the prompts that a conversation shows.
const prompts = `[...document.querySelectorAll(".message.user:not(.sending)")].map((m) => m.textContent.replace(/^(You|tests(-\d+)?)/, "").trim())`

// TestPromptElsewhere: a prompt that was written without a network is sent when there is one again, though another session
// is open by then.
func TestPromptElsewhere(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	first, second := r.session(), r.session()
	other := r.page("#/" + first)
	other.Until(`document.querySelector("#prompt") && !document.querySelector("[aria-busy=true]")`)
	tb, w := wired(r, "#/"+first)
	tb.Until(`document.querySelectorAll(".row").length === 2`)
	tb.Until(`document.querySelector("#prompt") && !document.querySelector("[aria-busy=true]")`)
	w.cut(true)
	tb.Until(`document.body.innerText.includes("No connection")`)
	for range 2 { // two that are the same are two
		prompt(tb, "say later")
	}
	tb.Until(`document.querySelectorAll(".sending").length === 2`)
	tb.Eval(fmt.Sprintf(`void (location.hash = "#/%s")`, second), nil)
	tb.Until(`document.querySelector(".row[aria-current]")?.getAttribute("href").includes("` + second + `")`)
	w.cut(false)
	want := []string{"say later", "say later"}
	for _, at := range []*chromium.Tab{other, tb} {
		if at == tb {
			tb.Eval(fmt.Sprintf(`void (location.hash = "#/%s")`, first), nil)
		}
		at.Until(`document.querySelectorAll(".message.agent").length === 2 && !document.querySelector(".sending, .working")`)
		var got []string
		at.Eval(prompts, &got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	keeps(tb, "sendings", 0)
	quiet(t, other)
}

// TestPromptReloaded: a prompt that was written without a network is there after the page was loaded again, without a
// network, and is sent when there is one.
func TestPromptReloaded(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	id := r.session()
	tb, w := wired(r, "#/"+id)
	prompt(tb, "say before")
	tb.Until(says("before") + ` && !document.querySelector(".sending, .working")`)
	worked(tb)
	keeps(tb, "conversations", 1)
	w.cut(true)
	prompt(tb, "say later")
	keeps(tb, "sendings", 1)
	tb.Do("Page.reload", chromium.Object{}, nil)
	tb.Until(`document.querySelector(".sending")?.textContent.includes("say later") && document.body.innerText.includes("No connection")`)
	w.cut(false)
	tb.Until(`document.querySelectorAll(".message.agent").length === 2 && !document.querySelector(".sending, .working")`)
	var got []string
	if tb.Eval(prompts, &got); !cmp.Equal(got, []string{"say before", "say later"}) {
		t.Error(got)
	}
	keeps(tb, "sendings", 0)
}

// TestPromptArrived: a prompt that the gateway has, of which this page does not know that, is sent again when the page was
// loaded again, runs once, and is shown once: one that has ended, one that runs, and one that waits.
func TestPromptArrived(t *testing.T) {
	long.Test(t)
	for _, state := range []string{"ended", "runs", "waits"} {
		t.Run(state, func(t *testing.T) {
			r := newRig(t)
			id := r.session()
			other := r.page("#/" + id)
			tb, w := wired(r, "#/"+id)
			want := []string{"say it"}
			if state == "waits" {
				prompt(other, "wait")
				tb.Until(says("waiting"))
				want = []string{"wait", "say it"}
			}
			if state == "runs" {
				want = []string{"wait"}
			}
			tb.Until(`document.querySelector("#prompt") && !document.querySelector("[aria-busy=true]")`)
			w.silence()
			prompt(tb, want[len(want)-1])
			keeps(tb, "sendings", 1)
			switch state {
			case "ended":
				other.Until(says("it") + ` && !document.querySelector(".working")`)
			case "runs":
				other.Until(says("waiting"))
			}
			w.cut(false)
			tb.Do("Page.reload", chromium.Object{}, nil)
			if state != "ended" {
				tb.Until(`document.querySelector(".stop")`)
				if state == "waits" {
					tb.Until(`document.querySelector(".sending")`)
				}
				other.Click(".stop")
			}
			for _, at := range []*chromium.Tab{other, tb} {
				at.Until(fmt.Sprintf(`%s.length === %d && !document.querySelector(".sending, .working")`, prompts, len(want)))
				var got []string
				if at.Eval(prompts, &got); !cmp.Equal(got, want) {
					t.Error(cmp.Diff(want, got))
				}
			}
			keeps(tb, "sendings", 0)
		})
	}
}

// private is what a session says that nobody may find in the browser afterwards.
const private = "a-private-word"

// left is an expression that tells where a browser still has the private word, or anything else of a user.
const left = `(async () => {
	const found = [];
	const has = (where, what) => { if (JSON.stringify(what ?? null).includes("` + private + `")) found.push(where); };
	for (const d of await indexedDB.databases()) found.push("database " + d.name);
	has("localStorage", {...localStorage});
	has("sessionStorage", {...sessionStorage});
	for (const k of Object.keys(localStorage)) if (k !== "acp.leave") found.push("localStorage " + k);
	for (const k of Object.keys(sessionStorage)) found.push("sessionStorage " + k);
	for (const name of await caches.keys()) {
		const cache = await caches.open(name);
		for (const r of await cache.keys()) {
			has("cache " + r.url, r.url);
			has("cache " + r.url, await (await cache.match(r)).text());
		}
	}
	has("the document", document.documentElement.outerHTML);
	has("the title", document.title);
	return found;
})()`

// nothing fails if a browser has anything of a user.
func nothing(t *testing.T, tb *chromium.Tab) {
	t.Helper()
	var found []string
	if tb.Eval(left, &found); len(found) > 0 {
		t.Errorf("left in the browser: %s", strings.Join(found, ", "))
	}
}

// confide has a conversation in which the private word is, and everything that the page keeps of it: an entry, a draft, a
// place, and a prompt that is not sent, if the network fails.
func confide(tb *chromium.Tab) {
	prompt(tb, "say "+private)
	tb.Until(`document.querySelector(".message.agent")?.textContent.includes("` + private + `") && !document.querySelector(".working")`)
	keeps(tb, "conversations", 1)
	keeps(tb, "lists", 1)
	tb.Type("#prompt", "draft of "+private)
	tb.Until(`Object.keys(localStorage).some((k) => k.startsWith("acp.draft."))`)
}

// TestForgotten: whoever logs out, or is not known to the gateway any more, or becomes another user, leaves nothing in the
// browser, in no tab and for no way back.
func TestForgotten(t *testing.T) {
	long.Test(t)
	for _, how := range []string{"log out", "revoked", "another user"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t)
			id := r.session()
			tb, w := wired(r, "#/"+id)
			worked(tb)
			confide(tb)
			other := tb.Another("http://" + w.Addr().String() + "/#/" + id)
			other.Until(says(private))
			tb.Do("Page.bringToFront", chromium.Object{}, nil) // or it draws nothing
			switch how {
			case "log out":
				tb.Eval(`history.pushState(null, "", location.href)`, nil) // to come back from
				tb.Eval(`document.activeElement.blur()`, nil)
				tb.Press(",")
				tb.Until(`[...document.querySelectorAll("dialog button")].some((b) => b.textContent === "Log out")`)
				tb.Eval(`[...document.querySelectorAll("dialog button")].find((b) => b.textContent === "Log out").click()`, nil)
			case "revoked":
				tb.Do("Network.clearBrowserCookies", chromium.Object{}, nil)
				w.cut(false)
			case "another user":
				tb.Eval(`localStorage.setItem("acp.user", "somebody else")`, nil)
				other.Go("about:blank")
				other.Until(`location.href === "about:blank"`)
				tb.Go("http://" + w.Addr().String() + "/?")
				tb.Until(`localStorage.getItem("acp.user") && localStorage.getItem("acp.user") !== "somebody else" && document.querySelector(".row")`)
				keeps(tb, "conversations", 0)
				var drafts int
				if tb.Eval(`Object.keys(localStorage).filter((k) => k.startsWith("acp.draft.") || k === "acp.prompts").length`, &drafts); drafts > 0 {
					t.Errorf("%d drafts and lists of prompts are left", drafts)
				}
				return
			}
			for _, at := range []*chromium.Tab{tb, other} {
				at.Until(`document.querySelector("#code") && !document.querySelector(".talk, .list")`)
			}
			tb.Until(`indexedDB.databases().then((all) => { window.left = all.length; }), window.left === 0`)
			for _, at := range []*chromium.Tab{tb, other} {
				nothing(t, at)
			}
			if how != "log out" {
				return
			}
			var past struct {
				CurrentIndex int
				Entries      []struct {
					ID  int
					URL string
				}
			}
			tb.Do("Page.getNavigationHistory", chromium.Object{}, &past)
			back := past.Entries[past.CurrentIndex-1]
			if !strings.HasSuffix(back.URL, "#/"+id) {
				t.Fatalf("the way back: %+v", past)
			}
			tb.Do("Page.navigateToHistoryEntry", chromium.Object{"entryId": back.ID}, nil)
			tb.Until(`location.hash && document.querySelector("#code") && !document.querySelector(".talk, .list")`)
			nothing(t, tb)
		})
	}
}

// TestLogoutFails: a log-out that the gateway has not heard of says so, removes what is kept all the same, and is tried
// again by hand, or when the page is loaded again.
func TestLogoutFails(t *testing.T) {
	long.Test(t)
	for _, again := range []string{"by hand", "loaded again"} {
		t.Run(again, func(t *testing.T) {
			r := newRig(t)
			id := r.session()
			tb, w := wired(r, "#/"+id)
			worked(tb)
			confide(tb)
			w.cut(true)
			tb.Until(`document.body.innerText.includes("No connection")`)
			tb.Eval(`document.activeElement.blur()`, nil)
			tb.Press(",")
			tb.Until(`[...document.querySelectorAll("dialog button")].some((b) => b.textContent === "Log out")`)
			tb.Eval(`[...document.querySelectorAll("dialog button")].find((b) => b.textContent === "Log out").click()`, nil)
			tb.Until(`document.querySelector("h1")?.textContent === "This browser is still logged in"`)
			nothing(t, tb)
			w.cut(false)
			if again == "by hand" {
				tb.Eval(`void setTimeout(() => document.querySelector(".login .buttons button").click())`, nil)
			} else {
				tb.Do("Page.reload", chromium.Object{}, nil)
			}
			tb.Until(`document.querySelector("#code")`)
			var status int
			if tb.Eval(`fetch("/whoami").then((r) => r.status)`, &status); status != http.StatusUnauthorized {
				t.Errorf("the gateway still knows the browser: %d", status)
			}
			nothing(t, tb)
		})
	}
}

// TestOffline: an installed page opens without a network, and shows the sessions and the conversations that were open last,
// each with its code and the colours of it, and says how old they are.
func TestOffline(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	first, second := r.session(), r.session()
	tb := r.page("#/" + first)
	worked(tb)
	prompt(tb, "demo")
	tb.Until(says("What I did") + ` && !document.querySelector(".working")`)
	keeps(tb, "conversations", 1)
	tb.Eval(fmt.Sprintf(`void (location.hash = "#/%s")`, second), nil)
	tb.Until(`document.querySelector(".row[aria-current]")?.getAttribute("href").includes("` + second + `") && !document.querySelector(".entries pre")`)
	prompt(tb, "say second")
	tb.Until(says("second") + ` && !document.querySelector(".working")`)
	keeps(tb, "conversations", 2)
	r.kill()
	tb.Do("Network.emulateNetworkConditions", chromium.Object{"offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}, nil)
	tb.Do("Page.reload", chromium.Object{}, nil)
	tb.Until(says("second") + ` && document.body.innerText.includes("No connection. The conversation is shown as it was")`)
	tb.Until(`document.querySelectorAll(".row").length === 2`)
	tb.Eval(fmt.Sprintf(`void (location.hash = "#/%s")`, first), nil)
	tb.Until(says("What I did") + ` && document.querySelector(".entries pre .hl-keyword")`)
	tb.Go("about:blank") // and from nothing
	tb.Until(`location.href === "about:blank"`)
	tb.Go("http://" + r.address + "/#/" + first)
	tb.Until(says("What I did") + ` && document.querySelectorAll(".row").length === 2`)
}
