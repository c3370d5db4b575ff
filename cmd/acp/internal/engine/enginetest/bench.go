package enginetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// Benchmark measures appends of one session and of many, and a replay. Records have 500 bytes.
func Benchmark(b *testing.B, fresh func(testing.TB) Backend) {
	record := engine.Record{Kind: "frame", Data: make([]byte, 500)}
	for _, sessions := range []int{1, 100} {
		b.Run(fmt.Sprintf("append/sessions=%d", sessions), func(b *testing.B) {
			n := start(b, fresh(b), "a")
			var ids []string
			for i := range sessions {
				ids = append(ids, fmt.Sprint(i))
			}
			all := n.own(b, ids...)
			var mu sync.Mutex
			took := make([]time.Duration, 0, b.N)
			b.ResetTimer()
			var wg sync.WaitGroup
			for i, o := range all {
				wg.Go(func() {
					mine := make([]time.Duration, 0, b.N/sessions+1)
					for k := i; k < b.N; k += sessions {
						at := time.Now()
						if _, err := o.Append(b.Context(), record); err != nil {
							b.Error(err)
							return
						}
						mine = append(mine, time.Since(at))
					}
					mu.Lock()
					took = append(took, mine...)
					mu.Unlock()
				})
			}
			wg.Wait()
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
	b.Run("replay/records=10000", func(b *testing.B) {
		n := start(b, fresh(b), "a")
		all := n.own(b, "s", "other")
		const total, chunk = 10_000, 100
		recs := make([]engine.Record, chunk)
		for i := range recs {
			recs[i] = record
		}
		for range total / chunk {
			for _, o := range all {
				if _, err := o.Append(b.Context(), recs...); err != nil {
					b.Fatal(err)
				}
			}
		}
		for b.Loop() {
			got := 0
			if err := n.Read(b.Context(), "s", 0, func(engine.Record) error { got++; return nil }); err != nil || got != total {
				b.Fatal(got, err)
			}
		}
	})
}
