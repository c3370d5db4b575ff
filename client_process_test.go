package acp

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// stubborn connects to an agent that ignores the end of its input and SIGTERM.
func stubborn(t *testing.T, transport func(*CommandTransport)) *ClientConn {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh on this machine")
	}
	command := Command(sh, "-c", `trap '' TERM
		read line
		printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
		while :; do sleep 1; done`)
	transport(command)
	c := &Client{MaxVersion: 1, Engine: jsonrpc.Settings{Grace: 10 * time.Millisecond}}
	conn, err := c.Connect(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestClientCloseWaits holds that the agent's process is gone when Close returns,
// also when it takes longer than the engine waits for anything.
func TestClientCloseWaits(t *testing.T) {
	conn := stubborn(t, func(c *CommandTransport) {
		c.CloseGrace, c.TermGrace = 250*time.Millisecond, 250*time.Millisecond
	})
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-conn.proc.Done():
	default:
		t.Error("Close has returned and the process runs")
	}
	clientNoLeaks(t)
}

// TestClientKill holds that Kill does not wait for a process, and spares a Close
// that does so the rest of it.
func TestClientKill(t *testing.T) {
	conn := stubborn(t, func(c *CommandTransport) { c.CloseGrace, c.TermGrace = time.Hour, time.Hour })
	closed := make(chan error, 1)
	go func() { closed <- conn.Close() }()
	select {
	case <-conn.Done():
	case <-t.Context().Done():
	}
	if err := conn.Kill(); err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	select {
	case <-conn.proc.Done():
	default:
		t.Error("Kill has returned and the process runs")
	}
	if err := conn.Wait(); err != nil {
		t.Error(err)
	}
	clientNoLeaks(t)
}

// TestClientKillAlone holds that Kill needs no Close, and no process.
func TestClientKillAlone(t *testing.T) {
	conn := stubborn(t, func(c *CommandTransport) { c.CloseGrace, c.TermGrace = time.Hour, time.Hour })
	if err := conn.Kill(); err != nil {
		t.Error(err)
	}
	if err := conn.Wait(); err != nil {
		t.Error(err)
	}
	both(t, Client{}, func(t *testing.T, s *ClientSession, _ *clientScript) {
		if err := s.conn.Kill(); err != nil {
			t.Error(err)
		}
		select {
		case <-s.conn.Done():
		default:
			t.Error("the connection goes on")
		}
	})
}

// TestClientExitCode holds that the exit status of an agent that ended on its own can be
// found in the errors of its connection: what the guide tells callers to write.
func TestClientExitCode(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh on this machine")
	}
	for _, tc := range []struct {
		name, end string
		want      int
	}{
		{"status", "exit 3", 3},
		{"signal", "kill -KILL $$", -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &Client{MaxVersion: 1}
			conn, err := c.Connect(t.Context(), Command(sh, "-c", `read line
				printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
				read line
				`+tc.end))
			if err != nil {
				t.Fatal(err)
			}
			_, asked := conn.NewSession(t.Context(), SessionConfig{Cwd: t.TempDir()})
			for _, err := range []error{asked, conn.Wait()} {
				var exit interface{ ExitCode() int }
				if !errors.As(err, &exit) {
					t.Errorf("no exit status in %v", err)
				} else if exit.ExitCode() != tc.want {
					t.Errorf("exit status %d, want %d: %v", exit.ExitCode(), tc.want, err)
				}
			}
			clientNoLeaks(t)
		})
	}
}
