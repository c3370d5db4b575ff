package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// verdicts returns what has become of each rule, in the order of the results. Whether an agent does
// what an observed rule is about is up to the agent, which may meet a race within itself either way.
func verdicts(r *Report) (all []string) {
	for _, res := range r.Results {
		status := res.Status
		if res.Rule.Observed && status == Unseen {
			status = Pass
		}
		all = append(all, fmt.Sprintf("%s@%d %s", res.Rule.ID, res.Version, status))
	}
	return append(all, r.Broken+r.Mute)
}

// fixtures are all agents that the tests have: the good one, those with a defect, and those that are
// unlike most.
func fixtures() map[string]defect {
	all := map[string]defect{"good": nil}
	maps.Copy(all, agentDefects)
	for name, o := range oddAgents {
		all[name] = o.odd
	}
	return all
}

// TestJobs holds that the results of an agent, and the order in which they are reported, do not depend
// on how many trials run at a time. Each fixture meets its own rules and those beside them.
func TestJobs(t *testing.T) {
	for name, d := range fixtures() {
		if !matrixAll && !picked("jobs "+name, 8*(tried-1)+1) {
			continue
		}
		t.Run(strings.ReplaceAll(name, "/", "."), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var skip []string
				for _, r := range builtin().rules {
					tried := r.Observed || meets(name, r.ID) || picked(name+" "+r.ID, 16)
					if !tried || slices.Contains(heavy, r.ID) && name != r.ID {
						skip = append(skip, r.ID)
					}
				}
				var want *Report
				var order []string
				for _, jobs := range []int{1, 8} {
					var reported []string
					o := Options{Experimental: true, Skip: skip, MCPProbe: openProbe, Jobs: jobs}
					o.OnResult = func(r *Result) { reported = append(reported, fmt.Sprint(r.Rule.ID, "@", r.Version)) }
					report, err := CheckAgent(context.Background(), openAgent(d), o)
					time.Sleep(time.Minute) // peers end in their own time
					if err != nil {
						t.Fatal(err)
					}
					if jobs == 1 {
						want, order = report, reported
						continue
					}
					if diff := cmp.Diff(verdicts(want), verdicts(report)); diff != "" {
						t.Errorf("%d trials at a time (-one, +%d):\n%s", jobs, jobs, diff)
					}
					if diff := cmp.Diff(order, reported); diff != "" {
						t.Errorf("the order of the results (-one, +%d):\n%s", jobs, diff)
					}
				}
			})
		})
	}
}

// TestJobsMute holds the same of agents that are given up, whenever they fall silent.
func TestJobsMute(t *testing.T) {
	hello := func(m *flying) []string {
		if m.method != "initialize" {
			return nil
		}
		return []string{respond(m, `"result":{"protocolVersion":`+fmt.Sprint(m.get("params.protocolVersion"))+`}`)}
	}
	for name, open := range map[string]func(context.Context) (*Peer, error){
		"mute": answers(hello), "leaves": answers(leaving(hello)), "babbles": answers(babbling(hello)),
		"rude": polite(func(*flying) []string { return nil }),
	} {
		synctest.Test(t, func(t *testing.T) {
			var want *Report
			for _, jobs := range []int{1, 8, MaxJobs} {
				report, err := CheckAgent(t.Context(), open, Options{Jobs: jobs, Skip: heavy})
				if err != nil {
					t.Fatal(err)
				}
				if want == nil {
					want = report
				} else if diff := cmp.Diff(verdicts(want), verdicts(report)); diff != "" {
					t.Errorf("%s, %d trials at a time (-one, +%d):\n%s", name, jobs, jobs, diff)
				}
			}
		})
	}
}

// beside are rules for an agent of the tests below: each is tried on a connection of its own, and
// calls a method of its own in the place of _x.
func beside(n int, steps string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "-- r%02d --\nSomething holds.\nlevel must\ncite S1\nfresh\n\n%s\n", i,
			strings.ReplaceAll(steps, "_x", fmt.Sprintf("_x%02d", i)))
	}
	return b.String()
}

// TestJobsBound holds that as many trials run at a time as the options say, and no more.
func TestJobsBound(t *testing.T) {
	for jobs, want := range map[int]int{-1: 1, 0: 1, 1: 1, 3: 3, 1000: MaxJobs} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			now, most := 0, 0
			open := polite(func(m *flying) []string {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				now--
				mu.Unlock()
				return []string{respond(m, `"result":1`)}
			})
			rules := beside(2*MaxJobs, "call $r _x\nresult $r")
			o := Options{Versions: []int{1}, Jobs: jobs, catalog: rulesOf(t, Agent, rules)}
			report, err := CheckAgent(t.Context(), open, o)
			if err != nil || report.Failed() {
				t.Error(err, report.Broken)
			}
			if most != want {
				t.Errorf("%d jobs: %d at a time, want %d", jobs, most, want)
			}
		})
	}
}

