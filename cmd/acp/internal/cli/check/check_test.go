package check

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/conformance"
)

var update = flag.Bool("update", false, "write the golden files")

// rule returns a rule that there is, so that files can name it.
func rule(t *testing.T, id string) *conformance.Rule {
	t.Helper()
	for _, r := range conformance.Rules() {
		if r.ID == id {
			return r
		}
	}
	t.Fatalf("there is no rule %s", id)
	return nil
}

// report has one result of every kind, and text that wants to do harm.
func report(t *testing.T) *conformance.Report {
	t.Helper()
	known, quirk := *rule(t, "agent/dispatch/unknown-notification"), *rule(t, "agent/dispatch/concurrent")
	quirk.Level = conformance.Quirk
	unknown := rule(t, "agent/dispatch/unknown-request")
	saw := []conformance.Seen{
		{Out: true, Data: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`},
		{Data: `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{Out: true, Data: `{"jsonrpc":"2.0","id":2,"method":"_check/unknown"}`},
		{Data: "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"\x1b[31m<script>|\u202e" + strings.Repeat("x", 700) + "\"}"},
	}
	return &conformance.Report{
		Side: conformance.Agent, Name: "an \x1b]0;agent", Release: "1.0", Versions: []int{1, 2}, Took: 1234 * time.Millisecond,
		Results: []*conformance.Result{
			{Rule: &quirk, Version: 1, Status: conformance.Fail, Why: "nothing came", Saw: saw[:1], Took: time.Second},
			{Rule: &known, Version: 1, Status: conformance.Fail, Why: "it answered", Saw: saw[2:]},
			{Rule: &known, Version: 2, Status: conformance.Pass},
			{Rule: unknown, Version: 1, Status: conformance.Fail, Why: "_check/unknown was answered with a result \x1b[31m| <b>, expected -32601", Saw: saw, Took: 20 * time.Millisecond},
			{Rule: unknown, Version: 2, Status: conformance.Skip, Why: "the agent does not speak version 2"},
			{Rule: rule(t, "agent/prompt/cancel"), Version: 1, Status: conformance.Unseen, Why: "no prompt is configured"},
			{Rule: rule(t, "agent/prompt/ends"), Version: 1, Status: conformance.Broken, Why: "it was gone"},
		},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	if bytes.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("%s has what a terminal obeys", name)
	}
}

func expectFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func readKnown(file string) (*expected, error) { return readExpected(file, file) }

// TestReports: the reports in all their forms, known failures in them.
func TestReports(t *testing.T) {
	known, err := readKnown(expectFile(t, "\n# known\nagent/dispatch/unknown-notification@1 it answers \x1bthem\nagent/dispatch/unknown-notification@2 once\n"))
	if err != nil {
		t.Fatal(err)
	}
	known.name = "known"
	j := known.judge(report(t))
	var out bytes.Buffer
	o := &Options{App: &app.App{Out: &out}, Side: conformance.Agent}
	if err := o.print(j); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.txt", out.Bytes())
	out.Reset()
	o.All = true
	if err := o.print(j); err != nil {
		t.Fatal(err)
	}
	golden(t, "report-all.txt", out.Bytes())
	out.Reset()
	if err := writeJSON(&out, j); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", out.Bytes())
	var members map[string]any
	if err := json.Unmarshal(out.Bytes(), &members); err != nil || members["inOrder"] != false || members["failed"] != true {
		t.Errorf("%v, %v", members["inOrder"], err)
	}
	for _, f := range []struct {
		name  string
		write func(*judgement) ([]byte, error)
		valid func([]byte) error
	}{
		{"report.xml", junit, func(b []byte) error {
			var doc struct {
				XMLName xml.Name `xml:"testsuites"`
				Suites  []struct {
					Tests    int        `xml:"tests,attr"`
					Failures int        `xml:"failures,attr"`
					Errors   int        `xml:"errors,attr"`
					Skipped  int        `xml:"skipped,attr"`
					Cases    []struct{} `xml:"testcase"`
				} `xml:"testsuite"`
			}
			err := xml.Unmarshal(b, &doc)
			for _, s := range doc.Suites {
				if len(s.Cases) != s.Tests || s.Failures+s.Errors+s.Skipped > s.Tests {
					err = errors.Join(err, errors.New("the numbers are wrong"))
				}
			}
			return err
		}},
		{"report.sarif", sarif, func(b []byte) error {
			var doc struct {
				Version string
				Runs    []struct {
					Tool struct {
						Driver struct{ Rules []struct{ ID string } }
					}
					Results []struct {
						RuleID    string
						RuleIndex int
					}
				}
			}
			err := json.Unmarshal(b, &doc)
			for _, run := range doc.Runs {
				for _, r := range run.Results {
					if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID {
						err = errors.Join(err, errors.New("a result has another rule"))
					}
				}
			}
			return err
		}},
		{"report.md", markdown, func([]byte) error { return nil }},
	} {
		data, err := f.write(j)
		if err == nil {
			err = f.valid(data)
		}
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		golden(t, f.name, data)
	}
}

// TestInterruptedReports: all forms say that a report is not whole, and how far it goes.
func TestInterruptedReports(t *testing.T) {
	known, err := readKnown(expectFile(t, "agent/dispatch/unknown-notification@2 once\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		report *conformance.Report
		want   string
		fails  string
	}{
		"some":    {&conformance.Report{Side: conformance.Agent, Left: 93, Results: report(t).Results}, "interrupted after 7 of 100 trials", "2 rules of level must failed"},
		"nothing": {&conformance.Report{Side: conformance.Agent, Left: 100}, "interrupted before a rule was tried", ""},
		"trace":   {&conformance.Report{Results: report(t).Results[2:3]}, "interrupted before the end of the recording", ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.report.Interrupted = true
			var out bytes.Buffer
			dir := t.TempDir()
			o := &Options{App: &app.App{Out: &out, Cwd: dir}, Side: test.report.Side, JUnit: "j", SARIF: "s", Markdown: "m"}
			err := o.writeReports(test.report, known, nil)
			if exitcode.Of(err) != exitcode.Cancelled || !strings.HasPrefix(err.Error(), "the check was "+test.want) || !strings.HasSuffix(err.Error(), test.fails) {
				t.Errorf("%v", err)
			}
			if text := out.String(); !strings.Contains(text, "I"+test.want[1:]) || !strings.Contains(text, test.fails) || strings.Contains(text, "lists it as a known failure") {
				t.Errorf("printed\n%s", text)
			}
			for file, want := range map[string]string{"j": `<error message="` + test.want, "s": `"text": "` + test.want, "m": "The check was " + test.want} {
				if data, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !bytes.Contains(data, []byte(want)) {
					t.Errorf("%s: %v, without %s\n%s", file, err, want, data)
				}
			}
			out.Reset()
			o.JSON = true
			err = o.writeReports(test.report, nil, nil)
			if text := out.String(); exitcode.Of(err) != exitcode.Cancelled || !strings.Contains(text, `"interrupted":true`) || !strings.Contains(text, `"inOrder":false`) {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
}

// TestBothVersions: what is the same in both versions is told once.
func TestBothVersions(t *testing.T) {
	r := report(t)
	unknown := r.Results[3]
	twin, other := *unknown, *unknown
	twin.Version, other.Version, other.Why = 2, 2, "nothing came"
	for name, test := range map[string]struct {
		results []*conformance.Result
		known   string
		want    []string
	}{
		"same":      {[]*conformance.Result{unknown, &twin}, "", []string{"unknown-request (must, v1 and v2, S20)"}},
		"otherwise": {[]*conformance.Result{unknown, &other}, "", []string{"unknown-request (must, v1, S20)", "unknown-request (must, v2, S20)"}},
		"known":     {[]*conformance.Result{unknown, &twin}, "agent/dispatch/unknown-request x", []string{"unknown-request (must, v1 and v2, S20)"}},
		"half":      {[]*conformance.Result{unknown, &twin}, "agent/dispatch/unknown-request@1 x", []string{"unknown-request (must, v1, S20)", "unknown-request (must, v2, S20)"}},
	} {
		known, err := readKnown(expectFile(t, test.known))
		if err != nil {
			t.Fatal(err)
		}
		r.Results = test.results
		var out bytes.Buffer
		if err := (&Options{App: &app.App{Out: &out}, Side: conformance.Agent}).print(known.judge(r)); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "✗ unknown-request"); n != len(test.want) {
			t.Errorf("%s: told %d times\n%s", name, n, &out)
		}
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: without %s\n%s", name, want, &out)
			}
		}
	}
}

// TestArrows: → is to the agent, whoever was checked, and whether the rule is also one for recordings.
func TestArrows(t *testing.T) {
	saw := []conformance.Seen{{Out: true, Data: "ours"}, {Data: "theirs"}}
	for side, want := range map[conformance.Side][]string{
		conformance.Agent:  {"→ ours", "← theirs"},
		conformance.Client: {"← ours", "→ theirs"},
		"":                 {"→ ours", "← theirs"}, // a recording: out is to the agent
	} {
		for _, observed := range []bool{true, false} {
			rule := &conformance.Rule{ID: "client/x/y", Side: conformance.Client, Level: conformance.Must, Observed: observed}
			if side == conformance.Agent {
				rule.Side = side
			}
			r := &conformance.Report{Side: side, Results: []*conformance.Result{{Rule: rule, Version: 1, Status: conformance.Fail, Saw: saw}}}
			var out bytes.Buffer
			if err := (&Options{App: &app.App{Out: &out}, Side: side}).print((*expected)(nil).judge(r)); err != nil {
				t.Fatal(err)
			}
			for _, arrow := range want {
				if !strings.Contains(out.String(), arrow) {
					t.Errorf("%q, observed %v: without %q\n%s", side, observed, arrow, &out)
				}
			}
		}
	}
}

// TestFirstTrial: a report says what a first trial came to if a second one came to something else, also of
// rules that passed.
func TestFirstTrial(t *testing.T) {
	rule := &conformance.Rule{ID: "agent/x/y", Side: conformance.Agent, Level: conformance.Must}
	const first = "the first trial failed: the answer to\x1b[2J _x did not come within 10s"
	j := (*expected)(nil).judge(&conformance.Report{Side: conformance.Agent, Results: []*conformance.Result{
		{Rule: rule, Version: 1, Status: conformance.Pass, First: first}, {Rule: rule, Version: 2, Status: conformance.Pass},
	}})
	var out, data bytes.Buffer
	if err := (&Options{App: &app.App{Out: &out}, Side: conformance.Agent}).print(j); err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(&data, j); err != nil {
		t.Fatal(err)
	}
	suites, err := junit(j)
	if err != nil {
		t.Fatal(err)
	}
	const want = "the first trial failed: the answer to _x did not come within 10s"
	for name, text := range map[string]string{"text": out.String(), "JUnit": string(suites)} {
		if strings.Count(text, want) != 1 || strings.Contains(text, "\x1b") {
			t.Errorf("%s: without what came first:\n%s", name, text)
		}
	}
	if !strings.Contains(out.String(), "✓ y (must, v1)\n    "+want) || strings.Contains(out.String(), "v2") {
		t.Errorf("the versions are not apart:\n%s", &out)
	}
	if n := strings.Count(data.String(), `"first":"the first trial failed: `); n != 1 {
		t.Errorf("JSON: %d results have what came first:\n%s", n, &data)
	}
}

// TestEnd: the end of a report says what failed, and what would show more.
func TestEnd(t *testing.T) {
	r := report(t)
	for i := range 12 {
		rule := *r.Results[3].Rule
		rule.ID = "agent/many/r" + strconv.Itoa(i)
		r.Results = append(r.Results, &conformance.Result{Rule: &rule, Version: 1, Status: conformance.Fail})
	}
	r.Results[5].Purpose = "hang"
	var out bytes.Buffer
	o := &Options{App: &app.App{Out: &out}, Side: conformance.Agent}
	if err := o.print((*expected)(nil).judge(r)); err != nil {
		t.Fatal(err)
	}
	_, end, _ := strings.Cut(out.String(), "quirk    ")
	for _, want := range []string{"1 result unseen because there is no --prompt for: hang\n", "\n  agent/many/r7\n  and 4 more\n", "Failed: 14 rules of level must failed"} {
		if !strings.Contains(end, want) {
			t.Errorf("without %q: %s", want, end)
		}
	}
}

// TestJudge: what was known to fail does not count, and what is kept after all does.
func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		known  string
		failed bool
		want   string
	}{
		"nothing known": {"", true, "2 rules of level must failed"},
		"all known":     {"agent/dispatch/unknown-request x\nagent/dispatch/unknown-notification@1 x\n", false, ""},
		"one known":     {"agent/dispatch/unknown-request@1 x\n", true, "1 rule of level must failed"},
		"other version": {"agent/dispatch/unknown-request@2 x\n", true, "2 rules of level must failed"},
		"kept": {
			"agent/dispatch/unknown-request x\nagent/dispatch/unknown-notification@1 x\nagent/dispatch/unknown-notification@2 x\n",
			true, "1 known failure in known passed: remove it",
		},
		"not seen": {"agent/prompt/cancel x\nagent/dispatch/unknown-request x\nagent/dispatch/unknown-notification x\n", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			known, err := readKnown(expectFile(t, test.known))
			if err != nil {
				t.Fatal(err)
			}
			known.name = "known"
			j := known.judge(report(t))
			if j.failed() != test.failed || j.summary() != test.want {
				t.Errorf("failed %v, %q", j.failed(), j.summary())
			}
		})
	}
}

