package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// What the targets were set for, or measured with.
const (
	targetProcessors = 4
	// peerReplay is how long the server on the TypeScript SDK takes for G5, in ms, on the machine of faster.md.
	peerReplay = 178
)

const machineText = "A target that is missed is scaled by the one thing that it depends on most. Throughput: by the number of processors, of four; they are also those of the clients here. A replay: by what the server on the TypeScript SDK takes for the same, on [the machine where the target was met](gateway/faster.md). Nothing else is scaled."

// A scaled target is one for this machine.
type scaled struct {
	target string // "" if nothing says how this machine compares
	met    bool
}

// atLeast is a target for something that should be as much.
func atLeast(least, is float64) scaled {
	return scaled{"≥ " + number(least) + "/s", is >= least}
}

// processors returns how many processors there are, as a part of those of the targets; at most 1.
func processors() float64 { return min(1, float64(runtime.NumCPU())/targetProcessors) }

func machine(_ context.Context, b *bench) (rows []row, err error) {
	all, err := b.appendSynced(500, b.pick(5000, 50))
	if err != nil {
		return nil, err
	}
	return []row{
		{what: "processors", value: fmt.Sprint(runtime.NumCPU()), note: fmt.Sprintf("of %d: %s", targetProcessors, number(processors()))},
		{what: "500 bytes are appended to a file and synced", value: fmt.Sprintf("p50 %s ms, p99 %s ms", number(ms(quantile(all, 0.5))), number(ms(quantile(all, 0.99)))), note: "what a prompt, a decision and an end wait for"},
	}, nil
}

// appendSynced returns how long it takes to append so many bytes to a file and to sync it, n times.
func (b *bench) appendSynced(size, n int) ([]time.Duration, error) {
	f, err := os.Create(filepath.Join(b.dir, "synced"))
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	data, all := make([]byte, size), make([]time.Duration, n)
	for i := range all {
		start := time.Now()
		_, err := f.Write(data)
		if err := errorsOf(err, f.Sync()); err != nil {
			return nil, err
		}
		all[i] = time.Since(start)
	}
	return all, nil
}
