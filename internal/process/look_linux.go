package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// lookFor bounds how long a look waits for the environment of one process. A process
	// whose memory is locked, as in the middle of reading from a disk that does not answer,
	// blocks the reader of its environment.
	lookFor = 250 * time.Millisecond
	// maxBlocked bounds the readers that are blocked so.
	maxBlocked = 4
	// minLap is the least lap with which a listing may be partial.
	minLap = time.Second
	// tick is the unit of times(2).
	tick = time.Second / 100
)

// A system is what a looker looks at.
type system struct {
	clock   func() time.Duration               // the time since any moment, the same for all callers
	list    func(from int64) ([]listed, error) // the processes from a position on, by number
	newest  func() int                         // the number of the newest process; 0 if unknown
	lap     time.Duration                      // less than it takes the system to give all numbers
	stat    func(pid int) (proc, error)        // one process, without its marks; see hasEnded
	environ func(pid int) []byte               // the environment of one, as in /proc
}

// A looker looks at processes. There is one look at a time; it serves all callers that have
// asked for one before it begins.
//
// A look lists the processes and examines only those that are in no listing from before the
// trees of its callers. To examine one costs as much as to list dozens.
//
// A look waits for the environment of each process for at most lookFor. Later looks skip
// that of a process whose reader is still blocked. While maxBlocked readers are blocked,
// looks read no environments and so find no marks.
//
// The looker of this process serves callers in bubbles of testing/synctest and outside of
// them. So it reads a clock and sleeps as the system does, and keeps no channel or timer
// that was made in a bubble. Only the limit lookFor is one of the bubble's time: it passes
// when no reader runs, so a look in a bubble waits for as long as a reader is blocked.
type looker struct {
	system
	looking    chan struct{} // holds one entry during a look or a listing; guards these:
	known      []listed      // by the last listing, with some that have ended
	most       int           // more known ones are too many
	old, young moment        // of earlier listings, lap/4 apart or more; or zero
	listings   atomic.Int64  // that are complete

	mu      sync.Mutex
	next    *scan        // the one that has not begun; nil until a caller asks for it
	blocked map[int]bool // the processes whose readers are blocked
}

// A listed is a process of a listing.
type listed struct {
	pid   int
	at    int64  // its position in the listing
	inode uint64 // of its directory in /proc: another process with its number has another
	first int64  // the number of the first listing that it was in
	ended bool   // the last look at it has found that it has
}

// A moment is a time, and the number of the newest process then or later; 0 if unknown.
type moment struct {
	when   time.Duration // by the looker's clock
	newest int
}

// A scan is what one look finds. The looker's looking guards procs, and mu since.
type scan struct {
	since int64
	procs map[int]proc
}

var looks = sync.OnceValue(func() *looker {
	l := newLooker(system{uptime, list, newest, lap(), stat, environ})
	l.looking = looking
	return l
})

// looking is that of the looker of this process. It is made here since a channel that is made
// in a bubble of testing/synctest is of no use outside of it.
var looking = make(chan struct{}, 1)

func newLooker(s system) *looker {
	return &looker{system: s, looking: make(chan struct{}, 1), blocked: map[int]bool{}}
}

// seen returns the number of the last listing. What is started after the call is not in it.
func (l *looker) seen() int64 {
	if n := l.listings.Load(); n > 0 {
		return n
	}
	l.looking <- struct{}{}
	defer func() { <-l.looking }()
	if l.listings.Load() == 0 {
		l.relist()
	}
	return l.listings.Load()
}

// look returns the processes as of a moment after it was called, as far as they are not in
// the listing of the number since, see seen; other processes may be among them. All callers
// that share the look share the map, so they must not change it.
func (l *looker) look(since int64) map[int]proc {
	l.mu.Lock()
	if l.next == nil {
		l.next = &scan{since: since}
	}
	s := l.next
	s.since = min(s.since, since)
	l.mu.Unlock()

	l.looking <- struct{}{}
	defer func() { <-l.looking }()
	if s.procs == nil { // no other caller has looked
		l.mu.Lock()
		l.next = nil
		l.mu.Unlock()
		s.procs = map[int]proc{}
		// What has ended after it was listed, and before it was examined, may have started
		// something in between.
		for from, again, rounds := s.since, true, 0; again && rounds < maxRounds; rounds++ {
			from, again = l.examine(from, s.procs)
		}
	}
	return s.procs
}

