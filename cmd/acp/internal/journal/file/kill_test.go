package file

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/internal/long"
)

// childDir names the variable with the directory that a child process appends in.
const childDir = "ACP_TEST_JOURNAL_DIR"

const killJournals = 3

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Fprintln(os.Stderr, child(dir))
		os.Exit(3)
	}
	leaktest.Main(m)
}

// child appends to all journals until it is killed, and says what is kept.
func child(dir string) error {
	ctx := context.Background()
	c := Open(dir, Options{})
	var mu sync.Mutex
	failed := make(chan error, killJournals)
	for i := range killJournals {
		w, err := c.Own(ctx, fmt.Sprint(i), nil)
		if err != nil {
			return err
		}
		go func() {
			for n := 0; ; n++ {
				drafts := make([]journal.Draft, 1+n%3)
				for k := range drafts {
					drafts[k] = journal.Draft{Kind: journal.KindUpdate, Data: fmt.Appendf(nil, `"%0*d"`, 100+n%3000, n)}
				}
				if n%50 == 0 {
					drafts[0].Kind = journal.KindPrompt
				}
				done := make(chan error, 1)
				err := w.Append(drafts, func(recs []*journal.Record, err error) {
					if err == nil {
						mu.Lock()
						for _, r := range recs {
							fmt.Printf("%d %d %x %v\n", i, r.Seq, r.Hash, r.Kind.Relied())
						}
						mu.Unlock()
					}
					done <- err
				})
				if err == nil {
					err = <-done
				}
				if err == nil && n%200 == 199 {
					last := w.Head().Seq
					err = w.Compact(ctx, journal.Gap{From: last - 20, To: last - 10, Left: journal.Draft{Kind: journal.KindUpdate, Data: []byte(`"left"`)}})
				}
				if err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

// TestKill kills processes that append and compact, again and again: everything that was kept is there, the chain is
// whole, there is no more than what was under way, and the next owner continues.
func TestKill(t *testing.T) {
	rounds := 30
	if long.All() {
		rounds = 1000
	}
	dir := t.TempDir()
	kept := make([]map[uint64]string, killJournals)
	ends := make([]uint64, killJournals) // what was there after the last round
	fresh := func() {
		c := Open(dir, Options{})
		defer c.Close()
		for i := range kept {
			if err := c.Delete(t.Context(), fmt.Sprint(i)); err != nil && !errors.Is(err, journal.ErrNotFound) {
				t.Fatal(err)
			}
			kept[i], ends[i] = map[uint64]string{}, 0
			w, err := c.Create(t.Context(), fmt.Sprint(i))
			must(t, err)
			must(t, w.Release(t.Context()))
		}
	}
	for round := range rounds {
		if round%50 == 0 { // so that they do not become ever longer
			fresh()
		}
		kill(t, dir, 1+rand.IntN(400), func(i int, seq uint64, hash string) { kept[i][seq] = hash })
		c := Open(dir, Options{})
		for i := range kept {
			last := max(ends[i], 1)
			for seq := range kept[i] {
				last = max(last, seq)
			}
			seen := uint64(0)
			err := c.Read(t.Context(), fmt.Sprint(i), 0, func(r *journal.Record) error {
				if r.From != seen+1 {
					t.Errorf("round %d: record %d-%d after %d", round, r.From, r.Seq, seen)
				}
				if want, ok := kept[i][r.Seq]; ok && want != hex.EncodeToString(r.Hash[:]) {
					t.Errorf("round %d: record %d of %d is another one", round, r.Seq, i)
				}
				seen = r.Seq
				return nil
			})
			if err != nil || seen < last || seen > last+3 {
				t.Fatalf("round %d: journal %d has %d records, %d were kept, %v", round, i, seen, last, err)
			}
			ends[i] = seen
		}
		must(t, c.Close())
	}
}

// kill starts a child and kills it after it has said some lines and a little more.
func kill(t *testing.T, dir string, lines int, kept func(journal int, seq uint64, hash string)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	n := 0
	for in := bufio.NewScanner(out); in.Scan(); {
		var i int
		var seq uint64
		var hash string
		if _, err := fmt.Sscanf(in.Text(), "%d %d %64s", &i, &seq, &hash); err == nil && len(hash) == 64 {
			kept(i, seq, hash)
		}
		if n++; n == lines {
			time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		}
	}
	_ = cmd.Wait()
	if n < lines {
		t.Fatalf("the child has ended after %d lines of %d", n, lines)
	}
}
