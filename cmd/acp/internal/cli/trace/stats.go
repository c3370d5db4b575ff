package trace

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// A report is what acp trace stats --json prints. Times are in seconds, sizes in bytes.
type report struct {
	Started  string           `json:"started,omitempty"` // of the first part, RFC 3339
	Command  []string         `json:"command,omitempty"`
	Parts    int              `json:"parts"`
	Duration seconds          `json:"duration"` // of all parts together
	Bytes    int64            `json:"bytes"`    // of the file
	Damaged  int64            `json:"damaged,omitempty"`
	ToAgent  traffic          `json:"toAgent"`
	ToClient traffic          `json:"toClient"`
	Stderr   int64            `json:"stderr"` // lines
	Lost     int64            `json:"lost,omitempty"`
	Events   map[string]int64 `json:"events,omitempty"`
	Exit     *int             `json:"exit,omitempty"` // status of the agent
	Methods  []methodSum      `json:"methods"`
	Sessions []session        `json:"sessions"`
	More     int64            `json:"sessionsMore,omitempty"` // frames of sessions beyond maxSessions
	Biggest  []big            `json:"biggest"`
	Broken   []rule           `json:"broken,omitempty"`
}

// traffic is what went in one direction.
type traffic struct {
	Frames int64 `json:"frames"`
	Bytes  int64 `json:"bytes"`
	Texts  int64 `json:"texts,omitempty"` // frames that are not JSON, included in Frames
}

// A methodSum is what is known of the calls of a method.
type methodSum struct {
	Method     string  `json:"method"`
	From       string  `json:"from"`
	Type       string  `json:"type"` // request or notification
	Count      int64   `json:"count"`
	Errors     int64   `json:"errors,omitempty"`
	Unanswered int64   `json:"unanswered,omitempty"`
	Latency    *times  `json:"latency,omitempty"`
	Size       sizes   `json:"size"`
	Answers    *sizes  `json:"answers,omitempty"` // sizes of the answers
	total      float64 // total latency, which orders the list
}

// times are how long calls took.
type times struct {
	P50 seconds `json:"p50"`
	P99 seconds `json:"p99"`
	Max seconds `json:"max"`
}

// sizes are how large frames were, in bytes.
type sizes struct {
	Total int64 `json:"total"`
	P50   int64 `json:"p50"`
	P99   int64 `json:"p99"`
	Max   int64 `json:"max"`
}

// A session is what is known of one session.
type session struct {
	ID         string           `json:"id"`
	Updates    int64            `json:"updates"`
	Turns      int64            `json:"turns"`
	FirstChunk *times           `json:"firstChunk,omitempty"` // since the prompt
	Turn       *times           `json:"turn,omitempty"`
	Tokens     map[string]int64 `json:"tokens,omitempty"` // sum over all turns
	Context    *window          `json:"context,omitempty"`
	Cost       *cost            `json:"cost,omitempty"` // as last reported
}

// A window is how full the context of a session is, as last reported.
type window struct {
	Used int64 `json:"used"`
	Size int64 `json:"size"`
}

// A cost is what a session has cost, as last reported.
type cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// A rule is a broken rule.
type rule struct {
	Rule  string            `json:"rule"`
	Level conformance.Level `json:"level"`
	Count int64             `json:"count"`
	Line  int64             `json:"line"` // of the first frame; 0 if only the end of a part shows it
	Why   string            `json:"why"`  // reason at that frame
}

func (s *spread) times() *times {
	if s.n == 0 {
		return nil
	}
	return &times{seconds(s.at(0.5)), seconds(s.at(0.99)), seconds(s.max)}
}

func (s *spread) sizes() sizes { return sizes{s.sum, s.at(0.5), s.at(0.99), s.max} }

// stats measures a recording, and prints or encodes the report. stats reads a recording once and
// prints its statistics.
func (o *Options) stats(ctx context.Context) error {
	s, err := o.open(ctx, o.Files[0])
	if err != nil {
		return err
	}
	defer s.Close()
	m := new(meter)
	first, part, check := s.Header(), s.Part(), o.checker()
	rules := map[string]*rule{}
	count := func(findings []conformance.Finding, line int64) {
		for _, f := range findings {
			r := rules[f.Rule.ID]
			if r == nil {
				r = &rule{Rule: f.Rule.ID, Level: f.Rule.Level, Line: line, Why: f.Why}
				rules[f.Rule.ID] = r
			}
			r.Count++
		}
	}
	for {
		rec, err := s.Record()
		if err != nil && err != io.EOF {
			return err
		}
		check.Cuts(s.Cuts)
		if err == io.EOF || s.Part() != part {
			m.beginPart()
			count(check.End(), 0)
			part = s.Part()
		}
		if err == io.EOF {
			break
		}
		m.addRecord(rec, s.Line())
		count(check.Add(rec), s.Line())
	}
	sum := m.report()
	sum.Parts, sum.Bytes, sum.Damaged, sum.Command = s.Part(), s.Offset(), s.Cuts, first.Command
	if !first.Started.IsZero() {
		sum.Started = first.Started.Format(time.RFC3339Nano)
	}
	for _, r := range rules {
		sum.Broken = append(sum.Broken, *r)
	}
	sort.Slice(sum.Broken, func(i, j int) bool {
		a, b := sum.Broken[i], sum.Broken[j]
		return cmp.Or(cmp.Compare(rank(a.Level), rank(b.Level)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Rule, b.Rule)) < 0
	})
	if o.JSON {
		return printJSON(o.App.Out, sum)
	}
	return sum.print(o.App.Out, o.columns(), o.Check)
}

