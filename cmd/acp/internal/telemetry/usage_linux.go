package telemetry

import (
	"math"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ticks is in how many parts /proc counts a second: USER_HZ, which is the same on every architecture Go knows.
const ticks = 100

// usageNow reads what proc(5) describes.
func usageNow() usage {
	u := usage{}
	// The name of the program, in parentheses, may have spaces: the third field follows the last parenthesis.
	stat := read("/proc/self/stat")
	if f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]); len(f) >= 22 {
		field := func(n int) float64 { return float(f[n-3]) } // n counts from 1, as the manual does
		u["process_cpu_seconds_total"] = (field(14) + field(15)) / ticks
		u["process_virtual_memory_bytes"] = field(23)
		u["process_resident_memory_bytes"] = field(24) * float64(os.Getpagesize())
		if _, boot, ok := strings.Cut(read("/proc/stat"), "\nbtime "); ok {
			at, _, _ := strings.Cut(boot, "\n")
			u["process_start_time_seconds"] = float(at) + field(22)/ticks
		}
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		u["process_open_fds"] = float64(len(open) - 1) // without the one that reads the folder
	}
	for name, what := range map[string]int{"process_max_fds": unix.RLIMIT_NOFILE, "process_virtual_memory_max_bytes": unix.RLIMIT_AS} {
		var limit unix.Rlimit
		if unix.Getrlimit(what, &limit) == nil {
			u[name] = float64(limit.Cur)
			if limit.Cur == unix.RLIM_INFINITY {
				u[name] = math.MaxUint64
			}
		}
	}
	u.network(read("/proc/self/net/netstat"))
	return u
}

// network reads two of the counters of a netstat file, in which a line has the names and the next one the numbers.
func (u usage) network(text string) {
	var names []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "IpExt:" {
			continue
		}
		for i := range min(len(f), len(names)) {
			switch names[i] {
			case "InOctets":
				u["process_network_receive_bytes_total"] = float(f[i])
			case "OutOctets":
				u["process_network_transmit_bytes_total"] = float(f[i])
			}
		}
		names = f
	}
}

// read returns a file of the kernel, or "" if there is none.
func read(name string) string {
	b, _ := os.ReadFile(name)
	return string(b)
}
