//go:build linux

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// family is a shell that starts a child that starts a sleeping grandchild, and
// ends at the end of its standard input, leaving both.
const family = `/bin/sh -c 'sleep 1000 & echo $!; wait' & echo $!; cat >/dev/null`

func init() { play = client }

// client is a program that is killed, or panics, while a family runs.
func client(role string) {
	switch role {
	case "daemon":
		beDaemonic()
	case "namespace":
		beInside()
		return
	}
	p, err := Start(context.Background(), Config{Path: "/bin/sh", Args: []string{"-c", family}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	r := bufio.NewReader(p.Stdout())
	for range 2 {
		if _, err := r.ReadString('\n'); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	watchdog, _ := look(p)
	fmt.Println(watchdog)
	switch role {
	case "wait":
		select {}
	case "panic":
		_, _ = os.Stdin.Read(make([]byte, 1))
		panic("as asked")
	case "exit":
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
}

// look returns the watchdog, 0 if there is none, and the group of a tree.
func look(p *Process) (watchdog, group int) {
	p.tree.mu.Lock()
	defer p.tree.mu.Unlock()
	if p.tree.leader != nil {
		watchdog = p.tree.leader.Pid
	}
	return watchdog, p.tree.group
}

func repeat(full int) int {
	if testing.Short() {
		return 3
	}
	return full
}

// TestNoSurvivors ends a tree of three levels in each way a tree can end, a
// hundred times in all.
func TestNoSurvivors(t *testing.T) {
	needProc(t)
	for name, end := range map[string]func(t *testing.T, p *Process){
		"stop": func(t *testing.T, p *Process) {
			if err := p.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"kill":  func(t *testing.T, p *Process) { p.Kill() },
		"crash": func(t *testing.T, p *Process) { _ = syscall.Kill(p.PID(), syscall.SIGSEGV) },
		"drop": func(t *testing.T, p *Process) {
			_ = p.Stdin().Close()
			_ = p.Stdout().Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range repeat(16) {
				cfg, mark := sh(t, family)
				p := start(t, cfg)
				lines(t, bufio.NewReader(p.Stdout()), 2)
				watchdog, _ := look(p)
				ends(t, "not all are there", func() bool { return len(alive(mark)) == 4 && running(watchdog) })
				end(t, p)
				<-p.Done()
				goneSoon(t, mark, watchdog)
			}
		})
	}
	for name, end := range map[string]func(c *exec.Cmd, stdin func()){
		"wait":  func(c *exec.Cmd, stdin func()) { _ = c.Process.Kill() },
		"panic": func(c *exec.Cmd, stdin func()) { stdin() },
		"exit":  func(c *exec.Cmd, stdin func()) { stdin() },
	} {
		t.Run("client "+name, func(t *testing.T) {
			for range repeat(12) {
				_, mark := sh(t, "")
				c := exec.Command(os.Args[0])
				c.Env = append(os.Environ(), roleVar+"="+name, markVar+"="+mark)
				in, err1 := c.StdinPipe()
				out, err2 := c.StdoutPipe()
				if err := errors.Join(err1, err2, c.Start()); err != nil {
					t.Fatal(err)
				}
				said := lines(t, bufio.NewReader(out), 1)[0]
				watchdog, err := strconv.Atoi(said)
				if err != nil {
					t.Fatal(said)
				}
				ends(t, "not all are there", func() bool { return len(alive(mark)) == 5 && running(watchdog) })
				end(c, func() { _ = in.Close() })
				_ = c.Wait()
				goneSoon(t, mark, watchdog)
			}
		})
	}
}

// TestLeft: what a child had left is counted where the system says it, and what has ended is not.
func TestLeft(t *testing.T) {
	for script, want := range map[string]int{
		"true": 0, "true & wait": 0, "sleep 1000 & sleep 1000 & true": 2, "(sleep 1000 & true) | cat >&2; exit 3": 1,
	} {
		cfg, _ := sh(t, strings.ReplaceAll(script, "sleep 1000", "sleep 1000 >/dev/null 2>&1"))
		p := start(t, cfg)
		if got := p.Left(); runtime.GOOS == "linux" && got != want || got != 0 && got != want {
			t.Errorf("%s: %d, want %d", script, got, want)
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestWithoutWatchdog holds the ways that are left when there is none.
func TestWithoutWatchdog(t *testing.T) {
	needProc(t)
	noShell := func(path string) func(*testing.T, *Config) {
		return func(t *testing.T, _ *Config) {
			was := shell
			shell = path
			t.Cleanup(func() { shell = was })
		}
	}
	for name, without := range map[string]func(*testing.T, *Config){
		"option":      func(_ *testing.T, c *Config) { c.NoWatchdog = true },
		"no shell":    noShell(filepath.Join(t.TempDir(), "sh")),
		"wrong shell": noShell("/bin/false"),
	} {
		t.Run(name, func(t *testing.T) {
			cfg, mark := sh(t, family)
			cfg.KeepGroup = true // which it then cannot
			without(t, &cfg)
			p := start(t, cfg)
			lines(t, bufio.NewReader(p.Stdout()), 2)
			// One that fails is found out later: the child is in its group all the same.
			if watchdog, group := look(p); shell != "/bin/false" && (watchdog != 0 || group != p.PID()) {
				t.Fatalf("watchdog %d, group %d of child %d", watchdog, group, p.PID())
			}
			_ = p.Stdin().Close()
			<-p.Done()
			goneSoon(t, mark, 0)
			if err := p.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStrays ends processes that left the group.
func TestStrays(t *testing.T) {
	needProc(t)
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	const stray = `setsid /bin/sh -c 'trap "" TERM; sleep 1000 & setsid sleep 1000 & echo $$; wait' & `
	for name, tt := range map[string]struct {
		script string
		end    func(p *Process)
	}{
		"kill":               {stray + "cat >/dev/null", func(p *Process) { p.Kill() }},
		"stop, ends on EOF":  {stray + "cat >/dev/null", func(p *Process) { _ = p.Stop(context.Background()) }},
		"stop, ends on TERM": {stray + "wait", func(p *Process) { _ = p.Stop(context.Background()) }},
		"crash under a child": {`/bin/sh -c '` + strings.ReplaceAll(stray, "'", `'\''`) + ` wait' & wait`,
			func(p *Process) { _ = syscall.Kill(p.PID(), syscall.SIGKILL) }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, mark := sh(t, tt.script)
			cfg.CloseGrace = -1
			if strings.Contains(name, "EOF") {
				cfg.CloseGrace = 0
			}
			p := start(t, cfg)
			pid, _ := strconv.Atoi(lines(t, bufio.NewReader(p.Stdout()), 1)[0])
			_, group := look(p)
			if s, err := stat(pid); err != nil || s.group == group {
				t.Fatalf("the stray is in the group: %+v", s)
			}
			ends(t, "not all are there", func() bool { return len(alive(mark)) >= 4 })
			tt.end(p)
			<-p.Done()
			goneSoon(t, mark, 0)
		})
	}
}

// TestChildLeavesGroup ends a child that has moved to a session of its own, with and without a mark.
func TestChildLeavesGroup(t *testing.T) {
	needSetsid(t)
	for name, end := range map[string]func(p *Process) error{
		"stop": func(p *Process) error { return p.Stop(context.Background()) },
		"kill": func(p *Process) error { p.Kill(); return nil },
	} {
		for _, value := range []string{"", NoMark} {
			t.Run(name+" "+value, func(t *testing.T) {
				cfg, mark := sh(t, `trap "" TERM HUP; sleep 1000 & echo; wait; sleep 1000`)
				cfg.Path, cfg.Args = "setsid", append([]string{cfg.Path}, cfg.Args...)
				cfg.Env = append(cfg.Env, MarkVar+"="+value)
				cfg.CloseGrace, cfg.TermGrace = -1, -1
				p := start(t, cfg)
				lines(t, bufio.NewReader(p.Stdout()), 1)
				if err := end(p); err != nil {
					t.Fatal(err)
				}
				<-p.Done()
				goneSoon(t, mark, 0)
			})
		}
	}
}

// TestKeepGroup leaves alone what a child started until it is told otherwise.
func TestKeepGroup(t *testing.T) {
	needProc(t)
	cfg, mark := sh(t, "sleep 1000 & echo $!")
	cfg.KeepGroup, cfg.NoStdin = true, true
	p := start(t, cfg)
	r := bufio.NewReader(p.Stdout())
	pid, _ := strconv.Atoi(lines(t, r, 1)[0])
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	watchdog, _ := look(p)
	if !running(pid) || !running(watchdog) {
		t.Fatal("the group ended with the child")
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	goneSoon(t, mark, watchdog)
}

// TestWatchdogStays sends the group what a watchdog must not mind.
func TestWatchdogStays(t *testing.T) {
	needProc(t)
	cfg, mark := sh(t, `trap "" HUP INT QUIT TERM PIPE ALRM USR1 USR2; echo; cat >/dev/null`)
	p := start(t, cfg)
	lines(t, bufio.NewReader(p.Stdout()), 1)
	watchdog, _ := look(p)
	p.tree.waitArmed()
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGUSR1, syscall.SIGUSR2} {
		_ = syscall.Kill(watchdog, sig)
	}
	// A signal is delivered before the next system call returns, and the end
	// of the pipe comes after all of them.
	if !running(watchdog) || len(alive(mark)) == 0 {
		t.Fatal("ended before its time")
	}
	_ = p.tree.hold.Close() // as when this process dies
	<-p.Done()
	var e *ExitError
	if !errors.As(p.Wait(), &e) || e.Signal != "SIGKILL" {
		t.Errorf("the child ended with %v", p.Wait())
	}
	goneSoon(t, mark, watchdog)
}

// TestWatchdogArmsLate: a child does not wait until its watchdog is ready, but a signal for the group does, since the watchdog would
// end by it.
func TestWatchdogArmsLate(t *testing.T) {
	needProc(t)
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	door, err := os.OpenFile(gate, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	was := watch
	watch = "read -r x <'" + gate + "'\n" + watch
	t.Cleanup(func() { watch = was })
	cfg, mark := sh(t, `trap "echo asked; exit" TERM; echo ready; while :; do read -r x || sleep 1000 & wait; done`)
	cfg.CloseGrace = -1
	p := start(t, cfg)
	said := bufio.NewReader(p.Stdout())
	lines(t, said, 1)
	watchdog, _ := look(p)
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop(context.Background()) }()
	ends(t, "the input is still open", func() bool { _, err := p.Stdin().Write([]byte("x")); return err != nil })
	select {
	case err := <-stopped:
		t.Fatalf("stopped before the watchdog was ready: %v", err)
	default:
	}
	if !running(watchdog) {
		t.Fatal("the watchdog has ended")
	}
	if _, err := door.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	goneSoon(t, mark, watchdog)
}

// TestThreadsEnd ends threads all the time: a child would be killed by the kernel
// with the thread that started it.
func TestThreadsEnd(t *testing.T) {
	stop := make(chan struct{})
	var churn sync.WaitGroup
	for range 2 {
		churn.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var wg sync.WaitGroup
				wg.Go(func() { runtime.LockOSThread() }) // never unlocked: the thread ends
				wg.Wait()
			}
		})
	}
	cfg, _ := sh(t, "cat")
	cfg.NoWatchdog = true
	var all []*Process
	for range repeat(15) {
		all = append(all, start(t, cfg))
	}
	close(stop)
	churn.Wait()
	for _, p := range all {
		if _, err := p.Stdin().WriteString("still here\n"); err != nil {
			t.Fatal(err)
		}
		if got := lines(t, bufio.NewReader(p.Stdout()), 1)[0]; got != "still here" {
			t.Fatal(got)
		}
		if err := p.Stop(t.Context()); err != nil || p.Wait() != nil {
			t.Fatal(err, p.Wait())
		}
	}
}
