package pty

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/goacp/acp/internal/process"
)

func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// A tree is the processes of a session and the descendants of its leader, each with the time at
// which it was started, which tells it apart from a process that got its number later.
type tree map[int]string

// A proc is a process as of one look at /proc.
type proc struct {
	parent, group, session int
	zombie                 bool
	start                  string
}

// snapshot returns all processes. It returns none if the numbers in /proc are those of another PID
// namespace.
func snapshot() map[int]proc {
	if !process.Numbered() {
		return nil
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	procs := make(map[int]proc, len(dirs))
	for _, d := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(d)); err == nil {
			if p, ok := stat(pid); ok {
				procs[pid] = p
			}
		}
	}
	return procs
}

// findTree finds the processes of a session.
func findTree(session int) tree {
	procs := snapshot()
	t := tree{}
	for pid, p := range procs {
		in := pid == session || p.session == session
		for up, hops := p.parent, 0; !in && up > 1 && hops < len(procs); hops++ {
			q, ok := procs[up]
			if !ok {
				break
			}
			in = up == session || q.session == session
			up = q.parent
		}
		if in && !p.zombie {
			t[pid] = p.start
		}
	}
	return t
}

// holders are processes that keep the number of an ended command from being reused: those that were
// in its session or its group when it was reaped.
type holders struct {
	session int
	by      tree
}

// holdersOf returns the processes in a session or a group of that number.
func holdersOf(session int) holders {
	h := holders{session, tree{}}
	for pid, p := range snapshot() {
		if p.session == session || p.group == session {
			h.by[pid] = p.start
		}
	}
	return h
}

// any reports whether one of them still exists. What they have started since may hold the number as
// well, but cannot be distinguished from processes of somebody else who was given it.
func (h holders) any() bool {
	for pid, start := range h.by {
		if p, ok := stat(pid); ok && p.start == start && (p.session == h.session || p.group == h.session) {
			return true
		}
	}
	return false
}

// killTree kills the processes of a session and the descendants of its leader. It stops them first,
// until there are no new ones: if they were killed one after another, those that still run could
// start others, which cannot be found once their parents have ended.
func killTree(leader, group int) {
	all := tree{}
	for range maxRounds {
		found, before := findTree(leader), len(all)
		if all.add(found); len(all) == before {
			break
		}
		found.signal(group, syscall.SIGSTOP)
	}
	if group > 1 { // what is left of processes that ended earlier
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
	all.signal(group, syscall.SIGKILL)
}

// maxRounds bounds the search for processes that are started meanwhile.
const maxRounds = 16

// marked returns the processes that have a mark.
func marked(m process.Mark) tree { return m.Find() }

func (t tree) add(more tree) {
	for pid, start := range more {
		t[pid] = start
	}
}

// signal sends a signal to those that still exist, and returns how many these are.
func (t tree) signal(_ int, sig syscall.Signal) (n int) {
	for pid, start := range t {
		// The handle is taken before the process is examined, so that the process which was
		// examined gets the signal.
		h, err := os.FindProcess(pid)
		if err != nil {
			delete(t, pid)
			continue
		}
		if p, ok := stat(pid); ok && p.start == start && !p.zombie {
			if h.Signal(sig) == nil {
				n++
			}
		} else {
			delete(t, pid)
		}
		_ = h.Release()
	}
	return n
}

// stat parses "pid (name) state parent group session … start …". The name may contain anything.
func stat(pid int) (proc, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	f := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(f) < 20 {
		return proc{}, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	group, err2 := strconv.Atoi(string(f[2]))
	session, err3 := strconv.Atoi(string(f[3]))
	return proc{parent, group, session, f[0][0] == 'Z' || f[0][0] == 'X', string(f[19])}, err1 == nil && err2 == nil && err3 == nil
}
