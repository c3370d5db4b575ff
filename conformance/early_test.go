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

	"github.com/goacp/acp/jsonrpc"
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
			if err != nil || !strings.HasPrefix(report.Broken, "this is not an ACP agent: "+want) || len(report.Broken) > 300 {
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

// TestMute holds that a peer that answers nothing but initialize is given up soon, in both versions, and
// that one that answers little is tried to the end.
func TestMute(t *testing.T) {
	hello := func(m *flying) []string {
		switch m.method {
		case "initialize":
			return []string{respond(m, `"result":{"protocolVersion":`+fmt.Sprint(m.get("params.protocolVersion"))+`,"agentCapabilities":{},"capabilities":{}}`)}
		case "authenticate", "auth/login":
			return []string{respond(m, `"result":{}`)}
		}
		return nil
	}
	for name, test := range map[string]struct {
		check func(context.Context, func(context.Context) (*Peer, error), Options) (*Report, error)
		open  func(context.Context) (*Peer, error)
		opt   Options
		mute  string // what the report says
	}{
		"rude agent":  {CheckAgent, polite(func(*flying) []string { return nil }), Options{}, ""},
		"mute agent":  {CheckAgent, answers(hello), Options{}, "the agent answers nothing any more: the answer to session/new did not come within 10s"},
		"after login": {CheckAgent, answers(hello), Options{Login: "key"}, "the agent answers nothing any more: the answer to session/new did not come within 10s"},
		"apart":       {CheckAgent, answers(hello), Options{Apart: true}, "the agent answers nothing any more: the answer to session/new did not come within 10s"},
		"leaves":      {CheckAgent, answers(leaving(hello)), Options{}, "the agent answers nothing any more: the peer closed the connection where the answer to session/new was due"},
		"babbles":     {CheckAgent, answers(babbling(hello)), Options{}, "the agent answers nothing any more: the answer to session/new did not come within 10s"},
		"mute client": {CheckClient, prompts(func(*flying) []string { return nil }), Options{}, "the client answers nothing any more: the answer to _check/alive did not come within 10s"},
		"rude client": {CheckClient, prompts(unknown), Options{}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			report, err := test.check(t.Context(), test.open, test.opt)
			if err != nil {
				t.Fatal(err)
			}
			left := 0
			for _, r := range report.Results {
				if strings.HasPrefix(r.Why, "not tried: ") {
					left++
				}
			}
			// Five trials and a question in the first version, and a question in the second.
			if took := time.Since(start); test.mute != "" && took > 9*DefaultTimeout {
				t.Errorf("%s: it took %v", name, took)
			}
			if late := strings.Contains(test.mute, "within"); (report.Cause == CauseLate) != late {
				t.Errorf("%s: cause %q", name, report.Cause)
			}
			if report.Mute != test.mute || (left > 50) != (test.mute != "") || report.Broken != "" {
				t.Errorf("%s: %d rules were not tried: %q %q", name, left, report.Mute, report.Broken)
			}
			if !report.Failed() {
				t.Errorf("%s: it has not failed", name)
			}
		})
	}
}

// leaving ends a connection instead of saying nothing.
func leaving(f func(m *flying) []string) func(m *flying) []string {
	return func(m *flying) []string {
		if lines := f(m); lines != nil || m.id == "" {
			return lines
		}
		return []string{"close"}
	}
}

// babbling says something that nobody has asked for instead of nothing.
func babbling(f func(m *flying) []string) func(m *flying) []string {
	return func(m *flying) []string {
		if lines := f(m); lines != nil {
			return lines
		}
		return []string{`{"jsonrpc":"2.0","method":"_babble","params":{}}`}
	}
}

// unknown refuses what a client has to, and nothing else.
func unknown(m *flying) []string {
	if m.method != "_check/alive" {
		return nil
	}
	return []string{respond(m, `"error":{"code":-32601,"message":"no"}`)}
}

// prompts is a client that opens a session and prompts once, and answers requests as f says.
func prompts(f func(m *flying) []string) func(context.Context) (*Peer, error) {
	return func(context.Context) (*Peer, error) {
		ours, theirs := jsonrpc.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			for i, line := range []string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`,
				`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`,
				`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"check-1","prompt":[{"type":"text","text":"x"}]}}`,
			} {
				if theirs.WriteFrame([]byte(line)) != nil {
					return
				}
				if i == 2 {
					break
				}
				if _, err := theirs.ReadFrame(); err != nil {
					return
				}
			}
			w := &between{methods: map[string]string{}, count: map[string]int{}}
			for {
				frame, err := theirs.ReadFrame()
				if err != nil {
					return
				}
				m := w.fly(Agent, string(frame.Data))
				if m.id == "" || m.method == "" {
					continue
				}
				for _, line := range f(m) {
					if theirs.WriteFrame([]byte(line)) != nil {
						return
					}
				}
			}
		}()
		return &Peer{Stream: ours}, nil
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
