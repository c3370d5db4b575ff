package process

import (
	"os"
	"sync"
	"syscall"
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
	found, _ := s.count(child, group, mark)
	return found
}

// count is find, and returns how many processes there are: what is in the group, except for
// its leader and the child, and the strays.
func (s *strays) count(child, group int, mark Mark) (isNew bool, there int) {
	if child == 0 && group == 0 && len(*s) == 0 && mark.text == "" {
		return false, 0
	}
	procs := looks().look(mark.since)
	k := kin{child: child, group: group, mark: mark, above: above()}
	if mark.text == "" {
		self, _ := stat(os.Getpid())
		k.session = self.session
	}
	found := s.among(procs, k)
	for _, pid := range found {
		if *s == nil {
			*s = strays{}
		}
		(*s)[pid] = procs[pid].start
	}
	for pid, p := range procs {
		start, stray := (*s)[pid]
		stray = stray && start == p.start
		if !p.zombie && pid != child && (stray || group > 1 && p.group == group && pid != group) {
			there++
		}
	}
	return len(found) > 0, there
}

// kin says what makes a process a stray of a tree.
type kin struct {
	child, group int            // of the tree; 0 if there is none
	mark         Mark           // without one, sessions of their own are kept: see NoMark
	session      int            // of this process; not used with a mark
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
		return k.mark.text == "" && p.session != k.session && (k.group <= 1 || p.session != k.group) &&
			(!there || p.session != child.session)
	}
	for pid, p := range procs {
		if start, ok := k.above[pid]; pid <= 1 || ok && start == p.start || in(pid, p) {
			continue
		}
		if k.mark.isIn(p.marks) || !stays(p) && descends(p) {
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
		p, err := stat(pid)
		if err != nil {
			break
		}
		out[pid] = p.start
		pid = p.parent
	}
	return out
})

func newMark(text string) Mark { return Mark{text, looks().seen()} }

// Find returns the processes that have a mark, each with the time at which it was
// started, in clock ticks since the machine was: that tells it from another that
// was given its number later.
func (m Mark) Find() map[int]string {
	if m.text == "" {
		return nil
	}
	out := map[int]string{}
	for pid, p := range looks().look(m.since) {
		if m.isIn(p.marks) {
			out[pid] = p.start
		}
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
		if p, err := stat(pid); err == nil && p.start == start {
			_ = h.Signal(sig)
		}
		_ = h.Release()
	}
}
