package sqlite

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/internal/long"
)

// childDir names the variable with the directory of the log that a child process appends to.
const childDir = "ACP_TEST_ENGINE_DIR"

const (
	killSessions = 5
	killRecords  = 3 // at most in one append
)

// child appends to all sessions until it is killed, and says what was acknowledged.
func child(dir string) {
	ctx := context.Background()
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}
	e, err := Open(ctx, dir, Options{Options: engine.Options{LeaseTTL: time.Hour}})
	fail(err)
	lease, err := e.Lease(ctx, "child")
	fail(err)
	var out sync.Mutex
	var wg sync.WaitGroup
	for i := range killSessions {
		o, err := e.Claim(ctx, fmt.Sprint(i), lease)
		fail(err)
		wg.Go(func() {
			for n := 0; ; n++ {
				recs := make([]engine.Record, 1+n%killRecords)
				for k := range recs {
					recs[k] = engine.Record{Kind: "k", Data: make([]byte, 200+n%3000)}
				}
				done, err := o.Append(ctx, recs...)
				fail(err)
				out.Lock()
				for _, r := range done {
					fmt.Printf("%d %d %x\n", i, r.Seq, r.Hash)
				}
				out.Unlock()
			}
		})
	}
	wg.Wait()
}

// TestKill: whenever the process is killed, what it has acknowledged is there, the chain is whole, and
// there is no more than what was under way.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	e, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range killSessions {
		if _, err := e.Create(t.Context(), engine.Session{ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rounds := 12
	if !long.All() {
		rounds = 3
	}
	acked := make([]map[uint64]string, killSessions)
	for i := range acked {
		acked[i] = map[uint64]string{}
	}
	for round := range rounds {
		lines := 1 + rand.IntN(1500)
		runChild(t, dir, lines, func(session int, seq uint64, hash string) { acked[session][seq] = hash })
		e, err := Open(t.Context(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range killSessions {
			found, extra := 0, 0
			err := e.Read(t.Context(), fmt.Sprint(i), 0, func(r engine.Record) error {
				switch want, ok := acked[i][r.Seq]; {
				case !ok:
					extra++
					acked[i][r.Seq] = hex.EncodeToString(r.Hash[:]) // kept from now on
				case want != hex.EncodeToString(r.Hash[:]):
					t.Errorf("round %d: record %d of session %d is another one", round, r.Seq, i)
				default:
					found++
				}
				return nil
			})
			if err != nil {
				t.Errorf("round %d, killed after %d lines: %v", round, lines, err)
			}
			if found+extra != len(acked[i]) {
				t.Errorf("round %d: session %d: %d of %d acknowledged records are there", round, i, found, len(acked[i])-extra)
			}
			// One append whose line was not written yet, and one that was under way.
			if extra > 2*killRecords {
				t.Errorf("round %d: session %d has %d records that nobody has seen", round, i, extra)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// runChild starts a child and kills it after it has written some lines.
func runChild(t *testing.T, dir string, lines int, ack func(session int, seq uint64, hash string)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for in := bufio.NewScanner(out); in.Scan(); {
		var session int
		var seq uint64
		var hash string
		if _, err := fmt.Sscanf(in.Text(), "%d %d %64s", &session, &seq, &hash); err == nil && len(hash) == 64 {
			ack(session, seq, hash)
		}
		if n++; n == lines {
			cmd.Process.Kill()
		}
	}
	cmd.Wait()
	if n < lines {
		t.Fatalf("the child has ended after %d lines of %d", n, lines)
	}
}
