package acp

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// flow is a session whose agent sends updates when it is told to.
type flow struct {
	tell chan int
	seen chan struct{}
	end  func()
	time time.Duration // of the processor
	wall time.Duration
	heap uint64
	n    int
}

// newFlow connects a client with an agent through proxies.
func newFlow(b *testing.B, way func(Transport) Transport) *flow {
	tell := make(chan int)
	f := &flow{tell: make(chan int), seen: make(chan struct{})}
	agent := InProcess(&Agent{
		Info: Implementation{Name: "flow", Version: "1"},
		Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
			for n := range tell {
				for range n {
					if err := t.Say("twenty-four bytes of it."); err != nil {
						return "", err
					}
				}
			}
			return StopEndTurn, nil
		},
	})
	want, got := 0, 0
	client := &Client{MaxVersion: 1, Update: func(_ context.Context, _ *ClientSession, u *Update) {
		if u.Synthetic {
			return
		}
		if got++; got == want {
			f.seen <- struct{}{}
		}
	}}
	conn, err := client.Connect(context.Background(), way(agent))
	if err != nil {
		b.Fatal(err)
	}
	s, err := conn.NewSession(context.Background(), SessionConfig{Cwd: "/"})
	if err != nil {
		b.Fatal(err)
	}
	reply := s.Prompt(context.Background(), Text("go"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range reply.Updates() {
		}
	}()
	f.end = func() {
		close(f.tell)
		<-done
		_ = conn.Close()
		_ = agent.Wait()
	}
	go func() {
		defer close(tell)
		for n := range f.tell {
			want += n
			tell <- n
		}
	}()
	return f
}

// window sends some updates and waits until they have arrived.
func (f *flow) window(n int) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, began := processorTime(), time.Now()
	f.tell <- n
	<-f.seen
	f.wall += time.Since(began)
	f.time += processorTime() - start
	runtime.ReadMemStats(&after)
	f.heap += after.Mallocs - before.Mallocs
	f.n += n
}

func (f *flow) each() (ns, allocs float64) {
	return float64(f.time) / float64(f.n), float64(f.heap) / float64(f.n)
}

// BenchmarkProxy compares, side by side and in alternating windows, an update's way from an
// agent to a client in one process with that through one and three idle proxies. It reports
// what each proxy adds, in multiples of that way and in allocations. It measures the
// process's processor time where it can be had: others use the machine, too.
func BenchmarkProxy(b *testing.B) {
	idle := func(n int) func(Transport) Transport {
		return func(t Transport) Transport {
			var list []*Proxy
			for range n {
				list = append(list, new(Proxy))
			}
			return Chain(t, list...)
		}
	}
	direct := newFlow(b, func(t Transport) Transport { return t })
	defer direct.end()
	one, three := newFlow(b, idle(1)), newFlow(b, idle(3))
	defer one.end()
	defer three.end()
	const window = 2000
	all := []*flow{direct, one, three}
	for _, f := range all {
		f.window(window)
		f.time, f.heap, f.n = 0, 0, 0
	}
	for b.Loop() {
		for _, f := range all {
			f.window(window)
		}
	}
	hop, hopAllocs := direct.each()
	b.ReportMetric(hop, "ns/hop")
	b.ReportMetric(hopAllocs, "allocs/hop")
	for _, p := range []struct {
		f    *flow
		n    float64
		name string
	}{{one, 1, "1"}, {three, 3, "3"}} {
		ns, allocs := p.f.each()
		b.ReportMetric((ns-hop)/p.n/hop, "hops/proxy-of-"+p.name)
		b.ReportMetric((allocs-hopAllocs)/p.n, "allocs/proxy-of-"+p.name)
	}
	b.ReportMetric(0, "ns/op")
}
