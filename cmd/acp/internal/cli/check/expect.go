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

// expected is the list of known failures. A nil list is empty.
type expected struct {
	name  string
	lines []*expectation
}

// An expectation is one known failure.
type expectation struct {
	line    int
	rule    string // an id
	version int    // 0 means any
	reason  string
}

// maxExpect bounds the file of --expect, in bytes.
const maxExpect = 1 << 20

// readExpected reads the file of --expect, if there is one.
func (o *Options) readExpected() (*expected, error) {
	if o.Expect == "" {
		return nil, nil
	}
	return readExpected(o.file(o.Expect), o.Expect)
}

// readExpected reads a file of known failures, which errors call name. Each line has the id of
// a rule, with @1 or @2 appended if only one version of the protocol is meant, and a reason. A
// line that begins with # is a comment. The reason is mandatory: a list without reasons only
// grows.
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
				return nil, bad(i+1, "%q is not a version of the protocol", version)
			}
		}
		x.rule = rule
		if !slices.ContainsFunc(conformance.Rules(), func(r *conformance.Rule) bool { return r.ID == rule }) {
			return nil, bad(i+1, "there is no rule %q", rule)
		}
		if x.reason == "" {
			return nil, bad(i+1, "the reason after %s is missing", rule)
		}
		for _, other := range e.lines {
			if other.rule == x.rule && (other.version == 0 || x.version == 0 || other.version == x.version) {
				return nil, bad(i+1, "%s is already on line %d", rule, other.line)
			}
		}
		e.lines = append(e.lines, x)
	}
	return e, nil
}

// A judgement is a report compared with the known failures.
type judgement struct {
	*conformance.Report
	known map[*conformance.Result]*expectation // expected failures
	fixed []*expectation                       // expected failures that passed
	name  string                               // of the file
}

// judge compares a report with the known failures.
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
		if passed && !failed && !r.Interrupted { // an interrupted check may not have reached the failure
			j.fixed = append(j.fixed, x)
		}
	}
	return j
}

// failed reports whether the check failed: a rule of level must failed unexpectedly, a known
// failure passed, or the program could not be checked to the end. A known failure that passes
// counts, so that the list stays correct.
func (j *judgement) failed() bool {
	return j.Broken != "" || j.Mute != "" || len(j.failures()) > 0 || len(j.fixed) > 0
}

// interruption returns how far an interrupted check came, or "" if it was not interrupted.
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

// failures returns the rules of level must that failed unexpectedly.
func (j *judgement) failures() (rules []string) {
	for _, r := range j.Results {
		if r.Status == conformance.Fail && r.Rule.Level == conformance.Must && j.known[r] == nil && !slices.Contains(rules, r.Rule.ID) {
			rules = append(rules, r.Rule.ID)
		}
	}
	return rules
}

// summary returns on one line why the check failed.
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
		parts = append(parts, fmt.Sprintf("%s in %s passed: remove %s", count(n, "known failure"), j.name, what))
	}
	if j.Mute != "" {
		parts = append(parts, line(j.Mute))
		if j.Cause == conformance.CauseLate {
			parts = append(parts, "--timeout gives it more time")
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
