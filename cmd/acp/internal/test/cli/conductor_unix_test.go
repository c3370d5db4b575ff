//go:build !windows

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A conducted is an acp conductor in the middle of a turn, as its client sees it.
type conducted struct {
	*exec.Cmd
	in           io.WriteCloser
	errs         bytes.Buffer
	out          *bufio.Reader
	proxy, agent int // pids
}

// startConducted starts a conductor with a proxy and an agent, and begins a turn that does not end.
func startConducted(t *testing.T) *conducted {
	t.Helper()
	home := t.TempDir()
	c := &conducted{Cmd: acpCommand(t, home, "conductor", strings.Join(fake("proxy=pids")[1:], " "))}
	c.Args = append(append(c.Args, fake("slow-turn")...), "-v1")
	c.Dir = home
	var err error
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out, c.Stderr = bufio.NewReader(out), &c.errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	c.says(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	c.says(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, home))
	var opened struct{ Result struct{ SessionID string } }
	if err := json.Unmarshal([]byte(c.until(t, `"id":2`)), &opened); err != nil {
		t.Fatal(err)
	}
	c.says(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"x"}]}}`, opened.Result.SessionID))
	_, after, _ := strings.Cut(c.until(t, "working "), "working ")
	word, _, _ := strings.Cut(after, `\n`)
	if c.agent, err = strconv.Atoi(word); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(home, "proxy.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if c.proxy, err = strconv.Atoi(string(data)); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *conducted) says(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		t.Fatal(err)
	}
}

// until returns the next line that has a text in it.
func (c *conducted) until(t *testing.T, text string) string {
	t.Helper()
	for {
		line, err := c.out.ReadString('\n')
		if strings.Contains(line, text) {
			return line
		}
		if err != nil {
			t.Fatalf("%s did not come: %v", text, err)
		}
	}
}

// TestConductorEnds ends each part in the middle of a turn: the client gets the reason, and no process is left.
func TestConductorEnds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		kill   func(c *conducted) error
		said   string // to the client; "" for nothing
		status int
	}{
		{"the proxy is killed", func(c *conducted) error { return syscall.Kill(c.proxy, syscall.SIGKILL) }, `"reason":"component_exited"`, 6},
		{"the agent is killed", func(c *conducted) error { return syscall.Kill(c.agent, syscall.SIGKILL) }, `"reason":"component_exited"`, 6},
		{"an interrupt", func(c *conducted) error { return c.Process.Signal(os.Interrupt) }, "", 4},
		{"a request to end", func(c *conducted) error { return c.Process.Signal(syscall.SIGTERM) }, "", 4},
		{"the client leaves", func(c *conducted) error { return c.in.Close() }, "", 0},
		{"a kill", func(c *conducted) error { return c.Process.Kill() }, "", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := startConducted(t)
			if err := tt.kill(c); err != nil {
				t.Fatal(err)
			}
			if tt.said != "" {
				if line := c.until(t, `"id":3`); !strings.Contains(line, tt.said) {
					t.Error(line)
				}
			}
			_, _ = io.Copy(io.Discard, c.out)
			err := c.Wait()
			status := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				status = exit.ExitCode()
			}
			if says := "acp: conductor: the component env has ended"; tt.said != "" && !strings.Contains("\n"+c.errs.String(), "\n"+says) {
				t.Errorf("%s", &c.errs)
			}
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			awaitGone(t, c.proxy)
			awaitGone(t, c.agent)
		})
	}
}
