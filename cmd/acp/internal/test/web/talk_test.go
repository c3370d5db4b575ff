//go:build unix

package web

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
)

// quiet fails if the console has something to complain about.
func quiet(t *testing.T, tb tab) {
	t.Helper()
	for _, line := range tb.Wrong() {
		t.Errorf("the console: %s", line)
	}
}

// TestConversation: somebody begins a session on the page, sends prompts, and sees what the agent does.
func TestConversation(t *testing.T) {
	r := newRig(t)
	r.converse(r.page(""))
}

// converse does that on a page that shows the list.
func (r *rig) converse(tb tab) {
	t := r.t
	t.Helper()
	tb.Until(`document.body.innerText.includes("No sessions yet")`)
	tb.Press("n")
	tb.Until(fmt.Sprintf(`document.querySelector("dialog[open] input")?.value === %q`, r.project)) // where the server runs
	tb.Until(`document.querySelector("dialog select optgroup[label='Not installed'] option[value=claude]") && document.querySelector("dialog select").value.includes("play-agent")`)
	tb.Click("dialog button.primary")
	prompt(tb, "demo")
	tb.Until(says("What I did") + ` && document.querySelector(".entries pre")`)
	for _, text := range []string{"Read clock.go", "Edit clock.go", "Run the tests", "Find where the clock is read", "go test ./..."} {
		tb.Until(says(text))
	}
	tb.Until(`document.querySelector(".head h1").textContent === "Mend the clock"`)
	tb.Until(`!document.querySelector(".stop")`)
	prompt(tb, "wait")
	tb.Until(says("waiting"))
	tb.Click(".stop")
	tb.Until(says("Stopped"))
	prompt(tb, "say bye")
	tb.Until(answers("bye"))
	for _, address := range tb.Requests() {
		if !strings.HasPrefix(address, "http://"+r.address+"/") && !strings.HasPrefix(address, "ws://"+r.address+"/") && address != "about:blank" &&
			!strings.HasPrefix(address, "data:font/") { // of Firefox itself
			t.Errorf("the page asks for %s", address)
		}
	}
	quiet(t, tb)
}

