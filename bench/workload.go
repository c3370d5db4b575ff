package main

import (
	"fmt"
	"slices"
)

// A metric is one number of a measurement.
type metric struct {
	key, label string
	lower      bool // whether lower is better; ratios are turned accordingly
	ratio      bool // whether ratios are worth printing
}

// A workload is one measurement that all subjects make.
type workload struct {
	name, title string
	mode        string   // two: the agent is a process of its own; one: both in one process; http, ws: as two, over the network
	env         []string // of both processes, beside that of this one
	op          op
	quick       int            // Millis with -quick
	windows     map[string]int // of subjects that need another than op.Window
	subjects    []string
	rounds      int // at most; 0 means as many as asked for
	quickRounds int // the same with -quick
	metrics     []metric
	note        string
}

// survivable is how many updates a prompt may stream to coder's client: it
// queues 1024 and then ends the connection.
const survivable = 1000

var (
	allFour    = []string{"ours", "coder", tsName, "bare"}
	goOnly     = []string{"ours", "coder", "bare"}
	withApp    = []string{"ours", "app", "coder", tsName, "bare"} // what package acp adds
	tripsStats = []metric{
		{key: "p50", label: "p50, µs", lower: true, ratio: true},
		{key: "p99", label: "p99, µs", lower: true, ratio: true},
		{key: "rate", label: "round trips/s", ratio: true},
	}
	updateStats = []metric{{key: "rate", label: "updates/s", ratio: true}}
	readStats   = []metric{
		{key: "rate", label: "MB/s", ratio: true},
		{key: "ms", label: "ms per read", lower: true},
		{key: "ns", label: "CPU ns per byte, both sides", lower: true, ratio: true},
	}
	idleStats = []metric{
		{key: "heap", label: "heap per side, kB", lower: true, ratio: true},
		{key: "stack", label: "stacks per side, kB", lower: true, ratio: true},
		{key: "rss", label: "resident per side, kB", lower: true, ratio: true},
		{key: "goroutines", label: "goroutines per side", lower: true},
		{key: "files", label: "open files per side", lower: true},
	}
)

// perUnit are the metrics of what a unit of work allocates.
func perUnit(mode, unit string, m []metric) []metric {
	if mode == "one" {
		return append(m[:len(m):len(m)],
			metric{key: "both_cpu", label: "CPU µs per " + unit, lower: true, ratio: true},
			metric{key: "both_allocs", label: "allocations per " + unit, lower: true},
			metric{key: "both_bytes", label: "bytes allocated per " + unit, lower: true})
	}
	return append(m[:len(m):len(m)],
		metric{key: "client_cpu", label: "CPU µs per " + unit + ", client", lower: true, ratio: true},
		metric{key: "agent_cpu", label: "CPU µs per " + unit + ", agent", lower: true, ratio: true},
		metric{key: "client_allocs", label: "allocations per " + unit + ", client", lower: true},
		metric{key: "agent_allocs", label: "allocations per " + unit + ", agent", lower: true},
		metric{key: "client_bytes", label: "bytes allocated per " + unit + ", client", lower: true},
		metric{key: "agent_bytes", label: "bytes allocated per " + unit + ", agent", lower: true})
}

// perByte are the metrics of what reading a file allocates.
func perByte(mode string, m []metric) []metric {
	if mode == "one" {
		return append(m[:len(m):len(m)], metric{key: "both_bytes", label: "bytes allocated per byte", lower: true})
	}
	return append(m[:len(m):len(m)],
		metric{key: "client_bytes", label: "bytes allocated per byte, client", lower: true},
		metric{key: "agent_bytes", label: "bytes allocated per byte, agent", lower: true},
		metric{key: "both_bytes", label: "bytes allocated per byte, both", lower: true})
}

func workloads() []*workload {
	var out []*workload
	for _, mode := range []string{"two", "one"} {
		out = append(out, modeWorkloads(mode)...)
	}
	for _, mode := range []string{"http", "ws"} {
		out = append(out, netWorkloads(mode)...)
	}
	out = append(out, alone(out, "trips/two/1"), alone(out, "chunks/two/24"), alone(out, "flood/two/24"),
		alone(out, "trips/http"), alone(out, "chunks/http"), alone(out, "trips/ws"), alone(out, "chunks/ws"))
	for _, n := range []int{1, 100, 1000} {
		out = append(out, &workload{
			name:     fmt.Sprintf("idle/%d", n),
			title:    fmt.Sprintf("%d idle connections, both sides of each in one process, after a prompt each", n),
			mode:     "one",
			op:       op{Kind: "idle", Count: n},
			subjects: allFour,
			rounds:   3, quickRounds: 1,
			metrics: idleStats,
			note:    "Node: over Unix sockets, and its heap grows in steps: the number for one connection means little.",
		})
	}
	return out
}

// alone is a workload whose processes run on one processor each. It shows what
// is left when no goroutine is woken on another one: with two processors that
// both processes share, this is a large part of a round trip.
func alone(all []*workload, name string) *workload {
	i := slices.IndexFunc(all, func(w *workload) bool { return w.name == name })
	w := *all[i]
	w.name += "/alone"
	w.title += ", each with GOMAXPROCS=1"
	w.env = []string{"GOMAXPROCS=1"}
	if !overNet(w.mode) { // there it is what ours is held against, and one thread in any case
		w.subjects = slices.DeleteFunc(slices.Clone(w.subjects), func(s string) bool { return s == tsName })
	}
	return &w
}

