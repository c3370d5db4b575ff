package pty

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestDaemons: what a command has cut loose from itself ends when its terminal does, after the command,
// too, and when the holder of the terminal is killed.
func TestDaemons(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "pid")
	daemon := `rm -f ` + file + `; (setsid sh -c 'echo $$; exec sleep 1000' >` + file + ` &); while [ ! -s ` + file + ` ]; do sleep 0.01; done; cat ` + file + `; `
	gone := func(t *testing.T, line string) {
		t.Helper()
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
			if p, ok := stat(pid); !ok || p.zombie {
				return
			}
			if time.Now().After(end) {
				t.Fatal("the daemon is left")
			}
		}
	}
	for name, script := range map[string]string{"runs": daemon + "sleep 1000", "has ended": daemon} {
		t.Run(name, func(t *testing.T) {
			p := sh(t, DefaultSize, script)
			line, err := bufio.NewReader(p).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if name == "has ended" {
				p.Wait()
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			gone(t, line)
		})
	}
	t.Run("holder killed", func(t *testing.T) {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), holder+"="+daemon+"sleep 1000")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		_ = c.Process.Kill()
		_ = c.Wait()
		if err != nil {
			t.Fatal(err)
		}
		gone(t, line)
	})
}
