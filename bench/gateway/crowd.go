package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const fanText = "The agent sends updates of 500 bytes as fast as it can. The watchers use WebSockets and are all in one process, on the same two cores as the server, the holder and the agent. Each checks that every update comes once and in order."

// watchers opens connections that watch a session.
func watchers(ctx context.Context, url, session string, n int) (all []*raw, err error) {
	for range n {
		w, err := dialRaw(ctx, over("ws", url))
		if err != nil {
			return all, err
		}
		all = append(all, w)
		if err := w.load(session, "/tmp", nil); err != nil {
			return all, err
		}
	}
	return all, nil
}

func closeAll(all []*raw) {
	var wg sync.WaitGroup
	for _, w := range all {
		wg.Go(func() { _ = w.stream.Close() })
	}
	wg.Wait()
}

// together watches with all of them up to an update.
func together(all []*raw, last int, f func(i, n int, at int64)) error {
	errs := make(chan error, len(all))
	for i, w := range all {
		go func() { errs <- w.watch(last, func(n int, at int64) { f(i, n, at) }) }()
	}
	var first error
	for range all {
		if err := <-errs; first == nil && err != nil {
			first = err
			closeAll(all)
		}
	}
	return first
}

func fan(ctx context.Context, b *bench) (rows []row, err error) {
	count, n, rounds := 100, b.pick(5000, 200), b.pick(3, 1)
	_, p, err := b.fresh(ctx)
	if err != nil {
		return nil, err
	}
	defer stop(&p, &err)
	var in, out, cost []float64
	for range rounds {
		before := p.cpu()
		rate, err := fanOnce(ctx, p, count, n)
		if err != nil {
			return nil, err
		}
		in, out = append(in, rate), append(out, rate*float64(count))
		cost = append(cost, float64((p.cpu()-before).Nanoseconds())/1e3/float64(n*count))
	}
	_, peak := p.memory()
	i, o, c := spreadOf(in), spreadOf(out), spreadOf(cost)
	return []row{
		{what: "updates in", value: i.text("/s"), target: "≥ 5,000/s", met: i.mid >= 5000, scaled: atLeast(5000*processors(), i.mid), note: "each is written down before it is sent"},
		{what: "updates out", value: o.text("/s"), target: "≥ 500,000/s", met: o.mid >= 500_000, scaled: atLeast(500_000*processors(), o.mid), note: "100 watchers"},
		{what: "lost, doubled, out of order", value: "0", target: "0", met: true},
		{what: "the server's time on a processor, for each update out", value: c.text(" µs"), note: costNote(c.mid)},
		{what: "memory of the server, at most", value: mb(peak)},
		{what: "TypeScript SDK", value: "cannot do it", note: "a session has one reader: the second one is refused with 409"},
	}, nil
}

// fanOnce returns how many updates a second come from the agent when all watchers get all of them.
func fanOnce(ctx context.Context, p *process, count, n int) (rate float64, err error) {
	d, err := drive(ctx, over("ws", p.url), "/tmp", nil)
	if err != nil {
		return 0, err
	}
	defer d.close()
	all, err := watchers(ctx, p.url, d.id(), count)
	defer closeAll(all)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- d.prompt(ctx, task{N: n, Size: 500}) }()
	if err := together(all, n-1, func(int, int, int64) {}); err != nil {
		return 0, err
	}
	took := time.Since(start)
	return float64(n) / took.Seconds(), <-ended
}

const crowdText = "Sessions whose agents send 20 updates of 500 bytes each second, or as many more as it takes for the load that is asked for, and two watchers for each. The agents are in one process, at a URL. 60 sessions stand for the 500 of the target, since 64 is how many agents run at once unless that is configured: at their usual rate, at a rate that makes as many updates as the 500 would on a machine with more processors, scaled by their number, and at one that makes as many as the 500."

func crowd(ctx context.Context, b *bench) (rows []row, err error) {
	sessions := b.pick(60, 5)
	rates := []int64{50_000, int64(6_000 / processors()), 6_000}
	for _, every := range slices.Compact(rates) {
		r, err := crowdOnce(ctx, b, sessions, every, b.pick(10, 1))
		if err != nil {
			return rows, err
		}
		rows = append(rows, r...)
	}
	return rows, nil
}

