package telemetry

import (
	"runtime"
	"runtime/debug"
	system "runtime/metrics"
	"strconv"
	"time"
)

// golang writes the metrics of the Go runtime. Their names are those of Prometheus' client for Go, which dashboards
// go by.
func (p *page) golang() {
	gc := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&gc)
	const pauses = "go_gc_duration_seconds"
	p.head(Metric{Name: pauses, Type: "summary", Help: "Pauses of the program for the garbage collector."})
	for i, d := range gc.PauseQuantiles {
		p.line(pauses, []string{"quantile"}, []string{number(float64(i) / 4)}, d.Seconds())
	}
	p.line(pauses+"_sum", nil, nil, gc.PauseTotal.Seconds())
	p.line(pauses+"_count", nil, nil, float64(gc.NumGC))
	const info = "go_info"
	p.head(Metric{Name: info, Type: "gauge", Help: "1; the label has the version of Go."})
	p.line(info, []string{"version"}, []string{runtime.Version()}, 1)

	read := []system.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	system.Read(read)
	for i, m := range []struct{ name, help string }{
		{"go_gc_gogc_percent", "GOGC: how much the heap grows until it is collected."},
		{"go_gc_gomemlimit_bytes", "GOMEMLIMIT: the limit of memory."},
	} {
		if read[i].Value.Kind() == system.KindUint64 {
			p.one(m.name, "gauge", m.help, float64(read[i].Value.Uint64()))
		}
	}
	threads, _ := runtime.ThreadCreateProfile(nil)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	for _, v := range []struct {
		name, help string
		value      float64
	}{
		{"go_goroutines", "Goroutines.", float64(runtime.NumGoroutine())},
		{"go_threads", "Threads that were made.", float64(threads)},
		{"go_sched_gomaxprocs_threads", "GOMAXPROCS: threads that run Go code at once.", float64(runtime.GOMAXPROCS(0))},
		{"go_memstats_alloc_bytes", "The heap that is in use.", float64(m.Alloc)},
		{"go_memstats_buck_hash_sys_bytes", "Tables of profiles.", float64(m.BuckHashSys)},
		{"go_memstats_gc_sys_bytes", "Tables of the garbage collector.", float64(m.GCSys)},
		{"go_memstats_heap_alloc_bytes", "The heap that is in use.", float64(m.HeapAlloc)},
		{"go_memstats_heap_idle_bytes", "The heap that waits to be used.", float64(m.HeapIdle)},
		{"go_memstats_heap_inuse_bytes", "Spans of the heap that are in use.", float64(m.HeapInuse)},
		{"go_memstats_heap_objects", "Objects in the heap.", float64(m.HeapObjects)},
		{"go_memstats_heap_released_bytes", "The heap that was given back to the system.", float64(m.HeapReleased)},
		{"go_memstats_heap_sys_bytes", "The heap that was got from the system.", float64(m.HeapSys)},
		{"go_memstats_last_gc_time_seconds", "When garbage was last collected, since 1970.", float64(m.LastGC) / 1e9},
		{"go_memstats_mcache_inuse_bytes", "Caches of the allocator that are in use.", float64(m.MCacheInuse)},
		{"go_memstats_mcache_sys_bytes", "Caches of the allocator.", float64(m.MCacheSys)},
		{"go_memstats_mspan_inuse_bytes", "Tables of spans that are in use.", float64(m.MSpanInuse)},
		{"go_memstats_mspan_sys_bytes", "Tables of spans.", float64(m.MSpanSys)},
		{"go_memstats_next_gc_bytes", "The size of the heap at which garbage is collected.", float64(m.NextGC)},
		{"go_memstats_other_sys_bytes", "Other memory of the runtime.", float64(m.OtherSys)},
		{"go_memstats_stack_inuse_bytes", "Stacks that are in use.", float64(m.StackInuse)},
		{"go_memstats_stack_sys_bytes", "Stacks.", float64(m.StackSys)},
		{"go_memstats_sys_bytes", "All that was got from the system.", float64(m.Sys)},
	} {
		p.one(v.name, "gauge", v.help, v.value)
	}
	p.one("go_memstats_alloc_bytes_total", "counter", "Memory that was allocated, in all.", float64(m.TotalAlloc))
	p.one("go_memstats_mallocs_total", "counter", "Objects that were allocated.", float64(m.Mallocs))
	p.one("go_memstats_frees_total", "counter", "Objects that were freed.", float64(m.Frees))
}

// A usage is what a process uses of the system, by the name of the metric. What the system does not say is missing.
type usage map[string]float64

// process writes the metrics of the process, with the names of Prometheus' client for Go.
func (p *page) process() {
	now := usageNow()
	for _, m := range []struct{ name, kind, help string }{
		{"process_cpu_seconds_total", "counter", "Time of processors, user and system."},
		{"process_max_fds", "gauge", "How many files may be open."},
		{"process_network_receive_bytes_total", "counter", "Received in the network that the process is in."},
		{"process_network_transmit_bytes_total", "counter", "Sent in the network that the process is in."},
		{"process_open_fds", "gauge", "Files that are open."},
		{"process_resident_memory_bytes", "gauge", "Memory that is resident."},
		{"process_start_time_seconds", "gauge", "When the process began, since 1970."},
		{"process_virtual_memory_bytes", "gauge", "Virtual memory."},
		{"process_virtual_memory_max_bytes", "gauge", "How much virtual memory may be had."},
	} {
		if v, ok := now[m.name]; ok {
			p.one(m.name, m.kind, m.help, v)
		}
	}
}

// float parses a number of the system, which is 0 if it is none.
func float(s string) float64 {
	v, _ := strconv.ParseFloat(s, 64)
	return v
}
