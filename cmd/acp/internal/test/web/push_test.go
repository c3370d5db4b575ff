//go:build unix

package web

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/push/pushtest"
	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
)

// subscribes makes a tab's browser one that has a push service, and a page of it one that says that nobody sees it as long
// as sessionStorage has "hidden".
func subscribes(tb *chromium.Tab, b *pushtest.Browser) {
	encoded := base64.RawURLEncoding.EncodeToString
	keys, _ := json.Marshal(map[string]any{"endpoint": b.Endpoint, "keys": map[string]string{"p256dh": encoded(b.Public), "auth": encoded(b.Auth)}})
	tb.Do("Page.addScriptToEvaluateOnNewDocument", chromium.Object{"source": `(() => {
		let made = null;
		PushManager.prototype.getSubscription = async () => made;
		PushManager.prototype.subscribe = async (o) => {
			if (!o.userVisibleOnly || o.applicationServerKey.length !== 65) throw new TypeError("wrong options");
			return made = {options: {applicationServerKey: o.applicationServerKey.buffer}, toJSON: () => (` + string(keys) + `), unsubscribe: async () => { made = null; return true; }};
		};
		const real = Object.getOwnPropertyDescriptor(Document.prototype, "hidden").get; // a page that is left is hidden
		Object.defineProperty(Document.prototype, "hidden", {get() { return real.call(this) || sessionStorage.getItem("hidden") === "yes"; }});
	})()`}, nil)
}

// notified is an expression for what the notifications of the page say, in the page or in its service worker.
const notified = `(globalThis.registration ? Promise.resolve(registration) : navigator.serviceWorker.ready).then((r) => r.getNotifications()).then((all) => all.map((n) => n.title + "|" + n.body + "|" + n.tag).sort().join("\n"))`

// untilNotified waits until there are these notifications.
func untilNotified(t *testing.T, tb *chromium.Tab, want string) {
	t.Helper()
	var got string
	tb.Eval(fmt.Sprintf(`(async () => {
		let got;
		for (const end = Date.now() + 20000; Date.now() < end;) {
			if ((got = await (%s)) === %q) break;
			await new Promise((done) => setTimeout(done, 20));
		}
		return got;
	})()`, notified, want), &got)
	if got != want {
		t.Fatalf("notifications: %q, not %q", got, want)
	}
}

// openSettings opens the settings.
func openSettings(tb *chromium.Tab) {
	tb.Until(`document.querySelector("dialog[open]") || (document.querySelector("[aria-label^=Settings]")?.click(), false)`)
}

// invite makes a ticket for another device in the settings, and returns its link.
func invite(tb *chromium.Tab) (link string) {
	openSettings(tb)
	tb.Until(named("dialog[open] button.primary", "Pair"))
	tb.Click("dialog form button.primary")
	tb.Until(`document.querySelector(".invitation [aria-label=Link]")`)
	tb.Eval(`document.querySelector(".invitation [aria-label=Link]").textContent`, &link)
	return link
}