// rank orders levels, the most binding first.
func rank(l conformance.Level) int {
	return slices.Index([]conformance.Level{conformance.Must, conformance.Should, conformance.May, conformance.Quirk}, l)
}

// report returns the measurements in the form in which they are encoded.
func (m *meter) report() *report {
	sum := &report{
		Duration: seconds(m.span), Stderr: m.stderr, Lost: m.lost, Events: m.events, Exit: m.exit, More: m.more,
		ToAgent:  traffic{m.to[0].Count, m.to[0].Bytes, m.texts[0]},
		ToClient: traffic{m.to[1].Count, m.to[1].Bytes, m.texts[1]},
		Biggest:  append([]big{}, m.biggest...), Methods: []methodSum{}, Sessions: []session{},
	}
	for _, c := range m.methods {
		ms := methodSum{
			Method: c.key.method, From: asClient, Type: "notification", Count: c.size.n, Errors: c.errors,
			Unanswered: c.unanswered, Latency: c.latency.times(), Size: c.size.sizes(), total: float64(c.latency.sum),
		}
		if c.key.dir == trace.ToClient {
			ms.From = asAgent
		}
		if c.request {
			ms.Type = "request"
		}
		if c.answers.n > 0 {
			answers := c.answers.sizes()
			ms.Answers = &answers
		}
		sum.Methods = append(sum.Methods, ms)
	}
	sort.Slice(sum.Methods, func(i, j int) bool {
		a, b := sum.Methods[i], sum.Methods[j]
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Method, b.Method), cmp.Compare(a.From, b.From)) < 0
	})
	for _, s := range m.order {
		one := session{
			ID: s.id, Updates: s.updates, Turns: s.turns, FirstChunk: s.first.times(), Turn: s.turn.times(), Tokens: s.tokens,
		}
		if s.window > 0 || s.used > 0 {
			one.Context = &window{s.used, s.window}
		}
		if s.currency != "" {
			one.Cost = &cost{s.cost, s.currency}
		}
		sum.Sessions = append(sum.Sessions, one)
	}
	return sum
}

// print prints a report for people.
func (s *report) print(w io.Writer, width int, checked bool) error {
	p := &printer{w: w, width: width}
	p.f("%s", safetext.Line(strings.Join(s.Command, " "), 200))
	p.f("%s recorded in %d %s, %s", span(time.Duration(s.Duration)), s.Parts, plural(s.Parts, "part", "parts"), size(s.Bytes))
	p.f("to the agent   %7d frames %8s%s", s.ToAgent.Frames, size(s.ToAgent.Bytes), s.ToAgent.odd())
	p.f("to the client  %7d frames %8s%s", s.ToClient.Frames, size(s.ToClient.Bytes), s.ToClient.odd())
	if s.Stderr > 0 {
		p.f("standard error %7d lines", s.Stderr)
	}
	for _, n := range []struct {
		n    int64
		what string
	}{{s.Lost, "records were lost while recording"}, {s.Damaged, "lines could not be read"}} {
		if n.n > 0 {
			p.f("%d %s", n.n, n.what)
		}
	}
	if s.Exit != nil {
		p.f("the agent exited with status %d", *s.Exit)
	}
	s.printMethods(p)
	s.printSessions(p)
	if len(s.Biggest) > 0 {
		p.f("\nBiggest frames")
	}
	for _, b := range s.Biggest {
		p.f("  %8s  line %d  %s %s", size(b.Size), b.Line, b.Type, safetext.Line(b.Method, 60))
	}
	if checked {
		s.printBroken(p)
	}
	return p.err
}

