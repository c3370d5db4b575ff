package acptest

import (
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	leakLabel = "acptest"
	// leakWait is how long goroutines that have nothing left to do may take to end.
	// There is no event to wait for.
	leakWait = 5 * time.Second
)

var (
	watched  sync.Map // of tests that are watched
	watchers atomic.Int64
)

// watch makes the test fail if goroutines of this module that are started from now on,
// directly or indirectly, are left when it ends. Goroutines inherit the labels of those
// that start them. One watch serves a whole test, because its cleanup runs after those of
// the connections that the test opens later.
func watch(tb testing.TB) {
	tb.Helper()
	if _, already := watched.LoadOrStore(tb, true); already {
		return
	}
	id := fmt.Sprint(watchers.Add(1))
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(leakLabel, id)))
	tb.Cleanup(func() {
		watched.Delete(tb)
		pprof.SetGoroutineLabels(context.Background())
		for pause := time.Millisecond; ; pause *= 2 {
			left := labelled(id)
			switch {
			case left == "":
				return
			case pause > leakWait/2:
				tb.Errorf("acptest: goroutines are left:\n%s", left)
				return
			}
			time.Sleep(pause) // in a bubble: until all others wait
		}
	})
}

// labelled returns the stacks of the goroutines with a label that run code of
// this module's connections.
func labelled(id string) string {
	var all strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return err.Error()
	}
	label := fmt.Sprintf("%q:%q", leakLabel, id)
	has := func(g string, frames ...string) bool {
		return slices.ContainsFunc(frames, func(f string) bool { return strings.Contains(g, "github.com/goacp/acp"+f) })
	}
	var left []string
	for g := range strings.SplitSeq(all.String(), "\n\n") {
		// Scripts end in their own cleanup; the test itself runs this function.
		if strings.Contains(g, label) && has(g, ".", "/jsonrpc.") && !has(g, "/acptest.(*player)", "/acptest.(*pump)", "/acptest.labelled") {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}
