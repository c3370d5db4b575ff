package check

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/record/file"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

const (
	maxExamples = 3       // frames shown for a broken rule
	maxExample  = 2 << 10 // bytes shown of a frame
)

// A linter checks recordings. Its memory is bounded whatever their size: it counts violations, and
// keeps only the first of each rule and maxExamples frames.
type linter struct {
	o       *Options
	check   *conformance.Recording // of the current connection; nil before the first one
	rules   []*conformance.Rule
	found   map[*conformance.Rule]*violations
	seen    map[*conformance.Rule]bool
	version int
}

// violations are the violations of one rule.
type violations struct {
	n     int64
	first conformance.Finding
	no    int64     // number of the first frame in its file
	hop   trace.Hop // of that frame
	file  string
	saw   []conformance.Seen
}

// lint checks all recordings as one: a rule is broken if it is broken in any of them.
func (o *Options) lint(ctx context.Context) (*conformance.Report, error) {
	l := &linter{o: o, found: map[*conformance.Rule]*violations{}, seen: map[*conformance.Rule]bool{}}
	for _, r := range conformance.Rules() {
		named := func(p string) bool { return conformance.Names(p, r.ID) }
		if r.Observed && (len(o.Only) == 0 || slices.ContainsFunc(o.Only, named)) && !slices.ContainsFunc(o.Skip, named) {
			l.rules = append(l.rules, r)
		}
	}
	if len(l.rules) == 0 {
		return nil, exitcode.Errorf(exitcode.Usage, "none of the selected rules can be checked in a recording")
	}
	start := time.Now()
	report := &conformance.Report{Name: strings.Join(o.Files, ", ")}
	for _, name := range o.Files {
		err := l.checkFile(ctx, name)
		if ctx.Err() != nil && l.check != nil {
			l.collect() // without ending the connection: its last answers were not read
			report.Interrupted = true
			break
		}
		if err != nil {
			return nil, err
		}
	}
	report.Took = time.Since(start)
	if l.version > 0 {
		report.Versions = []int{l.version}
	}
	for _, r := range l.rules {
		res := &conformance.Result{Rule: r, Version: l.version, Status: conformance.Unseen, Why: "it did not happen"}
		if v := l.found[r]; v != nil {
			res.Status, res.Saw = conformance.Fail, v.saw
			res.Why = fmt.Sprintf("frame %d%s: %s", v.no, hopName(v.hop), v.first.Why)
			if v.first.Path != "" {
				res.Why += ", at " + v.first.Path
			}
			if len(o.Files) > 1 {
				res.Why = v.file + ", " + res.Why
			}
			if v.n > 1 {
				res.Why += fmt.Sprintf(" (%d times)", v.n)
			}
		} else if l.seen[r] {
			res.Status, res.Why = conformance.Pass, ""
		}
		report.Results = append(report.Results, res)
	}
	return report, nil
}

// checkFile checks one recording, which may contain several connections.
func (l *linter) checkFile(ctx context.Context, name string) error {
	a := l.o.App
	f, err := file.Open(ctx, file.Console{Dir: a.Cwd, In: a.In, Err: a.Err, Terminal: a.ErrTerminal}, name)
	if err != nil {
		return err
	}
	defer f.Close()
	f.Progress()
	l.check = new(conformance.Recording)
	hop := f.Hop() // of the connection at hand
	for part := f.Part(); ; {
		rec, err := f.Record()
		l.check.Cuts(f.Cuts)
		switch {
		case err == io.EOF:
			l.endConnection(f.Name, hop)
			return nil
		case err != nil:
			return err
		}
		if p := f.Part(); p != part || l.check.Begins(rec) {
			part = p
			l.endConnection(f.Name, hop)
		}
		hop = f.Hop()
		l.addFindings(f.Name, hop, l.check.Add(rec), rec)
	}
}

// hopName says which connection of a chain it is, if there are several.
func hopName(hop trace.Hop) string {
	if hop == (trace.Hop{}) {
		return ""
	}
	return " (" + safetext.Line(hop.Client+" → "+hop.Agent, 2*trace.MaxHopName) + ")"
}

// endConnection adds the findings that only the end of a connection shows, such as missing answers.
func (l *linter) endConnection(name string, hop trace.Hop) {
	l.addFindings(name, hop, l.check.End(), nil)
	l.collect()
}

// collect records which rules the connection has exercised, and its version.
func (l *linter) collect() {
	for _, r := range l.rules {
		if !l.seen[r] && l.check.Seen(r) {
			l.seen[r] = true
		}
	}
	if v := l.check.Version(); v > 0 {
		l.version = v
	}
}

// addFindings counts findings. rec is the record they are about, or nil at the end of a connection.
func (l *linter) addFindings(name string, hop trace.Hop, findings []conformance.Finding, rec *trace.Record) {
	for _, f := range findings {
		v := l.found[f.Rule]
		if v == nil {
			v = &violations{first: f, no: l.check.Number(f), hop: hop, file: name}
			l.found[f.Rule] = v
		}
		v.n++
		if rec != nil && f.Frame == l.check.Frames() && len(v.saw) < maxExamples {
			data := string(rec.Data[:min(len(rec.Data), maxExample)])
			if len(rec.Data) > maxExample {
				data += "…"
			}
			seen := conformance.Seen{Out: rec.Dir == trace.ToAgent, Data: strings.ToValidUTF8(data, "\uFFFD")}
			if !slices.Contains(v.saw, seen) { // once more it would say nothing
				v.saw = append(v.saw, seen)
			}
		}
	}
}
