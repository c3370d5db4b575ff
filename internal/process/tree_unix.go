//go:build unix

package process

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const separators = "/"

// maxRounds bounds what is repeated because processes start others meanwhile.
const maxRounds = 8

// shell runs the watchdog.
var shell = "/bin/sh"

// watch waits for the end of its standard input and then kills what has the mark of
// the tree and the group that it leads, itself included. It ignores what others may
// send to the group, and writes a line when it has begun to: see tree.armed. The group does not wait
// for the search, which blocks where the memory of a process is locked; and what the
// search has found is looked at again right before it is killed, since its number may
// be another's by then.
var watch = `trap '' HUP INT QUIT TERM PIPE ALRM USR1 USR2 TSTP TTIN TTOU; echo; exec >&-; read -r x
if [ -n "$1" ] && [ -d /proc/self ]; then
	(sleep 1; kill -KILL 0) &
	for f in $(grep -ls "$1" /proc/[0-9]*/environ 2>/dev/null); do
		p=${f#/proc/}; grep -qs "$1" "$f" 2>/dev/null && kill -KILL "${p%/environ}" 2>/dev/null
	done
fi
kill -KILL 0`

func prepare(*exec.Cmd) error { return nil }

// A tree is a process group, and what is known to have left it.
type tree struct {
	session bool

	mu     sync.Mutex
	leader *os.Process   // the watchdog, nil without
	armed  chan struct{} // closed when the watchdog ignores signals, or has failed
	failed bool          // it has, once armed is closed
	hold   *os.File      // ends the watchdog when it is closed
	child  int           // 0 when the child is not there
	handle *os.Process   // of the child, nil when that is not there
	group  int           // 0 before there is one and once its number may be another's
	strays strays
	mark   Mark
}

func newTree(cfg *Config) *tree {
	t := &tree{session: cfg.session, mark: cfg.mark}
	if !cfg.NoWatchdog && !cfg.session {
		// Without a shell there is no watchdog: what else ends the tree
		// has to do.
		_ = t.startWatchdog()
	}
	return t
}

func (t *tree) startWatchdog() error {
	var files [4]*os.File
	var err error
	if files[0], files[1], err = os.Pipe(); err != nil {
		return err
	}
	if files[2], files[3], err = os.Pipe(); err != nil {
		closeAll(files[:2])
		return err
	}
	stdin, hold, said, stdout := files[0], files[1], files[2], files[3]
	p, err := os.StartProcess(shell, []string{shell, "-c", watch, "acp-watchdog", t.mark.text}, &os.ProcAttr{
		Dir:   "/", // not in the way of anything
		Env:   []string{"PATH=/usr/bin:/bin"},
		Files: []*os.File{stdin, stdout, nil},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	closeAll([]*os.File{stdin, stdout})
	if err != nil {
		_ = said.Close()
		_ = hold.Close()
		return err
	}
	t.leader, t.hold, t.group, t.armed = p, hold, p.Pid, make(chan struct{})
	// Until it has set its traps, a SIGTERM for the group could end it. That takes a shell as long as it takes a child to
	// start, so it is waited for only before such a signal. It need not be for the end of this process: then the watchdog
	// reads the end of its input as soon as it reads.
	go func() {
		defer close(t.armed)
		defer said.Close()
		_ = said.SetReadDeadline(time.Now().Add(DefaultGrace))
		_, err := said.Read(make([]byte, 1))
		t.failed = err != nil
	}()
	return nil
}

// waitArmed waits until the watchdog ignores signals.
func (t *tree) waitArmed() {
	if t.armed != nil {
		<-t.armed
	}
}

func (t *tree) attributes(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attr == nil {
		attr = new(syscall.SysProcAttr)
	}
	if t.session {
		attr.Setsid = true
	} else {
		attr.Setpgid, attr.Pgid = true, t.group
	}
	dieWithParent(attr)
	return attr
}

func (t *tree) adopt(p *os.Process) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.child, t.handle = p.Pid, p
	if t.leader == nil {
		t.group = p.Pid
	}
	return nil
}

// exited says that the child was reaped. It reports whether the group can be
// ended later all the same, because its number is still taken.
func (t *tree) exited() bool {
	t.waitArmed()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.child, t.handle = 0, nil
	return t.leader != nil && !t.failed
}

func (t *tree) signal(sig syscall.Signal) {
	if t.group > 1 {
		_ = syscall.Kill(-t.group, sig)
	}
	if t.handle != nil {
		// A child may have left the group by itself. What is still in it gets each
		// signal once: some programs count.
		if group, err := syscall.Getpgid(t.child); err == nil && group != t.group {
			_ = t.handle.Signal(sig)
		}
	}
	t.strays.signal(sig)
}

// survey looks for processes that left the group.
func (t *tree) survey() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.strays.find(t.child, t.group, t.mark)
}

// terminate asks the tree to end, and reports whether that is possible.
func (t *tree) terminate() bool {
	t.waitArmed()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.signal(syscall.SIGTERM)
	t.signal(syscall.SIGCONT) // what is stopped cannot end
	return true
}

// kill kills the tree. What could start more processes is stopped first, for
// as long as there is something new to be found.
func (t *tree) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.strays.find(t.child, t.group, t.mark) || t.strays.any() {
		for range maxRounds {
			t.signal(syscall.SIGSTOP)
			if !t.strays.find(t.child, t.group, t.mark) {
				break
			}
		}
	}
	t.signal(syscall.SIGKILL)
}

// end kills what is left, and the watchdog. It returns how many processes were left, as far
// as is known.
func (t *tree) end() (left int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, left = t.strays.count(t.child, t.group, t.mark)
	t.signal(syscall.SIGKILL)
	// What was in the group may have left it before it was killed, as a daemon does that has just
	// begun, and strays may have started others.
	for range maxRounds {
		if left == 0 && !t.strays.any() || !t.strays.find(t.child, t.group, t.mark) {
			break
		}
		t.signal(syscall.SIGKILL)
	}
	t.strays.forget()
	if t.leader != nil {
		_ = t.hold.Close()
		_, _ = t.leader.Wait()
		t.leader = nil
		t.waitArmed()
	}
	t.group, t.child, t.mark = 0, 0, Mark{} // what belongs to the tree has ended
	return left
}

// signalName returns the name of the signal that ended a process, or "".
func signalName(state *os.ProcessState) string {
	ws, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() {
		return ""
	}
	if name, ok := signalNames[ws.Signal()]; ok {
		return name
	}
	return ws.Signal().String()
}

var signalNames = map[syscall.Signal]string{
	syscall.SIGABRT: "SIGABRT",
	syscall.SIGALRM: "SIGALRM",
	syscall.SIGBUS:  "SIGBUS",
	syscall.SIGFPE:  "SIGFPE",
	syscall.SIGHUP:  "SIGHUP",
	syscall.SIGILL:  "SIGILL",
	syscall.SIGINT:  "SIGINT",
	syscall.SIGKILL: "SIGKILL",
	syscall.SIGPIPE: "SIGPIPE",
	syscall.SIGQUIT: "SIGQUIT",
	syscall.SIGSEGV: "SIGSEGV",
	syscall.SIGSYS:  "SIGSYS",
	syscall.SIGTERM: "SIGTERM",
	syscall.SIGTRAP: "SIGTRAP",
	syscall.SIGUSR1: "SIGUSR1",
	syscall.SIGUSR2: "SIGUSR2",
	syscall.SIGXCPU: "SIGXCPU",
	syscall.SIGXFSZ: "SIGXFSZ",
}