// TestDrawn: formulas and drawings are shown as their source, with the name of the language; what only looks like one is text.
func TestDrawn(t *testing.T) {
	r := newRig(t)
	tb := r.page("#/" + r.session())
	prompt(tb, "drawn")
	tb.Until(answers("[1] costs $$ 5 and $$ 6"))
	var got [][2]string
	tb.Eval(`[...document.querySelectorAll(".entries figure.code")].map((f) => [f.querySelector(".lang").textContent, f.querySelector("code").textContent])`, &got)
	want := [][2]string{{"math", "a_1 * b_2 * c"}, {"math", `x = \frac{a}{b}`}, {"mermaid", "graph TD\n  A --> B"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	quiet(t, tb)
}

// TestQuestion: a question is on all pages, one of them answers, and it is gone from the others.
func TestQuestion(t *testing.T) {
	r := newRig(t)
	id := r.session()
	a, b := r.page("#/"+id), r.page("#/"+id)
	prompt(a, "ask May I?")
	for _, tb := range []*chromium.Tab{a, b} {
		tb.Until(`document.querySelector(".ask")?.innerText.includes("May I?")`)
	}
	b.Eval(`void [...document.querySelectorAll(".ask .options button")].find((x) => x.innerText.includes("Allow")).click()`, nil)
	for _, tb := range []*chromium.Tab{a, b} {
		tb.Until(`!document.querySelector(".ask")`)
		tb.Until(says("answered: allow_once"))
		quiet(t, tb)
	}
}

// TestQuestions: of answers from two pages at once exactly one counts, many times.
func TestQuestions(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	id := r.session()
	tabs := []*chromium.Tab{r.page("#/" + id), r.page("#/" + id)}
	const rounds = 20
	for i := range rounds {
		prompt(tabs[0], fmt.Sprintf("ask Round %d?", i))
		for _, tb := range tabs {
			tb.Until(fmt.Sprintf(`document.querySelector(".ask")?.innerText.includes("Round %d?")`, i))
		}
		var both sync.WaitGroup
		for j, tb := range tabs {
			both.Go(func() {
				// What is pressed right after the last question went answers nothing.
				tb.Until(fmt.Sprintf(`(document.querySelectorAll(".ask .options button")[%d]?.click(), !document.querySelector(".ask"))`, j))
			})
		}
		both.Wait()
		for _, tb := range tabs {
			tb.Until(fmt.Sprintf(`document.querySelector(".entries").textContent.split("answered: ").length === %d && !document.querySelector(".ask")`, i+2))
		}
	}
	var shown [2]string
	for i, tb := range tabs {
		tb.Eval(`[...document.querySelectorAll(".message.agent")].map((m) => m.textContent).join("\n")`, &shown[i])
	}
	if shown[0] != shown[1] {
		t.Error(cmp.Diff(shown[0], shown[1]))
	}
}

// moment has the time of a page stand still, for events, too, until later() is called.
const moment = `void (() => {
	let now = performance.now();
	performance.now = () => now;
	Object.defineProperty(Event.prototype, "timeStamp", {get: () => now});
	globalThis.later = () => { now += 1000; };
})()`

// TestAnsweredElsewhere: what somebody presses in the moment in which another page answers the question does not answer the
// next one, which is where the first one was.
func TestAnsweredElsewhere(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	id := r.session()
	a, b := r.page("#/"+id), r.page("#/"+id)
	prompt(b, "ask First?|Second?")
	for _, tb := range []*chromium.Tab{a, b} {
		tb.Until(`document.querySelector(".ask")?.innerText.includes("First?")`)
	}
	a.Eval(moment, nil)
	b.Eval(`void document.querySelector(".ask [data-answer]").click()`, nil)
	a.Until(`document.querySelector(".ask")?.innerText.includes("Second?")`)
	a.Eval(`(() => {
		document.activeElement.blur();
		document.querySelector(".ask [data-answer]").click();
		document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "1", bubbles: true}));
		document.querySelector(".ask .dismiss").click();
	})()`, nil)
	a.Drawn()
	var there bool
	if a.Eval(`document.querySelector(".ask")?.innerText.includes("Second?") === true`, &there); !there {
		t.Error("the second question was answered by what was meant for the first one")
	}
	a.Eval(`(later(), document.querySelector(".ask [data-answer]").click())`, nil)
	for _, tb := range []*chromium.Tab{a, b} {
		tb.Until(`!document.querySelector(".ask") && document.querySelector(".entries").textContent.split("answered: allow_once").length === 3`)
		quiet(t, tb)
	}
}

// reached is an expression that tells whether the page shows that the agent has counted so far, or that it has ended.
func reached(n int) string {
	return fmt.Sprintf(`document.querySelector(".message.agent")?.textContent.trim().endsWith("end") || Number(document.querySelector(".message.agent")?.textContent.trim().match(/(\d+)$/)?.[1]) >= %d`, n)
}

// counted returns what a page shows of numbers that the agent counts, once everything before is there.
func counted(tb tab) string {
	tb.Until(`(() => {
		if (!document.querySelector(".entries .earlier")) return true;
		` + scroll("0") + `
		document.querySelector(".entries .earlier button")?.click();
		return false;
	})()`)
	var text string
	tb.Eval(`[...document.querySelectorAll(".message.agent")].map((m) => m.textContent.replace(/^Agent/, "")).join("").replace(/\s+/g, " ").trim()`, &text)
	return text
}

// numbers is what the agent has said when it has counted.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d ", i)
	}
	return b.String() + "end"
}

// TestReload: a page that is loaded again in the middle of a turn, and one that is opened later, have everything once and
// in order.
func TestReload(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	id := r.session()
	tb := r.page("#/" + id)
	const n = 3000
	prompt(tb, fmt.Sprintf("count %d 500", n))
	for i := range 5 {
		tb.Until(reached(200 + i*300))
		tb.Do("Page.reload", chromium.Object{}, nil)
	}
	other := r.page("#/" + id)
	for _, tb := range []*chromium.Tab{tb, other} {
		tb.Until(`document.querySelector(".message.agent")?.textContent.trim().endsWith("end")`)
		if diff := cmp.Diff(numbers(n), counted(tb)); diff != "" {
			t.Error(diff)
		}
	}
}

// A wire is between a page and the server. It can be cut.
type wire struct {
	net.Listener
	to   string
	mu   sync.Mutex
	open map[net.Conn]bool
	dead bool
	mute bool // nothing comes from the server
	work sync.WaitGroup
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, to: to, open: make(map[net.Conn]bool)}
	w.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.work.Go(func() { w.pass(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.cut(true)
		w.work.Wait()
	})
	return w
}

func (w *wire) pass(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer s.Close()
	w.mu.Lock()
	if w.dead {
		w.mu.Unlock()
		return
	}
	w.open[c], w.open[s] = true, true
	w.mu.Unlock()
	var both sync.WaitGroup
	for _, d := range []struct {
		to   io.Writer
		from net.Conn
	}{{&hearing{w, c}, s}, {s, c}} {
		both.Go(func() {
			_, _ = io.Copy(d.to, d.from)
			_ = c.Close()
			_ = s.Close()
		})
	}
	both.Wait()
	w.mu.Lock()
	delete(w.open, c)
	delete(w.open, s)
	w.mu.Unlock()
}

