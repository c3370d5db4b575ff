//go:build linux

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// daemon is a shell that starts, forked twice, a process in a session of its own with a child, says its
// number, and ends at the end of its standard input.
const daemon = `(setsid /bin/sh -c 'sleep 1000 & echo $$; wait' &); cat >/dev/null`

// beDaemonic is a program that is killed while a daemon of its child runs.
func beDaemonic() {
	p, err := Start(context.Background(), Config{Path: "/bin/sh", Args: []string{"-c", daemon}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	pid, _ := bufio.NewReader(p.Stdout()).ReadString('\n')
	fmt.Print(pid)
	select {}
}

func needSetsid(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
}

// cutLoose waits until a daemon has a child and is nobody's child below above, and returns its number.
func cutLoose(t *testing.T, line string, above int) int {
	t.Helper()
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	patiently(t, "the daemon is not one", func() bool {
		p, err := stat(pid)
		if err != nil {
			t.Fatal("the daemon has ended: ", err)
		}
		all, err := list(0)
		if err != nil {
			t.Fatal(err)
		}
		procs := map[int]proc{}
		hasChild := false
		for _, l := range all {
			procs[l.pid], _ = stat(l.pid)
			hasChild = hasChild || procs[l.pid].parent == pid
		}
		for up := p.parent; up > 1; up = procs[up].parent {
			if up == above {
				return false
			}
		}
		return hasChild && p.group == pid
	})
	return pid
}

// patiently waits for what nothing announces.
func patiently(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// TestDaemonsEnd: what has cut itself loose from a tree ends with it.
func TestDaemonsEnd(t *testing.T) {
	needSetsid(t)
	for name, end := range map[string]func(t *testing.T, p *Process){
		"stop": func(t *testing.T, p *Process) {
			if err := p.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"kill":  func(t *testing.T, p *Process) { p.Kill() },
		"drop":  func(t *testing.T, p *Process) { _ = p.Stdin().Close() },
		"crash": func(t *testing.T, p *Process) { _ = p.Signal(os.Kill) },
	} {
		for _, without := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " without watchdog ", without), func(t *testing.T) {
				cfg, mark := sh(t, daemon)
				cfg.NoWatchdog = without
				p := start(t, cfg)
				cutLoose(t, lines(t, bufio.NewReader(p.Stdout()), 1)[0], os.Getpid())
				end(t, p)
				<-p.Done()
				patiently(t, "processes are left", func() bool { return len(alive(mark)) == 0 })
			})
		}
	}
	t.Run("kept until Stop", func(t *testing.T) {
		cfg, mark := sh(t, daemon)
		cfg.KeepGroup = true
		p := start(t, cfg)
		pid := cutLoose(t, lines(t, bufio.NewReader(p.Stdout()), 1)[0], os.Getpid())
		_ = p.Stdin().Close()
		<-p.Done()
		if !slices.Contains(alive(mark), pid) {
			t.Error("the daemon has ended with the child")
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		patiently(t, "processes are left", func() bool { return len(alive(mark)) == 0 })
	})
	t.Run("client killed", func(t *testing.T) {
		_, mark := sh(t, "")
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), roleVar+"=daemon", markVar+"="+mark)
		out, err := c.StdoutPipe()
		if err := errors.Join(err, c.Start()); err != nil {
			t.Fatal(err)
		}
		cutLoose(t, lines(t, bufio.NewReader(out), 1)[0], c.Process.Pid)
		_ = c.Process.Kill()
		_ = c.Wait()
		patiently(t, "processes are left", func() bool { return len(alive(mark)) == 0 })
	})
}

// TestDaemonsStay: a tree has no mark if its environment says so, and what has removed the variable from
// its own environment is not found.
func TestDaemonsStay(t *testing.T) {
	needSetsid(t)
	for name, change := range map[string]func(*Config){
		"no mark": func(c *Config) { c.Env = append(c.Env, MarkVar+"=-") },
		"removed": func(c *Config) { c.Args[1] = strings.Replace(daemon, "setsid", "env -u "+MarkVar+" setsid", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg, mark := sh(t, daemon)
			change(&cfg)
			p := start(t, cfg)
			pid := cutLoose(t, lines(t, bufio.NewReader(p.Stdout()), 1)[0], os.Getpid())
			if err := p.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			if !slices.Contains(alive(mark), pid) {
				t.Error("the daemon has ended")
			}
			for _, pid := range alive(mark) {
				if p, err := os.FindProcess(pid); err == nil {
					_ = p.Kill()
				}
			}
		})
	}
}

// TestMarked: trees within trees have all marks, up to a bound, and what is below one has that.
func TestMarked(t *testing.T) {
	env, outer := Marked([]string{"A=1", MarkVar + "=a:b", "B=2"})
	if want := []string{"A=1", "B=2", MarkVar + "=a:b:" + outer.text}; !slices.Equal(env, want) {
		t.Errorf("%q", env)
	}
	var inner Mark
	for range 3 {
		env, inner = Marked(env)
	}
	text := marksIn([]byte(strings.Join(env, "\x00") + "\x00"))
	for _, other := range []Mark{{}, {text: "c"}, {text: "1"}} {
		if other.isIn(text) {
			t.Errorf("%q has the mark %q", env, other)
		}
	}
	if outer == inner || !outer.isIn(text) || !inner.isIn(text) {
		t.Errorf("%q", env)
	}
	for range 2 * maxMarks {
		env, inner = Marked(env)
	}
	if n := strings.Count(env[len(env)-1], ":"); n != maxMarks-1 || !strings.HasSuffix(env[len(env)-1], inner.text) {
		t.Errorf("%q", env)
	}
	if env, m := Marked([]string{MarkVar + "=-"}); m.text != "" || !slices.Equal(env, []string{MarkVar + "=-"}) {
		t.Errorf("%q, %q", env, m)
	}
}