func modeWorkloads(mode string) []*workload {
	where, subjects, streams := "two processes", allFour, withApp
	if mode == "one" {
		where, subjects, streams = "one process", goOnly, goOnly
	}
	var out []*workload
	for _, callers := range []int{1, 16, 64, 256} {
		title := fmt.Sprintf("prompt round trip, %d concurrent callers, %s", callers, where)
		if callers == 1 {
			title = "prompt round trip, 1 caller, " + where
		}
		out = append(out, &workload{
			name: fmt.Sprintf("trips/%s/%d", mode, callers), title: title, mode: mode,
			op: op{Kind: "trips", Callers: callers, Millis: 300}, quick: 70,
			subjects: streams, metrics: perUnit(mode, "round trip", tripsStats),
		})
	}
	for _, size := range []int{24, 200} {
		windowed := &workload{
			name: fmt.Sprintf("chunks/%s/%d", mode, size), mode: mode,
			title: fmt.Sprintf("stream of %d-byte chunks, %d per prompt, %s", size, survivable, where),
			op:    op{Kind: "updates", Verb: "updates", Size: size, Window: survivable, Millis: 300}, quick: 70,
			subjects: streams, metrics: perUnit(mode, "chunk", updateStats),
		}
		flood := *windowed
		flood.name = fmt.Sprintf("flood/%s/%d", mode, size)
		flood.title = fmt.Sprintf("stream of %d-byte chunks, 100,000 per prompt, %s", size, where)
		flood.op.Window = 100_000
		flood.windows = map[string]int{"coder": survivable, tsName: 5000}
		flood.note = fmt.Sprintf("coder/acp-go-sdk queues 1024 updates and then ends the connection, so it still gets %d per prompt here; TypeScript 5,000.", survivable)
		out = append(out, windowed, &flood)
	}
	out = append(out, &workload{
		name: "diffs/" + mode, mode: mode,
		title: "stream of tool_call_update with a 10 kB diff, 250 per prompt, " + where,
		op:    op{Kind: "updates", Verb: "diffs", Window: 250, Millis: 400}, quick: 100,
		subjects: subjects, metrics: perUnit(mode, "update", updateStats),
	})
	for _, file := range []string{"code", "plain"} {
		what := map[string]string{"code": "source code (an escape per 10 bytes)", "plain": "plain text (an escape per 100 bytes)"}[file]
		out = append(out, &workload{
			name: "read8/" + mode + "/" + file, mode: mode,
			title: "fs/read_text_file of 8 MB of " + what + ", " + where,
			op:    op{Kind: "read", File: file, Size: 8_000_000, Millis: 200}, quick: 50,
			subjects: subjects, metrics: perByte(mode, readStats),
		})
	}
	if mode == "two" {
		for _, file := range []string{"code", "plain"} {
			out = append(out, &workload{
				name: "read64/two/" + file, mode: mode,
				title: "fs/read_text_file of 64 MB of " + map[string]string{"code": "source code", "plain": "plain text"}[file] + ", " + where,
				op:    op{Kind: "read", File: file, Size: 64_000_000, Millis: 1}, quick: 1,
				subjects: subjects, rounds: 3, quickRounds: 1, metrics: perByte(mode, readStats),
				note: "The frame limit is 128 MiB in ours (default 64 MiB) and in the TypeScript SDK (default 32 MiB); that of coder/acp-go-sdk is 10 MiB and fixed.",
			})
		}
	}
	return out
}

// netWorkloads are those over the network: the agent is a server on the loopback
// interface, in a process of its own. Ours is package acp with acphttp or acpws.
func netWorkloads(mode string) []*workload {
	where := map[string]string{"http": "Streamable HTTP (HTTP/1.1)", "ws": "WebSocket"}[mode]
	idleNote := "Each has a session, and has had one prompt."
	if mode == "http" {
		idleNote += " That is three connections of TCP: two streams, and one that our client keeps for its next message."
	}
	note := "Bare coder/websocket moves the same messages, one write each, and understands nothing."
	subjects := []string{"ours", tsName, "bare"}
	streams := subjects
	if mode == "http" {
		note = "Bare net/http moves the same bytes and understands nothing. It flushes once for each 64 kB, or event by event."
		streams = []string{"ours", tsName, "bare", "each"}
	}
	return []*workload{
		{
			name: "trips/" + mode, title: "prompt round trip, 1 caller, over " + where, mode: mode,
			op: op{Kind: "trips", Callers: 1, Millis: 300}, quick: 70,
			subjects: subjects, metrics: perUnit(mode, "round trip", tripsStats), note: note,
		},
		{
			name: "chunks/" + mode, title: fmt.Sprintf("stream of 24-byte chunks, %d per prompt, over %s", survivable, where), mode: mode,
			op: op{Kind: "updates", Verb: "updates", Size: 24, Window: survivable, Millis: 300}, quick: 70,
			subjects: streams, metrics: perUnit(mode, "chunk", updateStats), note: note,
		},
		{
			name: "idle/" + mode, title: "1,000 idle connections over " + where + ": what the server holds for each", mode: mode,
			op:       op{Kind: "idle", Count: 1000},
			subjects: []string{"ours", tsName}, rounds: 3, quickRounds: 1,
			metrics: []metric{
				{key: "heap", label: "heap per connection, kB", lower: true, ratio: true},
				{key: "stack", label: "stacks per connection, kB", lower: true},
				{key: "rss", label: "resident per connection, kB", lower: true, ratio: true},
				{key: "goroutines", label: "goroutines per connection", lower: true},
				{key: "files", label: "open files per connection", lower: true},
			},
			note: idleNote,
		},
	}
}