// hearing passes on what comes from the server, unless the wire is mute.
type hearing struct {
	w *wire
	net.Conn
}

func (h *hearing) Write(b []byte) (int, error) {
	h.w.mu.Lock()
	mute := h.w.mute
	h.w.mu.Unlock()
	if mute {
		return len(b), nil
	}
	return h.Conn.Write(b)
}

// silence has nothing come from the server until the wire is cut.
func (w *wire) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mute = true
}

// cut ends all connections. While the wire is dead there are no others.
func (w *wire) cut(dead bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead, w.mute = dead, false
	for c := range w.open {
		_ = c.Close()
	}
}

// TestNetworkLoss: a page whose network fails in the middle of a turn says so, comes back by itself, and has everything
// once and in order. What somebody has sent meanwhile is sent once.
func TestNetworkLoss(t *testing.T) {
	r := newRig(t)
	id := r.session()
	w := newWire(t, r.address)
	tb := chromium.Open(t, "about:blank")
	r.pairAt(tb, w.Addr().String())
	tb.Go("http://" + w.Addr().String() + "/#/" + id)
	const n = 3000
	prompt(tb, fmt.Sprintf("count %d 500", n))
	for i := range 5 {
		tb.Until(reached(200 + i*300))
		w.cut(i == 2)
		if i == 2 {
			tb.Until(`document.body.innerText.includes("No connection")`)
			prompt(tb, "say once")
			w.cut(false)
		}
	}
	tb.Until(answers("once") + ` && !document.querySelector(".sending") && !document.querySelector(".working")`)
	if diff := cmp.Diff(numbers(n)+"once", counted(tb)); diff != "" {
		t.Error(diff)
	}
}

// TestSilentNetwork: a network that dies without a word, as when a device sleeps, is noticed when the device wakes up, and
// when somebody sends something.
func TestSilentNetwork(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	id := r.session()
	w := newWire(t, r.address)
	tb := chromium.Open(t, "about:blank")
	r.pairAt(tb, w.Addr().String())
	tb.Go("http://" + w.Addr().String() + "/#/" + id)
	const n = 600
	prompt(tb, fmt.Sprintf("count %d 100", n))
	tb.Until(reached(50))
	w.silence()
	tb.Eval(`dispatchEvent(new Event("online"))`, nil)
	tb.Until(`document.body.innerText.includes("No connection")`)
	w.cut(false)
	tb.Until(`document.querySelector(".message.agent")?.textContent.trim().endsWith("end")`)
	if diff := cmp.Diff(numbers(n), counted(tb)); diff != "" {
		t.Error(diff)
	}
	tb.Until(`!document.body.innerText.includes("No connection")`) // which the end of the message may come before
	w.silence()
	prompt(tb, "say once")
	tb.Until(`document.body.innerText.includes("No connection")`)
	w.cut(false)
	tb.Until(answers("once") + ` && !document.querySelector(".sending") && !document.querySelector(".working")`)
}

// TestOfflineSaid: where the browser says that there is no network, the page says so at once, until it hears from the gateway.
func TestOfflineSaid(t *testing.T) {
	r := newRig(t)
	w := newWire(t, r.address)
	tb := chromium.Open(t, "about:blank")
	r.pairAt(tb, w.Addr().String())
	tb.Go("http://" + w.Addr().String() + "/#/" + r.session())
	tb.Until(`document.querySelector("textarea")`)
	w.silence()
	tb.Eval(`dispatchEvent(new Event("offline"))`, nil)
	tb.Until(`document.body.innerText.includes("No connection")`)
	tb.Size(360, 640) // it covers nothing that somebody may use without a network
	tb.Until(`[...document.querySelectorAll("#prompt, .head, .composer button")].filter((e) => e.checkVisibility()).every((e) => {
		const r = e.getBoundingClientRect(), at = document.elementFromPoint(r.left + r.width / 2, r.bottom - 2);
		return e === at || e.contains(at);
	}) && document.querySelector(".strip").getBoundingClientRect().bottom <= document.querySelector(".head").getBoundingClientRect().top`)
	w.cut(false)
	tb.Until(`!document.body.innerText.includes("No connection")`)
	tb.Eval(`dispatchEvent(new Event("offline"))`, nil) // the gateway is reached all the same
	tb.Until(`!document.body.innerText.includes("No connection")`)
}

