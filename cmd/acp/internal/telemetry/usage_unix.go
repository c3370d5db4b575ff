//go:build unix && !linux

package telemetry

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// begun is about when the process began.
var begun = time.Now()

// usageNow asks for what systems have in common.
func usageNow() usage {
	u := usage{"process_start_time_seconds": float64(begun.UnixMilli()) / 1000}
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) == nil {
		u["process_cpu_seconds_total"] = float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		u["process_max_fds"] = float64(limit.Cur)
	}
	if open, err := os.ReadDir("/dev/fd"); err == nil {
		u["process_open_fds"] = float64(len(open) - 1) // without the one that reads the folder
	}
	return u
}
