//go:build unix

package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/postgres"
)

// check ends the load and compares what everybody has seen, what agents have done, and the log.
func (l *load) check(t *testing.T) {
	t.Helper()
	l.finish()
	log, err := postgres.Open(t.Context(), l.r.db[l.r.primary].DSN("acp"), filepath.Join(t.TempDir(), "heads.db"), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, s := range l.all {
		history := l.history(t, s)
		for _, v := range []*viewer{s.prompter, s.watcher} {
			if err := v.continues(history[v.version]); err != nil {
				t.Errorf("%s, a client of version %d: %v", s.id, v.version, err)
			}
		}
		if !slices.Equal(history[1], history[2]) {
			t.Errorf("%s is different in version 1 and 2:\n%s", s.id, cmp.Diff(history[1], history[2]))
		}
		records := checkEpochs(t, log, s)
		s.checkOutcomes(t, history[2])
		l.tally(s, history[2])
		l.figures.Records += records
	}
	l.figures.Doubled += l.checkLedger(t)
	l.figures.report(t)
}

// history returns what a client of each version is sent that loads the session, once no turn runs in it.
func (l *load) history(t *testing.T, s *talk) map[int][]string {
	t.Helper()
	conn, _ := l.load(t, s, 2) // which answers what is asked
	l.r.db[l.r.primary].Until(t, "acp", `SELECT state <> 'running' FROM public.acp_session WHERE id = $1`, string(s.id))
	_ = conn.Close()
	all := map[int][]string{}
	for version := 1; version <= 2; version++ {
		conn, history := l.load(t, s, version)
		_ = conn.Close()
		all[version] = history()
	}
	return all
}

// load loads a session, at the gateway with the number of the version.
func (l *load) load(t *testing.T, s *talk, version int) (conn *acp.ClientConn, history func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	client := &acp.Client{
		MinVersion: version, MaxVersion: version,
		Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			if text := textOf(u); text != "" && !u.Synthetic {
				mu.Lock()
				all = append(all, text)
				mu.Unlock()
			}
		},
		RequestPermission: func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			return r.Allow(), nil
		},
	}
	conn, err := client.Connect(t.Context(), &acphttp.Transport{URL: l.r.nodes[version].address(), RetryFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Load(t.Context(), s.id, acp.SessionConfig{Cwd: l.r.dir}); err != nil {
		t.Fatal(err)
	}
	return conn, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// checkEpochs reads the whole log, which checks its chain and that nothing is missing, and counts its records.
func checkEpochs(t *testing.T, log *engine.Engine, s *talk) (records int) {
	t.Helper()
	var last engine.Record
	if err := log.Read(t.Context(), string(s.id), 0, func(r engine.Record) error {
		if r.Seq != last.Seq+1 || r.Epoch < last.Epoch {
			t.Errorf("%s: record %d of epoch %d comes after %d of %d", s.id, r.Seq, r.Epoch, last.Seq, last.Epoch)
		}
		last = r
		records++
		return nil
	}); err != nil {
		t.Error(err)
	}
	return records
}

// checkOutcomes compares what the client was answered with the history.
func (s *talk) checkOutcomes(t *testing.T, history []string) {
	t.Helper()
	count := map[string]int{}
	for _, text := range history {
		if count[text]++; count[text] > 1 && s.says(text) {
			t.Errorf("%s: %q is there %d times", s.id, text, count[text])
		}
	}
	tally := map[string]int{}
	for prompt, outcome := range s.outcomes {
		tally[outcome]++
		said := 0
		for i := range chunks {
			said += count[fmt.Sprintf("%s/%d", prompt, i)]
		}
		if outcome == string(acp.StopEndTurn) && (said != chunks || count[prompt+"?true"] != 1) {
			t.Errorf("%s: the turn has ended, and %d of %d are in the log, and %d answers", prompt, said, chunks, count[prompt+"?true"])
		}
	}
	t.Logf("%s: %d updates, outcomes %v, longest silence %v", s.name, len(history), tally, s.watcher.gap())
}

// checkLedger looks at what agents have done, in the order in which they have, and counts what was done twice.
func (l *load) checkLedger(t *testing.T) (doubled int) {
	t.Helper()
	data, err := os.ReadFile(l.r.ledger)
	if err != nil {
		t.Fatal(err)
	}
	begun, owner, over := map[string]int{}, map[string]string{}, map[string]bool{}
	answered := map[string]int{}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) != 4 {
			t.Fatalf("%q", line)
		}
		kind, prompt, pid := f[0], f[1], f[3]
		session, _, _ := strings.Cut(prompt, "-")
		switch kind {
		case "begin":
			if begun[prompt]++; begun[prompt] > 1 {
				doubled++
				t.Errorf("%s has run %d times", prompt, begun[prompt])
			}
		case "answer":
			if answered[prompt]++; answered[prompt] > 1 {
				doubled++
				t.Errorf("the agent has %d answers in %s", answered[prompt], prompt)
			}
		}
		// Only one agent works in a session, and one that was replaced is never back.
		if owner[session] != pid {
			if over[pid] {
				t.Errorf("%s: process %s works again after another one", prompt, pid)
			}
			over[owner[session]] = true
			owner[session] = pid
		}
	}
	return doubled
}
