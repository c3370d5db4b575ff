//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/cmd/acp/internal/web/npm"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/internal/long"
)

func TestMain(m *testing.M) {
	leaktest.Main(m, chromium.Close)
}

// The policy of the page that is served, in its parts that matter here.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types acp"

// need skips a test for which something has to be fetched, or fails it where that was.
func need(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("ACP_AXE") == "require" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// openBundle bundles entries of the page, serves what comes of it and the files that are added, and opens the one without a
// name. header is sent with that one. url is the server's.
func openBundle(t *testing.T, added map[string][]byte, header http.Header, entries ...string) (tb *chromium.Tab, url string) {
	t.Helper()
	chromium.Need(t)
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	packages, store, err := locked(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !npm.Have(packages, store) {
		need(t, "the packages of the page are not there: make check-web fetches them")
	}
	files, _, err := bundle(dir, store, api.FormatESModule, nil, entries...)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(files, added)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		data, ok := files[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		if name == "" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			maps.Copy(w.Header(), header)
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(s.Close)
	return chromium.Open(t, s.URL+"/"), s.URL
}

// gallery opens the page that shows every part. header says what the policy is called.
func gallery(t *testing.T, header string) *chromium.Tab {
	t.Helper()
	tb, at := openBundle(t, map[string][]byte{"": []byte(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Parts</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/app.css"><script type="module" src="/gallery.js"></script></head><body><div id="page"></div></body></html>`)},
		http.Header{header: {policy}}, "parts/gallery.tsx", "app.css")
	tb.Until("globalThis.gallery")
	// Nothing is asked for but what is of this page.
	t.Cleanup(func() {
		for _, url := range tb.Requests() {
			if !strings.HasPrefix(url, at+"/") && !strings.HasPrefix(url, "data:") && url != "about:blank" {
				t.Errorf("the page has asked for %s", url)
			}
		}
	})
	return tb
}

// TestParts: every part is shown, under the policy of the page, without an error, and in no width does the page scroll
// sideways. The first code brings the colours.
func TestParts(t *testing.T) {
	long.Test(t) // and it needs packages that make check-web fetches
	tb := gallery(t, "Content-Security-Policy")
	tb.Until("document.querySelectorAll('#code .hl-keyword').length > 1 && document.querySelector('#markdown .hl-keyword')")
	for _, width := range []int{360, 1280} {
		tb.Size(width, 800)
		tb.Drawn()
		var wide []string
		tb.Eval(`[...document.querySelectorAll("#page *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 &&
			!e.closest("pre, .table, .lines")).map((e) => e.outerHTML.slice(0, 200)).slice(0, 5)`, &wide)
		if len(wide) > 0 {
			t.Errorf("at a width of %d these go beyond it: %s", width, strings.Join(wide, "\n"))
		}
	}
	for _, is := range []string{
		// Changes are side by side where there is room.
		`getComputedStyle(document.querySelector("#diff .twin")).display === "grid"`,
		`document.querySelector("#diff .old mark").textContent === '"fmt"'`,
		`document.querySelector("#diff .count").textContent === "+5 −3"`,
		// A link that says that it leads elsewhere than it does.
		`document.querySelector("#markdown .host").textContent === " (evil.example)"`,
		`document.querySelectorAll("#markdown img, #markdown script, #markdown details").length === 0`,
		// A progress bar is over at its end.
		`document.querySelector("#ansi pre").textContent.includes("100% ok") && !document.querySelector("#ansi pre").textContent.includes("50%")`,
		`!document.querySelector("#ansi pre").textContent.includes("evil.example")`,
		// The end of a long output is shown, and all of it on demand.
		`[...document.querySelectorAll("#terminal pre")].at(-1).textContent.startsWith("600 lines before this: show all\n601\n")`,
		`(() => { [...document.querySelectorAll("#terminal pre button")].at(-1).click(); return true; })()`,
		`[...document.querySelectorAll("#terminal pre")].at(-1).textContent.startsWith("1\n2\n")`,
		// What is done is closed, unless it changes files; what people choose stays.
		`[...document.querySelectorAll("#tool > article > details")].map((d) => d.open).join() === "false,true,true,true"`,
		`(() => { document.querySelector("#tool summary").click(); return true; })()`,
		`document.querySelector("#tool details").open`,
		`document.querySelectorAll("#json .members > .more").length === 0`,
		`document.querySelector("#json").textContent.includes("1.00000000000000000001")`,
	} {
		tb.Until(is)
	}
	if wrong := tb.Wrong(); len(wrong) > 0 {
		t.Errorf("the console: %s", strings.Join(wrong, "\n"))
	}
}

// TestEverybody: axe finds nothing against the parts, in both schemes, narrow and wide.
func TestEverybody(t *testing.T) {
	long.Test(t)
	axe, err := os.ReadFile("../node_modules/axe-core/axe.min.js")
	if err != nil {
		need(t, "axe is not there: npm ci in cmd/acp/internal/web")
	}
	tb := gallery(t, "Content-Security-Policy-Report-Only")
	tb.Until("document.querySelectorAll('#code .hl-keyword').length > 1 && document.querySelector('#markdown .hl-keyword')")
	tb.Eval(string(axe)+"; 0", nil)
	for _, width := range []int{360, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			tb.Size(width, 800)
			tb.Scheme(scheme)
			tb.Drawn()
			var found []string
			tb.Eval(`axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) => v.impact + " " + v.id + ": " +
				v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join("; ")))`, &found)
			for _, f := range found {
				t.Errorf("%d wide, %s: %s", width, scheme, f)
			}
		}
	}
}

// TestGrow: a text that arrives in pieces looks as one that arrived at once, and what was there stays.
func TestGrow(t *testing.T) {
	long.Test(t)
	tb := gallery(t, "Content-Security-Policy")
	for _, step := range []int{1, 7, 100} {
		var got struct {
			Same bool
			Made int
		}
		tb.Eval(fmt.Sprintf(`(async () => {
			const page = document.getElementById("page");
			const text = gallery.markdown.repeat(2).replaceAll("`+"```"+`", "`+"~~~"+`") + "\n";
			const made = gallery.grow(text, %d);
			const html = page.innerHTML;
			gallery.grow(text, text.length);
			return {same: html === page.innerHTML, made};
		})()`, step), &got)
		if !got.Same {
			t.Errorf("in steps of %d it looks different", step)
		}
		if got.Made > 0 {
			t.Errorf("in steps of %d, %d blocks were made again", step, got.Made)
		}
	}
}

// What the parts may be made of. An attribute that is not here is one that nobody has looked at.
const (
	elements   = "main div p h3 h4 h5 h6 strong em del ins mark code pre span a br hr ul ol li table thead tbody tr th td blockquote figure figcaption button details summary section article img audio svg path"
	attributes = "class dir href target rel title role tabindex aria-label aria-hidden aria-live aria-expanded aria-valuemin aria-valuemax aria-valuenow aria-valuetext open type scope start src alt decoding controls preload style viewBox d"
)

// TestAttacks: of everything that an agent or another client can send, nothing comes alive in any part: no script runs,
// nothing is asked for, and nothing is there but the elements and attributes above. The policy of the page would stop
// scripts; here it only reports, so that none is stopped.
func TestAttacks(t *testing.T) {
	long.Test(t)
	tb := gallery(t, "Content-Security-Policy-Report-Only")
	data, err := os.ReadFile("../testdata/xss.txt")
	if err != nil {
		t.Fatal(err)
	}
	attacks := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(attacks) < 500 {
		t.Fatalf("%d attacks", len(attacks))
	}
	names, err := json.Marshal([2][]string{strings.Fields(elements), strings.Fields(attributes)})
	if err != nil {
		t.Fatal(err)
	}
	tb.Eval(`(() => {
		const [elements, attributes] = `+string(names)+`.map((list) => new Set(list));
		globalThis.alert = globalThis.confirm = globalThis.prompt = () => { globalThis.pwned = 1; };
		const wrong = [];
		document.addEventListener("securitypolicyviolation", (e) => wrong.push(["policy", e.violatedDirective, e.blockedURI, e.sample]));
		const turns = /[\u202a-\u202e\u2066-\u2069]/;
		const values = {
			href: /^(?:https?|mailto):/, src: /^data:(?:image\/(?:png|jpeg|gif|webp)|audio\/[\w-]+);base64,/,
			style: /^(?:(?:(?:background-)?color: rgb\([\d, ]*\)|--tint: rgb\([\d ]*\)|width: [\d.]+%); ?)+$/,
			rel: /^noopener noreferrer$/, target: /^_blank$/,
		};
		const page = document.getElementById("page");
		const look = (attack) => {
			const say = (...what) => wrong.push([attack, ...what]);
			for (const e of page.querySelectorAll("*")) {
				if (!elements.has(e.localName)) say("element", e.localName);
				for (const a of e.attributes) {
					if (!attributes.has(a.name)) say("attribute", a.name);
					if (values[a.name] && !values[a.name].test(a.value)) say(a.name, a.value.slice(0, 200));
					if (turns.test(a.value)) say("turns", a.name);
				}
			}
			if (turns.test(page.textContent)) say("turns");
			if (globalThis.pwned || Object.prototype.pwned) say("it ran");
			if (document.head.childElementCount !== head || document.body.childElementCount !== 1) say("outside of the page");
		};
		const head = document.head.childElementCount;
		globalThis.attack = async (list) => {
			for (const attack of list) {
				gallery.fill(attack);
				await new Promise((done) => setTimeout(done));
				look(attack);
			}
			return wrong.splice(0).slice(0, 10);
		};
	})()`, nil)
	for i := 0; i < len(attacks); i += 20 {
		var wrong []any
		tb.Eval("attack(["+strings.Join(attacks[i:min(i+20, len(attacks))], ",")+"])", &wrong)
		for _, w := range wrong {
			t.Errorf("%q", w)
		}
	}
	// What fails late has failed by now.
	tb.Drawn()
	var wrong []any
	tb.Eval("attack(['the end'])", &wrong)
	for _, w := range wrong {
		t.Errorf("%q", w)
	}
}
