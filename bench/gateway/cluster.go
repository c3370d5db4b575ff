package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The targets of G9, in seconds.
const (
	backTarget  = 3.0
	ownerTarget = 25.0
)

// A nodeFault is what `make bench-cluster` has found of a fault.
type nodeFault struct {
	Fault                                                                  string
	Lease, Back, Owner, Silence                                            float64
	Again, Moved, Sessions, Notices, Prompts, Records, Seen, Lost, Doubled int
	Failed                                                                 int
	Turns                                                                  map[string]int
}

// A delay is how long updates took that a standby had to confirm, in milliseconds, from the agent to a client.
type delay struct {
	Latency       string // whose
	Updates       int
	P50, P99, Max float64
}

// delayTarget is that of G2 with standbys, for the 99th percentile, in milliseconds.
const delayTarget = 25.0

// drainTarget is that of G10, in seconds, and drained the fault that it is about.
const (
	drainTarget = 2.0
	drained     = "a gateway is drained"
)

// nodes writes what `make bench-cluster` has found, which needs PostgreSQL.
func nodes(dir string, t *bytes.Buffer) error {
	data, err := os.ReadFile(filepath.Join(dir, "cluster.jsonl"))
	if errors.Is(err, os.ErrNotExist) { // it was not measured
		return nil
	}
	if err != nil {
		return err
	}
	var all []nodeFault
	var delays []delay
	for line := range bytes.Lines(data) {
		var f struct {
			nodeFault
			delay
		}
		if err := json.Unmarshal(line, &f); err != nil {
			return err
		}
		if f.Latency != "" {
			delays = append(delays, f.delay)
		} else {
			all = append(all, f.nodeFault)
		}
	}
	if len(delays) > 0 {
		t.WriteString("\n## G2: Latency with two synchronous standbys\n\nBy `make bench-cluster`. An agent says 500 bytes every 5 ms, and one of two standbys must confirm each record before a client sees it; three gateways and three PostgreSQL servers are processes on the same cores.\n\n| a client | | target | |\n|---|---|---|---|\n")
		for _, d := range delays {
			fmt.Fprintf(t, "| %s | p50 %.2f ms, p99 %.2f ms, at most %.1f ms, of %d | p99 ≤ %.0f ms | %s |\n", cell(d.Latency), d.P50, d.P99, d.Max, d.Updates, delayTarget, met(d.P99 <= delayTarget))
		}
	}
	for _, f := range all {
		if f.Fault == drained {
			fmt.Fprintf(t, "\n## G10: A node is drained\n\nBy `make bench-cluster`. `acp node drain` at one of three nodes, whose clients send one prompt after the other; the next ones run at another node. The pause is the longest time in which a watcher was sent nothing new, with the start of an agent.\n\n| | | target | |\n|---|---|---|---|\n| sessions that moved | %d | | after %.2f s the last one |\n| pause | %.2f s | ≤ %.0f s | %s |\n| prompts that failed | %d of %d | 0 | %s |\n| clients that had to connect again | %d | 0 | %s |\n", f.Moved, f.Owner, f.Silence, drainTarget, met(f.Silence <= drainTarget), f.Failed, f.Prompts, met(f.Failed == 0), f.Again, met(f.Again == 0))
		}
	}
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintf(t, "\n## G9: Nodes that share PostgreSQL\n\nBy `make bench-cluster`; the time is in the history of cluster.jsonl. Three gateways and three PostgreSQL servers, of which two are standbys, are processes on the same two cores, and the network between them are proxies. Each of %d sessions has a client that prompts and one that watches, of both versions and on different nodes; a lease is %.0f s, and what is paused, cut off or held and then comes back by itself is away for two. Times are from the moment of the fault: until the last client that lost its node had loaded the session from another one (target ≤ %.0f s), until the last session that got another owner had it (≤ %.0f s), and for how long at most a watcher was sent nothing new, which includes the lease and the start of an agent; a watcher on the node that is away waits for it. Lost is what a client has seen and the log has not; doubled is what is in the log twice, a prompt that ran twice or a question that was answered twice.\n\n", all[0].Sessions, all[0].Lease, backTarget, ownerTarget)
	t.WriteString("| what happens | clients back | owner moved | longest silence | turns under way ended as | notices | prompts | records | seen | lost | doubled |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(t, "| %s | %s | %s | %.1f s | %s | %d | %d | %d | %d | %d | %d |\n", cell(f.Fault), reached(f.Again, f.Back, backTarget), reached(f.Moved, f.Owner, ownerTarget), f.Silence, f.ended(), f.Notices, f.Prompts, f.Records, f.Seen, f.Lost, f.Doubled)
	}
	return nil
}

// met writes whether a target is met.
func met(is bool) string {
	if is {
		return "met"
	}
	return "missed"
}

// reached writes how many have come to something, and after how long the last one.
func reached(n int, seconds, target float64) string {
	switch {
	case n == 0:
		return "–"
	case seconds > target:
		return fmt.Sprintf("%d, %.2f s, missed", n, seconds)
	}
	return fmt.Sprintf("%d, %.2f s", n, seconds)
}

// ended writes how the turns have ended that were under way.
func (f *nodeFault) ended() string {
	var all []string
	for _, outcome := range slices.Sorted(maps.Keys(f.Turns)) {
		all = append(all, fmt.Sprintf("%d %s", f.Turns[outcome], outcome))
	}
	return cell(strings.Join(all, ", "))
}
