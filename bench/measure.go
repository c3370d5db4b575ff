package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// An op is one measurement, as the parent asks a client process for it.
type op struct {
	Kind    string `json:"kind"`              // trips, updates, read, idle
	Callers int    `json:"callers,omitempty"` // trips
	Verb    string `json:"verb,omitempty"`    // updates: updates or diffs
	Size    int    `json:"size,omitempty"`    // of a chunk or a file, bytes
	Window  int    `json:"window,omitempty"`  // updates per prompt
	File    string `json:"file,omitempty"`    // read: code or plain
	Count   int    `json:"count,omitempty"`   // idle: connections
	Millis  int    `json:"millis,omitempty"`  // how long to continue
}

func (o op) duration() time.Duration { return time.Duration(o.Millis) * time.Millisecond }

// A result is what comes back.
type result struct {
	Metrics map[string]float64 `json:"metrics,omitempty"`
	Error   string             `json:"error,omitempty"`
}

func (r result) String() string {
	b, _ := json.Marshal(r)
	return string(b)
}

// A meter runs measurements on one connection.
type meter struct {
	client client
	rec    *recorder
	// both says that the agent is in this process, so that its allocations
	// cannot be distinguished.
	both bool
}

func (m *meter) run(ctx context.Context, o op) (map[string]float64, error) {
	switch o.Kind {
	case "trips":
		return m.trips(ctx, o)
	case "updates":
		return m.updates(ctx, o)
	case "read":
		return m.read(ctx, o)
	}
	return nil, fmt.Errorf("unknown measurement %q", o.Kind)
}

// cost reports what one unit of work cost on either side.
func (m *meter) cost(ctx context.Context, work func() (units float64, err error)) (map[string]float64, error) {
	var agent0, agent1 stats
	var err error
	if !m.both {
		if agent0, err = agentStats(ctx, m.client, m.rec); err != nil {
			return nil, err
		}
	}
	before := workStats()
	units, err := work()
	if err != nil {
		return nil, err
	}
	after := workStats()
	if !m.both {
		if agent1, err = agentStats(ctx, m.client, m.rec); err != nil {
			return nil, err
		}
	}
	out := map[string]float64{}
	add := func(side string, a, b stats) {
		out[side+"_allocs"] = float64(b.Mallocs-a.Mallocs) / units
		out[side+"_cpu"] = float64(b.CPU-a.CPU) / units
		out[side+"_bytes"] = float64(b.TotalAlloc-a.TotalAlloc) / units
	}
	if m.both {
		add("both", before, after)
	} else {
		add("client", before, after)
		add("agent", agent0, agent1)
		for _, k := range []string{"_bytes", "_cpu"} {
			out["both"+k] = out["client"+k] + out["agent"+k]
		}
	}
	return out, nil
}

// trips measures prompts that ask for nothing, by concurrent callers.
func (m *meter) trips(ctx context.Context, o op) (map[string]float64, error) {
	var all []time.Duration
	var elapsed time.Duration
	out, err := m.cost(ctx, func() (float64, error) {
		times := make([][]time.Duration, o.Callers)
		for i := range times {
			times[i] = make([]time.Duration, 0, 1<<16/o.Callers)
		}
		var wg sync.WaitGroup
		errs := make([]error, o.Callers)
		start := time.Now()
		end := start.Add(o.duration())
		for i := range o.Callers {
			wg.Go(func() {
				for t := time.Now(); len(times[i]) == 0 || t.Before(end); {
					if errs[i] = m.client.prompt(ctx, i, promptText); errs[i] != nil {
						return
					}
					now := time.Now()
					times[i] = append(times[i], now.Sub(t))
					t = now
				}
			})
		}
		wg.Wait()
		elapsed = time.Since(start)
		for i, err := range errs {
			if err != nil {
				return 0, err
			}
			all = append(all, times[i]...)
		}
		return float64(len(all)), nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(all)
	out["p50"] = micros(quantile(all, 0.50))
	out["p99"] = micros(quantile(all, 0.99))
	out["rate"] = float64(len(all)) / elapsed.Seconds()
	return out, nil
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// updates measures streams of updates, one prompt per window, from the first
// prompt until the client's handler has seen the last update.
func (m *meter) updates(ctx context.Context, o op) (map[string]float64, error) {
	text := command{verb: o.Verb, n: o.Window, arg: fmt.Sprint(o.Size)}.String()
	var elapsed time.Duration
	var n int64
	out, err := m.cost(ctx, func() (float64, error) {
		first := m.rec.updates.Load()
		start := time.Now()
		for elapsed < o.duration() {
			if err := m.client.prompt(ctx, 0, text); err != nil {
				return 0, err
			}
			n += int64(o.Window)
			if got := m.rec.updates.Load() - first; got != n {
				return 0, fmt.Errorf("%d updates arrived before the response, want %d", got, n)
			}
			elapsed = time.Since(start)
		}
		return float64(n), nil
	})
	if err != nil {
		return nil, err
	}
	out["rate"] = float64(n) / elapsed.Seconds()
	return out, nil
}

// read measures the agent's reading of a file that the client has in memory.
func (m *meter) read(ctx context.Context, o op) (map[string]float64, error) {
	cmd := command{verb: "read", n: o.Size, arg: o.File}
	m.rec.prepare(cmd)
	times := []time.Duration{}
	var elapsed time.Duration
	out, err := m.cost(ctx, func() (float64, error) {
		for elapsed < o.duration() {
			start := time.Now()
			if err := m.client.prompt(ctx, 0, cmd.String()); err != nil {
				return 0, err
			}
			d := time.Since(start)
			times = append(times, d)
			elapsed += d
		}
		return float64(len(times)) * float64(o.Size), nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(times)
	mid := quantile(times, 0.5)
	out["ms"] = micros(mid) / 1000
	out["ns"] = out["both_cpu"] * 1000
	out["rate"] = float64(o.Size) / 1e6 / mid.Seconds()
	return out, nil
}

// median ignores what is not a number.
func median(v []float64) float64 {
	v = slices.DeleteFunc(slices.Clone(v), math.IsNaN)
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	k := len(v) / 2
	if len(v)%2 == 1 {
		return v[k]
	}
	return (v[k-1] + v[k]) / 2
}
