//go:build unix

package tap

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/trace"
)

func TestMain(m *testing.M) {
	leaktest.Main(m)
}

// An editor is the other end of a tap that runs.
type editor struct {
	t       *testing.T
	in      *os.File      // what it writes goes here
	out     *bufio.Reader // and here is what it reads
	outFile *os.File
	stderr  bytes.Buffer
	sink    *taken
	signals chan os.Signal
	done    chan struct{}
	dir     string // of the agent
	status  int
	err     error
}

// run starts a tap on a shell script.
func run(t *testing.T, script string, change func(*Config)) *editor {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	e := &editor{t: t, in: inW, out: bufio.NewReader(outR), outFile: outR, sink: newTaken(), signals: make(chan os.Signal, 4), done: make(chan struct{}), dir: t.TempDir()}
	cfg := Config{
		Agent: process.Config{Path: "/bin/sh", Args: []string{"-c", script}, Dir: e.dir},
		In:    inR, Out: outW, Err: &e.stderr, Sink: e.sink, Signals: e.signals,
	}
	if change != nil {
		change(&cfg)
	}
	go func() {
		defer close(e.done)
		e.status, e.err = Run(context.Background(), cfg)
	}()
	t.Cleanup(func() {
		_ = inW.Close()
		_ = outR.Close()
		<-e.done
	})
	return e
}

func (e *editor) say(s string) {
	e.t.Helper()
	if _, err := e.in.WriteString(s); err != nil {
		e.t.Fatal(err)
	}
}

func (e *editor) line(want string) {
	e.t.Helper()
	if got, err := e.out.ReadString('\n'); got != want+"\n" {
		e.t.Fatalf("read %q, %v, want %q", got, err, want)
	}
}

// ends waits for the end and holds the status.
func (e *editor) ends(status int) {
	e.t.Helper()
	<-e.done
	if e.status != status || e.err != nil {
		e.t.Errorf("status %d, %v, want %d", e.status, e.err, status)
	}
}

// ended waits until the agent is gone.
func (e *editor) ended() {
	e.t.Helper()
	for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
		if _, err := os.Stat(filepath.Join(e.dir, "ended")); err == nil {
			return
		}
		if time.Now().After(end) {
			e.t.Fatal("the agent does not end")
		}
	}
}

func (e *editor) has(event string) {
	e.t.Helper()
	e.sink.mu.Lock()
	defer e.sink.mu.Unlock()
	if !slices.Contains(e.sink.events, event) {
		e.t.Errorf("no event %q in %q", event, e.sink.events)
	}
}

// TestConversation holds what passes, what is recorded, and how it ends when the client leaves.
func TestConversation(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Config)
	}{
		{"plain", nil},
		{"guarded", func(c *Config) { c.Guard = testGuard(t, nil) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := run(t, `echo warn >&2; while read -r x; do echo "$x"; done; echo bye; exit 7`, tt.change)
			e.say("{\"id\":1}\n")
			e.line(`{"id":1}`)
			e.say("half")
			e.say(" a line\n")
			e.line("half a line")
			_ = e.in.Close()
			e.line("bye")
			if rest, err := io.ReadAll(e.out); len(rest) > 0 || err != nil {
				t.Errorf("%q, %v", rest, err)
			}
			e.ends(7)
			if e.stderr.String() != "warn\n" {
				t.Errorf("standard error: %q", e.stderr.String())
			}
			want := map[trace.Direction][][]byte{
				trace.ToAgent:  {[]byte(`{"id":1}`), []byte("half a line")},
				trace.ToClient: {[]byte(`{"id":1}`), []byte("half a line"), []byte("bye")},
			}
			if diff := cmp.Diff(want, e.sink.frames); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"warn"}, e.sink.stderr); diff != "" {
				t.Error(diff)
			}
			for _, event := range []string{"start", "close the client stopped writing", "close the agent stopped writing", "exit 7"} {
				e.has(event)
			}
		})
	}
}

