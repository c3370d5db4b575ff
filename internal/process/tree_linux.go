package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// strays are descendants of a child that are not in its group, by number. The
// time at which a process was started tells it from another that was given its
// number later.
type strays map[int]string

// find adds the descendants of the child, of what is in its group and of the
// strays that are known, and reports whether there was a new one.
func (s *strays) find(child, group int) bool {
	if group == 0 && len(*s) == 0 {
		return false
	}
	procs := snapshot()
	found := false
	for pid, p := range procs {
		if p.group == group || pid == child || (*s)[pid] == p.start {
			continue
		}
		for up, hops := p.parent, 0; up > 1 && hops < len(procs); hops++ {
			q, ok := procs[up]
			if !ok {
				break
			}
			if up == child || q.group == group || (*s)[up] == q.start {
				if *s == nil {
					*s = strays{}
				}
				(*s)[pid] = p.start
				found = true
				break
			}
			up = q.parent
		}
	}
	return found
}

func (s *strays) any() bool { return len(*s) > 0 }

func (s *strays) forget() { *s = nil }

func (s *strays) signal(sig syscall.Signal) {
	for pid, start := range *s {
		// The handle is taken before the process is looked at: then it is
		// the same process that gets the signal.
		h, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		if p, ok := stat(pid); ok && p.start == start {
			_ = h.Signal(sig)
		}
		_ = h.Release()
	}
}

type proc struct {
	parent, group int
	start         string // in clock ticks since the machine started
}

func snapshot() map[int]proc {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	procs := make(map[int]proc, len(dirs))
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil {
			continue
		}
		if p, ok := stat(pid); ok {
			procs[pid] = p
		}
	}
	return procs
}

func stat(pid int) (proc, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	return parseStat(data)
}

// parseStat reads "pid (name) state parent group … start …". The name may
// contain anything.
func parseStat(data []byte) (proc, bool) {
	_, rest, ok := bytes.Cut(data[bytes.LastIndexByte(data, ')')+1:], []byte(" "))
	f := bytes.Fields(rest)
	if !ok || len(f) < 20 {
		return proc{}, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	group, err2 := strconv.Atoi(string(f[2]))
	return proc{parent, group, string(f[19])}, err1 == nil && err2 == nil
}
