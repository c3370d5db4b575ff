package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/internal/process"
)

// suiteLimit bounds one run of a suite.
const suiteLimit = 100 * time.Second

// A report is what a suite has printed.
type report struct {
	results map[string]string // PASS, FAIL, SKIP or WARN, by the name of the check
	lines   map[string]string // by the name of the check
	code    int               // of the exit
}

// names returns the checks that ended in one way, sorted.
func (r *report) names(result string) []string {
	var list []string
	for name, got := range r.results {
		if got == result {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// count is how many checks of the suite proper, or of the raw probes, passed.
func (r *report) count(raw bool) int {
	n := 0
	for _, name := range r.names("PASS") {
		if rawCheck(name) == raw {
			n++
		}
	}
	return n
}

func rawCheck(name string) bool { return strings.HasPrefix(name, "raw/") }

// suite runs a script of tspeer. When until returns true for a check, the run is
// ended and there is no exit code.
func suite(t *testing.T, until func(name, result string) bool, args ...string) *report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
	defer cancel()
	p, err := process.Start(ctx, process.Config{Path: "node", Args: args, NoStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Stop(context.Background()) }()
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	r := &report{results: map[string]string{}, lines: map[string]string{}}
	scan := bufio.NewScanner(p.Stdout())
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		f := strings.Fields(scan.Text())
		if len(f) < 2 || !slices.Contains([]string{"PASS", "FAIL", "SKIP", "WARN"}, f[0]) {
			continue
		}
		name := strings.TrimSuffix(f[1], ":")
		if r.results[name] != "" {
			t.Errorf("%v: the check %s came twice", args, name)
		}
		r.results[name], r.lines[name] = f[0], scan.Text()
		if until != nil && until(name, f[0]) {
			p.Kill()
			return r
		}
	}
	var exit *process.ExitError
	switch err := p.Wait(); {
	case ctx.Err() != nil:
		t.Fatalf("%v: not done in %v; the last of %d checks: %v", args, suiteLimit, len(r.results), p.StderrTail())
	case errors.As(err, &exit):
		r.code = exit.Code
	case err != nil:
		t.Fatalf("%v: %v", args, err)
	}
	if r.code > 1 || r.code < 0 {
		t.Fatalf("%v: exit code %d: %s", args, r.code, p.StderrTail())
	}
	return r
}

// script returns the path of a script of tspeer.
func script(format string, args ...any) string { return "tspeer/" + fmt.Sprintf(format, args...) }

// deviations are the probes that we answer differently on purpose. The probes
// themselves report them as allowed.
var deviations = map[string]string{
	"raw/v2-pipelined-request-behind-initialize--32600": "held until initialize was answered, then handled",
	"v2/v2-pipelined-request-behind-initialize--32600":  "the same",
	"v1/over-limit-line-closes-connection":              "the limit is 64 MiB, and a longer line is skipped",
	"v2/over-limit-line-closes-connection":              "the same",
}

// green reports what a suite holds against the agent.
func green(t *testing.T, r *report) {
	t.Helper()
	for _, result := range []string{"FAIL", "SKIP"} {
		for _, name := range r.names(result) {
			t.Error(r.lines[name])
		}
	}
	for _, name := range r.names("WARN") {
		if deviations[name] == "" {
			t.Error(r.lines[name])
		}
	}
	for name, result := range r.results {
		if result == "PASS" && deviations[name] != "" {
			t.Errorf("%s passes and is listed as a deviation", name)
		}
	}
	if r.code != 0 {
		t.Errorf("exit code %d", r.code)
	}
}

// rawAgent returns the flags of testy for the raw probes: those of version 1
// expect an agent that knows nothing else.
func rawAgent(version int) []string {
	if version == 1 {
		return []string{"-protocol", "1"}
	}
	return nil
}

// The scripted agent passes the official SDK's client, in all its forms.
func TestSuite(t *testing.T) {
	need(t)
	testy := example(t, "testy")
	for _, tt := range []struct {
		version int
		stable  bool
		checks  int
	}{
		{1, false, 90}, {1, true, 72}, {2, false, 82}, {2, true, 68},
	} {
		for _, raw := range []bool{false, true} {
			name := fmt.Sprintf("v%d", tt.version)
			args := []string{script("v%d_client.mjs", tt.version)}
			agent := []string{"--", testy}
			if tt.stable {
				name += " stable"
				args, agent = append(args, "--stable"), append(agent, "-stable")
			}
			probes := 0
			if raw {
				name += " raw"
				args, agent = append(args, "--raw"), append(agent, rawAgent(tt.version)...)
				probes = map[int]int{1: 66, 2: 76}[tt.version]
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := suite(t, nil, slices.Concat(args, agent)...)
				green(t, r)
				if n, m := r.count(false), r.count(true); n != tt.checks || m != probes {
					t.Errorf("%d checks and %d probes passed, want %d and %d", n, m, tt.checks, probes)
				}
				t.Logf("%d checks and %d probes passed", r.count(false), r.count(true))
			})
		}
	}
	for version, probes := range map[int]int{1: 66, 2: 76} {
		t.Run(fmt.Sprintf("v%d big", version), func(t *testing.T) {
			t.Parallel()
			args := []string{script("raw_probe.mjs"), "--big", "--", testy}
			if version == 2 {
				args = slices.Insert(args, 1, "--v2")
			}
			r := suite(t, nil, append(args, rawAgent(version)...)...)
			green(t, r)
			if n := len(r.names("PASS")); n != probes {
				t.Errorf("%d probes passed, want %d", n, probes)
			}
			t.Logf("%d probes passed; deviations: %v", probes, r.names("WARN"))
		})
	}
}

// mutations are the ways mutate.mjs breaks an agent, each with the check that
// has to notice in version 1 and 2. It breaks nothing with the mode none.
var mutations = map[string][2]string{
	"dropEvery10thUpdate": {"chunks-ordered-before-response", "chunks-ordered"},
	"reorderUpdates":      {"chunks-ordered-before-response", "chunks-ordered"},
	"wrongErrorCode":      {"unknown-request-32601", "unknown-request-32601"},
	"stringifyIds":        {"initialize", "initialize"},
	"loseErrorData":       {"custom-rpc-error-preserved", "custom-error-preserved"},
	"answerNotifications": {"wire/every-response-answers-one-pending-request", "wire/every-response-answers-one-pending-request"},
	"nullToOmitted":       {"all-update-variants", "all-update-variants"},
	"cancelledAsError":    {"stopReason-cancelled", "stopReason-cancelled"},
	"answerTwice":         {"wire/every-response-answers-one-pending-request", "wire/every-response-answers-one-pending-request"},
	"reuseIds":            {"all-update-variants", "permission-reject"},
	"dropCancelRequest":   {"agent-withdraws-permission-via-$/cancel_request", "session/cancel-withdraws-pending-permission-via-$/cancel_request"},
}

// The suites notice what they are there to notice.
func TestSuiteNotices(t *testing.T) {
	need(t)
	text, err := os.ReadFile(script("mutate.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "const M = {")
	var modes []string
	for _, m := range regexp.MustCompile(`(?m)^  (\w+): \(m\) =>`).FindAllStringSubmatch(table, -1) {
		modes = append(modes, m[1])
	}
	want := append(slices.Collect(maps.Keys(mutations)), "none")
	slices.Sort(modes)
	slices.Sort(want)
	if !slices.Equal(modes, want) {
		t.Fatalf("mutate.mjs has the modes %v, the test knows %v", modes, want)
	}
	testy := example(t, "testy")
	for _, mode := range modes {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprintf("%s v%d", mode, version), func(t *testing.T) {
				t.Parallel()
				check := mutations[mode][max(0, version-1)]
				r := suite(t, func(name, result string) bool { return name == check && result == "FAIL" },
					script("v%d_client.mjs", version), "--timeout=2000", "--", "node", script("mutate.mjs"), mode, "--", testy)
				switch {
				case mode == "none":
					green(t, r)
				case r.results[check] != "FAIL":
					t.Errorf("%s did not notice; these checks failed: %v", check, r.names("FAIL"))
				}
			})
		}
	}
}
