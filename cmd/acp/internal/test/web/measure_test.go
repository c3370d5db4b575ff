//go:build unix

package web

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
)

var measure = flag.String("measure", "", "measure the page, and write the figures to a `file`")

// Figures are what TestMeasure writes: medians, with all rounds.
type figures struct {
	Bytes            int       `json:"bytes"`     // of the page as it is transferred, without what is loaded when it is needed
	FirstRow         []float64 `json:"firstRow"`  // ms from the start of the navigation until the first session is drawn
	Open             []float64 `json:"open"`      // ms from the click until the end of a session of 10,000 updates is drawn
	Frames           []float64 `json:"frames"`    // of the worst second, while more than 1,000 updates a second come
	Paragraph        []float64 `json:"paragraph"` // the same, if all are one paragraph
	ParagraphUpdates []float64 `json:"paragraphUpdates"`
	Updates          []float64 `json:"updates"` // that came a second
	Scroll           []float64 `json:"scroll"`  // frames in the worst second, while somebody scrolls up in a session of 100,000 updates
	Chromium         string    `json:"chromium"`
	Processor        int       `json:"processors"`
	CPU              string    `json:"cpu,omitempty"` // where the system says it
	Day              string    `json:"day"`
}

const (
	rounds   = 7
	streamed = 10_000 // updates of a message that comes while frames are counted
	// paragraph is how many words a paragraph has. The browser lays a whole one out anew for each frame in which it grows.
	paragraph = 80
)

// TestMeasure measures the page. It asserts nothing about time.
func TestMeasure(t *testing.T) {
	if *measure == "" {
		t.Skip("-measure says where the figures go")
	}
	r := newRig(t)
	var f figures
	for range 50 {
		r.session()
	}
	long := r.session()
	conn := r.client(&acp.Client{})
	defer conn.Close()
	s, err := conn.Load(t.Context(), acp.SessionID(long), acp.SessionConfig{Cwd: r.project})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(t.Context(), acp.Text("messages 10000")).Wait(); err != nil {
		t.Fatal(err)
	}
	tb := r.page("")
	tb.Until(`document.querySelector(".list .row")`)
	tb.Do("Page.addScriptToEvaluateOnNewDocument", chromium.Object{"source": `
		const look = () => document.querySelector(".list .row") ? requestAnimationFrame(() => { window.firstRow = performance.now(); }) : requestAnimationFrame(look);
		requestAnimationFrame(look);`}, nil)
	for range rounds {
		var ms float64
		tb.Do("Page.reload", chromium.Object{"ignoreCache": true}, nil)
		tb.Until(`window.firstRow > 0`)
		tb.Eval(`window.firstRow`, &ms)
		f.FirstRow = append(f.FirstRow, ms)
		tb.Eval(`performance.getEntriesByType("resource").filter((e) => /\.(js|css)$/.test(e.name)).reduce((n, e) => n + e.encodedBodySize, 0) + performance.getEntriesByType("navigation")[0].encodedBodySize`, &f.Bytes)
	}
	for range rounds {
		var ms float64
		tb.Eval(`void (location.hash = "")`, nil)
		tb.Until(`!document.querySelector(".talk")`)
		tb.Eval(fmt.Sprintf(`new Promise((done) => {
			const begin = performance.now();
			location.hash = "#/%s";
			const look = () => document.querySelector(".entries")?.textContent.includes("message 9999") ? requestAnimationFrame(() => done(performance.now() - begin)) : requestAnimationFrame(look);
			look();
		})`, long), &ms)
		f.Open = append(f.Open, ms)
	}
	f.Frames, f.Updates = r.streams(tb, paragraph)
	f.Paragraph, f.ParagraphUpdates = r.streams(tb, streamed)
	f.Scroll = r.scrolls(tb)
	tb.Eval(`navigator.userAgent.match(/Chrome\/[\d.]+/)[0]`, &f.Chromium)
	tb.Eval(`navigator.hardwareConcurrency`, &f.Processor)
	f.Day = time.Now().UTC().Format(time.DateOnly)
	if said, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(said), "model name")
		line, _, _ := strings.Cut(strings.TrimLeft(rest, "\t :"), "\n")
		f.CPU = line
	}
	data, err := json.MarshalIndent(&f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*measure, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]float64{"first row, ms": f.FirstRow, "open 10,000 updates, ms": f.Open, "frames in the worst second": f.Frames, "the same, one paragraph": f.Paragraph, "the same, scrolling": f.Scroll, "updates a second": f.Updates, "updates a second of one paragraph": f.ParagraphUpdates} {
		sorted := slices.Sorted(slices.Values(list))
		t.Logf("%s: median %.1f of %v", name, sorted[len(sorted)/2], list)
	}
	t.Logf("%d bytes", f.Bytes)
}

