package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// strays are descendants of a child that are not in its group, by number. The
// time at which a process was started tells it from another that was given its
// number later.
type strays map[int]string

// find adds the descendants of the child, of what is in its group and of the
// strays that are known, and what has the mark of the tree. It reports whether
// there was a new one.
func (s *strays) find(child, group int, mark Mark) bool {
	if child == 0 && group == 0 && len(*s) == 0 && mark == "" {
		return false
	}
	procs := snapshot()
	found := s.among(procs, kin{
		child: child, group: group, above: above(),
		marked: mark.among(procs, func(pid int, p proc) bool { return p.group != group && pid != child && (*s)[pid] != p.start }),
		all:    mark != "", session: procs[os.Getpid()].session,
	})
	for _, pid := range found {
		if *s == nil {
			*s = strays{}
		}
		(*s)[pid] = procs[pid].start
	}
	return len(found) > 0
}

// kin says what makes a process a stray of a tree.
type kin struct {
	child, group int            // of the tree; 0 if there is none
	marked       []int          // have the mark of the tree
	all          bool           // sessions of their own are ended, too: see NoMark
	session      int            // of this process
	above        map[int]string // this process and its ancestors: never strays
}

// among returns which processes are strays that are not known yet. It decides by what it
// is given alone. A number of 0 is that of no process, group or session of the tree: in
// a PID namespace, /proc shows it for all groups and sessions that are outside.
func (s strays) among(procs map[int]proc, k kin) (found []int) {
	in := func(pid int, p proc) bool { // the tree, as far as it is known
		start, known := s[pid]
		return known && start == p.start || k.child > 1 && pid == k.child || k.group > 1 && p.group == k.group
	}
	descends := func(p proc) bool {
		for up, hops := p.parent, 0; up > 1 && hops < len(procs); hops++ {
			q, ok := procs[up]
			if !ok {
				return false
			}
			if in(up, q) {
				return true
			}
			up = q.parent
		}
		return false
	}
	child, there := procs[k.child]
	stays := func(p proc) bool {
		return !k.all && p.session != k.session && (k.group <= 1 || p.session != k.group) &&
			(!there || p.session != child.session)
	}
	for pid, p := range procs {
		if start, ok := k.above[pid]; pid <= 1 || ok && start == p.start || in(pid, p) {
			continue
		}
		if slices.Contains(k.marked, pid) || !stays(p) && descends(p) {
			found = append(found, pid)
		}
	}
	return found
}

// above returns this process and its ancestors. An orphan is given to an ancestor, so
// there are no new ones later.
var above = sync.OnceValue(func() map[int]string {
	out := map[int]string{}
	for pid := os.Getpid(); pid > 0 && out[pid] == ""; {
		p, ok := stat(pid)
		if !ok {
			break
		}
		out[pid] = p.start
		pid = p.parent
	}
	return out
})

const (
	// lookFor bounds a look at the environments of processes. One whose memory is
	// locked, as in the middle of reading from a disk that does not answer, blocks
	// whoever reads its environment.
	lookFor = 250 * time.Millisecond
	// maxLooks bounds the looks that are blocked so.
	maxLooks = 4
)

// A looker looks at the environments of processes.
type looker struct {
	read  func(pid int) ([]byte, error)
	under chan struct{} // holds one entry for each look that is under way
}

var environs = &looker{
	read: func(pid int) ([]byte, error) {
		return os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	},
	under: make(chan struct{}, maxLooks),
}

// among returns the processes that have a mark, of those for which f reports true. It
// returns after lookFor with what it has found by then, and finds nothing while
// maxLooks others are blocked. The environment of somebody else's process, or of one
// that has made itself unreadable, cannot be read.
func (m Mark) among(procs map[int]proc, f func(pid int, p proc) bool) (found []int) {
	return environs.marked(m, procs, f)
}

func (l *looker) marked(m Mark, procs map[int]proc, f func(pid int, p proc) bool) (found []int) {
	if m == "" {
		return nil
	}
	var pids []int
	for pid, p := range procs {
		if pid != os.Getpid() && !olderThanThis(p) && f(pid, p) {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		return nil
	}
	select {
	case l.under <- struct{}{}:
	default:
		return nil
	}
	has := make(chan int, len(pids)) // never blocks
	go func() {
		defer func() { <-l.under }()
		defer close(has)
		for _, pid := range pids {
			if env, err := l.read(pid); err == nil && m.isIn(string(env)) {
				has <- pid
			}
		}
	}()
	late := time.NewTimer(lookFor)
	defer late.Stop()
	for {
		select {
		case pid, more := <-has:
			if !more {
				return found
			}
			found = append(found, pid)
		case <-late.C:
			return found
		}
	}
}

// olderThanThis reports whether a process was started before this one, which then
// has not started it.
func olderThanThis(p proc) bool {
	this := thisStart()
	return len(p.start) < len(this) || len(p.start) == len(this) && p.start < this
}

var thisStart = sync.OnceValue(func() string {
	p, _ := stat(os.Getpid())
	return p.start
})

// Find returns the processes that have a mark, each with the time at which it was
// started, in clock ticks since the machine was: that tells it from another that
// was given its number later.
func (m Mark) Find() map[int]string {
	if m == "" {
		return nil
	}
	out := map[int]string{}
	procs := snapshot()
	for _, pid := range m.among(procs, func(int, proc) bool { return true }) {
		out[pid] = procs[pid].start
	}
	return out
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
	parent, group, session int
	start                  string // in clock ticks since the machine started
}

// numbered reports whether the numbers in /proc are those that this process uses for
// others. They are not if /proc was mounted in another PID namespace.
var numbered = sync.OnceValue(func() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
})

func snapshot() map[int]proc {
	if !numbered() {
		return nil
	}
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

// parseStat reads "pid (name) state parent group session … start …". The name may
// contain anything.
func parseStat(data []byte) (proc, bool) {
	_, rest, ok := bytes.Cut(data[bytes.LastIndexByte(data, ')')+1:], []byte(" "))
	f := bytes.Fields(rest)
	if !ok || len(f) < 20 {
		return proc{}, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	group, err2 := strconv.Atoi(string(f[2]))
	session, err3 := strconv.Atoi(string(f[3]))
	return proc{parent, group, session, string(f[19])}, err1 == nil && err2 == nil && err3 == nil
}
