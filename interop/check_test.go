package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp/conformance"
)

var update = flag.Bool("update", false, "write docs/compatibility.md")

const (
	checkTimeout = "5s"  // for each step, while all peers are checked at once
	longTimeout  = "20s" // when one that was not as expected is checked again, alone
	checkLimit   = 10 * time.Minute
	peersAtOnce  = 10 // they wait for most of the time
)

// A checked peer is what acp check is run on.
type checked struct {
	name    string // its section in docs/compatibility.md
	about   string // for readers
	side    string
	ours    bool   // it is a program of this repository
	shown   string // the command, for readers
	flags   []string
	only    []string                                // topics of rules; all if it is empty
	command func(t *testing.T, bin string) []string // bin is the program
}

// checkReport is what acp check --json writes.
type checkReport struct {
	Broken  string
	Results []*checkResult
}

type checkResult struct {
	Rule, Level, Status, Why string
	Version                  int
	Saw                      []struct {
		Out  bool
		Data string
	}
}

func checkedPeers() []*checked {
	file := func(name string) string {
		p, err := filepath.Abs(name)
		if err != nil {
			panic(err)
		}
		return p
	}
	script := func(name, about string, flags, only []string) *checked {
		return &checked{name: "tspeer " + name, side: "agent", about: about, flags: flags, only: only, shown: "node interop/tspeer/" + name + ".mjs",
			command: func(*testing.T, string) []string { return []string{"node", file("tspeer/" + name + ".mjs")} }}
	}
	ts := func(version string) *checked {
		return &checked{name: "TypeScript SDK client v" + version, side: "client", about: "The official TypeScript SDK, and our handlers on it: `interop/check_client.mjs`.",
			flags: []string{"--protocol", version}, shown: "node interop/check_client.mjs " + version + " {agent}",
			command: func(*testing.T, string) []string {
				return []string{"node", file("check_client.mjs"), version, "{agent}"}
			}}
	}
	const scripted = "The official TypeScript SDK, and on it our test agent, which does what its prompts say."
	return []*checked{
		script("v1_agent", scripted, []string{"--protocol", "1"}, nil),
		script("v2_agent", scripted, []string{"--protocol", "2"}, nil),
		script("router_agent", "The official SDK's router, and both test agents behind it. They are checked above; what is left is how a connection begins, and its frames.",
			nil, []string{"agent/initialize", "agent/handshake", "agent/framing", "agent/dispatch"}),
		{name: "coder/acp-go-sdk example agent", side: "agent", about: "The example of the SDK, as it is. Rules about turns are left out: its only one takes seconds and does not depend on the prompt.",
			flags: []string{"--protocol", "1", "--timeout", "2s", "--skip", "agent/leniency/*-block*", "--skip", "agent/prompt/*-not-offered", "--skip", "agent/turn"},
			shown: "go run github.com/coder/acp-go-sdk/example/agent", command: func(t *testing.T, _ string) []string { return []string{build(t, ".", coder+"agent")} }},
		ts("1"), ts("2"),
		{name: "coder/acp-go-sdk example client", side: "client", about: "The example of the SDK, as it is. It asks on the terminal; `yes 1` stands for a user who always takes the first option.",
			flags: []string{"--protocol", "1", "--timeout", "2s"}, shown: "sh -c 'yes 1 | client {agent}'",
			command: func(t *testing.T, _ string) []string {
				return []string{"sh", "-c", `yes 1 | exec "$@"`, "sh", build(t, ".", coder+"client"), "{agent}"}
			}},
		{name: "examples/testy", side: "agent", ours: true, about: "Our scripted agent.", shown: "go run ./examples/testy",
			command: func(t *testing.T, _ string) []string { return []string{example(t, "testy")} }},
		{name: "acp agent", side: "agent", ours: true, about: "The agent built into `acp`.", shown: "acp agent",
			command: func(_ *testing.T, bin string) []string { return []string{bin, "agent", "--no-persist"} }},
		{name: "acp exec", side: "client", ours: true, about: "Our client.", shown: "acp exec --allow '*' hello -- {agent}",
			command: func(_ *testing.T, bin string) []string {
				return []string{bin, "exec", "--no-stdin", "--allow", "*", "hello", "--", "{agent}"}
			}},
	}
}

