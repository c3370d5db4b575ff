//go:build unix

package file

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

var (
	benchDir  = flag.String("journal.dir", "", "directory of BenchmarkAppend, such as one of another file system")
	benchTime = flag.Duration("journal.time", time.Second, "how long each part of a round of BenchmarkAppend takes")
)

// BenchmarkAppend measures how long records of 600 bytes take from their arrival until they are kept, side by side: where
// nobody waits for a sync, and where somebody relies on each twentieth. Each iteration is a round of the two. With
// -benchtime 5x the benchmark runs five and reports their medians.
func BenchmarkAppend(b *testing.B) {
	for _, row := range []struct {
		sessions int
		every    time.Duration
	}{{1, 2 * time.Millisecond}, {60, 50 * time.Millisecond}, {60, 12500 * time.Microsecond}} {
		b.Run(fmt.Sprintf("sessions=%d/every=%v", row.sessions, row.every), func(b *testing.B) {
			all := map[string][]float64{}
			note := func(name string, took []time.Duration) {
				if len(took) == 0 {
					return
				}
				slices.Sort(took)
				for what, at := range map[string]int{"p50": len(took) / 2, "p99": len(took) * 99 / 100} {
					all[name+"-"+what+"-ms"] = append(all[name+"-"+what+"-ms"], float64(took[at].Microseconds())/1000)
				}
			}
			for b.Loop() {
				for name, relied := range map[string]int{"files": 0, "mixed": 20} {
					pieces, waited, cores := appendFiles(b, row.sessions, row.every, relied)
					note(name, pieces)
					note(name+"-relied", waited)
					all[name+"-cores"] = append(all[name+"-cores"], cores)
				}
			}
			b.ReportMetric(0, "ns/op")
			for name, list := range all {
				slices.Sort(list)
				b.ReportMetric(list[len(list)/2], name)
			}
		})
	}
}

func benchPlace(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp(*benchDir, "bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// cores returns what f does, and how many processors it has kept busy.
func cores(b *testing.B, f func()) float64 {
	b.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before, begin := used(), time.Now()
	f()
	return float64(used()-before) / float64(time.Since(begin))
}

// tick calls f for each session as often as asked for, until the time is over.
func tick(sessions int, every time.Duration, f func(session, n int, at time.Time)) {
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			time.Sleep(every * time.Duration(i) / time.Duration(sessions))
			end := time.Now().Add(*benchTime)
			ticker := time.NewTicker(every)
			defer ticker.Stop()
			for n := 0; ; n++ {
				at := <-ticker.C
				if at.After(end) {
					return
				}
				f(i, n, time.Now())
			}
		})
	}
	wg.Wait()
}

// benchData is the data of a record of about 600 bytes.
var benchData = fmt.Appendf(nil, `{"sessionUpdate":"agent_message_chunk","text":"%0540d"}`, 1)

func appendFiles(b *testing.B, sessions int, every time.Duration, relied int) (pieces, waited []time.Duration, busy float64) {
	c := Open(benchPlace(b), Options{})
	defer c.Close()
	var writers []*journal.Writer
	for i := range sessions {
		w, err := c.Create(b.Context(), fmt.Sprint("s", i))
		if err != nil {
			b.Fatal(err)
		}
		writers = append(writers, w)
	}
	var mu sync.Mutex
	busy = cores(b, func() {
		tick(sessions, every, func(i, n int, at time.Time) {
			d := journal.Draft{Kind: journal.KindUpdate, Data: benchData}
			if relied > 0 && (n+i)%relied == 0 {
				d.Kind = journal.KindPrompt
			}
			err := writers[i].Append([]journal.Draft{d}, func(_ []*journal.Record, err error) {
				took := time.Since(at)
				mu.Lock()
				defer mu.Unlock()
				if d.Kind.Relied() {
					waited = append(waited, took)
				} else if err == nil {
					pieces = append(pieces, took)
				}
			})
			if err != nil {
				b.Error(err)
			}
		})
		for _, w := range writers {
			if err := w.Sync(b.Context()); err != nil {
				b.Error(err)
			}
		}
	})
	return pieces, waited, busy
}

// BenchmarkRead reads 10,000 records of about 600 bytes: all, the last ten, and to own the journal.
func BenchmarkRead(b *testing.B) {
	const records = 10_000
	c := Open(benchPlace(b), Options{})
	defer c.Close()
	w, err := c.Create(b.Context(), "s")
	if err != nil {
		b.Fatal(err)
	}
	for range (records - 1) / 99 {
		drafts := make([]journal.Draft, 99)
		for i := range drafts {
			drafts[i] = journal.Draft{Kind: journal.KindUpdate, Data: benchData}
		}
		if err := w.Append(drafts, nil); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Release(b.Context()); err != nil {
		b.Fatal(err)
	}
	for name, after := range map[string]uint64{"all": 0, "end": records - 10} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				n := after
				if err := c.Read(b.Context(), "s", after, func(r *journal.Record) error { n = r.Seq; return nil }); err != nil || n != records {
					b.Fatal(n, err)
				}
			}
		})
	}
	b.Run("own", func(b *testing.B) {
		for b.Loop() {
			w, err := c.Own(b.Context(), "s", nil)
			if err == nil {
				err = w.Release(b.Context())
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
