package interop

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/goacp/acp/internal/sample"
)

// The kinds of disagreement.
const (
	weAccept = "accept" // the reference refuses
	weReject = "reject" // the reference accepts
	ourValue = "value"  // both accept and keep different things
	noType   = "absent" // we have no type of that name
)

// exception is one line of oracle-exceptions.txt.
type exception struct {
	line     int
	text     string
	profile  string // glob
	typ      string // glob
	kind     string
	matcher  sample.Deviation // zero with kind absent
	used     int
	example  []byte
	exampleT string
}

// readExceptions reads lines "profile type kind matcher # reason".
func readExceptions(r io.Reader) ([]*exception, error) {
	var out []*exception
	scan := bufio.NewScanner(r)
	for n := 1; scan.Scan(); n++ {
		text := strings.TrimSpace(scan.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		rule, reason, ok := strings.Cut(text, "#")
		f := strings.Fields(rule)
		if !ok || strings.TrimSpace(reason) == "" || len(f) != 4 {
			return nil, fmt.Errorf("line %d: want: profile type kind matcher # reason", n)
		}
		e := &exception{line: n, text: text, profile: f[0], typ: f[1], kind: f[2]}
		for _, glob := range f[:2] {
			if _, err := path.Match(glob, ""); err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", n, glob, err)
			}
		}
		if !slices.Contains([]string{weAccept, weReject, ourValue, noType}, e.kind) {
			return nil, fmt.Errorf("line %d: unknown kind %s", n, e.kind)
		}
		for _, d := range sample.Deviations() {
			if d.String() == f[3] {
				e.matcher = d
			}
		}
		if absent := e.kind == noType; absent != (e.matcher == 0) || absent != (f[3] == "-") {
			return nil, fmt.Errorf("line %d: unknown matcher %s", n, f[3])
		}
		out = append(out, e)
	}
	return out, scan.Err()
}

func (e *exception) covers(p profile, typ, kind string) bool {
	okProfile, _ := path.Match(e.profile, p.name)
	okType, _ := path.Match(e.typ, typ)
	return okProfile && okType && e.kind == kind
}

// verdict is what our decoder made of a value.
type verdict struct {
	err   error
	again []byte // re-encoded
}

// judge compares our verdicts with the answers of one profile.
type judge struct {
	profile profile
	schema  *sample.Schema
	form    sample.Options
	listed  []*exception

	types, values, agree, excepted, failed int

	absent   map[string]bool
	reported map[string]int // examples shown, by type and kind
	report   func(format string, args ...any)
}

func newJudge(p profile, s *sample.Schema, listed []*exception, report func(string, ...any)) *judge {
	form := sample.Options{Strip: true, JavaScript: true, DropTags: true, Patch: patches(p.version, s)}
	return &judge{profile: p, schema: s, form: form, listed: listed, absent: map[string]bool{}, reported: map[string]int{}, report: report}
}

// patched are the types in which null means clear and absence means unchanged. S78
var patched = []string{
	"ToolCallUpdate", "UserMessage", "AgentMessage", "AgentThought", "TerminalUpdate", "SessionInfoUpdate",
	"CompactionUpdate", "SubagentUpdate", "SessionMessage",
}

// patches lists the properties whose null must survive. In v1 a null _meta says nothing, and
// neither does a null tool name or cost.
func patches(version string, s *sample.Schema) map[string]bool {
	set := map[string]bool{}
	if version != "v1" {
		set["UsageUpdate.cost"] = true
	}
	for _, typ := range patched {
		for _, name := range s.Nullable(typ) {
			if version != "v1" || !strings.HasSuffix(name, "._meta") && name != "ToolCallUpdate.name" {
				set[name] = true
			}
		}
	}
	return set
}

// missing records a type we do not have.
func (j *judge) missing(typ string) {
	if j.absent[typ] {
		return
	}
	j.absent[typ] = true
	for _, e := range j.listed {
		if e.covers(j.profile, typ, noType) {
			e.used++
			return
		}
	}
	j.failed++
	j.report("%s %s: no Go type", j.profile.name, typ)
}

// compare judges one value. A disagreement is excepted when a smallest set of listed
// deviations explains it: the reference reader with just these deviations gives what we gave.
func (j *judge) compare(q question, ours verdict) {
	j.values++
	kind, text := j.difference(q, ours)
	if kind == "" {
		j.agree++
		return
	}
	var candidates []*exception
	for _, e := range j.listed {
		if e.covers(j.profile, q.typ, kind) {
			candidates = append(candidates, e)
		}
	}
	for size := 1; size <= len(candidates); size++ {
		if set := j.explain(q, ours, candidates, nil, size); set != nil {
			j.excepted++
			for _, e := range set {
				if e.used++; e.example == nil {
					e.example, e.exampleT = q.value, q.typ
				}
			}
			return
		}
	}
	j.failed++
	// Two examples of each class say more than many of the first.
	if class := q.typ + " " + kind; j.reported[class] < 2 && len(j.reported) < 40 {
		j.reported[class]++
		j.report("%s %s %.400s\n\t%s", j.profile.name, class, q.value, text)
	}
}

// explain tries all sets of the size that extend chosen.
func (j *judge) explain(q question, ours verdict, left, chosen []*exception, size int) []*exception {
	if size == 0 {
		var dev sample.Deviation
		for _, e := range chosen {
			dev |= e.matcher
		}
		if j.matches(q, ours, dev) {
			return chosen
		}
		return nil
	}
	for i := 0; i+size <= len(left); i++ {
		next := append(slices.Clone(chosen), left[i])
		if set := j.explain(q, ours, left[i+1:], next, size-1); set != nil {
			return set
		}
	}
	return nil
}

func (j *judge) matches(q question, ours verdict, dev sample.Deviation) bool {
	kept, err := j.schema.Salvage(q.typ, q.value, dev)
	if err != nil || ours.err != nil {
		return err != nil && ours.err != nil
	}
	want, err := j.form.Canonical(j.schema, q.typ, kept)
	if err != nil {
		return false
	}
	got, err := j.form.Canonical(j.schema, q.typ, ours.again)
	return err == nil && bytes.Equal(got, want)
}

// difference is the kind of disagreement, empty when there is none, and a text about it.
func (j *judge) difference(q question, ours verdict) (kind, text string) {
	switch {
	case ours.err != nil && q.accept:
		return weReject, "we refuse: " + ours.err.Error()
	case ours.err == nil && !q.accept:
		return weAccept, "we accept, the reference refuses: " + q.reason
	case ours.err != nil:
		return "", ""
	}
	want, err := j.form.Canonical(j.schema, q.typ, q.kept)
	if err != nil {
		return ourValue, "the reference's value has no normal form: " + err.Error()
	}
	got, err := j.form.Canonical(j.schema, q.typ, ours.again)
	if err != nil {
		return ourValue, fmt.Sprintf("our value has no normal form: %v\n\tours %.600s", err, ours.again)
	}
	if !bytes.Equal(got, want) {
		return ourValue, fmt.Sprintf("ours      %.600s\n\treference %.600s", got, want)
	}
	return "", ""
}

// summary is the line of a profile in the table.
func (j *judge) summary() string {
	return fmt.Sprintf("%-4s %6d %8d %8d %8d %8d", j.profile.name, j.types, j.values, j.agree, j.excepted, j.failed)
}

const summaryHead = "      types   values    agree excepted   failed"