// TestHalfClosed holds that what closes on one side closes on the other, and nothing else does.
func TestHalfClosed(t *testing.T) {
	t.Run("agent stops writing", func(t *testing.T) {
		e := run(t, `exec >&-; read -r x; echo "$x" >&2; exit 3`, nil)
		if _, err := e.out.ReadByte(); err != io.EOF {
			t.Fatal(err)
		}
		e.say("still heard\n")
		e.ends(3)
		if e.stderr.String() != "still heard\n" {
			t.Errorf("%q", e.stderr.String())
		}
	})
	t.Run("agent stops reading", func(t *testing.T) {
		e := run(t, `exec <&-; echo ready; while [ ! -e go ]; do sleep 0.01; done; echo still here`, nil)
		e.line("ready")
		// The pipe breaks when it has been noticed, which is at the first write.
		var err error
		for err == nil {
			_, err = e.in.WriteString("is anybody there?\n")
		}
		if !errors.Is(err, syscall.EPIPE) {
			t.Error(err)
		}
		put(t, e, "go")
		e.line("still here")
		e.ends(0)
		e.has("close the agent stopped reading")
	})
	t.Run("client stops writing", func(t *testing.T) {
		e := run(t, `while read -r x; do :; done; for i in 1 2 3; do echo $i; done; while [ ! -e go ]; do sleep 0.01; done; echo end`, nil)
		_ = e.in.Close()
		for _, want := range []string{"1", "2", "3"} {
			e.line(want)
		}
		put(t, e, "go")
		e.line("end")
		e.ends(0)
	})
	t.Run("client stops reading", func(t *testing.T) {
		e := run(t, `trap 'exit 5' PIPE; read -r x; while echo more; do :; done 2>/dev/null; read -r x; exit 5`, nil)
		_ = e.outFile.Close()
		e.say("go\n")
		e.say("it is still listened to\n")
		e.ends(5)
		e.has("close the client stopped reading")
	})
}

// put makes a file in the directory of the agent.
func put(t *testing.T, e *editor, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestGone holds that the agent is ended when the client is gone altogether, even if it does not mind.
func TestGone(t *testing.T) {
	graces := func(c *Config) { c.Agent.CloseGrace, c.Agent.TermGrace = 10*time.Millisecond, 10*time.Millisecond }
	t.Run("silent", func(t *testing.T) {
		e := run(t, `trap '' TERM; echo ready; while :; do read -r x || sleep 0.01; done`, graces)
		e.line("ready")
		_ = e.in.Close()
		_ = e.outFile.Close()
		e.ends(128 + int(syscall.SIGKILL))
	})
	t.Run("neither reading nor writing", func(t *testing.T) {
		for _, guard := range []bool{false, true} {
			e := run(t, `trap '' TERM; echo ready; while :; do sleep 0.01; done`, func(c *Config) {
				graces(c)
				if guard {
					c.Guard = testGuard(t, nil)
				}
			})
			e.line("ready")
			if err := e.in.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
				t.Skip(err)
			}
			if _, err := e.in.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the agent has read: %v", err)
			}
			_ = e.in.Close()
			_ = e.outFile.Close()
			e.ends(128 + int(syscall.SIGKILL))
		}
	})
	t.Run("talking", func(t *testing.T) {
		e := run(t, `trap '' TERM PIPE; while :; do echo on 2>/dev/null; done`, graces)
		e.line("on")
		_ = e.in.Close()
		_ = e.outFile.Close()
		e.ends(128 + int(syscall.SIGKILL))
	})
}

