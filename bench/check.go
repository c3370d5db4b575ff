package main

import (
	"fmt"
	"math"
)

// A verdict is what became of a target.
type verdict struct {
	text  string
	found string
	met   bool
	known bool // whether what it needs was measured
}

func (v verdict) word() string {
	switch {
	case !v.known:
		return "not measured"
	case v.met:
		return "met"
	}
	return "MISSED"
}

// A target is a bound on one number.
type target struct {
	text     string
	workload string
	key      string
	over     string // the peer whose number ours is divided by; "" for ours itself
	beyond   bool   // subtract ours from that of over instead
	atLeast  float64
	atMost   float64
	unit     string
}

// ownStrings is how many allocations of a received chunk are the value's own:
// its text.
const ownStrings = 1

// slack is what counting allocations of a whole process is off by, per chunk:
// the prompt that asked for them, and the runtime.
const slack = 0.05

var targets = []target{
	{text: "24-byte chunks, two processes: ≥ 25× coder, same windows", workload: "chunks/two/24", key: "rate", over: "coder", atLeast: 25},
	{text: "24-byte chunks, two processes: ≥ 25× coder, same windows, GOMAXPROCS=1", workload: "chunks/two/24/alone", key: "rate", over: "coder", atLeast: 25},
	{text: "24-byte chunks, two processes: ≥ 25× coder, ours in one stream", workload: "flood/two/24", key: "rate", over: "coder", atLeast: 25},
	{text: "prompt round trip p50, two processes: ≤ 1/4 of coder", workload: "trips/two/1", key: "p50", over: "coder", atMost: 0.25},
	{text: "prompt round trip p50, two processes: ≤ 1/4 of coder, GOMAXPROCS=1", workload: "trips/two/1/alone", key: "p50", over: "coder", atMost: 0.25},
	{text: "prompt round trip p50, two processes: ≤ 1.5× bare pipe echo", workload: "trips/two/1", key: "p50", over: "bare", atMost: 1.5},
	{text: "64 callers, two processes: ≥ 8× coder", workload: "trips/two/64", key: "rate", over: "coder", atLeast: 8},
	{text: "10 kB diffs, two processes: ≥ 30× coder", workload: "diffs/two", key: "rate", over: "coder", atLeast: 30},
	{text: "package acp, stream: the engine alone is ≤ 1/0.75 as fast, same windows", workload: "chunks/two/24", key: "rate", over: "app", atMost: 1 / 0.75},
	{text: "package acp, stream: the engine alone is ≤ 1/0.75 as fast, same windows, GOMAXPROCS=1", workload: "chunks/two/24/alone", key: "rate", over: "app", atMost: 1 / 0.75},
	{text: "package acp, stream: the engine alone is ≤ 1/0.75 as fast, one stream", workload: "flood/two/24", key: "rate", over: "app", atMost: 1 / 0.75},
	{text: "package acp, stream: the engine alone is ≤ 1/0.75 as fast, one stream, GOMAXPROCS=1", workload: "flood/two/24/alone", key: "rate", over: "app", atMost: 1 / 0.75},
	{text: "package acp, round trip p50: ≤ 5 µs beyond the engine alone", workload: "trips/two/1", key: "p50", over: "app", beyond: true, atMost: 5, unit: " µs"},
	{text: "package acp, round trip p50: ≤ 5 µs beyond the engine alone, GOMAXPROCS=1", workload: "trips/two/1/alone", key: "p50", over: "app", beyond: true, atMost: 5, unit: " µs"},
	{text: "8 MB read of source code: ≥ 5× coder", workload: "read8/two/code", key: "rate", over: "coder", atLeast: 5},
	{text: "8 MB read of plain text: ≥ 10× coder", workload: "read8/two/plain", key: "rate", over: "coder", atLeast: 10},
	{text: "8 MB read of source code: ≤ 3 bytes allocated per byte, both sides together", workload: "read8/two/code", key: "both_bytes", atMost: 3},
	{text: "8 MB read of plain text: ≤ 3 bytes allocated per byte, both sides together", workload: "read8/two/plain", key: "both_bytes", atMost: 3},
	{text: "64 MB read of source code works", workload: "read64/two/code", key: "rate", atLeast: 0, unit: " MB/s"},
	{text: "64 MB read of plain text works", workload: "read64/two/plain", key: "rate", atLeast: 0, unit: " MB/s"},
	{text: "allocations per received chunk: ≤ 2 beyond its text", workload: "flood/two/24", key: "client_allocs", atMost: 2 + ownStrings + slack},
	{text: "allocations per sent chunk: 0", workload: "flood/two/24", key: "agent_allocs", atMost: slack},
	{text: "100 idle connections: ≤ 48 kB of heap per side", workload: "idle/100", key: "heap", atMost: 48, unit: " kB"},
	{text: "1,000 idle connections: ≤ 48 kB of heap per side", workload: "idle/1000", key: "heap", atMost: 48, unit: " kB"},
	{text: "24-byte chunks over WebSocket: ≥ 12× TypeScript", workload: "chunks/ws", key: "rate", over: tsName, atLeast: 12},
	{text: "24-byte chunks over HTTP: ≥ 8× TypeScript", workload: "chunks/http", key: "rate", over: tsName, atLeast: 8},
	{text: "24-byte chunks over WebSocket: ≥ 0.6 of the bare bytes", workload: "chunks/ws", key: "rate", over: "bare", atLeast: 0.6},
	{text: "24-byte chunks over HTTP: ≥ 0.6 of the bare bytes", workload: "chunks/http", key: "rate", over: "bare", atLeast: 0.6},
	{text: "24-byte chunks over HTTP: ≥ 0.6 of the bare bytes, event by event", workload: "chunks/http", key: "rate", over: "each", atLeast: 0.6},
	{text: "24-byte chunks over WebSocket: ≥ 12× TypeScript, GOMAXPROCS=1", workload: "chunks/ws/alone", key: "rate", over: tsName, atLeast: 12},
	{text: "24-byte chunks over HTTP: ≥ 8× TypeScript, GOMAXPROCS=1", workload: "chunks/http/alone", key: "rate", over: tsName, atLeast: 8},
	{text: "prompt round trips over WebSocket: ≥ 0.6 of the bare bytes", workload: "trips/ws", key: "rate", over: "bare", atLeast: 0.6},
	{text: "prompt round trips over HTTP: ≥ 0.6 of the bare bytes", workload: "trips/http", key: "rate", over: "bare", atLeast: 0.6},
	{text: "prompt round trip p50 over WebSocket: ≤ 1/2 of TypeScript", workload: "trips/ws", key: "p50", over: tsName, atMost: 0.5},
	{text: "prompt round trip p50 over WebSocket: ≤ 1/2 of TypeScript, GOMAXPROCS=1", workload: "trips/ws/alone", key: "p50", over: tsName, atMost: 0.5},
	{text: "prompt round trip p50 over HTTP: ≤ 1/2 of TypeScript", workload: "trips/http", key: "p50", over: tsName, atMost: 0.5},
	{text: "1,000 idle connections: ≤ 3 goroutines per side", workload: "idle/1000", key: "goroutines", atMost: 3},
}

// judge holds the targets against what was measured.
func judge(results []*outcome) []verdict {
	byName := map[string]*outcome{}
	for _, o := range results {
		byName[o.name] = o
	}
	var out []verdict
	for _, t := range targets {
		o := byName[t.workload]
		if o == nil {
			continue
		}
		out = append(out, t.judge(o))
	}
	return out
}

func (t target) judge(o *outcome) verdict {
	v := verdict{text: t.text, found: "–"}
	var got float64
	switch {
	case t.beyond:
		got = median(o.samples[t.over][t.key]) - median(o.samples["ours"][t.key])
	case t.over != "":
		got = o.paired(t.key, "ours", t.over)
	default:
		got = median(o.samples["ours"][t.key])
	}
	if math.IsNaN(got) {
		if f := o.failures["ours"]; f != "" {
			v.found, v.known = f, true
		}
		return v
	}
	v.known = true
	v.found = number(got) + t.unit
	if t.over != "" && !t.beyond {
		v.found = times(got)
	}
	if t.atMost > 0 {
		v.met = got <= t.atMost
	} else {
		v.met = got >= t.atLeast
	}
	if f := o.failures["ours"]; f != "" {
		v.met = false
		v.found += fmt.Sprintf(" (%s)", f)
	}
	return v
}