func TestExpectErrors(t *testing.T) {
	for text, want := range map[string]string{
		"agent/none why":                                 ":1: there is no rule \"agent/none\"",
		"\nagent/prompt/cancel":                          ":2: the reason after agent/prompt/cancel is missing",
		"agent/prompt/cancel@3 why":                      ":1: \"3\" is not a version of the protocol",
		"agent/prompt/cancel@x why":                      ":1: \"x\" is not a version of the protocol",
		"agent/prompt/cancel a\nagent/prompt/cancel@1 b": ":2: agent/prompt/cancel is already on line 1",
		strings.Repeat("#", maxExpect+1):                 "more than a megabyte",
	} {
		_, err := readKnown(expectFile(t, text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// TestBroken: what could not be checked has a status of its own.
func TestBroken(t *testing.T) {
	gone := &unreached{errors.New("exit status 1")}
	for text, test := range map[string]struct {
		cause   conformance.Cause
		reached error
		want    exitcode.Code
	}{
		"the agent could not be started: x":                {conformance.CauseOther, gone, exitcode.Agent},
		"this is not an ACP agent: it sent the line \"y\"": {conformance.CauseNoPeer, gone, exitcode.Protocol},
		"the answer to initialize did not come within 1s":  {conformance.CauseLate, nil, exitcode.Timeout},
		"the agent speaks no version that is checked":      {conformance.CauseOther, nil, exitcode.Protocol},
	} {
		var out, log bytes.Buffer
		o := &Options{App: &app.App{Out: &out, Err: &log}, Side: conformance.Agent}
		err := o.writeReports(&conformance.Report{Side: conformance.Agent, Broken: text, Cause: test.cause}, nil, test.reached)
		if exitcode.Of(err) != test.want || err.Error() != text || out.Len() > 0 {
			t.Errorf("%v: status %d, want %d; printed %q", err, exitcode.Of(err), test.want, out.String())
		}
		for _, write := range []func(*judgement) ([]byte, error){junit, sarif, markdown} {
			data, err := write((*expected)(nil).judge(&conformance.Report{Broken: text}))
			if err != nil || !bytes.Contains(data, []byte(strings.Fields(text)[0])) {
				t.Errorf("%s: %v\n%s", text, err, data)
			}
		}
	}
}

// TestFlags: the flags come to what they say.
func TestFlags(t *testing.T) {
	var got *Options
	a := &app.App{Out: new(bytes.Buffer), Err: new(bytes.Buffer)}
	cmd := NewCommand(a, func(_ context.Context, o *Options) error { got = o; return nil })
	cmd.SetArgs([]string{
		"agent", "--protocol", "2", "--only", "agent/prompt", "--skip", "agent/prompt/ends", "--timeout", "3s", "--experimental", "--apart", "--jobs", "1",
		"--prompt", "text=say a=b", "--login", "key", "--expect", "e", "--all", "--json", "--junit", "j", "--sarif", "s", "--markdown", "m", "-o", "t",
		"--", "my-agent", "--acp",
	})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	want := &Options{
		App: a, Side: conformance.Agent, Argv: []string{"my-agent", "--acp"}, Versions: []int{2}, Only: []string{"agent/prompt"}, Skip: []string{"agent/prompt/ends"},
		Timeout: 3 * time.Second, Prompts: map[string]string{"text": "say a=b"}, Experimental: true, Apart: true, Jobs: 1, Login: "key", Expect: "e",
		All: true, JSON: true, JUnit: "j", SARIF: "s", Markdown: "m", Output: "t",
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *app.App) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestJobsFlag: a number of trials that is not possible is an error of usage, and without one it suits the machine.
func TestJobsFlag(t *testing.T) {
	for _, test := range []struct {
		args []string
		want int    // trials at a time
		err  string // or how it is refused
	}{
		{nil, min(4*runtime.GOMAXPROCS(0), 16), ""},
		{[]string{"--jobs", "3"}, 3, ""},
		{[]string{"--jobs", "64"}, 64, ""},
		{[]string{"--jobs", "0"}, 0, "--jobs 0: the number must be between 1 and 64"},
		{[]string{"--jobs", "-1"}, 0, "--jobs -1: the number must be between 1 and 64"},
		{[]string{"--jobs", "65"}, 0, "--jobs 65: the number must be between 1 and 64"},
		{[]string{"--jobs", "1", "-o", "t"}, 1, ""},
		{[]string{"--jobs", "2", "-o", "t"}, 0, "--output records one conversation after another: leave out --jobs, or use --jobs 1"},
	} {
		var got *Options
		cmd := NewCommand(&app.App{Out: new(bytes.Buffer), Err: new(bytes.Buffer)}, func(_ context.Context, o *Options) error { got = o; return nil })
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{"agent"}, test.args...))
		switch err := cmd.Execute(); {
		case test.err != "" && (err == nil || err.Error() != test.err || exitcode.Of(err) != exitcode.Usage):
			t.Errorf("%q: %v, want %s", test.args, err, test.err)
		case test.err == "" && (err != nil || got.jobs() != test.want):
			t.Errorf("%q: %v, %+v, want %d", test.args, err, got, test.want)
		}
	}
}

// TestNarrow holds that the numbers fit into 40 columns.
func TestNarrow(t *testing.T) {
	j := &judgement{Report: &conformance.Report{}}
	for _, level := range levels {
		j.Results = append(j.Results, &conformance.Result{Rule: &conformance.Rule{ID: "agent/x/y", Level: level}, Status: conformance.Pass})
	}
	for _, width := range []int{40, 46, 47, 90} {
		p := &page{width: width}
		p.table(j)
		lines := strings.Split(strings.TrimSpace(p.w.String()), "\n")
		if len(lines) != 1+len(levels) {
			t.Errorf("%d columns: %d lines", width, len(lines))
		}
		for _, l := range strings.Split(p.w.String(), "\n") {
			if len(l) > width {
				t.Errorf("%d columns: %q has %d", width, l, len(l))
			}
		}
	}
}
