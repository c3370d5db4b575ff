//go:build unix

package web

import (
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
)

// TestWorkerKeeps: the service worker keeps every part of the script of the page, those that are loaded later, too, and if
// there is no room for a new file it does not keep the old one, which does not fit to the others.
func TestWorkerKeeps(t *testing.T) {
	r := newRig(t)
	tb := r.page("")
	worked(tb)
	var got struct {
		Parts int
		Lacks []string
	}
	tb.Eval(`(async () => {
		const cache = await caches.open("acp-page"), kept = new Set((await cache.keys()).map((k) => new URL(k.url).pathname));
		const parts = new Set();
		const follow = async (name) => {
			if (parts.has(name)) return;
			parts.add(name);
			const text = await (await fetch(name)).text();
			for (const [, other] of text.matchAll(/["']\.?\/(chunk-[0-9A-Z]+\.js)["']/g)) await follow("/" + other);
		};
		await follow("/app.js");
		return {parts: parts.size, lacks: [...parts].filter((name) => !kept.has(name))};
	})()`, &got)
	if got.Parts < 2 || len(got.Lacks) > 0 {
		t.Errorf("of %d parts it lacks %q", got.Parts, got.Lacks)
	}
	tb.Worker().Eval(`void (Cache.prototype.put = async () => { throw new DOMException("full", "QuotaExceededError"); })`, nil)
	var old, left bool
	tb.Eval(`caches.open("acp-page").then((c) => c.put("/app.css", new Response("old"))).then(() => fetch("/app.css")).then((r) => r.text()).then((text) => text === "old")`, &old)
	tb.Eval(`caches.open("acp-page").then((c) => c.match("/app.css")).then((r) => r !== undefined)`, &left)
	if old || left {
		t.Errorf("the page gets an old file: %v; it is kept: %v", old, left)
	}
}

// TestFirstConnection: a page whose first connection is refused, or ends while it is made, or while the session is opened, is
// in the session as soon as there is another one.
func TestFirstConnection(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	for _, tt := range []struct{ name, at string }{{"refused", ""}, {"ends at once", "initialize"}, {"ends in the session", "session/resume"}} {
		t.Run(tt.name, func(t *testing.T) {
			id := r.session()
			tb := chromium.Open(t, "about:blank")
			r.pairAt(tb, r.address)
			tb.Do("Page.addScriptToEvaluateOnNewDocument", chromium.Object{"source": `(() => {
				const real = WebSocket, at = "` + tt.at + `";
				globalThis.tries = 0;
				globalThis.WebSocket = class extends real {
					constructor(url) {
						super(tries++ === 0 && !at ? String(url).replace(/acp$/, "nothing") : url);
						this.first = tries === 1;
					}
					send(data) {
						if (this.first && at && String(data).includes(at)) this.close();
						else super.send(data);
					}
				};
			})()`}, nil)
			tb.Go("http://" + r.address + "/#/" + id)
			prompt(tb, "say hello")
			tb.Until(answers("hello") + ` && tries > 1`)
		})
	}
}
