package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A bench has what measurements share.
type bench struct {
	load  string // of the machine, before the last measurement
	dir   string // for everything
	root  string // of the repository
	acp   string // the program
	self  string // this one
	quick bool
	node  string // why there is no peer on Node; "" if there is one

}

func newBench(ctx context.Context, quick bool) (_ *bench, err error) {
	b := &bench{quick: quick}
	if b.dir, err = os.MkdirTemp("", "acpb"); err != nil { // short, for the sake of sockets
		return nil, err
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.root, err = rootDir(ctx); err != nil {
		return nil, err
	}
	b.acp = filepath.Join(b.dir, "acp")
	if err := build(ctx, b.root, b.acp); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("node"); err != nil {
		b.node = "there is no Node"
	} else if _, err := os.Stat(filepath.Join(b.root, "bench/node_modules/@agentclientprotocol/sdk")); err != nil {
		b.node = "the TypeScript SDK is not installed"
	}
	return b, nil
}

// rootDir returns the root of the repository.
func rootDir(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", fmt.Errorf("git rev-parse: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (b *bench) close() { _ = os.RemoveAll(b.dir) }

// pick returns the number for a full run, or that for a quick one.
func (b *bench) pick(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

// build builds the program as releases are built, from the sources at root.
func build(ctx context.Context, root, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, ".")
	cmd.Dir = filepath.Join(root, "cmd/acp")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK="+filepath.Join(root, "go.work"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
}

// A process is a server.
type process struct {
	cmd *exec.Cmd
	url string
	in  io.Closer
	log *lockedBuffer
}

// lockedBuffer is what a process writes to standard error.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// begin starts a process that prints its URL first.
func begin(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, log: new(lockedBuffer)}
	cmd.Stderr = p.log
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return nil, err
	}
	p.in = in
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("%s has not started: %w: %s", filepath.Base(cmd.Path), err, p.log)
	}
	p.url = strings.Fields(line)[0]
	return p, nil
}

// home makes a directory for the state of a server.
func (b *bench) home() (string, error) { return os.MkdirTemp(b.dir, "h") }

// serve starts acp serve. args follow its flags; without any the agent is a command.
func (b *bench) serve(ctx context.Context, home string, args ...string) (*process, error) {
	return b.serveAt(ctx, home, "127.0.0.1:0", args...)
}

// fresh starts acp serve with nothing kept, in a home of its own.
func (b *bench) fresh(ctx context.Context) (home string, p *process, err error) {
	if home, err = b.home(); err != nil {
		return "", nil, err
	}
	p, err = b.serve(ctx, home)
	return home, p, err
}

// stop stops the server that *p is by then, and keeps its error in *err if there is none.
func stop(p **process, err *error) {
	if e := (*p).stop(); *err == nil {
		*err = e
	}
}

func (b *bench) serveAt(ctx context.Context, home, address string, args ...string) (*process, error) {
	all := append([]string{"serve", "--no-auth", "--listen", address}, args...)
	if len(args) == 0 || !strings.HasPrefix(args[len(args)-1], "http") {
		all = append(all, "--", b.self, "agent")
	}
	cmd := exec.CommandContext(ctx, b.acp, all...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+home)
	for _, kind := range []string{"CONFIG", "DATA", "STATE", "CACHE"} {
		cmd.Env = append(cmd.Env, "XDG_"+kind+"_HOME="+home)
	}
	cmd.Env = append(cmd.Env, "ACP_STORE_PATH="+filepath.Join(home, "acp", "gateway", "sessions")) // where those are that are made before
	return begin(cmd)
}

// stop ends a server in an orderly way.
func (p *process) stop() error {
	_ = p.in.Close()
	_ = p.cmd.Process.Signal(os.Interrupt)
	kill := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	err := p.cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() < 0 {
		return fmt.Errorf("the server was ended: %w: %s", err, tail(p.log.String()))
	}
	return nil
}

func tail(s string) string { return s[max(0, len(s)-500):] }

// memory returns the resident set of a process now, and the largest it had, in bytes.
func (p *process) memory() (now, peak int64) { return memoryOf(p.cmd.Process.Pid) }

func memoryOf(pid int) (now, peak int64) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			now = n << 10
		case "VmHWM:":
			peak = n << 10
		}
	}
	return now, peak
}

// files returns how many descriptors a process has.
func (p *process) files() int {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	return len(list)
}

// cpu returns the time that a process has used.
func (p *process) cpu() time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	const tick = 100 // per second, on every Linux
	return time.Duration(user+system) * time.Second / tick
}

// forget has the system forget what it holds in memory of the files of a directory.
func forget(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return dontNeed(f)
	})
}

// dontNeed asks the system to drop a file's pages, where it can be asked.
func dontNeed(f *os.File) error {
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return fadvise(f)
}

// command returns a command that ends with ctx.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, name, args...)
}

// fileSize returns the size of a file.
func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
