// Command gateway measures acp serve as a gateway: the real program as a process, with an agent and clients in
// other processes, over the loopback interface. It writes bench/GATEWAY.md.
//
//	npm ci                # in the directory above, once, for the TypeScript SDK
//	go run ./gateway      # everything, about ten minutes
//	go run ./gateway -quick
//	go run ./gateway -write
//	go run ./gateway -kept
//	go run ./gateway -only G3
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		exit(runAgent(os.Args[2:]))
	}
	exit(run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/gateway:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A measurement is one of the criteria.
type measurement struct {
	id    string
	title string
	what  string // what is done, for the report
	run   func(context.Context, *bench) ([]row, error)
}

// A row is a figure.
type row struct {
	what   string
	value  string
	target string // "" if there is none
	met    bool
	scaled scaled // the same target for this machine
	note   string
}

// measurements are in the order of the report.
func measurements() []measurement {
	return []measurement{
		{"machine", "What scales the targets", machineText, machine},
		{"G1, G2", "Latency of an update, from the agent to a watcher", latencyText, latency},
		{"G3", "One session, 100 watchers", fanText, fan},
		{"G4", "Many sessions at once", crowdText, crowd},
		{"G5", "Replay of 10,000 updates, cold", replayText, replay},
		{"G6", "Replay of 100,000 updates to a slow reader", slowText, slow},
		{"G8", "The network is gone for a while", flapText, flap},
		{"G10", "The server is restarted between turns", restartText, restart},
		{"G11", "Five clients answer one question", askText, ask},
		{"G14", "10,000 stored sessions, 500 watchers", storedText, stored},
		{"G15", "4,000 connections are opened and dropped", droppedText, dropped},
		{"stall", "A watcher stalls for a minute", stallText, stall},
		{"G22", "Memory of an idle server, size of the program", sizeText, size},
	}
}

func run() error {
	var quick, write, kept bool
	var only string
	flag.BoolVar(&quick, "quick", false, "much shorter, to see that it works")
	flag.BoolVar(&write, "write", false, "write GATEWAY.md; not with -only")
	flag.BoolVar(&kept, "kept", false, "measure nothing: write those parts of GATEWAY.md anew whose figures are in files")
	flag.StringVar(&only, "only", "", "measure what matches this `regexp`")
	flag.Parse()
	match, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if write && (only != "" || quick) {
		return fmt.Errorf("-write needs everything to be measured")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if kept {
		return rewrite(ctx)
	}
	b, err := newBench(ctx, quick)
	if err != nil {
		return err
	}
	defer b.close()
	begin := time.Now()
	var results []result
	for _, m := range measurements() {
		if !match.MatchString(m.id) {
			continue
		}
		start := time.Now()
		rows, err := m.run(ctx, b)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r := result{m, rows, err}
		results = append(results, r)
		fmt.Printf("%s (%s)\n\n", r.text(), time.Since(start).Round(time.Second))
	}
	if write {
		return b.write(results, time.Since(begin))
	}
	for _, r := range results {
		if r.err != nil {
			return fmt.Errorf("%s: %w", r.id, r.err)
		}
	}
	return nil
}
