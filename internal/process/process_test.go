package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestExit(t *testing.T) {
	for _, tt := range []struct {
		script string
		want   error
		text   string
	}{
		{"exit 0", nil, ""},
		{"echo out; echo some >&2; echo trouble >&2; exit 3",
			&ExitError{Code: 3, Stderr: "some\ntrouble\n"}, "exit status 3: trouble"},
		{"exit 1", &ExitError{Code: 1}, "exit status 1"},
		{"kill -KILL $$", &ExitError{Code: -1, Signal: "SIGKILL"}, "ended by SIGKILL"},
		{"kill -TERM $$", &ExitError{Code: -1, Signal: "SIGTERM"}, "ended by SIGTERM"},
		{`printf 'caf\303' >&2; exit 2`, &ExitError{Code: 2, Stderr: "caf"}, "exit status 2: caf"},
	} {
		cfg, _ := sh(t, tt.script)
		p := start(t, cfg)
		out, err := io.ReadAll(p.Stdout())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(tt.script, "echo out") != (string(out) == "out\n") {
			t.Errorf("%s: stdout %q", tt.script, out)
		}
		err = p.Wait()
		if diff := cmp.Diff(tt.want, err); diff != "" {
			t.Errorf("%s: %s", tt.script, diff)
		}
		if err != nil && err.Error() != tt.text {
			t.Errorf("%s: %q, want %q", tt.script, err, tt.text)
		}
	}
}

func TestEnvironmentAndDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg, _ := sh(t, "pwd; echo $WORD; read x || echo no input; echo err >&2")
	cfg.Dir, cfg.NoStdin, cfg.MergeStderr = dir, true, true
	cfg.Env = append(cfg.Env, "WORD=first", "WORD=second")
	p := start(t, cfg)
	if p.Stdin() != nil {
		t.Error("there is a standard input")
	}
	out, err := io.ReadAll(p.Stdout())
	if want := dir + "\nsecond\nno input\nerr\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
	if p.StderrTail() != "" || p.StderrDropped() != 0 {
		t.Error("standard error is not merged")
	}
}

// TestRelativePath holds that a path with a separator starts in Dir.
func TestRelativePath(t *testing.T) {
	dir := t.TempDir()
	cfg, _ := sh(t, "")
	script(t, filepath.Join(dir, "bin"), "prog", "echo from $0")
	cfg.Path, cfg.Args, cfg.Dir = "bin/prog", nil, dir
	p := start(t, cfg)
	out, _ := io.ReadAll(p.Stdout())
	if want := "from " + filepath.Join(dir, "bin/prog") + "\n"; string(out) != want {
		t.Errorf("%q, want %q", out, want)
	}
}

func script(t *testing.T, dir, name, body string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("\x00"), 0o666); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "binary")
	if err := os.WriteFile(binary, []byte("\x00"), 0o777); err != nil {
		t.Fatal(err)
	}
	cfg, _ := sh(t, "")
	for _, tt := range []struct {
		name string
		ctx  context.Context
		edit func(*Config)
		want error
	}{
		{"context", canceled(), func(c *Config) {}, context.Canceled},
		{"no such name", t.Context(), func(c *Config) { c.Path = "no-such-program" }, exec.ErrNotFound},
		{"no name", t.Context(), func(c *Config) { c.Path = "" }, exec.ErrNotFound},
		{"no such file", t.Context(), func(c *Config) { c.Path = file + "x" }, fs.ErrNotExist},
		{"not executable", t.Context(), func(c *Config) { c.Path = file }, fs.ErrPermission},
		{"no program", t.Context(), func(c *Config) { c.Path = binary }, nil},
		{"no such directory", t.Context(), func(c *Config) { c.Dir = file + "x" }, fs.ErrNotExist},
		{"not a directory", t.Context(), func(c *Config) { c.Dir = file }, nil},
	} {
		c := cfg
		tt.edit(&c)
		p, err := Start(tt.ctx, c)
		if err == nil {
			p.Kill()
			t.Fatalf("%s: it started", tt.name)
		}
		if tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// TestStop goes as far as each child makes it go.
func TestEndsWithin(t *testing.T) {
	cfg, _ := sh(t, "cat >/dev/null")
	p := start(t, cfg)
	if p.EndsWithin(time.Millisecond) {
		t.Error("it has ended")
	}
	_ = p.Stdin().Close()
	if !p.EndsWithin(time.Hour) {
		t.Error("it has not ended")
	}
}

func TestStop(t *testing.T) {
	const stubborn = `trap "" TERM; echo ready; while :; do sleep 1000; done`
	for _, tt := range []struct {
		name, script string
		edit         func(*Config)
		ctx          context.Context
		want         error
	}{
		{"EOF", "echo ready; cat >/dev/null; exit 5", func(c *Config) { c.CloseGrace = time.Hour }, t.Context(), &ExitError{Code: 5}},
		{"TERM", "trap 'exit 6' TERM; echo ready; while :; do sleep 1000 & wait; done",
			func(c *Config) { c.CloseGrace, c.TermGrace = -1, time.Hour }, t.Context(), &ExitError{Code: 6}},
		{"TERM while stopped", "trap 'exit 6' TERM; echo ready; kill -STOP $$; while :; do sleep 1000 & wait; done",
			func(c *Config) { c.CloseGrace, c.TermGrace = -1, time.Hour }, t.Context(), &ExitError{Code: 6}},
		{"KILL", stubborn, func(c *Config) { c.CloseGrace, c.TermGrace = -1, -1 }, t.Context(),
			&ExitError{Code: -1, Signal: "SIGKILL"}},
		{"impatient", stubborn, nil, canceled(), &ExitError{Code: -1, Signal: "SIGKILL"}},
		{"ended before", "echo ready; exit 7", nil, t.Context(), &ExitError{Code: 7}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, _ := sh(t, tt.script)
			if tt.edit != nil {
				tt.edit(&cfg)
			}
			p := start(t, cfg)
			lines(t, bufio.NewReader(p.Stdout()), 1)
			if tt.name == "ended before" {
				<-p.Done()
			}
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if err := p.Stop(tt.ctx); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if diff := cmp.Diff(tt.want, p.Wait()); diff != "" {
				t.Error(diff)
			}
			p.Kill() // late, and harmless
			if _, err := p.Stdin().Write([]byte("x")); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("standard input: %v", err)
			}
			if _, err := p.Stdout().Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("standard output: %v", err)
			}
		})
	}
}

