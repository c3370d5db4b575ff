//go:build !windows

package screens

import (
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/test/terminal"
	"github.com/goacp/acp/internal/long"
)

// chat talks to the agent of this package.
func (d *desk) chat(args ...string) *terminal.Screen {
	d.t.Helper()
	s := d.start(80, 40, append([]string{"chat"}, args...)...)
	s.Wait("type a prompt")
	return s
}

// TestBig shows a message of 20 MB from its first line to its last, and keeps it.
func TestBig(t *testing.T) {
	long.Test(t)
	d := newDesk(t)
	s := d.chat("scripted")
	s.Type("big\r")
	s.Wait("the last line", "type a prompt")
	s.Press("home")
	s.Wait("the first line")
	s.Press("end")
	s.Wait("the last line")
	send(s, "/export talk.md")
	s.Wait("written to")
	s.Press("ctrl+d")
	if code := s.Exit(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	whole(t, d.read("greet/talk.md"))
	out, err := d.command("sessions", "export", s.Find(`--session (\S+)`), "--format", "text").Output()
	if err != nil {
		t.Errorf("export: %v", err)
	}
	whole(t, string(out))
}

func whole(t *testing.T, text string) {
	t.Helper()
	want := bigSize / len(bigLine)
	if got := strings.Count(text, strings.TrimSpace(bigLine)); got != want {
		t.Errorf("%d lines of %d", got, want)
	}
	for _, line := range []string{"the first line", "the last line"} {
		if !strings.Contains(text, line) {
			t.Errorf("it lacks %q", line)
		}
	}
}

// TestFlood types during a burst of 50,000 updates, which is complete in the end.
func TestFlood(t *testing.T) {
	d := newDesk(t)
	s := d.chat("scripted")
	s.Type("flood\r")
	s.Wait("word")
	s.Type("typed while it floods")
	s.Wait("› typed while it floods")
	s.Wait("the flood is over", "word49999")
	s.Press("ctrl+u")
	s.Wait("type a prompt")
	send(s, "/export talk.md")
	s.Wait("written to")
	words := regexp.MustCompile(`\bword[0-9]+\b`).FindAllString(d.read("greet/talk.md"), -1)
	if len(words) != 50_000 {
		t.Fatalf("%d words of 50000", len(words))
	}
	for i, w := range words {
		if w != "word"+strconv.Itoa(i) {
			t.Fatalf("%s in place of word%d", w, i)
		}
	}
}

// TestCrash starts an agent again that has crashed in a turn.
func TestCrash(t *testing.T) {
	s := newDesk(t).chat("scripted")
	s.Type("crash\r")
	s.Wait("Break?", "Enter chooses")
	s.Type("y")
	s.Wait("The agent has exited", "r restarts the agent")
	looks(t, s, "crash")
	s.Type("r")
	s.Wait("type a prompt", "half an ans")
	s.Type("hello\r")
	s.Wait("You said: hello", "type a prompt", "half an ans")
}

// TestKill kills the program in a turn: nothing survives, and everything that was
// shown comes back.
func TestKill(t *testing.T) {
	long.Test(t)
	for _, agent := range []string{"scripted", "deaf"} {
		t.Run(agent, func(t *testing.T) {
			if agent == "deaf" && runtime.GOOS != "linux" {
				t.Skip("only Linux ends processes with their parent")
			}
			d := newDesk(t)
			s := d.chat(agent)
			s.Type("work\r")
			process := number(t, s.Find(`agent ([0-9]+)`))
			shell := number(t, s.Find(`shell ([0-9]+)`))
			last := number(t, s.Find(`count([0-9]+) `))
			// What is on the screen last was shown too.
			for _, m := range regexp.MustCompile(`count([0-9]+) `).FindAllStringSubmatch(s.Text(), -1) {
				last = max(last, number(t, m[1]))
			}
			// A write that takes longer than 100 ms is not waited for, so it may reach the disk a little later.
			want := regexp.MustCompile(`\bcount` + strconv.Itoa(last) + `\b`)
			for end := time.Now().Add(terminal.Patience); ; time.Sleep(10 * time.Millisecond) {
				if out, err := d.command("sessions", "show", "-").Output(); err == nil && want.Match(out) {
					break
				} else if time.Now().After(end) {
					t.Fatalf("the log does not get count%d: %v: %s", last, err, out)
				}
			}
			s.Signal(syscall.SIGKILL)
			s.Exit()
			for _, pid := range []int{process, shell} {
				gone(t, pid)
			}
			s = d.chat(agent, "--continue")
			s.Wait("continues as a new one", "shell "+strconv.Itoa(shell))
			send(s, "/export talk.md")
			s.Wait("written to")
			text := d.read("greet/talk.md")
			for i := range last + 1 {
				if !regexp.MustCompile(`\bcount` + strconv.Itoa(i) + `\b`).MatchString(text) {
					t.Fatalf("count%d is lost, of %d that were shown", i, last+1)
				}
			}
		})
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// gone waits for the end of a process that is not ours to wait for.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Errorf("process %d has survived", pid)
			return
		}
	}
}
