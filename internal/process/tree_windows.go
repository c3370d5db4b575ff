package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

const separators = `\/:`

var (
	kernel32                 = syscall.NewLazyDLL("kernel32.dll")
	createJobObject          = kernel32.NewProc("CreateJobObjectW")
	setInformationJobObject  = kernel32.NewProc("SetInformationJobObject")
	assignProcessToJobObject = kernel32.NewProc("AssignProcessToJobObject")
	terminateJobObject       = kernel32.NewProc("TerminateJobObject")
	resumeProcess            = syscall.NewLazyDLL("ntdll.dll").NewProc("NtResumeProcess")
)

const (
	createSuspended  = 0x00000004
	createNewGroup   = 0x00000200
	createNoWindow   = 0x08000000
	jobExtendedLimit = 9
	jobKillOnClose   = 0x00002000
)

// The layouts of JOBOBJECT_BASIC_LIMIT_INFORMATION and of
// JOBOBJECT_EXTENDED_LIMIT_INFORMATION, in which times and counters are at
// multiples of 8 bytes everywhere. Go puts them at multiples of 4 on 386.
type jobBasicLimits struct {
	perProcessUserTime, perJobUserTime int64
	limitFlags                         uint32
	minWorkingSet, maxWorkingSet       uintptr
	activeProcesses                    uint32
	affinity                           uintptr
	priorityClass, schedulingClass     uint32
}

type jobLimits struct {
	basic                               jobBasicLimits
	_                                   [(8 - unsafe.Sizeof(jobBasicLimits{})%8) % 8]byte
	io                                  [6]uint64
	processMemory, jobMemory            uintptr
	peakProcessMemory, peakJobMemoryUse uintptr
}

// This compiles if the size is what Windows expects: 112 bytes with pointers of
// 4 bytes and 144 with those of 8.
var _ [112 + 32*(unsafe.Sizeof(uintptr(0))/8)]byte = [unsafe.Sizeof(jobLimits{})]byte{}

// And so must the counters be where they are looked for.
var _ [48 + 16*(unsafe.Sizeof(uintptr(0))/8)]byte = [unsafe.Offsetof(jobLimits{}.io)]byte{}

// prepare runs batch files through the shell, with a command line it cannot
// misread.
func prepare(cmd *exec.Cmd) error {
	switch strings.ToLower(filepath.Ext(cmd.Path)) {
	case ".bat", ".cmd":
	default:
		return nil
	}
	line, err := batchLine(cmd.Path, cmd.Args[1:])
	if err != nil {
		return err
	}
	dir, err := windowsDirectory()
	if err != nil {
		return err
	}
	cmd.Path = filepath.Join(dir, "System32", "cmd.exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: line}
	return nil
}

func windowsDirectory() (string, error) {
	if dir := os.Getenv("SystemRoot"); filepath.IsAbs(dir) {
		return dir, nil
	}
	return "", fmt.Errorf("the environment does not say where Windows is")
}

// A tree is a job, which every process joins whose parent is in it, and which
// ends with its last handle.
type tree struct {
	mu  sync.Mutex
	job syscall.Handle // 0 when there is none
	err error
}

func newTree(*Config) *tree {
	t := new(tree)
	job, _, err := createJobObject.Call(0, 0)
	if job == 0 {
		t.err = os.NewSyscallError("CreateJobObject", err)
		return t
	}
	t.job = syscall.Handle(job)
	limits := jobLimits{basic: jobBasicLimits{limitFlags: jobKillOnClose}}
	ok, _, err := setInformationJobObject.Call(job, jobExtendedLimit,
		uintptr(unsafe.Pointer(&limits)), unsafe.Sizeof(limits))
	if ok == 0 {
		t.err = os.NewSyscallError("SetInformationJobObject", err)
	}
	return t
}

func (t *tree) attributes(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attr == nil {
		attr = new(syscall.SysProcAttr)
	}
	attr.HideWindow = true
	// It must not start anything before it is in the job.
	attr.CreationFlags |= createSuspended | createNewGroup | createNoWindow
	return attr
}

func (t *tree) adopt(p *os.Process) error {
	if t.err != nil {
		return t.err
	}
	var err error
	herr := p.WithHandle(func(h uintptr) {
		if ok, _, e := assignProcessToJobObject.Call(uintptr(t.job), h); ok == 0 {
			err = os.NewSyscallError("AssignProcessToJobObject", e)
			return
		}
		if status, _, _ := resumeProcess.Call(h); int32(status) < 0 {
			err = fmt.Errorf("NtResumeProcess: status %#x", uint32(status))
		}
	})
	if herr != nil {
		return herr
	}
	return err
}

func (t *tree) exited() bool { return true }

func (t *tree) survey() {}

// terminate does nothing: without a console in common there is no signal to
// send.
func (t *tree) terminate() bool { return false }

func (t *tree) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job != 0 {
		_, _, _ = terminateJobObject.Call(uintptr(t.job), 1)
	}
}

func (t *tree) end() (left int) {
	t.kill()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job != 0 {
		_ = syscall.CloseHandle(t.job)
		t.job = 0
	}
	return 0 // it is not counted
}

func signalName(*os.ProcessState) string { return "" }