// relist lists the processes that there are. The system gives numbers in ascending order,
// until it begins again. So processes that were started after a moment have greater numbers
// than the newest of that moment, and only these are listed again, if the system cannot have
// begun again. A process appears some time after it was given its number, since its parent
// may have to wait for a processor in between. That is why the moment is an old one, and not
// the last, and why all processes are listed where the lap is shorter than minLap: a quarter
// of it, the least age of that moment, is too short.
//
// A listing that fails changes nothing.
func (l *looker) relist() {
	now := moment{when: l.clock()}
	now.newest = l.newest()
	kept, from := 0, int64(0)
	if age := now.when - l.old.when; l.old.newest > 0 && l.old.newest <= now.newest &&
		l.lap >= minLap && age >= 0 && age < l.lap && len(l.known) < l.most {
		// The one before is listed again for its position: that of what follows it.
		n, there := slices.BinarySearchFunc(l.known, l.old.newest, func(p listed, pid int) int { return p.pid - pid })
		if !there {
			n--
		}
		if n >= 0 && l.known[n].at > 0 {
			kept, from = n, l.known[n].at
		}
	}
	list, err := l.list(from)
	if err != nil {
		return
	}
	number, was := l.listings.Load()+1, slices.Clone(l.known[kept:])
	l.known = append(l.known[:kept], list...)
	for i := range l.known[kept:] {
		p := &l.known[kept+i]
		for len(was) > 0 && was[0].pid < p.pid {
			was = was[1:]
		}
		if len(was) > 0 && was[0].pid == p.pid && was[0].inode == p.inode {
			p.first, p.ended = was[0].first, was[0].ended
		} else {
			p.first = number
		}
	}
	if from == 0 {
		l.most = 2*len(l.known) + 100
	}
	switch age := now.when - l.young.when; {
	case age < 0 || age >= l.lap || now.newest < l.young.newest:
		l.old, l.young = moment{}, now
	case age >= l.lap/4:
		l.old, l.young = l.young, now
	}
	l.listings.Store(number)
}

// examine lists all processes, and adds to procs those that were first listed after since.
// It returns the number of the listing, and whether one of them has ended meanwhile.
func (l *looker) examine(since int64, procs map[int]proc) (listing int64, ended bool) {
	l.relist()
	var pids []int
	for _, p := range l.known {
		if p.first > since && !p.ended {
			pids = append(pids, p.pid)
		}
	}
	marks := l.readMarks(pids)
	for i := range l.known {
		e := &l.known[i]
		if e.first <= since {
			continue
		}
		p, err := l.stat(e.pid)
		if err == nil {
			p.marks = marks[e.pid]
			procs[e.pid] = p
		}
		over := hasEnded(err) || p.zombie
		ended = ended || over && !e.ended
		e.ended = over
	}
	return l.listings.Load(), ended
}

// readMarks returns the marks of processes.
func (l *looker) readMarks(pids []int) map[int]string {
	marks := make(map[int]string, len(pids))
	l.mu.Lock()
	pids = slices.DeleteFunc(pids, func(pid int) bool { return l.blocked[pid] })
	l.mu.Unlock()
	for len(pids) > 0 && l.mayRead() {
		pids = pids[l.readUntilBlocked(pids, marks):]
	}
	return marks
}

func (l *looker) mayRead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.blocked) < maxBlocked
}

