package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// ratio returns the median over the rounds of how many times better ours did
// than the peer: its time by ours, or our rate by its.
func (o *outcome) ratio(k metric, peer string) float64 {
	r := o.paired(k.key, "ours", peer)
	if k.lower {
		return 1 / r
	}
	return r
}

// paired returns the median over the rounds of a metric of a by that of b.
func (o *outcome) paired(key, a, b string) float64 {
	av, bv := o.samples[a][key], o.samples[b][key]
	var r []float64
	for i := range min(len(av), len(bv)) {
		if bv[i] != 0 {
			r = append(r, av[i]/bv[i])
		}
	}
	return median(r)
}

// titleOf returns what a subject is called in the workload's table.
func (o *outcome) titleOf(name string) string {
	if name == bare.name && overNet(o.mode) {
		return map[string]string{"http": "bare net/http", "ws": "bare coder/websocket"}[o.mode]
	}
	return titleOf(name)
}

func (o *outcome) peers() []string {
	var out []string
	for _, s := range o.subjects {
		if s != "ours" {
			out = append(out, s)
		}
	}
	return out
}

// shown reports whether any subject has the metric.
func (o *outcome) shown(k metric) bool {
	for _, m := range o.samples {
		if !math.IsNaN(median(m[k.key])) {
			return true
		}
	}
	return false
}

// number writes a number with about three digits.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case a >= 1e5:
		return fmt.Sprintf("%s k", grouped(v/1000))
	case a >= 100:
		return grouped(v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a < 0.0005:
		return "0"
	case a < 0.1:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func grouped(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if neg {
		s = "-" + s
	}
	return s
}

func times(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return number(v) + "×"
}

// printOutcome writes a workload's table to the terminal: medians, and how many
// times better ours is.
func printOutcome(w io.Writer, o *outcome) {
	fmt.Fprintf(w, "\n%s  (%s)\n", o.title, o.name)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\t")
	for _, s := range o.subjects {
		fmt.Fprintf(t, "%s\t", o.titleOf(s))
	}
	for _, s := range o.peers() {
		fmt.Fprintf(t, "vs %s\t", s)
	}
	fmt.Fprintln(t)
	for _, k := range o.metrics {
		if !o.shown(k) {
			continue
		}
		fmt.Fprintf(t, "%s\t", k.label)
		for _, s := range o.subjects {
			fmt.Fprintf(t, "%s\t", number(median(o.samples[s][k.key])))
		}
		for _, s := range o.peers() {
			if k.ratio {
				fmt.Fprintf(t, "%s\t", times(o.ratio(k, s)))
			} else {
				fmt.Fprint(t, "\t")
			}
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
	for _, s := range o.subjects {
		if f := o.failures[s]; f != "" {
			fmt.Fprintf(w, "  %s failed: %s\n", o.titleOf(s), f)
		}
	}
}

func printVerdicts(w io.Writer, list []verdict) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w, "\nTargets")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range list {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", v.word(), v.text, v.found)
	}
	_ = t.Flush()
}

// A report is what becomes of a run.
type report struct {
	results  []*outcome
	verdicts []verdict
	rounds   int
	took     time.Duration
	part     bool // it replaces what was measured and keeps the rest
}

// write writes the Markdown report.
func (r report) write(path string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := r.markdown()
	if r.part && len(old) > 0 {
		text = r.merge(string(old))
	}
	return os.WriteFile(path, []byte(text+ofProgram(string(old))), 0o644)
}

func (r report) markdown() string {
	var b strings.Builder
	m := thisMachine()
	fmt.Fprintf(&b, `# Benchmark results

Written by `+"`%s`"+` in `+"`bench/`"+`; do not edit. Read the ratios, not the numbers: the machine
had other work to do, and all subjects had the same share of it, in interleaved rounds.

| | |
|---|---|
`, m.command)
	for _, kv := range m.rows(r.rounds, r.took) {
		fmt.Fprintf(&b, "| %s | %s |\n", kv[0], kv[1])
	}
	b.WriteString(`
Each cell is the median over the rounds, with the lowest and the highest round in brackets. The
ratios say how many times better ours did, as the median over the rounds of the ratio within each
round; below 1 ours did worse. In two processes the client starts the agent and both ends are the
same implementation; in one process they share it, over two OS pipes. The bare pipe moves the same
bytes and understands nothing: a reader, a goroutine per request that answers it, and streams that
are written through a 64 kB buffer and only counted. The file is in the client's memory.
Over the network the agent is a server on the loopback interface, in a process of its own, and
ours is package acp.
Allocations are those of the whole process, handlers of the benchmark included; streaming agents
send the same value over and over.

## Targets

| target | found | |
|---|---|---|
`)
	for _, v := range r.verdicts {
		b.WriteString(v.row())
	}
	for _, o := range r.results {
		b.WriteString(markdown(o))
	}
	return b.String()
}

func (v verdict) row() string {
	return fmt.Sprintf("| %s | %s | %s |\n", v.text, v.found, v.word())
}

// programHeading begins the last part of the report, which is about the program and measured there:
// see make bench-program.
const programHeading = "\n## The program acp\n"

// ofProgram returns that part of a report, "" if there is none.
func ofProgram(report string) string {
	_, part, ok := strings.Cut(report, programHeading)
	if !ok {
		return ""
	}
	return programHeading + part
}

func markdown(o *outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n`%s`, %d rounds\n\n|", strings.ToUpper(o.title[:1])+o.title[1:], o.name, o.ran())
	for _, s := range o.subjects {
		fmt.Fprintf(&b, " | %s", o.titleOf(s))
	}
	for _, s := range o.peers() {
		fmt.Fprintf(&b, " | vs %s", o.titleOf(s))
	}
	fmt.Fprintf(&b, " |\n|---%s|\n", strings.Repeat("|---", len(o.subjects)+len(o.peers())))
	for _, k := range o.metrics {
		if !o.shown(k) {
			continue
		}
		fmt.Fprintf(&b, "| %s", k.label)
		for _, s := range o.subjects {
			fmt.Fprintf(&b, " | %s", spread(o.samples[s][k.key]))
		}
		for _, s := range o.peers() {
			if k.ratio {
				fmt.Fprintf(&b, " | %s", times(o.ratio(k, s)))
			} else {
				b.WriteString(" | ")
			}
		}
		b.WriteString(" |\n")
	}
	if o.note != "" {
		fmt.Fprintf(&b, "\n%s\n", o.note)
	}
	for _, s := range o.subjects {
		if f := o.failures[s]; f != "" {
			fmt.Fprintf(&b, "\n%s failed: %s\n", o.titleOf(s), strings.ReplaceAll(f, "\n", " "))
		}
	}
	return b.String()
}

// ran is how many rounds there were.
func (o *outcome) ran() int {
	n := 0
	for _, m := range o.samples {
		for _, v := range m {
			n = max(n, len(v))
		}
	}
	return n
}

// spread writes the median and the extremes.
func spread(v []float64) string {
	v = slices.DeleteFunc(slices.Clone(v), math.IsNaN)
	if len(v) == 0 {
		return "–"
	}
	lo, hi := number(slices.Min(v)), number(slices.Max(v))
	if lo == hi {
		return number(median(v))
	}
	return fmt.Sprintf("%s (%s–%s)", number(median(v)), lo, hi)
}
