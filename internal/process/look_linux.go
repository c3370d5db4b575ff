package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// lookFor bounds how long a look waits for the environment of one process. A process
	// whose memory is locked, as in the middle of reading from a disk that does not answer,
	// blocks the reader of its environment.
	lookFor = 250 * time.Millisecond
	// maxBlocked bounds the readers that are blocked so.
	maxBlocked = 4
)

// A looker looks at processes. There is one look at a time; it serves all callers that have
// asked for one before it begins.
//
// A look waits for the environment of each process for at most lookFor. Later looks skip
// that of a process whose reader is still blocked. While maxBlocked readers are blocked,
// looks read no environments and so find no marks.
type looker struct {
	list    func() map[int]proc  // the processes, without their marks
	environ func(pid int) []byte // the environment of one, as in /proc
	looking chan struct{}        // holds one entry during a look

	mu      sync.Mutex
	next    *scan        // the one that has not begun; nil until a caller asks for it
	blocked map[int]bool // the processes whose readers are blocked
}

// A scan is what one look finds. The looker's looking guards it.
type scan struct{ procs map[int]proc }

var looks = newLooker(snapshot, environ)

func newLooker(list func() map[int]proc, environ func(pid int) []byte) *looker {
	return &looker{list: list, environ: environ, looking: make(chan struct{}, 1), blocked: map[int]bool{}}
}

// look returns the processes as of a moment after it was called. All callers that share
// the look share the map, so they must not change it.
func (l *looker) look() map[int]proc {
	l.mu.Lock()
	if l.next == nil {
		l.next = new(scan)
	}
	s := l.next
	l.mu.Unlock()

	l.looking <- struct{}{}
	defer func() { <-l.looking }()
	if s.procs == nil { // no other caller has looked
		l.mu.Lock()
		l.next = nil
		l.mu.Unlock()
		s.procs = l.list()
		l.readMarks(s.procs)
	}
	return s.procs
}

// readMarks sets the marks of processes.
func (l *looker) readMarks(procs map[int]proc) {
	var pids []int
	l.mu.Lock()
	for pid, p := range procs {
		if pid != os.Getpid() && !olderThanThis(p) && !l.blocked[pid] {
			pids = append(pids, pid)
		}
	}
	l.mu.Unlock()
	for len(pids) > 0 && l.mayRead() {
		pids = pids[l.readUntilBlocked(pids, procs):]
	}
}

func (l *looker) mayRead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.blocked) < maxBlocked
}

// readUntilBlocked sets the marks of processes until one blocks the reader. It returns how
// many it is done with, including that one.
func (l *looker) readUntilBlocked(pids []int, procs map[int]proc) int {
	has, left := make(chan string), make(chan struct{})
	go func() {
		for _, pid := range pids {
			marks := marksIn(l.environ(pid))
			select {
			case has <- marks:
			case <-left:
				l.mu.Lock()
				delete(l.blocked, pid)
				l.mu.Unlock()
				return
			}
		}
	}()
	const ticks = 10 // while the whole program does not run, only one passes
	ticker := time.NewTicker(lookFor / ticks)
	defer ticker.Stop()
	passed := 0
	for done := 0; done < len(pids); {
		pid := pids[done]
		select {
		case marks := <-has:
			p := procs[pid]
			p.marks = marks
			procs[pid] = p
			done, passed = done+1, 0
		case <-ticker.C:
			if passed++; passed < ticks {
				continue
			}
			l.mu.Lock()
			l.blocked[pid] = true
			l.mu.Unlock()
			close(left)
			return done + 1
		}
	}
	return len(pids)
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

// numbered reports whether the numbers in /proc are those that this process uses for
// others. They are not if /proc was mounted in another PID namespace.
var numbered = sync.OnceValue(func() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
})

// A proc is a process as of a look.
type proc struct {
	parent, group, session int
	start                  string // in clock ticks since the machine started
	marks                  string // separated by colons
}

func snapshot() map[int]proc {
	procs := map[int]proc{}
	if !numbered() {
		return procs
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
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
	f := fields(pid)
	if len(f) < 20 {
		return proc{}, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	group, err2 := strconv.Atoi(string(f[2]))
	session, err3 := strconv.Atoi(string(f[3]))
	return proc{parent: parent, group: group, session: session, start: string(f[19])},
		err1 == nil && err2 == nil && err3 == nil
}

// fields returns what follows the name in "pid (name) state parent group session … start …",
// which may contain anything, or nil if there is no such process.
func fields(pid int) [][]byte {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
}

// environ returns the environment of a process. That of another user's process, or of one
// that has made itself unreadable, cannot be read.
func environ(pid int) []byte {
	name := "/proc/" + strconv.Itoa(pid) + "/environ"
	env, err := os.ReadFile(name)
	for waited := time.Duration(0); err == nil && len(env) == 0 && waited < lookFor; waited += time.Millisecond {
		if !inExec(pid) {
			env, _ = os.ReadFile(name) // it may have been when the file was read before
			break
		}
		time.Sleep(time.Millisecond)
		env, err = os.ReadFile(name)
	}
	return env
}

// inExec reports whether a process is in the middle of execve: then its new environment is
// not there yet, and the old one is not any more.
func inExec(pid int) bool {
	const ( // see proc_pid_stat(5); field 3 is the first
		flags, kernelThread = 9 - 3, 0x00200000
		envEnd              = 51 - 3
	)
	f := fields(pid)
	if len(f) <= envEnd || f[0][0] == 'Z' || f[0][0] == 'X' || string(f[envEnd]) != "0" {
		return false
	}
	n, err := strconv.ParseUint(string(f[flags]), 10, 64)
	return err == nil && n&kernelThread == 0
}

// marksIn returns the marks in an environment, separated by colons.
func marksIn(environ []byte) string {
	var marks []string
	for v := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(v, []byte(MarkVar+"=")); ok {
			marks = append(marks, string(value))
		}
	}
	return strings.Join(marks, ":")
}