// printMethods prints a table of methods. On a narrow terminal it has fewer columns.
func (s *report) printMethods(p *printer) {
	if len(s.Methods) == 0 {
		return
	}
	name, count, errs, small := 34, 8, "ERRORS", true
	if p.width > 0 && p.width < 107 {
		// A narrow terminal gets no column for the median size, and narrower columns.
		name, count, errs, small = min(max(p.width-56, 10), 34), 6, " ERR", false
	}
	row := func(method, from, n, failed, open, p50, p99, most, size, biggest string) {
		if small {
			size = fmt.Sprintf("%7s ", size)
		} else {
			size = ""
		}
		p.f("%s %-6s %*s %*s %*s %7s %7s %7s %s%7s", pad(method, name), from, count, n, len(errs), failed, len(errs), open, p50, p99, most, size, biggest)
	}
	p.f("")
	row("METHOD", "FROM", "COUNT", errs, "OPEN", "P50", "P99", "MAX", "SIZE50", "SIZEMAX")
	for _, m := range s.Methods {
		p50, p99, most := "", "", ""
		if m.Latency != nil {
			p50, p99, most = span(time.Duration(m.Latency.P50)), span(time.Duration(m.Latency.P99)), span(time.Duration(m.Latency.Max))
		}
		row(safetext.Line(m.Method, name), m.From, fmt.Sprint(m.Count), some(m.Errors), some(m.Unanswered), p50, p99, most, size(m.Size.P50), size(m.Size.Max))
	}
}

// printSessions prints a line for each session.
func (s *report) printSessions(p *printer) {
	if len(s.Sessions) == 0 {
		return
	}
	name, gap, spent := 30, "  ", "SPENT"
	if p.width > 0 && p.width < 100 {
		name, gap, spent = min(max(p.width-47, 10), 30), " ", "" // tokens and cost are on the line below
	}
	p.f("\n%s %6s %8s%s%9s %9s %9s  %s", pad("SESSION", name), "TURNS", "UPDATES", gap, "FIRST P50", "TURN P50", "TURN MAX", spent)
	const most = 20
	for _, one := range s.Sessions[:min(len(s.Sessions), most)] {
		first, turn, longest := "", "", ""
		if one.FirstChunk != nil {
			first = span(time.Duration(one.FirstChunk.P50))
		}
		if one.Turn != nil {
			turn, longest = span(time.Duration(one.Turn.P50)), span(time.Duration(one.Turn.Max))
		}
		row := fmt.Sprintf("%s %6d %8d%s%9s %9s %9s", pad(safetext.Line(one.ID, name), name), one.Turns, one.Updates, gap, first, turn, longest)
		switch text := one.spent(); {
		case spent != "":
			p.f("%s  %s", row, text)
		case text != "":
			p.f("%s\n  %s", row, text)
		default:
			p.f("%s", row)
		}
	}
	if more := len(s.Sessions) - most; more > 0 {
		p.f("and %d more; --json lists them", more)
	}
	if s.More > 0 {
		p.f("and further sessions with %d frames", s.More)
	}
}

// spent says what a session has used and cost. spent returns what the session has consumed: tokens,
// context and cost, as far as they are known.
func (s *session) spent() string {
	var words []string
	if n := s.Tokens["totalTokens"]; n > 0 {
		words = append(words, fmt.Sprintf("%d tokens", n))
	} else if len(s.Tokens) > 0 {
		for _, sort := range slices.Sorted(maps.Keys(s.Tokens)) {
			words = append(words, fmt.Sprintf("%d %s", s.Tokens[sort], sort))
		}
	}
	if s.Context != nil {
		words = append(words, fmt.Sprintf("context %d of %d", s.Context.Used, s.Context.Size))
	}
	if s.Cost != nil {
		words = append(words, fmt.Sprintf("%g %s", s.Cost.Amount, safetext.Line(s.Cost.Currency, 12)))
	}
	return strings.Join(words, ", ")
}

// printBroken prints the rules of the protocol that were broken, with the place where each was
// broken first.
func (s *report) printBroken(p *printer) {
	if len(s.Broken) == 0 {
		p.f("\nNo rule of the protocol is broken.")
		return
	}
	p.f("\nBroken rules")
	for _, r := range s.Broken {
		where := ""
		if r.Line > 0 {
			where = fmt.Sprintf(", first in line %d", r.Line)
		}
		p.f("%s", strings.TrimSuffix(hang(fmt.Sprintf("%-6s %s, %d×%s: %s", r.Level, r.Rule, r.Count, where, safetext.Line(r.Why, 200)), 2, p.width), "\n"))
	}
}

func (t traffic) odd() string {
	if t.Texts == 0 {
		return ""
	}
	return fmt.Sprintf("  (%d are not JSON)", t.Texts)
}

// some returns n as text, or "" for 0.
func some(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// A printer writes lines without trailing spaces and keeps the first error.
type printer struct {
	w     io.Writer
	width int // of the terminal, 0 if there is none
	err   error
}

func (p *printer) f(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}