// gate is a writer that blocks until it is opened.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	n    int
}

func (g *gate) Write(b []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n += len(b)
	return len(b), nil
}

type writerFunc func(b []byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }

// TestStderr holds that a child never waits for what becomes of its output.
func TestStderr(t *testing.T) {
	const size = 1 << 20
	const flood = `i=0; while [ $i -lt 16384 ]; do echo 0123456789012345678901234567890123456789012345678901234567890123 >&2; i=$((i+1)); done; echo done >&2`
	blocked := &gate{open: make(chan struct{})}
	for name, w := range map[string]io.Writer{
		"none":    nil,
		"blocked": blocked,
		"error":   writerFunc(func(b []byte) (int, error) { return 4, errors.New("full") }),
		"late":    writerFunc(func(b []byte) (int, error) { return len(b), errors.New("full") }),
		"panic":   writerFunc(func(b []byte) (int, error) { panic("writer") }),
		"lies":    writerFunc(func(b []byte) (int, error) { return -1, nil }),
		"discard": io.Discard,
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := sh(t, flood)
			cfg.Stderr, cfg.StderrTail = w, 100
			p := start(t, cfg)
			if err := p.Wait(); err != nil {
				t.Fatal(err)
			}
			if tail := p.StderrTail(); len(tail) != 100 || !strings.HasSuffix(tail, "0123\ndone\n") {
				t.Errorf("tail %q", tail)
			}
			lost := p.StderrDropped()
			switch name {
			case "none":
				if lost != 0 {
					t.Errorf("%d bytes dropped of none", lost)
				}
			case "blocked":
				close(blocked.open)
				<-p.stderr.copied
				if all := int64(blocked.n) + lost; lost < size/2 || all != 16384*65+5 {
					t.Errorf("%d bytes passed on, %d dropped", blocked.n, lost)
				}
			case "discard": // its speed decides
			default:
				if lost < size/2 {
					t.Errorf("only %d bytes dropped", lost)
				}
			}
		})
	}
}

func TestStderrCopy(t *testing.T) {
	var got bytes.Buffer
	cfg, _ := sh(t, "echo one >&2; echo two >&2; exit 1")
	cfg.Stderr = &got
	p := start(t, cfg)
	_ = p.Wait()
	if got.String() != "one\ntwo\n" || p.StderrDropped() != 0 {
		t.Errorf("%q, %d dropped", got.String(), p.StderrDropped())
	}
}

// TestStderrFile holds that a child can have a file as its standard error, and
// that a signal is for the child.
func TestStderrFile(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	cfg, _ := sh(t, `trap 'echo told >&2; exit 3' TERM; echo ready >&2; while :; do read -r x; done`)
	cfg.StderrFile = w
	p := start(t, cfg)
	_ = w.Close()
	in := bufio.NewReader(r)
	lines(t, in, 1)
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_, _ = p.Stdin().WriteString("\n") // a shell runs its trap when read is over
	if got := lines(t, in, 1); got[0] != "told" {
		t.Errorf("%q", got)
	}
	var exit *ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.Code != 3 || p.StderrTail() != "" {
		t.Errorf("%v", err)
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal after the end: %v", err)
	}
}

// TestWarm: what was found out in advance serves a start, also at the same time.
func TestWarm(t *testing.T) {
	var warm sync.WaitGroup
	for range 4 {
		warm.Go(Warm)
	}
	cfg, _ := sh(t, "exit 3")
	p := start(t, cfg)
	var e *ExitError
	if err := p.Wait(); !errors.As(err, &e) || e.Code != 3 {
		t.Error(err)
	}
	warm.Wait()
}