// acp check finds in peers of others and in ours what interop/compatibility says,
// and nothing else.
func TestCheck(t *testing.T) {
	need(t)
	if runtime.GOOS == "windows" {
		t.Skip("the peers are started by a shell")
	}
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	bin, env := program(t)
	var mu sync.Mutex
	reports := map[string]*checkReport{}
	room := make(chan struct{}, peersAtOnce)
	var all sync.WaitGroup
	for _, p := range checkedPeers() {
		argv := p.command(t, bin)
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			r, err := p.check(t.Context(), argv, bin, env, t.TempDir(), checkTimeout, nil)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("%s: %v", p.name, err)
			}
			if r != nil {
				reports[p.name] = r
			}
		})
	}
	all.Wait()
	t.Run("again", func(t *testing.T) {
		for _, p := range checkedPeers() {
			if reports[p.name] != nil {
				p.again(t, bin, env, reports[p.name])
			}
		}
	})
	if *update && !t.Failed() {
		writeCompatibility(t, reports)
	}
}

// check runs acp check, on all rules that are for the peer or on some.
func (p *checked) check(ctx context.Context, argv []string, bin string, env []string, dir, timeout string, some map[string]bool) (*checkReport, error) {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	args := append([]string{"check", p.side, "--json"}, p.flags...)
	only := p.only
	if len(some) > 0 {
		only = slices.Sorted(maps.Keys(some))
	}
	if !slices.Contains(p.flags, "--timeout") || timeout == longTimeout {
		args = append(args, "--timeout", timeout)
	}
	for _, r := range only {
		args = append(args, "--only", r)
	}
	cmd := exec.CommandContext(ctx, bin, append(append(args, "--"), argv...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, 10*time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output() // its status is that of rules
	r := new(checkReport)
	if bad := json.Unmarshal(out, r); bad != nil || r.Broken != "" {
		return nil, fmt.Errorf("%w, %w, %s\n%s", err, bad, r.Broken, &errs)
	}
	return r, nil
}

// again checks what was not as expected once more, since that may be the load of
// the machine: scenarios alone and with time, what is seen as frames pass with all
// the others that make them pass.
func (p *checked) again(t *testing.T, bin string, env []string, r *checkReport) {
	known := mustFind(t, p.name)
	alone, all := map[string]bool{}, map[string]bool{}
	for _, d := range differences(r, known) {
		if i := slices.IndexFunc(conformance.Rules(), func(r *conformance.Rule) bool { return r.ID == d.rule }); i >= 0 && conformance.Rules()[i].Observed {
			all[d.rule] = true
		} else {
			alone[d.rule] = true
		}
	}
	run := func(timeout string, only, about map[string]bool) {
		if len(about) == 0 {
			return
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r, err := p.check(t.Context(), p.command(t, bin), bin, env, t.TempDir(), timeout, only)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range differences(r, known) {
				if about[d.rule] {
					t.Error(d.text)
				}
			}
		})
	}
	run(longTimeout, alone, alone)
	run(checkTimeout, nil, all)
}

// A difference is between what fails and what is known to.
type difference struct{ rule, text string }

func differences(r *checkReport, known []*finding) (all []difference) {
	failed := map[string]bool{}
	for _, res := range r.Results {
		f, _ := about(known, res.Rule)
		switch {
		case res.Status == "broken":
			all = append(all, difference{res.Rule, fmt.Sprintf("%s in version %d could not be tried: %s", res.Rule, res.Version, res.Why)})
		case res.Status == "fail" && f == nil:
			all = append(all, difference{res.Rule, fmt.Sprintf("%s (%s) fails in version %d: %s\n%s", res.Rule, res.Level, res.Version, res.Why, frames(res))})
		case res.Status == "fail":
			failed[res.Rule] = true
		}
	}
	for _, f := range known {
		for i, rule := range f.rules {
			if !failed[rule] && !f.maybe[i] {
				all = append(all, difference{rule, fmt.Sprintf("%s: %s does not fail", f.at, rule)})
			}
		}
	}
	return all
}

// frames are the last that a failure was seen in.
func frames(r *checkResult) string {
	var b strings.Builder
	for _, s := range r.Saw[max(0, len(r.Saw)-4):] {
		who := "peer"
		if s.Out {
			who = "check"
		}
		fmt.Fprintf(&b, "%s: %.300s\n", who, s.Data)
	}
	return b.String()
}