// TestPush: somebody has the browser say when a session waits. A question is pushed while nobody sees the page, without
// what it says; the notification opens the session, and ends when that is seen.
func TestPush(t *testing.T) {
	long.Test(t)
	service := pushtest.New(t)
	t.Setenv("SSL_CERT_FILE", service.CertFile(t))
	r := newRig(t, "--push-service", service.Host)
	id, b := r.session(), service.Browser()
	origin := "http://" + r.address
	tb := chromium.Open(t, "about:blank")
	r.pairAt(tb, r.address)
	tb.Permit(origin, "notifications", "granted")
	subscribes(tb, b)
	settings := func() {
		openSettings(tb)
		tb.Until(`document.querySelector("#push") && !document.querySelector("#push").disabled`)
	}
	// hide loads the page anew, seen or not, and returns when the gateway knows which.
	hide := func(hidden bool, at string) {
		tb.Go("about:blank")
		tb.Go(origin + "/")
		tb.Until(`location.origin !== "null" && document.querySelector("#page")`)
		tb.Eval(fmt.Sprintf(`void (sessionStorage.setItem("hidden", %q), location.hash = %q)`, map[bool]string{true: "yes", false: "no"}[hidden], at), nil)
		tb.Do("Page.reload", chromium.Object{}, nil)
		settings()
		tb.Press("Escape")
		tb.Until(`!document.querySelector("dialog[open]")`)
	}
	tb.Go(origin + "/")
	settings()
	tb.Until(`!document.querySelector("#push").checked && document.querySelector("#push-title").disabled`)
	tb.Click("#push")
	tb.Until(`document.querySelector("#push").checked && !document.querySelector("#push-title").checked`)
	hide(true, "#/"+id)
	tb.Until(`document.querySelector("#prompt")`)
	prompt(tb, "ask May I delete everything?")
	got := string(b.Next(t).Body)
	if got != `{"kind":"question","session":"`+id+`"}` {
		t.Errorf("pushed: %s", got)
	}
	hide(false, "")
	// Chromium forgets a notification that is being shown when somebody asks which there are: nobody does until it is shown.
	worker := tb.Worker()
	worker.Eval(`void (() => {
		const real = registration.showNotification;
		globalThis.shown = [];
		ServiceWorkerRegistration.prototype.showNotification = async function(title, o) {
			await real.call(this, title, o);
			shown.push(o.tag + (o.silent ? " silent" : ""));
		};
	})()`, nil)
	tb.Deliver(origin, got)
	worker.Until(`shown.length === 1`)
	waits := "A session waits for an answer||" + id
	untilNotified(t, tb, waits)
	untilNotified(t, worker, waits)
	worker.Eval(`registration.getNotifications().then(([n]) => self.dispatchEvent(new NotificationEvent("notificationclick", {notification: n})))`, nil)
	tb.Until(fmt.Sprintf(`location.hash === %q && document.querySelector(".ask")?.innerText.includes("May I delete everything?")`, "#/"+id))
	untilNotified(t, tb, "")
	// What is seen is not notified: it is shown, as browsers want it, and taken away. The other message comes after it.
	tb.Eval(`void (() => {
		const real = ServiceWorkerRegistration.prototype.getNotifications;
		globalThis.tidied = 0;
		ServiceWorkerRegistration.prototype.getNotifications = async function(o) {
			const all = await real.call(this, o);
			tidied++;
			return all;
		};
	})()`, nil)
	tb.Deliver(origin, got)
	worker.Until(`shown.length === 2`)
	tb.Until(`tidied > 0`) // the page does that a moment after it has answered the worker
	untilNotified(t, worker, "")
	tb.Deliver(origin, `{"kind":"question","session":"s_other","title":"<b>Other</b>"}`)
	worker.Until(`shown.length === 3`)
	untilNotified(t, tb, "A session waits for an answer|<b>Other</b>|s_other")
	var showed []string
	if worker.Eval(`shown`, &showed); !slices.Equal(showed, []string{id, id + " silent", "s_other"}) {
		t.Errorf("for three messages %q was shown", showed)
	}
	// A title for those who want it, and the end of a turn.
	tb.Press("1")
	tb.Until(says("answered: "))
	settings()
	tb.Click("#push-title")
	tb.Until(`document.querySelector("#push-title").checked`)
	hide(true, "#/"+id)
	prompt(tb, "demo")
	if got := string(b.Next(t).Body); got != `{"kind":"end","session":"`+id+`","title":"Mend the clock"}` {
		t.Errorf("pushed: %s", got)
	}
	hide(false, "")
	settings()
	tb.Click("#push")
	tb.Until(`!document.querySelector("#push").checked && document.querySelector("#push-title").disabled`)
	hide(true, "#/"+id)
	prompt(tb, "say bye")
	tb.Until(says("bye"))
	r.kill() // in order or not: what was not sent is not sent
	if n := b.Count(); n > 0 {
		t.Errorf("%d messages have come that nobody wants", n)
	}
}

// TestPushNever: a browser that cannot have notifications says why.
func TestPushNever(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	tb := chromium.Open(t, "about:blank")
	r.pairAt(tb, r.address)
	tb.Permit("http://"+r.address, "notifications", "denied")
	tb.Go("http://" + r.address + "/")
	openSettings(tb)
	tb.Until(`document.querySelector("dialog").innerText.includes("does not allow them")`)
	quiet := chromium.Open(t, "about:blank")
	r.pairAt(quiet, r.address)
	quiet.Do("Page.addScriptToEvaluateOnNewDocument", chromium.Object{"source": `delete globalThis.PushManager`}, nil)
	quiet.Go("http://" + r.address + "/")
	openSettings(quiet)
	quiet.Until(`document.querySelector("dialog").innerText.includes("It needs a push service")`)
}

// TestPushElsewhere: a page that shows one session, and is in another one since its prompt there is not confirmed, does not
// count as one that shows that.
func TestPushElsewhere(t *testing.T) {
	long.Test(t)
	service := pushtest.New(t)
	t.Setenv("SSL_CERT_FILE", service.CertFile(t))
	r := newRig(t, "--push-service", service.Host)
	id, other, b := r.session(), r.session(), service.Browser()
	pipe := filepath.Join(r.home, "pipe")
	if err := mkfifo(pipe); err != nil {
		t.Fatal(err)
	}
	origin := "http://" + r.address
	tb := chromium.Open(t, "about:blank")
	r.pairAt(tb, r.address)
	tb.Permit(origin, "notifications", "granted")
	subscribes(tb, b)
	tb.Go(origin + "/#/" + id)
	openSettings(tb)
	tb.Until(`document.querySelector("#push") && !document.querySelector("#push").disabled`)
	tb.Click("#push")
	tb.Until(`document.querySelector("#push").checked`)
	tb.Press("Escape")
	tb.Until(`!document.querySelector("dialog[open]")`)
	prompt(tb, "held "+pipe+" May I?")
	tb.Until(`document.querySelector(".stop") && !document.querySelector(".sending")`)
	prompt(tb, "say later")
	tb.Until(`document.querySelector(".sending")`)
	tb.Eval(fmt.Sprintf(`void (location.hash = "#/%s")`, other), nil)
	tb.Until(`document.querySelector(".row[aria-current]")?.getAttribute("href").includes("` + other + `") && !document.querySelector(".sending, [aria-busy=true]")`)
	prompt(tb, "say here") // the gateway has heard what came before
	tb.Until(answers("here"))
	if err := os.WriteFile(pipe, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := string(b.Next(t).Body); got != `{"kind":"question","session":"`+id+`"}` {
		t.Errorf("pushed: %s", got)
	}
}
