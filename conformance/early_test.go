package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStrangers holds that what answers initialize and is no agent is named.
func TestStrangers(t *testing.T) {
	for answer, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`: "it is an MCP server",
		"HTTP/1.1 400 Bad Request":                 "it speaks HTTP",
		"Content-Length: 83":                       "it speaks in frames with headers, as language servers do",
		"login:" + strings.Repeat("x", 2*maxNoise): `it sent the line "login:xxx`,
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			report, err := CheckAgent(t.Context(), answers(func(m *flying) []string {
				if m.method != "initialize" {
					return nil
				}
				return []string{answer}
			}), Options{Timeout: time.Second})
			if err != nil || !strings.HasPrefix(report.Broken, "this is no agent of the protocol: "+want) || len(report.Broken) > 300 {
				t.Errorf("%v: %s", err, report.Broken)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("%s: it took %v", want, took)
			}
			if n := report.Count(Must, Broken); n == 0 || n != len(slices.DeleteFunc(report.Results, func(r *Result) bool { return r.Rule.Level != Must })) {
				t.Errorf("%s: %d results are broken", want, n)
			}
		})
	}
}

// TestMute holds that an agent that says nothing after initialize is not waited for in every rule,
// and that one that answers little is tried to the end.
func TestMute(t *testing.T) {
	for name, test := range map[string]struct {
		open func(context.Context) (*Peer, error)
		most time.Duration
		mute bool
	}{
		"rude": {polite(func(*flying) []string { return nil }), 0, false},
		"mute": {answers(func(m *flying) []string {
			if m.method != "initialize" {
				return nil
			}
			return []string{respond(m, `"result":{"protocolVersion":`+fmt.Sprint(m.get("params.protocolVersion"))+`,"agentCapabilities":{},"capabilities":{}}`)}
		}), 10 * time.Minute, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			report, err := CheckAgent(t.Context(), test.open, Options{})
			if err != nil {
				t.Fatal(err)
			}
			mute := 0
			for _, r := range report.Results {
				if strings.HasPrefix(r.Why, "not tried: ") {
					mute++
				}
			}
			if took := time.Since(start); test.most > 0 && took > test.most {
				t.Errorf("%s: it took %v", name, took)
			}
			if (mute > 0) != test.mute || report.Count(Must, Fail) == 0 {
				t.Errorf("%s: %d rules were not tried, %d failed", name, mute, report.Count(Must, Fail))
			}
		})
	}
}

// TestInterrupted holds that a report has what was tried before the context ended, and only that.
func TestInterrupted(t *testing.T) {
	rules := `-- a --
Something holds.
level must
cite S1

call $r _one {}
reply $r

-- b --
Something else holds.
level must
cite S1

call $r _two {}
reply $r

-- c --
And this.
level must
cite S1

call $r _three {}
reply $r
`
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		report, err := CheckAgent(ctx, polite(func(m *flying) []string {
			if m.method == "_two" {
				cancel()
				return nil
			}
			return []string{respond(m, `"result":1`)}
		}), Options{Versions: []int{1}, catalog: rulesOf(t, Agent, rules)})
		if !errors.Is(err, context.Canceled) || !report.Interrupted || report.Broken != "" || report.Left != 2 {
			t.Errorf("%v, interrupted %v, broken %q, %d left", err, report.Interrupted, report.Broken, report.Left)
		}
		if len(report.Results) != 1 || report.Results[0].Rule.ID != "agent/t/a" || report.Results[0].Status != Pass {
			t.Errorf("%d results", len(report.Results))
		}
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		report, err = CheckAgent(ctx, polite(nil), Options{Versions: []int{1}, catalog: rulesOf(t, Agent, rules)})
		if err == nil || !report.Interrupted || report.Broken != "" || report.Left != 3 || len(report.Results) != 0 {
			t.Errorf("at once: %v, interrupted %v, broken %q, %d left", err, report.Interrupted, report.Broken, report.Left)
		}
		report, err = CheckAgent(t.Context(), polite(func(m *flying) []string { return []string{respond(m, `"result":1`)} }), Options{catalog: rulesOf(t, Agent, rules)})
		if err != nil || report.Interrupted || report.Left != 0 {
			t.Errorf("to the end: %v, interrupted %v, %d left", err, report.Interrupted, report.Left)
		}
	})
}
