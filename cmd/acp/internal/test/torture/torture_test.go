//go:build unix

package torture

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/internal/long"
)

// A summary says what the kills of a kind have come to.
type summary struct {
	Kind    string   `json:"kind"`
	Engine  string   `json:"engine,omitempty"`
	Kills   int      `json:"kills,omitempty"`
	Faults  int      `json:"faults,omitempty"`
	Rounds  int      `json:"rounds"`
	Seconds float64  `json:"seconds"`
	Prompts int      `json:"prompts"` // that ran
	Ended   int      `json:"ended"`   // of these, to their end
	Cut     int      `json:"cut"`     // of which the client has heard that they did not end so
	Unknown int      `json:"unknown"` // of which it has heard that nobody knows
	Asked   int      `json:"asked"`   // questions
	Told    int      `json:"told"`    // of these, those whose agent was alive to hear the decision
	Records int      `json:"records"` // that are shown
	Seen    int      `json:"seen"`    // of these, by all clients on all connections
	Doubled int      `json:"doubled"` // what happened twice
	Errors  []string `json:"errors,omitempty"`
}

// perRound is how many kills there are in one session.
const perRound = 20

// kills returns how many kills of each kind there are to be.
func kills(t *testing.T) int {
	if s := os.Getenv("TORTURE_KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if !long.All() {
		return 3
	}
	return 40
}

// TestKilled: whatever is killed, each record is seen exactly once and in order by every client on every
// connection, no prompt runs twice, and each question has one decision.
func TestKilled(t *testing.T) {
	for _, kind := range []string{"client", "gateway", "holder", "agent"} {
		t.Run(kind, func(t *testing.T) {
			total := kills(t)
			s := &summary{Kind: kind}
			start := time.Now()
			for s.Kills < total && !t.Failed() {
				torture(t, s, min(perRound, total-s.Kills))
			}
			s.Seconds = time.Since(start).Seconds()
			report(t, s, "TORTURE_REPORT")
		})
	}
}

// report shows a summary, and appends it to the file that a variable of the environment names.
func report(t *testing.T, s *summary, variable string) {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", data)
	path := os.Getenv(variable)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(data, '\n')); err != nil {
		t.Fatal(err)
	}
}

// torture kills a part of a new server n times.
func torture(t *testing.T, s *summary, n int) {
	t.Helper()
	r := newRig(t)
	r.begin()
	ctx, cancel := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel()
	r.watch(ctx, &watchers, "three", 1+s.Rounds%2, s.Rounds%2 == 0, false)
	defer r.clients(ctx, &watchers)()
	gone := 0
	for killed := 0; killed < n; {
		r.awaitMoment()
		switch s.Kind {
		case "client":
			r.killClient()
		case "gateway":
			r.kill()
			r.serve()
		default:
			pid := r.process(s.Kind == "holder")
			if pid == gone { // it is dead, and not started again yet
				continue
			}
			gone = pid
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatalf("the %s, process %d: %v", s.Kind, pid, err)
			}
		}
		killed++
		s.Kills++
	}
	r.finish(cancel, &watchers, s)
}

// clients starts one that prompts, and two that watch and answer. The first one has ended when the function that it
// returns has.
func (r *rig) clients(ctx context.Context, watchers *sync.WaitGroup) (end func()) {
	r.t.Helper()
	r.watch(ctx, watchers, "one", 1, false, true)
	r.watch(ctx, watchers, "two", 2, true, false)
	r.prompter()
	return func() {
		_ = r.client.Process.Kill()
		<-r.exited
		_ = r.client.Wait()
	}
}

// finish has the client that prompts do its last operation, waits until all others have seen it, ends the server and
// compares everything.
func (r *rig) finish(cancel func(), watchers *sync.WaitGroup, s *summary) {
	r.t.Helper()
	_ = r.input.Close()
	select {
	case <-r.exited:
	case <-time.After(patience):
		r.until("the last operation", func() bool { return false })
	}
	r.seenBy(cancel, watchers)
	s.Rounds++
	r.check(s)
}

// seenBy waits until all clients that watch have seen the last operation, and ends them and the server.
func (r *rig) seenBy(cancel func(), watchers *sync.WaitGroup) {
	r.t.Helper()
	var last string
	r.mu.Lock()
	for _, e := range r.events["prompter"] {
		if e.Kind == evEnd {
			last = "agent: " + e.Text + "/0"
		}
	}
	r.mu.Unlock()
	if last == "" {
		r.t.Fatal("nothing that the client has sent has ended")
	}
	for _, name := range r.names {
		r.until(name+" has seen everything", func() bool {
			events := r.events[name]
			for i := len(events) - 1; i >= 0 && events[i].Kind != evOpen; i-- {
				if events[i].Text == last {
					return true
				}
			}
			return false
		})
	}
	cancel()
	watchers.Wait()
	r.stop()
}

// awaitMoment waits for a random moment: after so many events, which may be history that is repeated, or after so
// much that is new, or when a question is asked.
func (r *rig) awaitMoment() {
	r.t.Helper()
	r.mu.Lock()
	count := r.count + 3 + rand.IntN(600)
	fresh := len(r.fresh) + 1 + rand.IntN(200)
	begun := len(r.events["two"])
	r.mu.Unlock()
	how := rand.IntN(3)
	r.until("kill", func() bool {
		switch how {
		case 0:
			return slices.ContainsFunc(r.events["two"][begun:], func(e event) bool { return e.Kind == evAsked })
		case 1:
			return len(r.fresh) >= fresh
		}
		return r.count >= count
	})
	for end := time.Now().Add(time.Duration(rand.Int64N(int64(2 * time.Millisecond)))); time.Now().Before(end); {
		// not when the scheduler likes it
	}
}