// TestJobsSilence holds that the failure of a trial is kept when the agent falls silent midway and is given
// up. How many trials fail before that depends on how many run at a time.
func TestJobsSilence(t *testing.T) {
	const answered = 12
	for _, jobs := range []int{1, 8} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			asked := map[string]int{} // how often, by method
			open := answers(func(m *flying) []string {
				mu.Lock()
				defer mu.Unlock()
				if m.method == "initialize" {
					return []string{respond(m, `"result":{"protocolVersion":1}`)}
				}
				if asked[m.method]++; len(asked) > answered {
					return nil
				}
				return []string{respond(m, `"result":1`)}
			})
			o := Options{Versions: []int{1}, Jobs: jobs, catalog: rulesOf(t, Agent, beside(40, "call $r _x\nresult $r"))}
			report, err := CheckAgent(t.Context(), open, o)
			if err != nil || report.Mute == "" {
				t.Fatalf("%d jobs: %v, %q", jobs, err, report.Mute)
			}
			mu.Lock() // agents end in their own time
			defer mu.Unlock()
			for i, r := range report.Results {
				times := asked[fmt.Sprintf("_x%02d", i)]
				if tried := r.Status == Pass || r.Status == Fail; times > 1 || tried != (times == 1) {
					t.Errorf("%d jobs: %s was asked %d times: %s: %s", jobs, r.Rule.ID, times, r.Status, r.Why)
				}
			}
			if passed, failed := report.Count(Must, Pass), report.Count(Must, Fail); passed != answered || failed < maxSilent {
				t.Errorf("%d jobs: %d passed, %d failed", jobs, passed, failed)
			}
		})
	}
}

// TestJobsIntermittent holds what becomes of a defect that shows once, on a new connection, whatever the
// number of trials at a time: what an agent has sent counts, and the result has what came too late or
// could not be tried at first.
func TestJobsIntermittent(t *testing.T) {
	for name, tt := range map[string]struct {
		once  []string // what comes the first time
		want  Status
		first string
	}{
		"drops an answer": {nil, Pass, "the first trial failed: the answer to _x%02d did not come within 10s"},
		"refuses once":    {[]string{`"error":{"code":1,"message":"no"}`}, Fail, ""},
		"answers wrong":   {[]string{`"result":2`}, Fail, ""},
		"answers":         {[]string{`"result":1`}, Pass, ""},
		"leaves":          {[]string{"close"}, Fail, ""},
	} {
		for _, jobs := range []int{1, 4} {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				asked := map[string]int{}
				open := polite(func(m *flying) []string {
					mu.Lock()
					asked[m.method]++
					first := asked[m.method] == 1
					mu.Unlock()
					switch {
					case !first:
						return []string{respond(m, `"result":1`)}
					case tt.once == nil || tt.once[0] == "close":
						return tt.once
					}
					return []string{respond(m, tt.once[0])}
				})
				o := Options{Versions: []int{1}, Jobs: jobs, catalog: rulesOf(t, Agent, beside(4, "call $r _x\nresult $r 1"))}
				report, err := CheckAgent(t.Context(), open, o)
				if err != nil || len(report.Results) != 4 {
					t.Fatalf("%s, %d jobs: %v, %d results", name, jobs, err, len(report.Results))
				}
				for i, r := range report.Results {
					first := tt.first
					if first != "" {
						first = fmt.Sprintf(first, i)
					}
					if r.Status != tt.want || r.First != first {
						t.Errorf("%s, %d jobs: %s: %s: %s, first %q", name, jobs, r.Rule.ID, r.Status, r.Why, r.First)
					}
				}
			})
		}
	}
}

// TestJobsNoSecond holds that a failure stays one if the agent cannot be started for a second trial.
func TestJobsNoSecond(t *testing.T) {
	for _, jobs := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			opened := 0
			open := func(ctx context.Context) (*Peer, error) {
				if opened++; opened > 2 { // to see what it speaks, and for the first trial
					return nil, errors.New("no memory")
				}
				return polite(func(*flying) []string { return nil })(ctx)
			}
			o := Options{Versions: []int{1}, Jobs: jobs, catalog: rulesOf(t, Agent, beside(1, "call $r _x\nresult $r"))}
			report, err := CheckAgent(t.Context(), open, o)
			if r := report.Results[0]; err != nil || opened != 3 || r.Status != Fail || r.First != "" {
				t.Errorf("%d jobs: %v, %d connections, %s: %s, first %q", jobs, err, opened, r.Status, r.Why, r.First)
			}
		})
	}
}