// streams returns the frames in the worst second while a message comes, in paragraphs of so many words, and how many updates
// came a second: each has a word.
func (r *rig) streams(tb *chromium.Tab, words int) (frames, updates []float64) {
	for range rounds {
		id := r.session()
		tb.Eval(fmt.Sprintf(`void (location.hash = "#/%s")`, id), nil)
		tb.Until(fmt.Sprintf(`location.hash === "#/%s" && !document.querySelector(".entries > [data-entry]")`, id))
		tb.Eval(`void (() => {
			const m = window.measured = {frames: [], begin: 0, end: 0};
			const look = (now) => {
				const node = document.querySelector(".message.agent");
				if (node && !m.begin) m.begin = now;
				if (m.begin) m.frames.push(now);
				if (document.querySelector(".entries")?.lastElementChild && /end$/.test(document.querySelector(".message.agent")?.textContent.trimEnd() ?? "")) m.end = now;
				else requestAnimationFrame(look);
			};
			requestAnimationFrame(look);
		})()`, nil)
		prompt(tb, fmt.Sprintf("stream %d 960 %d", streamed, words)) // a little more than 1,000 a second, of which the gateway keeps each
		tb.Until(`window.measured.end > 0`)
		var got struct{ Worst, Rate float64 }
		tb.Eval(`(() => {
			const {frames, begin, end} = window.measured, counts = [];
			for (let at = begin; at + 1000 <= end; at += 1000) counts.push(frames.filter((f) => f >= at && f < at + 1000).length);
			return {Worst: Math.min(...counts), Rate: `+strconv.Itoa(streamed)+` / (end - begin) * 1000};
		})()`, &got)
		frames, updates = append(frames, got.Worst), append(updates, got.Rate)
	}
	return frames, updates
}

// scrolls returns the frames in the worst second of ten, in which somebody scrolls up in a session of 100,000 updates: by
// a third of the window in each frame, so that more is drawn and fetched all the time.
func (r *rig) scrolls(tb *chromium.Tab) (frames []float64) {
	t := r.t
	t.Helper()
	id := r.session()
	conn := r.client(&acp.Client{})
	defer conn.Close()
	s, err := conn.Load(t.Context(), acp.SessionID(id), acp.SessionConfig{Cwd: r.project})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(t.Context(), acp.Text("messages 100000")).Wait(); err != nil {
		t.Fatal(err)
	}
	for range rounds {
		tb.Eval(`void (location.hash = "")`, nil)
		tb.Until(`!document.querySelector(".talk")`)
		tb.Eval(fmt.Sprintf(`void (location.hash = "#/%s")`, id), nil)
		tb.Until(says("message 99999"))
		var got struct{ Worst, Passed float64 }
		tb.Eval(`new Promise((done) => {
			const counts = new Array(10).fill(0), begin = performance.now();
			let lowest = Infinity;
			const look = (now) => {
				const at = Math.floor((now - begin) / 1000), s = document.querySelector(".scroll");
				if (at >= counts.length) return done({Worst: Math.min(...counts), Passed: 99999 - lowest});
				if (at >= 0) counts[at]++;
				s.dispatchEvent(new WheelEvent("wheel", {bubbles: true}));
				s.scrollTop -= s.clientHeight / 3;
				const first = document.querySelector(".message.agent")?.textContent.match(/message (\d+)/);
				if (first) lowest = Math.min(lowest, Number(first[1]));
				requestAnimationFrame(look);
			};
			requestAnimationFrame(look);
		})`, &got)
		t.Logf("%.0f frames in the worst second, over %.0f messages", got.Worst, got.Passed)
		frames = append(frames, got.Worst)
	}
	return frames
}
