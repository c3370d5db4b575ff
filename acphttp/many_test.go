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
	agent := remotetest.Counting()
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
	round(100) // what is made once
	goroutines, files := settled(), openFiles()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	round(count)
	if began.Load() != ended.Load() || began.Load() != int64(count+100) {
		t.Errorf("%d began, %d ended", began.Load(), ended.Load())
	}
	if got := settled(); got > goroutines+5 {
		t.Errorf("%d goroutines, before there were %d", got, goroutines)
	}
	if got := openFiles(); got > files+5 {
		t.Errorf("%d open files, before there were %d", got, files)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

// settled counts the goroutines once their number no longer falls: those of net/http
// end some time after their connections.
func settled() int {
	least := runtime.NumGoroutine()
	for same := 0; same < 50; same++ {
		time.Sleep(time.Millisecond)
		if n := runtime.NumGoroutine(); n < least {
			least, same = n, 0
		}
	}
	return least
}

// openFiles counts the process's descriptors, where the system shows them.
func openFiles() int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(d)
}
