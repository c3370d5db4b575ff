package file

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A powered disk knows what survives a loss of power: what was written before a sync began that has ended. A sync takes up
// to 10 ms.
type powered struct {
	System
	t      *testing.T
	random *rand.Rand

	mu    sync.Mutex
	size  int64 // of the journal
	safe  int64 // what survives of it
	named bool  // and its name does
	next  int64 // what survives of what is to replace it
}

func (d *powered) Open(name string, flag int) (File, error) {
	f, err := d.System.Open(name, flag)
	if err != nil || !strings.HasSuffix(name, suffix) && !strings.HasSuffix(name, renewed) {
		return f, err
	}
	return &poweredFile{File: f, d: d, renewed: strings.HasSuffix(name, renewed)}, nil
}

func (d *powered) Lock(f File, exclusive bool) (bool, error) { return d.System.Lock(f, exclusive) }

func (d *powered) SyncDir(name string) error {
	d.mu.Lock()
	d.named = true
	d.mu.Unlock()
	return d.System.SyncDir(name)
}

// Rename must not replace what survives by what does not.
func (d *powered) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	info, err := os.Stat(from)
	if err != nil || info.Size() != d.next {
		d.t.Errorf("%s replaces the journal, and %d bytes of it would survive, %v", from, d.next, err)
	}
	d.size, d.safe = d.next, d.next
	return d.System.Rename(from, to)
}

type poweredFile struct {
	File
	d       *powered
	renewed bool
	size    int64 // if it is to replace the journal
}

func (f *poweredFile) Write(b []byte) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.renewed {
		f.size += int64(len(b))
	} else {
		f.d.size += int64(len(b))
	}
	return f.File.Write(b)
}

func (f *poweredFile) Sync() error {
	f.d.mu.Lock()
	safe, takes := f.d.size, time.Duration(f.d.random.Int64N(int64(10*time.Millisecond)))
	f.d.mu.Unlock()
	time.Sleep(takes)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.renewed {
		f.d.next = f.size
	} else {
		f.d.safe = max(f.d.safe, safe)
	}
	return nil
}

// A promise is a record that was kept.
type promise struct {
	seq    uint64
	relied bool
	at     time.Time
}

// TestPowerCut takes the power away 200 times, at any moment. What has not been synced is cut off anywhere, and partly
// zeros. What somebody has relied on is there, and everything that was kept 100 ms before.
func TestPowerCut(t *testing.T) {
	for round := range 10 {
		dir, after := t.TempDir(), t.TempDir()
		random := rand.New(rand.NewPCG(uint64(round), 7))
		synctest.Test(t, func(t *testing.T) {
			d := &powered{t: t, random: random}
			c := journal.New(newBackend(d, dir, ""), journal.Options{})
			defer c.Close()
			w, err := c.Create(t.Context(), "s")
			must(t, err)
			var mu sync.Mutex
			kept := []promise{{1, true, time.Now()}}
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					d.mu.Lock()
					kind, size, pause := journal.KindUpdate, random.IntN(2000), time.Duration(random.Int64N(int64(20*time.Millisecond)))
					if random.IntN(20) == 0 {
						kind = journal.KindPrompt
					}
					if random.IntN(10) == 0 {
						pause *= 20
					}
					d.mu.Unlock()
					if err := w.Append([]journal.Draft{{Kind: kind, Data: fmt.Appendf(nil, `"%0*d"`, size, n)}}, func(recs []*journal.Record, err error) {
						must(t, err)
						mu.Lock()
						kept = append(kept, promise{recs[0].Seq, kind.Relied(), time.Now()})
						mu.Unlock()
					}); err != nil {
						t.Error(err)
						return
					}
					if last := w.Head().Seq; n%100 == 99 {
						must(t, w.Compact(t.Context(), journal.Gap{From: last - 40, To: last - 20}))
					}
					time.Sleep(pause)
				}
			})
			for cut := range 20 {
				d.mu.Lock()
				pause := time.Duration(random.Int64N(int64(300 * time.Millisecond)))
				d.mu.Unlock()
				time.Sleep(pause)
				mu.Lock()
				now := append([]promise(nil), kept...)
				mu.Unlock()
				d.mu.Lock()
				data, err := os.ReadFile(filepath.Join(dir, "s"+suffix))
				must(t, err)
				safe, named := min(d.safe, int64(len(data))), d.named
				left := data[:safe+random.Int64N(int64(len(data))-safe+1)]
				if zeros := left[safe:]; len(zeros) > 0 && cut%2 == 0 {
					at := random.IntN(len(zeros))
					clear(zeros[at:min(len(zeros), at+512)])
				}
				d.mu.Unlock()
				if !named {
					t.Errorf("round %d, cut %d: the file would be gone", round, cut)
				}
				checkCut(t, fmt.Sprintf("round %d, cut %d", round, cut), after, left, now, time.Now())
			}
			close(stop)
			wg.Wait()
		})
	}
}

// checkCut owns what a loss of power has left, and looks for what was promised.
func checkCut(t *testing.T, what, dir string, left []byte, kept []promise, now time.Time) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, "s"+suffix), bytes.Clone(left), 0o600))
	c := Open(dir, Options{})
	defer c.Close()
	there := map[uint64]bool{}
	w, err := c.Own(t.Context(), "s", func(r *journal.Record) error {
		for seq := r.From; seq <= r.Seq; seq++ {
			there[seq] = true
		}
		return nil
	})
	must(t, err)
	for _, p := range kept {
		if !there[p.seq] && (p.relied || now.Sub(p.at) > 100*time.Millisecond) {
			t.Errorf("%s: record %d is lost, kept %v before, relied on: %v", what, p.seq, now.Sub(p.at), p.relied)
		}
	}
	must(t, texts(t, w, journal.KindPrompt, "new"))
	must(t, w.Release(t.Context()))
	if got, err := read(t, c, "s"); len(got) == 0 || got[len(got)-1] != "new" || err != nil && !errors.As(err, new(*journal.DamageError)) {
		t.Errorf("%s: continued as %d records, %v", what, len(got), err)
	}
}
