package conformance

import (
	"context"
	"hash/fnv"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/internal/long"
)

// TestRules holds what loading does not: every rule with a scenario has a
// fixture, and every fixture is of a rule. For rules of servers see TestBrokenServers.
func TestRules(t *testing.T) {
	c := builtin()
	for _, r := range c.rules {
		if r.Observed || r.Side == Server {
			continue
		}
		fixtures := agentDefects
		if r.Side == Client {
			fixtures = clientDefects
		}
		if fixtures[r.ID] == nil {
			t.Errorf("no fixture breaks %s", r.ID)
		}
	}
	for _, fixtures := range []map[string]defect{agentDefects, clientDefects} {
		for id := range fixtures {
			if c.byID[id] == nil {
				t.Errorf("there is a fixture for %s, but no such rule", id)
			}
		}
	}
}

// TestGoodAgent holds that every rule of agents passes on the base agent.
func TestGoodAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { good(t, checkAgent(t, nil)) })
}

// good holds that a peer without a defect keeps all rules. Rules about what it
// lacks are skipped.
func good(t *testing.T, report *Report) {
	t.Helper()
	if len(report.Versions) != 2 {
		t.Errorf("it speaks versions %v: %s", report.Versions, report.Broken)
	}
	for _, r := range report.Results {
		if r.Status != Pass && !r.Rule.Observed && !(r.Status == Skip && len(r.Rule.Lacks) > 0) || r.Status == Fail {
			t.Errorf("%s in version %d: %s: %s\n%s", r.Rule.ID, r.Version, r.Status, r.Why, seenText(r))
		}
	}
}

// TestBrokenAgents is the matrix of fixtures and rules: each fixture fails its
// own rule, and harms no other scenario's play.
func TestBrokenAgents(t *testing.T) {
	matrix(t, agentDefects, checkAgent)
}

// TestGoodClient and TestBrokenClients are the same for clients.
func TestGoodClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { good(t, checkClient(t, nil)) })
}

func TestBrokenClients(t *testing.T) {
	matrix(t, clientDefects, checkClient)
}

func checkClient(t *testing.T, d defect, skip ...string) *Report {
	report, err := CheckClient(context.Background(), acceptClient(d), Options{Experimental: true, Skip: skip})
	time.Sleep(time.Minute) // peers end in their own time, which stands still when the test returns
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// matrixAll tries every rule on every fixture, as make matrix does, which takes a
// quarter of an hour. Otherwise each fixture meets its own rule and one in sampled of the others,
// the same ones each time. Without ACP_TESTS=all, and under the race detector, which makes all of it several times slower,
// those are fewer, and only one fixture in tried is there.
var matrixAll = os.Getenv("CONFORMANCE_ALL") != ""

// One in sampled rules meets the fixture of another, and one in tried fixtures is there.
var sampled, tried = samples()

func samples() (sampled, tried uint32) {
	switch {
	case raceEnabled:
		return 1000, 12
	case long.All():
		return 60, 1
	}
	return 1000, 3
}

// heavy are rules that take long: they are never part of a sample.
var heavy = []string{
	"agent/framing/long-line", "agent/framing/longer-line", "agent/framing/too-long-line", "agent/framing/too-deep",
	"agent/prompt/requests", "agent/prompt/slow-client", "agent/prompt/large-piece", "agent/session/many",
	"agent/prompt/burst", "agent/dispatch/slow-client", "agent/dispatch/frees",
}

// meets reports whether a rule is tried on the fixture of another.
func meets(fixture, rule string) bool {
	return fixture == rule || matrixAll || picked(fixture+" "+rule, sampled) && !slices.Contains(heavy, rule)
}

// picked reports whether something is one of so many, the same one each time.
func picked(what string, of uint32) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(what))
	return h.Sum32()%of == 0
}

func matrix(t *testing.T, fixtures map[string]defect, check func(t *testing.T, d defect, skip ...string) *Report) {
	all := builtin()
	for _, id := range slices.Sorted(maps.Keys(fixtures)) {
		if !matrixAll && !picked(id, tried) {
			continue
		}
		t.Run(strings.ReplaceAll(id, "/", "."), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var skip []string
				for _, r := range all.rules {
					if !r.Observed && !meets(id, r.ID) {
						skip = append(skip, r.ID)
					}
				}
				report := check(t, fixtures[id], skip...)
				failed := false
				for _, version := range all.byID[id].Versions {
					if r := report.Result(id, version); r != nil && r.Status == Fail {
						failed = true
						if r.Why == "" || len(r.Saw) == 0 || strings.Contains(r.Why, "\n") {
							t.Errorf("the result does not say what is wrong: %q, %d frames", r.Why, len(r.Saw))
						}
						if testing.Verbose() {
							t.Logf("version %d: %s", version, r.Why)
						}
					}
				}
				if !failed {
					for _, version := range all.byID[id].Versions {
						if r := report.Result(id, version); r != nil {
							t.Errorf("version %d: %s: %s\n%s", version, r.Status, r.Why, seenText(r))
						} else {
							t.Errorf("version %d: no result: %s", version, report.Broken)
						}
					}
				}
			})
		})
	}
}

func checkAgent(t *testing.T, d defect, skip ...string) *Report {
	report, err := CheckAgent(context.Background(), openAgent(d), Options{Experimental: true, Skip: skip, MCPProbe: openProbe})
	time.Sleep(time.Minute) // peers end in their own time, which stands still when the test returns
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// seenText returns the evidence of a result.
func seenText(r *Result) string {
	var b strings.Builder
	for _, s := range r.Saw {
		arrow := "  <- "
		if s.Out {
			arrow = "  -> "
		}
		b.WriteString(arrow + clip(s.Data, 400) + "\n")
	}
	return b.String()
}
