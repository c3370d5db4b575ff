package check

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/conformance"
)

// expected is what is known to fail. Nil is nothing.
type expected struct {
	name  string
	lines []*expectation
}

// An expectation is a line of such a file.
type expectation struct {
	line    int
	rule    string // an id
	version int    // 0 is any
	reason  string
}

// maxExpect bounds such a file, in bytes.
const maxExpect = 1 << 20

// readExpected reads the file of --expect, if there is one.
func (o *Options) readExpected() (*expected, error) {
	if o.Expect == "" {
		return nil, nil
	}
	return readExpected(o.file(o.Expect), o.Expect)
}

// readExpected reads a file with what is known to fail, called name in errors: on
// each line the id of a rule, with @1 or @2 behind it where it is about one version
// of the protocol, and the reason. # begins a comment.
func readExpected(file, name string) (*expected, error) {
	bad := func(line int, format string, args ...any) error {
		return exitcode.Errorf(exitcode.Usage, "%s:%d: %w", name, line, fmt.Errorf(format, args...))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "--expect: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxExpect+1))
	if err != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "--expect: %w", err)
	}
	if len(data) > maxExpect {
		return nil, exitcode.Errorf(exitcode.Usage, "--expect: %s has more than a megabyte", name)
	}
	e := &expected{name: name}
	for i, text := range strings.Split(string(data), "\n") {
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		id, reason, _ := strings.Cut(text, " ")
		x := &expectation{line: i + 1, reason: strings.TrimSpace(reason)}
		rule, version, ok := strings.Cut(id, "@")
		if ok {
			if x.version, err = strconv.Atoi(version); err != nil || x.version < 1 || x.version > 2 {
				return nil, bad(i+1, "%q is no version of the protocol", version)
			}
		}
		x.rule = rule
		if !slices.ContainsFunc(conformance.Rules(), func(r *conformance.Rule) bool { return r.ID == rule }) {
			return nil, bad(i+1, "there is no rule %q", rule)
		}
		if x.reason == "" {
			return nil, bad(i+1, "there is no reason behind %s", rule)
		}
		for _, other := range e.lines {
			if other.rule == x.rule && (other.version == 0 || x.version == 0 || other.version == x.version) {
				return nil, bad(i+1, "%s is on line %d already", rule, other.line)
			}
		}
		e.lines = append(e.lines, x)
	}
	return e, nil
}

// A judgement is a report with what was known before.
type judgement struct {
	*conformance.Report
	known map[*conformance.Result]*expectation // failures that were expected
	fixed []*expectation                       // what was expected to fail and is kept
	name  string                               // of the file
}

func (e *expected) judge(r *conformance.Report) *judgement {
	j := &judgement{Report: r, known: map[*conformance.Result]*expectation{}}
	if e == nil {
		return j
	}
	j.name = e.name
	for _, x := range e.lines {
		failed, passed := false, false
		for _, res := range r.Results {
			if res.Rule.ID != x.rule || x.version != 0 && res.Version != x.version {
				continue
			}
			switch res.Status {
			case conformance.Fail:
				j.known[res] = x
				failed = true
			case conformance.Pass:
				passed = true
			}
		}
		if passed && !failed && !r.Interrupted { // it may fail in what was not tried
			j.fixed = append(j.fixed, x)
		}
	}
	return j
}

// failed reports whether something of level must failed that was not expected to,
// something was expected to fail and did not, or what is checked was given up.
func (j *judgement) failed() bool {
	return j.Broken != "" || j.Mute != "" || len(j.failures()) > 0 || len(j.fixed) > 0
}

// interruption says how far a check came that was interrupted, and is "" for others.
func (j *judgement) interruption() string {
	switch done := len(j.Results); {
	case !j.Interrupted:
		return ""
	case j.Side == "":
		return "interrupted before the end of the recording"
	case done == 0:
		return "interrupted before a rule was tried"
	default:
		return fmt.Sprintf("interrupted after %d of %s", done, count(done+j.Left, "trial"))
	}
}

// failures returns the rules of level must that failed and were not expected to.
func (j *judgement) failures() (rules []string) {
	for _, r := range j.Results {
		if r.Status == conformance.Fail && r.Rule.Level == conformance.Must && j.known[r] == nil && !slices.Contains(rules, r.Rule.ID) {
			rules = append(rules, r.Rule.ID)
		}
	}
	return rules
}

// summary says in a line why a check failed.
func (j *judgement) summary() string {
	var parts []string
	if n := len(j.failures()); n > 0 {
		parts = append(parts, fmt.Sprintf("%s of level must failed", count(n, "rule")))
	}
	if n := len(j.fixed); n > 0 {
		what := "them"
		if n == 1 {
			what = "it"
		}
		parts = append(parts, fmt.Sprintf("%s in %s passed: take %s out", count(n, "known failure"), j.name, what))
	}
	if j.Mute != "" {
		parts = append(parts, line(j.Mute))
		if j.Cause == conformance.CauseLate {
			parts = append(parts, "--timeout gives it longer")
		}
	}
	return strings.Join(parts, "; ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
