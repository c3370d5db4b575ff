//go:build linux

package interop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

const (
	// markVar marks every process of a tree, since the environment is inherited.
	markVar = "ACP_INTEROP_MARK"
	// goneLimit is how soon after the end of a connection nothing may be left, and
	// fullLimit how soon an agent has started everything.
	goneLimit = 15 * time.Second
	fullLimit = time.Minute
)

func init() {
	roles["family"] = family
	roles["parent"] = parent
}

// family is an agent that has a child, a shell, with a child of its own, that
// sleeps. It ends in the way a prompt says.
func family() error {
	tree := exec.Command("/bin/sh", "-c", "/bin/sh -c 'sleep 1000 & echo; wait' & wait")
	out, err := tree.StdoutPipe()
	if err == nil {
		err = tree.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n') // it sleeps
	}
	if err != nil {
		return err
	}
	agent := acp.Agent{Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		switch t.Text() {
		case "crash":
			os.Exit(3)
		case "panic":
			go panic("as asked")
			<-ctx.Done()
		case "drop":
			_ = os.Stdout.Close()
			select {}
		}
		return acp.StopEndTurn, nil
	}}
	// With acp.Stdio the standard output would not be ours to close.
	return agent.Serve(context.Background(), acp.Over(jsonrpc.NewLineStream(os.Stdin, os.Stdout)))
}

// relative starts a family and connects to it.
func relative(ctx context.Context, mark string) (*acp.ClientSession, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	agent := acp.Command(self)
	agent.Env = append(os.Environ(), roleVar+"=family", markVar+"="+mark)
	conn, err := new(acp.Client).Connect(ctx, agent)
	if err != nil {
		return nil, err
	}
	return conn.NewSession(ctx, acp.SessionConfig{Cwd: "/"})
}

// parent is a client of a family that says so and waits.
func parent() error {
	if _, err := relative(context.Background(), os.Getenv(markVar)); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

// alive returns the processes with the mark that are no zombies.
func alive(mark string) []int {
	var pids []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		// The environment of a zombie is empty.
		env, err := os.ReadFile(d + "/environ")
		if err == nil && bytes.Contains(env, []byte(markVar+"="+mark+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(d))
			pids = append(pids, pid)
		}
	}
	return pids
}

// Nothing of an agent's tree of processes outlives its connection, however that
// ends.
func TestNoSurvivors(t *testing.T) {
	prompted := func(t *testing.T, s *acp.ClientSession, text string) {
		t.Helper()
		if _, err := s.Prompt(limited(t), acp.Text(text)).Wait(); err == nil {
			t.Error("the turn ended well")
		}
	}
	for name, end := range map[string]func(t *testing.T, s *acp.ClientSession){
		"client closes": func(t *testing.T, s *acp.ClientSession) {
			if err := s.Conn().Close(); err != nil {
				t.Error(err)
			}
		},
		"agent crashes": func(t *testing.T, s *acp.ClientSession) { prompted(t, s, "crash") },
		"agent panics":  func(t *testing.T, s *acp.ClientSession) { prompted(t, s, "panic") },
		"output drops":  func(t *testing.T, s *acp.ClientSession) { prompted(t, s, "drop") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range 4 {
				mark := fmt.Sprintf("%s-%d-%d", name, i, os.Getpid())
				s, err := relative(limited(t), mark)
				if err != nil {
					t.Fatal(err)
				}
				full(t, mark, 4)
				end(t, s)
				gone(t, mark)
				_ = s.Conn().Close()
			}
		})
	}
	t.Run("client is killed", func(t *testing.T) {
		t.Parallel()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			mark := fmt.Sprintf("killed-%d-%d", i, os.Getpid())
			c := exec.Command(self)
			c.Env = append(os.Environ(), roleVar+"=parent", markVar+"="+mark)
			c.Stderr = os.Stderr
			out, err := c.StdoutPipe()
			if err := errors.Join(err, c.Start()); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
				t.Fatal(line, err)
			}
			full(t, mark, 5)
			_ = c.Process.Kill()
			_ = c.Wait() // it was killed
			gone(t, mark)
		}
	})
}

// full waits until a tree is complete: a process that becomes another program has
// no environment for a moment.
func full(t *testing.T, mark string, least int) {
	t.Helper()
	if left := watch(mark, fullLimit, func(pids []int) bool { return len(pids) >= least }); len(left) < least {
		t.Fatalf("%d processes, want at least %d", len(left), least)
	}
}

// gone waits for the end of a tree, which nothing announces.
func gone(t *testing.T, mark string) {
	t.Helper()
	for _, pid := range watch(mark, goneLimit, func(pids []int) bool { return len(pids) == 0 }) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		t.Errorf("left after %v: %d %q", goneLimit, pid, line)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// watch looks at a tree until it is as it should be, or limit has passed, and
// returns what it is.
func watch(mark string, limit time.Duration, ok func([]int) bool) []int {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); ; <-tick.C {
		if pids := alive(mark); ok(pids) || time.Now().After(end) {
			return pids
		}
	}
}
