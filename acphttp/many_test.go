package acphttp_test

import (
	"context"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/remotetest"
)

// TestMany opens connections whose clients vanish, with and without a word. Each ends
// after the grace, and nothing of it is left.
func TestMany(t *testing.T) {
	count := 10_000
	if !long.All() {
		count = 1000
	}
	agent := remotetest.Counting(t)
	var began, ended atomic.Int64
	var all sync.WaitGroup
	s := &acphttp.Server{
		Serve: func(ctx context.Context, t acp.Transport) error {
			began.Add(1)
			defer all.Done()
			defer ended.Add(1)
			return agent.Serve(ctx, t)
		},
		Limits: acphttp.Limits{IdleTimeout: 500 * time.Millisecond, MaxConnections: count},
	}
	url := serve(t, s)
	round := func(n int) {
		all.Add(n)
		var clients sync.WaitGroup
		for w := range 20 {
			clients.Go(func() {
				c := newRaw(t, url)
				for i := w; i < n; i += 20 {
					c.connection = ""
					c.initialize()
					if i%2 == 0 { // says goodbye
						c.status(http.MethodDelete, "")
					} else if i%3 == 0 { // had a stream
						c.status(http.MethodGet, "")
					}
				}
				c.client.CloseIdleConnections()
			})
		}
		clients.Wait()
		if t.Failed() { // then not all have begun
			t.FailNow()
		}
		all.Wait()
	}
	goroutines, files := runtime.NumGoroutine(), openFiles()
	round(100) // what is made once
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	round(count)
	if began.Load() != ended.Load() || began.Load() != int64(count+100) {
		t.Errorf("%d began, %d ended", began.Load(), ended.Load())
	}
	if got := fallen(runtime.NumGoroutine, goroutines+5); got > goroutines+5 {
		t.Errorf("%d goroutines, before there were %d", got, goroutines)
	}
	if got := fallen(openFiles, files+5); got > files+5 {
		t.Errorf("%d open files, before there were %d", got, files)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

// fallen waits until a number is at most a limit, and returns it. Those of net/http fall
// some time after its connections have ended. Only a failure waits for the minute.
func fallen(count func() int, limit int) int {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		if n := count(); n <= limit || time.Now().After(end) {
			return n
		}
	}
}

// openFiles counts the process's descriptors, where the system shows them.
func openFiles() int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(d)
}
