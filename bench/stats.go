package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// stats is what a process knows about itself.
type stats struct {
	CPU        int64  `json:"cpu"` // microseconds
	Mallocs    uint64 `json:"mallocs"`
	TotalAlloc uint64 `json:"totalAlloc"`
	Heap       uint64 `json:"heap"`
	Stack      uint64 `json:"stack"`
	RSS        int64  `json:"rss"`
	Goroutines int    `json:"goroutines"`
	Files      int    `json:"files"`
}

func (s stats) String() string {
	b, _ := json.Marshal(s)
	return string(b)
}

// workStats tells what has been spent so far.
func workStats() stats {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return stats{CPU: cpuTime(), Mallocs: m.Mallocs, TotalAlloc: m.TotalAlloc}
}

// cpuTime returns the process's time on a CPU, in microseconds.
func cpuTime() int64 {
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return (ru.Utime.Nano() + ru.Stime.Nano()) / 1000
}

// restStats tells what is held, after collecting garbage.
func restStats() stats {
	var m runtime.MemStats
	for range 3 { // pools survive one collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return stats{
		Heap:       m.HeapAlloc,
		Stack:      m.StackInuse,
		RSS:        residentSize(),
		Goroutines: runtime.NumGoroutine(),
		Files:      openFiles(),
	}
}

// residentSize returns the resident set in bytes, or 0 where the system does
// not tell.
func residentSize() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := bytes.Fields(b)
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(string(f[1]), 10, 64)
	return n * int64(os.Getpagesize())
}

// openFiles counts the process's descriptors, or returns 0 where the system
// does not tell.
func openFiles() int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(d) - 1 // the directory itself
}