// readUntilBlocked reads the marks of processes until one blocks the reader. It returns how
// many it is done with, including that one.
func (l *looker) readUntilBlocked(pids []int, marks map[int]string) int {
	has, left := make(chan string), make(chan struct{})
	go func() {
		for _, pid := range pids {
			m := marksIn(l.environ(pid))
			select {
			case has <- m:
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
		case marks[pid] = <-has:
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

// Numbered reports whether the numbers in /proc are those that this process uses for
// others. They are not if /proc was mounted in another PID namespace.
var Numbered = sync.OnceValue(func() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
})

// A proc is a process as of a look.
type proc struct {
	parent, group, session int
	zombie                 bool
	start                  string // in clock ticks since the machine started
	marks                  string // separated by colons
}

// list returns the processes that /proc lists from a position on; 0 is its beginning. The
// position of a process depends on its number alone. An inode number there belongs to one
// process: the next with its number gets another. If the system gives new inode numbers to
// processes that it has listed before, these are examined for nothing.
func list(from int64) (all []listed, err error) {
	if !Numbered() {
		return nil, errors.New("/proc is that of another PID namespace")
	}
	dir, err := syscall.Open("/proc", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(dir) }()
	if _, err := syscall.Seek(dir, from, io.SeekStart); err != nil {
		return nil, err
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := syscall.ReadDirent(dir, buf)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			return all, nil
		}
		all, from = appendListed(all, from, buf[:n])
	}
}

// appendListed appends the entries of a directory that are processes. The entries are in the
// format of the system call getdents64, and the first of them is at a position. It returns
// the position of what follows, too.
func appendListed(all []listed, at int64, entries []byte) ([]listed, int64) {
	const next, length, name = 8, 16, 19 // the offsets of fields, see getdents(2)
	for len(entries) > name {
		size := int(binary.NativeEndian.Uint16(entries[length:]))
		if size <= name || size > len(entries) {
			break
		}
		text, _, _ := bytes.Cut(entries[name:size], []byte{0})
		if pid, err := strconv.Atoi(string(text)); err == nil && pid > 0 {
			all = append(all, listed{pid: pid, at: at, inode: binary.NativeEndian.Uint64(entries)})
		}
		at = int64(binary.NativeEndian.Uint64(entries[next:]))
		entries = entries[size:]
	}
	return all, at
}

// uptime returns the time since a moment before this process was started, or 0. Unlike the
// clock of package time, it is the same in every bubble of testing/synctest.
func uptime() time.Duration {
	ticks, err := syscall.Times(new(syscall.Tms))
	if err != nil {
		return 0
	}
	return time.Duration(ticks) * tick
}

// newest returns the number of the process or thread that was started last, or 0.
func newest() int {
	data, _ := os.ReadFile("/proc/loadavg")
	f := bytes.Fields(data)
	if len(f) < 5 {
		return 0
	}
	n, _ := strconv.Atoi(string(f[4]))
	return n
}

// lap returns a time in which the system cannot give all numbers there are: a million
// processes cannot be started in a second.
func lap() time.Duration {
	data, _ := os.ReadFile("/proc/sys/kernel/pid_max")
	n, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return time.Duration(n) * time.Microsecond
}

func stat(pid int) (proc, error) {
	f, err := fields(pid)
	if err != nil {
		return proc{}, err
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	group, err2 := strconv.Atoi(string(f[2]))
	session, err3 := strconv.Atoi(string(f[3]))
	p := proc{parent: parent, group: group, session: session, zombie: isZombie(f), start: string(f[19])}
	return p, errors.Join(err1, err2, err3)
}

// hasEnded reports whether an error of stat says that there is no such process. Others, such
// as that this process has too many open files, say nothing about it.
func hasEnded(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESRCH)
}

// fields returns what follows the name in "pid (name) state parent group session … start …",
// which may contain anything.
func fields(pid int) ([][]byte, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, err
	}
	f := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(f) < 20 {
		return nil, fmt.Errorf("the status of process %d cannot be read: %q", pid, data)
	}
	return f, nil
}

// isZombie reports whether a process has ended, and only its number is left.
func isZombie(fields [][]byte) bool { return fields[0][0] == 'Z' || fields[0][0] == 'X' }

// environ returns the environment of a process. That of another user's process, or of one
// that has made itself unreadable, cannot be read.
func environ(pid int) []byte {
	name := "/proc/" + strconv.Itoa(pid) + "/environ"
	env, err := readWhole(name)
	for until, none := uptime()+lookFor, 0; err == nil && len(env) == 0 && uptime() < until && none < maxNone; {
		switch environState(pid) {
		case environEmpty:
			none++
		case environGone:
			return nil
		}
		// Callers in a bubble of testing/synctest that wait for this look keep the bubble's
		// time from passing, so time.Sleep would not return.
		_ = syscall.Nanosleep(&syscall.Timespec{Nsec: 1e6}, nil)
		env, err = readWhole(name)
	}
	return env
}

// maxNone is how often an environment is looked at that the system says is empty: so it is for a moment as execve ends, too.
const maxNone = 20

// maxEnviron bounds what is read of an environment. Linux bounds what execve takes by less.
const maxEnviron = 8 << 20

// readWhole returns what one read finds in a file. The environment of a process that calls
// execve ends where the first read has, for readers that continue: its end is missing,
// and that is where a mark is.
func readWhole(name string) ([]byte, error) {
	for size := 16 << 10; ; size *= 2 {
		f, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		buf := make([]byte, size)
		n, err := syscall.Read(f, buf)
		_ = syscall.Close(f)
		switch {
		case err == syscall.EINTR:
			size /= 2
		case err != nil:
			return nil, err
		case n < size || size >= maxEnviron:
			return buf[:n], nil
		}
	}
}

// What is known of an environment that was read as empty.
const (
	environComes = iota // it is there by now, or will be: the process is in the middle of execve
	environEmpty
	environGone // as the process is, or it has none
)

// environState looks at a process whose environment was read as empty.
func environState(pid int) int {
	const ( // see proc_pid_stat(5); field 3 is the first
		flags, kernelThread = 9 - 3, 0x00200000
		envStart, envEnd    = 50 - 3, 51 - 3
	)
	f, err := fields(pid)
	if err != nil || len(f) <= envEnd || isZombie(f) {
		return environGone
	}
	switch start, end := string(f[envStart]), string(f[envEnd]); {
	case end != "0" && start == end:
		return environEmpty
	case end != "0":
		return environComes
	}
	n, err := strconv.ParseUint(string(f[flags]), 10, 64)
	if err != nil || n&kernelThread != 0 {
		return environGone
	}
	return environComes
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
