package check

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/conformance"
)

// line makes text safe to print on one line of a terminal.
func line(s string) string { return safetext.Line(s, 2000) }

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// wrap breaks text into lines of at most width cells, but at least 20.
func wrap(s string, width int) []string {
	return strings.Split(ansi.Wrap(line(s), max(width, 20), ""), "\n")
}

const (
	widthDefault = 90
	widthMost    = 120
	frameLines   = 4 // maximum lines of a frame
	framesShown  = 8 // maximum frames of a failure
)

// A page is a report for the terminal.
type page struct {
	w      strings.Builder
	width  int
	colour bool
	client bool // the report is about a client, so acp was the agent
}

func (p *page) style(code, s string) string {
	if !p.colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.w, format+"\n", args...) }

// columns returns the width of the terminal w, or other if it is not known.
func columns(w io.Writer, other int) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return other
}

func (o *Options) page() *page {
	p := &page{width: widthDefault, client: o.Side == conformance.Client}
	if o.App.OutTerminal {
		p.width = min(columns(o.App.Out, widthDefault), widthMost)
		p.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return p
}

// print prints the report as text. Results that are the same in both versions, and rules that could
// not be tried for one common reason, are merged.
func (o *Options) print(j *judgement) error {
	p := o.page()
	name := string(o.Side)
	if j.Name != "" {
		name = line(j.Name + " " + j.Release)
	}
	if j.Broken != "" {
		return nil // the error message has the reason
	}
	title := p.style("1", strings.TrimSpace(name))
	if o.Side != "" && len(j.Versions) > 0 {
		title += p.style("2", " · speaks version "+strings.Trim(strings.ReplaceAll(fmt.Sprint(j.Versions), " ", " and "), "[]"))
	}
	p.line("%s", title)
	topic, common := "", untried(j)
	for i := 0; i < len(j.Results); i++ {
		r := j.Results[i]
		if !o.All && common[r.Why] > 0 && r.Status == conformance.Broken {
			continue
		}
		same := []*conformance.Result{r} // in other versions and over other transports
		for i+1 < len(j.Results) && j.alike(r, j.Results[i+1]) {
			i++
			same = append(same, j.Results[i])
		}
		fine := r.Status == conformance.Pass || r.Status == conformance.Skip || r.Status == conformance.Unseen
		if !o.All && fine && r.First == "" { // what came to something else at first is shown
			continue
		}
		t, _ := cutLast(r.Rule.ID)
		if t != topic {
			topic = t
			p.line("\n%s", p.style("1", t))
		}
		p.result(same, j.known[r])
	}
	for _, why := range sorted(common) {
		if !o.All {
			p.line("\n%s %s for the same reason:", p.style("31", "!"), p.style("1", fmt.Sprintf("%d rules could not be tried", common[why])))
			for _, l := range wrap(why, p.width-4) {
				p.line("    %s", p.style("31", l))
			}
		}
	}
	for _, x := range j.fixed {
		p.line("\n%s %s passed, but %s:%d lists it as a known failure: %s", p.style("33", "!"), x.rule, line(j.name), x.line, line(x.reason))
	}
	p.line("")
	if len(j.Results) > 0 {
		p.table(j)
		p.line("")
	}
	p.missingPrompts(o, j)
	p.listFailures(j)
	p.verdict(o, j)
	_, err := io.WriteString(o.App.Out, p.w.String())
	return err
}

// maxFailures bounds the list of failures at the end of a report.
const maxFailures = 10

// listFailures lists the rules that made the check fail. Readers of a long report look at its end
// first. The list has whole ids, because --only and --expect accept those.
func (p *page) listFailures(j *judgement) {
	rules := j.failures()
	if len(rules) == 0 {
		return
	}
	p.line("Failed rules of level must:")
	for i, id := range rules {
		if i == maxFailures && len(rules) > maxFailures+1 {
			p.line("  and %d more", len(rules)-maxFailures)
			break
		}
		p.line("  %s", p.style("31", id))
	}
	p.line("")
}

// missingPrompts lists the purposes whose prompts would let the check see more.
func (p *page) missingPrompts(o *Options, j *judgement) {
	purposes, n := map[string]bool{}, 0
	for _, r := range j.Results {
		if r.Purpose != "" {
			purposes[r.Purpose] = true
			n++
		}
	}
	if n == 0 || o.All {
		return
	}
	text := fmt.Sprintf("%s unseen because there is no --prompt for: %s", count(n, "result"), strings.Join(sorted(purposes), ", "))
	for _, l := range wrap(text, p.width) {
		p.line("%s", l)
	}
	p.line("")
}

// untried returns the reasons that kept more than three rules from being tried, with their counts.
// Each such reason is printed once.
func untried(j *judgement) map[string]int {
	n := map[string]int{}
	for _, r := range j.Results {
		if r.Status == conformance.Broken {
			n[r.Why]++
		}
	}
	for why, times := range n {
		if times <= 3 {
			delete(n, why)
		}
	}
	return n
}

func cutLast(id string) (topic, name string) {
	i := strings.LastIndexByte(id, '/')
	return id[:max(i, 0)], id[i+1:]
}

// marks are the marks of statuses with their colours.
var marks = map[conformance.Status][2]string{
	conformance.Pass:   {"✓", "32"},
	conformance.Fail:   {"✗", "31"},
	conformance.Skip:   {"-", "2"},
	conformance.Unseen: {"?", "2"},
	conformance.Broken: {"!", "31"},
}

// alike reports whether a rule has the same result in two versions or over two transports, apart
// from the frames.
func (j *judgement) alike(a, b *conformance.Result) bool {
	return a.Rule == b.Rule && (a.Version != b.Version || a.Over != b.Over) && a.Status == b.Status && a.Why == b.Why && a.First == b.First && j.known[a] == j.known[b]
}

// where returns the versions and the transports of results, as "v1 and v2 over http".
func where(same []*conformance.Result) string {
	var versions, over []string
	add := func(list []string, s string) []string {
		if s == "" || slices.Contains(list, s) {
			return list
		}
		return append(list, s)
	}
	for _, r := range same {
		if r.Version > 0 {
			versions = add(versions, "v"+strconv.Itoa(r.Version))
		}
		over = add(over, r.Over)
	}
	text := strings.Join(versions, " and ")
	if len(over) > 0 {
		text += " over " + strings.Join(over, " and ")
	}
	return text
}

// result prints a result of a rule, which is the same in all versions and over all transports of
// same.
func (p *page) result(same []*conformance.Result, known *expectation) {
	r := same[0]
	_, name := cutLast(r.Rule.ID)
	mark := marks[r.Status]
	if known != nil || r.Status == conformance.Fail && r.Rule.Level != conformance.Must {
		mark[1] = "33"
	}
	about := string(r.Rule.Level)
	if text := where(same); text != "" {
		about += ", " + text
	}
	if len(r.Rule.Cites) > 0 {
		about += ", " + strings.Join(r.Rule.Cites, " ")
	}
	p.line("%s %s %s", p.style(mark[1], mark[0]), p.style("1", name), p.style("2", "("+about+")"))
	if r.Status == conformance.Fail || r.Status == conformance.Broken {
		for _, l := range wrap(r.Rule.Text, p.width-4) {
			p.line("    %s", l)
		}
	}
	for _, said := range [][2]string{{r.Why, mark[1]}, {r.First, "33"}} {
		if said[0] == "" {
			continue
		}
		for _, l := range wrap(said[0], p.width-4) {
			p.line("    %s", p.style(said[1], l))
		}
	}
	if known != nil {
		p.line("    known: %s", line(known.reason))
	}
	if r.Status == conformance.Fail && known == nil {
		p.frames(r)
	}
}

// frames prints the last frames of a failure.
func (p *page) frames(r *conformance.Result) {
	saw := r.Saw
	if !strings.Contains(r.Rule.ID, "initialize") {
		for len(saw) > 2 && strings.Contains(saw[0].Data, `"method":"initialize"`) {
			saw = saw[2:] // every conversation begins like this
		}
	}
	if n := len(saw) - framesShown; n > 0 {
		p.line("    %s", p.style("2", "… "+count(n, "frame")+" before"))
		saw = saw[n:]
	}
	// → points to the agent, ← to the client. Out means sent by the check, or, in a
	// recording, sent to the agent.
	ours, theirs := "→", "←"
	if p.client {
		ours, theirs = theirs, ours
	}
	for _, s := range saw {
		arrow := theirs
		if s.Out {
			arrow = ours
		}
		text := strings.Split(ansi.Hardwrap(line(s.Data), p.width-6, false), "\n")
		if len(text) > frameLines {
			text = append(text[:frameLines-1], "…")
		}
		for i, l := range text {
			if i > 0 {
				arrow = " "
			}
			p.line("    %s %s", p.style("2", arrow), p.style("2", l))
		}
	}
}

var (
	levels   = []conformance.Level{conformance.Must, conformance.Should, conformance.May, conformance.Quirk}
	statuses = []conformance.Status{conformance.Pass, conformance.Fail, conformance.Unseen, conformance.Skip, conformance.Broken}
)

// table prints the number of results by level and status. Below 47 cells its columns are as narrow
// as their headings.
func (p *page) table(j *judgement) {
	level0, w := 8, []int{6, 6, 7, 8, 7}
	if p.width < 47 {
		level0, w = 6, []int{4, 4, 6, 7, 6}
	}
	p.line("%*s%*s %*s %*s %*s %*s", level0, "", w[0], "pass", w[1], "fail", w[2], "unseen", w[3], "skipped", w[4], "broken")
	for _, level := range levels {
		n := make([]int, len(statuses))
		sum := 0
		for i, s := range statuses {
			n[i] = j.Count(level, s)
			sum += n[i]
		}
		if sum == 0 {
			continue
		}
		fail := fmt.Sprintf("%*d", w[1], n[1])
		if n[1] > 0 {
			colour := "33"
			if level == conformance.Must {
				colour = "31"
			}
			fail = p.style(colour, fail)
		}
		p.line("%-*s%*d %s %*d %*d %*d", level0, level, w[0], n[0], fail, w[2], n[2], w[3], n[3], w[4], n[4])
	}
}

// verdict says in one line what the check has come to. verdict prints the last line of a report.
// Without any rule of level must that was seen, the check has shown nothing, and the line says so
// instead of reporting success.
func (p *page) verdict(o *Options, j *judgement) {
	what := "it"
	if o.Side != "" {
		what = "the " + string(o.Side)
	}
	took := j.Took.Round(100 * time.Millisecond).String()
	if known := len(j.known); known > 0 {
		took += ", " + count(known, "known failure")
	}
	if how := j.interruption(); how != "" {
		text, colour := "I"+how[1:], "1;33"
		if j.failed() {
			text, colour = text+": "+j.summary(), "1;31"
		}
		p.line("%s (%s)", p.style(colour, text), took)
		return
	}
	if j.failed() {
		p.line("%s (%s)", p.style("1;31", "Failed: "+j.summary()), took)
		return
	}
	if j.Count(conformance.Must, conformance.Pass) == 0 {
		p.line("%s (%s)", p.style("1;33", "Inconclusive: no rule of level must was seen"), took)
		return
	}
	p.line("%s (%s)", p.style("1;32", "Passed: "+what+" keeps every rule of level must that was seen"), took)
}

// writeJSON writes the report as JSON. Members may be added, but never change.
func writeJSON(w io.Writer, j *judgement) error {
	type knownJSON struct {
		Rule    string `json:"rule"`
		Version int    `json:"version,omitempty"`
		Reason  string `json:"reason"`
	}
	known, fixed := []knownJSON{}, []knownJSON{}
	for _, r := range j.Results {
		if x := j.known[r]; x != nil {
			known = append(known, knownJSON{x.rule, r.Version, x.reason})
		}
	}
	for _, x := range j.fixed {
		fixed = append(fixed, knownJSON{x.rule, x.version, x.reason})
	}
	report, err := json.Marshal(j.Report)
	if err != nil {
		return err
	}
	// The members of the report come first, then those about known failures.
	more, err := json.Marshal(struct {
		InOrder bool        `json:"inOrder"`
		Known   []knownJSON `json:"known"`
		Fixed   []knownJSON `json:"fixed"`
	}{!j.failed() && !j.Interrupted, known, fixed})
	if err != nil {
		return err
	}
	data := append(append(report[:len(report)-1], ','), more[1:]...)
	_, err = w.Write(append(safetext.JSON(data), '\n'))
	return err
}