// TestHungUp tells an end that the editor has closed from one that is closed here.
func TestHungUp(t *testing.T) {
	type state struct{ Hung, Closed bool }
	look := func(f *os.File) state {
		hung, closed := hungUp(f)
		return state{hung, closed}
	}
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = r.Close(), w.Close() })
		return r, w
	}
	got := map[string]state{}
	r, w := pipe()
	got["read"], got["write"] = look(r), look(w)
	_ = w.Close()
	got["read, closed there"], got["write, closed here"] = look(r), look(w)
	r, w = pipe()
	_ = r.Close()
	got["read, closed here"], got["write, closed there"] = look(r), look(w)
	want := map[string]state{
		"read": {}, "write": {},
		"read, closed there": {Hung: true}, "write, closed here": {Closed: true},
		"read, closed here": {Closed: true}, "write, closed there": {Hung: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStatus holds the status a shell would see.
func TestStatus(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 1": 1, "exit 255": 255, "kill -TERM $$": 143, "kill -KILL $$": 137, "kill -SEGV $$": 139} {
		e := run(t, script, nil)
		e.ends(want)
	}
	if _, err := Run(t.Context(), Config{Agent: process.Config{Path: "no-such-program"}, In: io.NopCloser(strings.NewReader("")), Out: unclosed{io.Discard}, Err: io.Discard}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestSignals holds that signals reach the agent, and that it is ended if it does not care.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		e := run(t, `trap 'echo got; exit 9' TERM INT HUP; echo ready; while :; do sleep 0.01; done`, nil)
		e.line("ready")
		e.signals <- sig
		e.line("got")
		e.ends(9)
		e.has("signal " + nameOf(sig))
	}
	stubborn := func(c *Config) {
		c.Grace, c.Agent.CloseGrace, c.Agent.TermGrace = 10*time.Millisecond, 10*time.Millisecond, 10*time.Millisecond
	}
	e := run(t, `trap '' TERM; echo ready; while :; do sleep 0.01; done`, stubborn)
	e.line("ready")
	e.signals <- syscall.SIGTERM
	e.ends(137)
}

// TestNotTaken holds that a signal ends the tap when the agent has ended and the client does not take
// what it wrote.
func TestNotTaken(t *testing.T) {
	e := run(t, `trap '' TERM; i=0; while [ $i -lt 2500 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done; exit 5`, nil)
	e.line("0123456789012345678901234567890123456789")
	for {
		select {
		case <-e.done:
			e.ends(5)
			return
		case e.signals <- syscall.SIGTERM: // the first may come before the end
		}
	}
}

// TestDrained holds that all is forwarded that the agent wrote before it ended, to a client that takes
// its time, and that what holds its output open does not keep the tap.
func TestDrained(t *testing.T) {
	e := run(t, `i=0; while [ $i -lt 2000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done; : >ended`, nil)
	e.line("0123456789012345678901234567890123456789")
	e.ended()
	all, err := io.ReadAll(e.out)
	if len(all) != 1999*41 || err != nil {
		t.Errorf("%d bytes, %v", len(all), err)
	}
	e.ends(0)
}

// TestLeftBehind holds that a process that has left the tree and holds the output open does not keep
// the tap.
func TestLeftBehind(t *testing.T) {
	if _, err := process.LookPath("setsid", nil); err != nil {
		t.Skip(err)
	}
	// It ends when its directory is removed.
	e := run(t, `setsid sh -c 'echo >away; while [ -e away ]; do sleep 0.01; done' & while [ ! -e away ]; do sleep 0.01; done; echo last; kill -KILL $$`, nil)
	e.line("last")
	e.ends(137)
}

// TestPressure holds that a side that does not read stalls the other, and that little is held back.
func TestPressure(t *testing.T) {
	for _, guard := range []bool{false, true} {
		e := run(t, `echo ready; while [ ! -e go ]; do sleep 0.01; done; while read -r x; do :; done`, func(c *Config) {
			if guard {
				c.Guard = testGuard(t, nil)
			}
		})
		e.line("ready")
		written, stalled := 0, false
		line := []byte(strings.Repeat("x", 1023) + "\n")
		for written < 64<<20 && !stalled {
			if err := e.in.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
				t.Skip(err)
			}
			n, err := e.in.Write(line)
			written += n
			stalled = errors.Is(err, os.ErrDeadlineExceeded)
		}
		if !stalled || written > 1<<20 {
			t.Errorf("guarded %v: %d bytes were taken for an agent that does not read", guard, written)
		}
		put(t, e, "go")
		_ = e.in.Close()
		e.ends(0)
	}
}
