//go:build unix

package own

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
)

// fakeServer makes this program a server for [Start], which tests start.
func init() {
	switch os.Getenv("OWN_TEST") {
	case "serve":
		path := strings.TrimPrefix(os.Args[4], "unix:")
		l, err := net.Listen("unix", path)
		if err != nil {
			_, _ = os.Stderr.WriteString("acp: " + err.Error() + "\n")
			os.Exit(1)
		}
		f, _ := os.OpenFile(filepath.Join(os.Getenv("OWN_STATE"), "starts"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		_, _ = f.WriteString("x")
		lock, _ := os.OpenFile(filepath.Join(dir(os.Getenv("OWN_STATE")), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
		_, _ = filelock.TryLock(lock, true)
		_, _ = Announce(os.Getenv("OWN_STATE"), Server{PID: os.Getpid(), URL: "unix:" + path, Background: true})
		_, _ = os.Stdout.WriteString("unix:" + path + "\n")
		for {
			c, err := l.Accept()
			if err != nil {
				os.Exit(0)
			}
			_ = c.Close()
		}
	case "fail":
		_, _ = os.Stderr.WriteString("acp: it is broken\n")
		os.Exit(1)
	}
}

func config(t *testing.T, what string) Config {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", "")
	return Config{State: state, Program: program, Environ: append(os.Environ(), "OWN_TEST="+what, "OWN_STATE="+state)}
}

// TestStart: of many starts at once one starts the server, which belongs to nobody's session and ends when it is asked to.
func TestStart(t *testing.T) {
	cfg := config(t, "serve")
	var all sync.WaitGroup
	servers := make([]Server, 8)
	for i := range servers {
		all.Go(func() {
			var err error
			if servers[i], err = Start(t.Context(), cfg); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, s := range servers {
		if s != servers[0] || s.PID == 0 || s.PID == os.Getpid() {
			t.Errorf("%+v, want %+v", s, servers[0])
		}
	}
	if data, err := os.ReadFile(filepath.Join(cfg.State, "starts")); err != nil || string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
	socket, err := Socket(cfg.State)
	if err != nil || servers[0].URL != "unix:"+socket || len(socket) > maxSocket {
		t.Errorf("%s, %v", socket, err)
	}
	if info, err := os.Stat(filepath.Dir(socket)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	p, err := os.FindProcess(servers[0].PID)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Wait() // it is a child of the test, which as other parents does not ask before how it has ended
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Stop(ctx, cfg.State, servers[0]); err != nil {
		t.Error(err)
	}
	if err := Stop(ctx, cfg.State, Server{PID: 1}); err == nil {
		t.Error("process 1 was asked to end")
	}
}

// TestStartFails: what the server says when it cannot start is what the user gets.
func TestStartFails(t *testing.T) {
	cfg := config(t, "fail")
	if _, err := Start(t.Context(), cfg); err == nil || err.Error() != "the gateway does not start: it is broken" {
		t.Error(err)
	}
	cfg.Program = filepath.Join(cfg.State, "none")
	if _, err := Start(t.Context(), cfg); err == nil {
		t.Error("started what does not exist")
	}
	if _, err := Start(t.Context(), Config{}); err == nil {
		t.Error("started without a home")
	}
}