func crowdOnce(ctx context.Context, b *bench, sessions int, every int64, seconds int) (rows []row, err error) {
	agent, err := b.agents(ctx)
	if err != nil {
		return nil, err
	}
	defer agent.stop()
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	p, err := b.serve(ctx, home, agent.url)
	if err != nil {
		return nil, err
	}
	defer stop(&p, &err)
	var drivers []*driver
	var all []*raw
	defer func() {
		closeAll(all)
		for _, d := range drivers {
			d.close()
		}
	}()
	for range sessions {
		d, err := drive(ctx, over("ws", p.url), "/tmp", nil)
		if err != nil {
			return nil, err
		}
		drivers = append(drivers, d)
		two, err := watchers(ctx, p.url, d.id(), 2)
		all = append(all, two...)
		if err != nil {
			return nil, err
		}
	}
	n := int(int64(seconds) * 1_000_000 / every)
	cpu, start := p.cpu(), time.Now()
	ended := make(chan error, len(drivers))
	for _, d := range drivers {
		go func() { ended <- d.prompt(ctx, task{N: n, Size: 500, Every: every}) }()
	}
	late := make([][]time.Duration, len(all))
	if err := together(all, n-1, func(i, _ int, at int64) { late[i] = append(late[i], since(at)) }); err != nil {
		return nil, err
	}
	took := time.Since(start)
	for range drivers {
		if err := <-ended; err != nil {
			return nil, err
		}
	}
	var every1 []time.Duration
	for _, l := range late {
		every1 = append(every1, l...)
	}
	p50, p99 := ms(quantile(every1, 0.5)), ms(quantile(every1, 0.99))
	cores := (p.cpu() - cpu).Seconds() / took.Seconds()
	return []row{{
		what:  fmt.Sprintf("%d sessions, %s updates/s in all", sessions, number(float64(sessions*n)/took.Seconds())),
		value: fmt.Sprintf("p50 %s ms, p99 %s ms, %s cores", number(p50), number(p99), number(cores)), target: "p99 ≤ 50 ms, ≤ 2 cores", met: p99 <= 50 && cores <= 2,
	}}, nil
}

// agents starts a server with agents that are in one process.
func (b *bench) agents(ctx context.Context) (*process, error) {
	return begin(command(ctx, b.self, "agent", "http"))
}

const stallText = "Two watchers use WebSockets, and one of them stops reading while the agent sends 500 updates of 500 bytes a second. Afterwards it reads on."

func stall(ctx context.Context, b *bench) (rows []row, err error) {
	seconds := b.pick(60, 2)
	_, p, err := b.fresh(ctx)
	if err != nil {
		return nil, err
	}
	defer stop(&p, &err)
	d, err := drive(ctx, over("ws", p.url), "/tmp", nil)
	if err != nil {
		return nil, err
	}
	defer d.close()
	all, err := watchers(ctx, p.url, d.id(), 2)
	defer closeAll(all)
	if err != nil {
		return nil, err
	}
	n := seconds * 500
	before, _ := p.memory()
	ended := make(chan error, 1)
	go func() { ended <- d.prompt(ctx, task{N: n, Size: 500, Every: 2000}) }()
	var late []time.Duration
	if err := all[0].watch(n-1, func(_ int, at int64) { late = append(late, since(at)) }); err != nil {
		return nil, err
	}
	if err := <-ended; err != nil {
		return nil, err
	}
	after, _ := p.memory()
	p99, worst := ms(quantile(late, 0.99)), ms(quantile(late, 1))
	rows = []row{
		{what: "the other watcher", value: fmt.Sprintf("p99 %s ms, at most %s ms", number(p99), number(worst)), target: "not held up", met: worst < 1000},
		{what: "growth of the server's memory", value: mb(after - before)},
	}
	err = all[1].watch(n-1, func(int, int64) {})
	switch {
	case err == nil:
		rows = append(rows, row{what: "the one that stalled", value: fmt.Sprintf("gets all %d updates, once and in order", n), met: true, target: "loses nothing"})
	default:
		rows = append(rows, row{what: "the one that stalled", value: "its connection has ended", note: err.Error() + "; it attaches again, and misses nothing then"})
	}
	return rows, nil
}

// costNote says what a time on a processor comes to, in microseconds.
func costNote(cost float64) string {
	note := "depends less than the others on what else the machine does"
	if cost > 0 { // a short round may not have been noticed
		note += fmt.Sprintf("; two processors for the server alone would carry %.0f/s, if two do twice as much as one (calculated)", 2e6/cost)
	}
	return note
}