// TestJobsAlone holds that what is late beside others is tried again alone: an agent that is late while
// others run is not wrong, and one that is always late, or refuses, is.
func TestJobsAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		busy, idle []string // what the agent answers while others run, and while none do
		steps      string
		want       Status
	}{
		"late beside others":    {nil, []string{`"result":1`}, "call $r _x\nresult $r", Pass},
		"refuses beside others": {[]string{`"error":{"code":1,"message":"busy"}`}, []string{`"result":1`}, "call $r _x\nresult $r", Fail},
		"unseen beside others":  {nil, []string{`"result":1`}, `await frame {"result": 1, ...}`, Unseen},
		"always late":           {nil, nil, "call $r _x\nresult $r", Fail},
		"in time beside others": {[]string{`"result":1`}, nil, "call $r _x\nresult $r", Pass},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				open, now, opened := 0, 0, 0
				peer := func(ctx context.Context) (*Peer, error) {
					p, err := polite(func(m *flying) []string {
						mu.Lock()
						now++
						mu.Unlock()
						time.Sleep(time.Second)
						mu.Lock()
						defer mu.Unlock()
						what := tt.idle
						if open > 1 {
							what = tt.busy
						}
						if what == nil {
							return nil
						}
						return []string{respond(m, what[0])}
					})(ctx)
					mu.Lock()
					open, opened = open+1, opened+1
					mu.Unlock()
					p.Stream = &leavingStream{Stream: p.Stream, gone: make(chan struct{})}
					go func() {
						<-p.Stream.(*leavingStream).gone
						mu.Lock()
						open--
						mu.Unlock()
					}()
					return p, err
				}
				o := Options{Versions: []int{1}, Jobs: 4, catalog: rulesOf(t, Agent, beside(4, tt.steps))}
				report, err := CheckAgent(t.Context(), peer, o)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range report.Results {
					if r.Status != tt.want {
						t.Errorf("%s: %s: %s", r.Rule.ID, r.Status, r.Why)
					}
				}
				if again := opened > 5; again != (tt.busy == nil) {
					t.Errorf("%d connections", opened)
				}
			})
		})
	}
}

// TestJobsInterrupted holds that an interrupt ends all trials that run, and that the report has
// those that have ended before.
func TestJobsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stop := time.AfterFunc(2500*time.Millisecond, cancel)
		defer stop.Stop()
		open := polite(func(m *flying) []string {
			time.Sleep(time.Second)
			return []string{respond(m, `"result":1`)}
		})
		start := time.Now()
		o := Options{Versions: []int{1}, Jobs: 4, catalog: rulesOf(t, Agent, beside(20, "call $r _x\nresult $r"))}
		report, err := CheckAgent(ctx, open, o)
		if !errors.Is(err, context.Canceled) || !report.Interrupted || time.Since(start) > 3*time.Second+closeGrace {
			t.Errorf("%v after %v, interrupted %v", err, time.Since(start), report.Interrupted)
		}
		if len(report.Results) != 8 || report.Left != 12 {
			t.Errorf("%d results, %d left", len(report.Results), report.Left)
		}
		for i, r := range report.Results {
			if r.Status != Pass || r.Rule.ID != fmt.Sprintf("agent/t/r%02d", i) {
				t.Errorf("%s: %s: %s", r.Rule.ID, r.Status, r.Why)
			}
		}
		time.Sleep(time.Minute) // agents end in their own time
	})
}

// TestNewCwd holds that each group of trials has a directory of its own, and that a rule cannot be
// tried without one.
func TestNewCwd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		made, asked := 0, map[any]int{}
		open := polite(func(m *flying) []string {
			mu.Lock()
			asked[m.get("params.cwd")]++
			mu.Unlock()
			return []string{respond(m, `"result":1`)}
		})
		rules := beside(3, `call $r _x {"cwd": $cwd}`+"\nresult $r")
		o := Options{Versions: []int{1}, Jobs: 2, catalog: rulesOf(t, Agent, rules)}
		o.NewCwd = func() (string, error) {
			mu.Lock()
			defer mu.Unlock()
			if made++; made > 3 {
				return "", errors.New("no space")
			}
			return fmt.Sprintf("/check/%d", made), nil
		}
		report, err := CheckAgent(t.Context(), open, o)
		if err != nil || report.Failed() {
			t.Errorf("%v %v", err, verdicts(report))
		}
		if diff := cmp.Diff(map[any]int{"/check/1": 1, "/check/2": 1, "/check/3": 1}, asked); diff != "" {
			t.Error(diff)
		}
		if report, err = CheckAgent(t.Context(), open, o); err != nil || report.Broken != "there is no directory for sessions: no space" {
			t.Errorf("%v, %q", err, report.Broken)
		}
	})
}