// TestServerKilled: the same if it is the server that ends, and comes back at once: its agents have lived on.
func TestServerKilled(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	id := r.session()
	tb := r.page("#/" + id)
	const n = 3000
	prompt(tb, fmt.Sprintf("count %d 1000", n))
	for i := range 3 {
		tb.Until(reached(200 + i*400))
		r.kill()
		tb.Until(`document.body.innerText.includes("No connection")`)
		r.serve()
	}
	tb.Until(`document.querySelector(".message.agent")?.textContent.trim().endsWith("end")`)
	if diff := cmp.Diff(numbers(n), counted(tb)); diff != "" {
		t.Error(diff)
	}
}

// TestLong: a session with many messages opens at its end, and what was before comes as somebody scrolls up, until the
// first one.
func TestLong(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	id := r.session()
	conn := r.client(&acp.Client{})
	defer conn.Close()
	s, err := conn.Load(t.Context(), acp.SessionID(id), acp.SessionConfig{Cwd: r.project})
	if err != nil {
		t.Fatal(err)
	}
	const n = 3000
	if _, err := s.Prompt(t.Context(), acp.Text(fmt.Sprintf("messages %d", n))).Wait(); err != nil {
		t.Fatal(err)
	}
	tb := r.page("#/" + id)
	tb.Until(says(fmt.Sprintf("message %d", n-1)))
	var shown int
	tb.Eval(`document.querySelectorAll(".message.agent").length`, &shown)
	if shown >= n {
		t.Errorf("%d messages were fetched at once", shown)
	}
	// Only what is around the view is drawn.
	tb.Eval(look, nil)
	far(tb, `(look("top"), seen.has(0))`)
	var got sight
	if got.complete(t, tb); got.Seen != n {
		t.Errorf("%d messages were seen", got.Seen)
	}
}

// TestPlace: a page that is loaded again far above the end of a session shows what it showed before, at the same place.
func TestPlace(t *testing.T) {
	long.Test(t)
	r := newRig(t)
	id := r.session()
	conn := r.client(&acp.Client{})
	defer conn.Close()
	s, err := conn.Load(t.Context(), acp.SessionID(id), acp.SessionConfig{Cwd: r.project})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(t.Context(), acp.Text("messages 2000")).Wait(); err != nil {
		t.Fatal(err)
	}
	tb := r.page("#/" + id)
	tb.Until(says("message 1999"))
	// As far up as two pages of the history, and to the middle of a message.
	tb.Until(`(() => {
		const first = Number(document.querySelector(".message.agent")?.textContent.match(/message (\d+)/)?.[1]);
		if (first < 1200) return true;
		` + scroll("s.scrollTop - s.clientHeight") + `
		return false;
	})()`)
	// What is kept is what is seen, once everything has its size.
	const seen = `(() => {
		const s = document.querySelector(".scroll"), top = s.getBoundingClientRect().top;
		const node = [...document.querySelectorAll(".entries > [data-entry]")].find((n) => n.getBoundingClientRect().bottom > top);
		return node && {entry: node.dataset.entry, offset: Math.round(node.getBoundingClientRect().top - top)};
	})()`
	settled := `(() => {
		const now = JSON.stringify(` + seen + `), kept = JSON.parse(sessionStorage.getItem("acp-place") ?? "{}");
		window.same = now && now === window.lastSeen ? (window.same ?? 0) + 1 : 0;
		window.lastSeen = now;
		return window.same > 60 && JSON.stringify({entry: kept.entry, offset: Math.round(kept.offset)}) === now;
	})()`
	tb.Until(settled)
	type place struct {
		Entry  string
		Offset int
	}
	var before, after place
	tb.Eval(seen, &before)
	for range 2 {
		tb.Do("Page.reload", chromium.Object{}, nil)
		tb.Until(`document.querySelector(".latest") && ` + settled)
		if tb.Eval(seen, &after); after.Entry != before.Entry || max(after.Offset-before.Offset, before.Offset-after.Offset) > 2 {
			t.Errorf("%v, and before %v", after, before)
		}
	}
	// A place that is not there any more is looked for, and then the end is shown.
	tb.Eval(fmt.Sprintf(`void (sessionStorage.setItem("acp-place", JSON.stringify({id: %q, entry: "none", at: 500, offset: 0})), location.reload())`, id), nil)
	tb.Until(`document.querySelector(".message.agent") && sessionStorage.getItem("acp-place") === null && !document.querySelector("#latest, [aria-busy=true]") && ` + says("message 1999"))
}
