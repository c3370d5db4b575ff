//go:build linux

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// beInside is a program in a PID namespace, without a group there. It has a job that belongs to no
// tree, and a tree that leaves a daemon. It says what is left of both.
func beInside() {
	job := exec.Command("sleep", "1000")
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := job.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = job.Wait() }()
	defer func() { _ = job.Process.Kill() }()
	p, err := Start(context.Background(), Config{Path: "/bin/sh", Args: []string{"-c", daemon}})
	if err != nil {
		fmt.Println(err)
		return
	}
	line, _ := bufio.NewReader(p.Stdout()).ReadString('\n')
	pid, _ := strconv.Atoi(strings.TrimSpace(line))
	_ = p.Stdin().Close() // it ends by itself
	<-p.Done()
	if err := errors.Join(p.Stop(context.Background()), p.Wait()); err != nil {
		fmt.Println(err)
	}
	<-p.killed // Stop does not wait for a search that finds nothing left
	fmt.Println("numbered", Numbered())
	fmt.Println("group", syscall.Getpgrp())
	ended, _ := syscall.Wait4(job.Process.Pid, nil, syscall.WNOHANG|syscall.WUNTRACED, nil)
	fmt.Println("job", ended == 0) // neither ended nor stopped
	if !Numbered() {
		return // nobody can tell what becomes of a daemon
	}
	left := true
	for end := time.Now().Add(time.Minute); left && time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		left = running(pid)
	}
	fmt.Println("daemon", left)
}

// TestNamespace: in a PID namespace whose processes are in groups of the world outside, which have no
// number there, only what belongs to a tree ends with it.
func TestNamespace(t *testing.T) {
	needSetsid(t)
	inside := []string{"numbered true", "group 0", "job true", "daemon false"}
	ran := false
	for _, tt := range []struct {
		wrapper string
		want    []string
	}{
		{"unshare --pid --fork --mount-proc", inside},
		{"unshare --user --map-root-user --pid --fork --mount-proc", inside},
		{"bwrap --dev-bind / / --unshare-pid --proc /proc", inside},
		{"unshare --pid --fork", []string{"numbered false", "group 0", "job true"}},
	} {
		argv := strings.Fields(tt.wrapper)
		if err := exec.Command(argv[0], append(argv[1:], "true")...).Run(); err != nil {
			t.Logf("%s cannot be used here: %v", tt.wrapper, err)
			continue
		}
		ran = true
		t.Run(tt.wrapper, func(t *testing.T) {
			cmd := exec.Command(argv[0], append(argv[1:], "sh", "-c", `"$0"; true`, os.Args[0])...)
			cmd.Env = append(os.Environ(), roleVar+"=namespace")
			out, err := cmd.CombinedOutput()
			if got := strings.Split(strings.TrimSpace(string(out)), "\n"); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
	if !ran {
		t.Skip("neither unshare nor bwrap can make a PID namespace here")
	}
}

// TestAmong decides which processes are strays, without any process.
func TestAmong(t *testing.T) {
	p := func(parent, group, session int, start string) proc {
		return proc{parent: parent, group: group, session: session, start: start}
	}
	// 1 → 10, this process's parent → 20, this process → 30, the watchdog; 40, the child;
	// 50, a job in a group of its own → 51.
	world := func(groupOfAncestors int, more map[int]proc) map[int]proc {
		g := groupOfAncestors
		procs := map[int]proc{
			1:  p(0, g, g, "1"),
			10: p(1, g, g, "2"),
			20: p(10, g, g, "3"),
			30: p(20, 30, g, "4"),
			40: p(20, 30, g, "5"),
			50: p(20, 50, g, "6"),
			51: p(50, 50, g, "7"),
		}
		maps.Copy(procs, more)
		return procs
	}
	above := map[int]string{1: "1", 10: "2", 20: "3"}
	for _, tt := range []struct {
		name   string
		more   map[int]proc
		known  strays
		k      kin
		want   []int
		groups []int // of the ancestors; nil means outside of the namespace, and inside
	}{
		{"nothing", nil, nil, kin{child: 40, group: 30, mark: Mark{text: "m"}}, nil, nil},
		{"the child has gone", nil, nil, kin{group: 30, mark: Mark{text: "m"}}, nil, nil},
		{"everything has gone", nil, nil, kin{mark: Mark{text: "m"}}, nil, nil},
		{"everything has gone, a stray is left", map[int]proc{60: p(1, 60, 60, "8"), 61: p(60, 61, 61, "9")},
			strays{60: "8"}, kin{mark: Mark{text: "m"}}, []int{61}, nil},
		{"the number of a stray is another's", map[int]proc{60: p(1, 60, 60, "9"), 61: p(60, 61, 61, "9")},
			strays{60: "8"}, kin{mark: Mark{text: "m"}}, nil, nil},
		{"a daemon with the mark", map[int]proc{60: {parent: 1, group: 60, start: "8", marks: "l:m:n"},
			61: p(1, 61, 61, "8")},
			nil, kin{mark: Mark{text: "m"}}, []int{60}, nil},
		{"a child of the child", map[int]proc{60: p(40, 60, 60, "8"), 61: p(60, 30, 60, "8")},
			nil, kin{child: 40, group: 30, mark: Mark{text: "m"}}, []int{60}, nil},
		{"a grandchild of the group", map[int]proc{60: p(30, 60, 60, "8"), 61: p(60, 61, 61, "8")},
			nil, kin{group: 30, mark: Mark{text: "m"}}, []int{60, 61}, nil},
		{"the child has left the group", map[int]proc{40: p(20, 40, 40, "5"), 60: p(40, 40, 40, "8")},
			nil, kin{child: 40, group: 30, mark: Mark{text: "m"}}, []int{60}, nil},
		{"sessions of their own stay", map[int]proc{60: p(40, 60, 60, "8"), 61: p(40, 61, 7, "8")},
			nil, kin{child: 40, group: 30, session: 7}, []int{61}, []int{7}},
		{"above everything, marked by mistake", map[int]proc{20: {parent: 10, start: "3", marks: "m"}},
			nil, kin{mark: Mark{text: "m"}}, nil, nil},
		{"above everything, known by mistake", nil, strays{1: "1"}, kin{mark: Mark{text: "m"}}, nil, nil},
		{"a circle", map[int]proc{60: p(61, 60, 60, "8"), 61: p(60, 60, 60, "8")}, nil,
			kin{child: 40, group: 30, mark: Mark{text: "m"}}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			groups := tt.groups
			if groups == nil {
				groups = []int{0, 7}
			}
			for _, g := range groups {
				k := tt.k
				k.above = above
				got := tt.known.among(world(g, tt.more), k)
				slices.Sort(got)
				if !slices.Equal(got, tt.want) {
					t.Errorf("ancestors in group %d: %v, want %v", g, got, tt.want)
				}
			}
		})
	}
}
