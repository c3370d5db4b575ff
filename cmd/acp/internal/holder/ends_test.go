//go:build unix

package holder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// TestExit: the end of the agent is an event like any other. The holder goes when it is acknowledged.
func TestExit(t *testing.T) {
	s := script(t, "echo why >&2; printf last; exit 3")
	a := begin(t, s)
	for i := range 2 {
		if got := line(t, a); got != "last" {
			t.Errorf("%q", got)
		}
		for range 2 {
			if _, err := a.ReadFrame(); err != io.EOF || a.Seq() != 2 {
				t.Errorf("event %d, %v", a.Seq(), err)
			}
		}
		if diff := cmp.Diff(&process.ExitError{Code: 3, Stderr: "why\n"}, a.ExitErr()); diff != "" {
			t.Error(diff)
		}
		if err := a.WriteFrame([]byte("{}")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("written: %v", err)
		}
		if i == 0 {
			_ = a.Close()
			a = again(t, a, State{})
		}
	}
	if err := a.Ack(2); err != nil {
		t.Error(err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if !Gone(a.Socket()) || running(a.HolderPID()) || len(marked(s)) > 0 {
		t.Error("something is left")
	}
	if _, err := Attach(t.Context(), a.Socket(), a.Token(), State{}); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

// TestExitsAtOnce: an agent that says nothing and ends has one event, and so has one that was killed.
func TestExitsAtOnce(t *testing.T) {
	for text, want := range map[string]error{
		"exit 0":        nil,
		"kill -KILL $$": &process.ExitError{Code: -1, Signal: "SIGKILL"},
	} {
		a := begin(t, script(t, text))
		if _, err := a.ReadFrame(); err != io.EOF || a.Seq() != 1 {
			t.Errorf("%s: event %d, %v", text, a.Seq(), err)
		}
		if err := a.ExitErr(); fmt.Sprint(err) != fmt.Sprint(want) {
			t.Errorf("%s: %v", text, err)
		}
		if err := errors.Join(a.Ack(1), a.Stop(t.Context())); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// These start a child in their group, the first one also a daemon that has left it, and do not mind being
// asked to end.
const (
	family = `(setsid sleep 1000 &); ` + group
	group  = `trap '' TERM HUP; sleep 1000 & cat >/dev/null; wait; sleep 1000`
)

// grown waits until the children of a family are there. One that is about to become sleep cannot be found
// by its environment for a moment, by whoever ends the family either.
func grown(t *testing.T, s Spec, n int) {
	t.Helper()
	eventually(t, "not all are there", func() bool {
		there := 0
		for _, pid := range marked(s) {
			if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(string(line), "sleep\x00") {
				there++
			}
		}
		return there == n
	})
}

// TestStop ends an agent that ignores everything but SIGKILL, with all that it has started.
func TestStop(t *testing.T) {
	needProc(t)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx   context.Context
		grace time.Duration
	}{"in stages": {t.Context(), 10 * time.Millisecond}, "at once": {canceled, 10 * patience}} {
		t.Run(name, func(t *testing.T) {
			s := script(t, family)
			s.Config.CloseGrace, s.Config.TermGrace = tt.grace, tt.grace
			a := begin(t, s)
			grown(t, s, 2)
			if err := a.Stop(tt.ctx); err != nil {
				t.Error(err)
			}
			if exit, ok := errors.AsType[*process.ExitError](a.ExitErr()); !ok || exit.Signal != "SIGKILL" {
				t.Errorf("ended with %v", a.ExitErr())
			}
			if !Gone(a.Socket()) || running(a.HolderPID()) || len(marked(s)) > 0 {
				t.Error("something is left")
			}
		})
	}
}

// TestLeaseLapses: when nobody attaches, the agent ends with all that it has started, and so does the
// holder.
func TestLeaseLapses(t *testing.T) {
	needProc(t)
	s := script(t, family)
	s.Config.CloseGrace, s.Config.TermGrace = -1, 10*time.Millisecond
	// The lease must last until everything is there, and where even attaching takes longer it has to be longer.
	var a *Agent
	for s.Config.Lease = 4 * time.Second; ; s.Config.Lease *= 2 {
		var err error
		if a, err = Start(t.Context(), s); err == nil {
			break
		} else if !errors.Is(err, ErrNone) && !errors.Is(err, ErrEnding) || 2*s.Config.Lease > MaxLease {
			t.Fatal(err)
		}
	}
	kept(t, a, s)
	grown(t, s, 2)
	_ = a.Close()
	eventually(t, "the socket is left", func() bool { return !exists(a.Socket()) })
	eventually(t, "something is left", func() bool { return !running(a.HolderPID()) && len(marked(s)) == 0 })
	if left, err := List(s.Config.Dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestHolderKilled: an agent whose holder is killed does not survive it, nor does what is in its group. A
// daemon that has left the group is looked for as well, but for a second only, which is too short to be
// sure of on a busy machine.
func TestHolderKilled(t *testing.T) {
	needProc(t)
	s := script(t, group)
	a := begin(t, s)
	grown(t, s, 1)
	if err := syscall.Kill(a.HolderPID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := a.ReadFrame(); !errors.Is(err, ErrLost) || !errors.Is(err, jsonrpc.ErrOutcomeUnknown) {
		t.Errorf("read: %v", err)
	}
	if err := a.Stop(t.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("stop: %v", err)
	}
	eventually(t, "processes are left", func() bool { return len(marked(s)) == 0 })
	if !exists(a.Socket()) || Gone(a.Socket()) {
		t.Error("there is no socket, although nobody has removed it")
	}
	if _, err := Attach(t.Context(), a.Socket(), a.Token(), State{}); !errors.Is(err, ErrNone) {
		t.Errorf("attach: %v", err)
	}
	if left, err := List(s.Config.Dir); err != nil || len(left) > 0 || exists(a.Socket()) {
		t.Errorf("%v, %v", left, err)
	}
}

// TestHolderTerminated: a holder that is asked to end ends its agent first.
func TestHolderTerminated(t *testing.T) {
	needProc(t)
	s := spec(t, "/bin/cat")
	a := begin(t, s)
	if err := syscall.Kill(a.HolderPID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for err := error(nil); err == nil || errors.Is(err, io.EOF); {
		if _, err = a.ReadFrame(); err == io.EOF {
			break
		} else if err != nil && !errors.Is(err, ErrLost) {
			t.Fatal(err)
		}
	}
	eventually(t, "something is left", func() bool { return !running(a.HolderPID()) && len(marked(s)) == 0 && !exists(a.Socket()) })
}

// TestList finds what listens, and removes what does not.
func TestList(t *testing.T) {
	s := spec(t, "/bin/cat")
	if left, err := List(filepath.Join(s.Config.Dir, "missing")); err != nil || left != nil {
		t.Errorf("%v, %v", left, err)
	}
	s.Config.ID, s.Config.Token = "one", strings.Repeat("t", minToken)
	begin(t, s)
	dead := filepath.Join(s.Config.Dir, "dead"+suffix)
	for _, name := range []string{dead, dead + fresh, dead + "2" + suffix + fresh} {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		_ = l.Close()
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dead+fresh, long, long); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Config.Dir, "file"+suffix), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	left, err := List(s.Config.Dir)
	if diff := cmp.Diff([]Left{{ID: "one", Socket: filepath.Join(s.Config.Dir, "one.sock")}}, left); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for name, want := range map[string]bool{dead: false, dead + fresh: false, dead + "2" + suffix + fresh: true} {
		if exists(name) != want {
			t.Errorf("%s: there is one: %v", name, !want)
		}
	}
	b, err := Attach(t.Context(), left[0].Socket, s.Config.Token, State{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestKilledEarly: what a gateway asks for before the holder has settled down is not lost.
func TestKilledEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c, l := newCore(Config{Token: testToken}.withDefaults(), f), newPipeListener()
		c.shut = func() { _ = l.Close() }
		c.work.Go(func() { c.serve(l) })
		g, _ := dialRaw(t, l, 0)
		g.send(packet{kind: kindStop, number: 1})
		synctest.Wait()
		_ = g.conn.Close()
		if err := c.run(t.Context()); err != nil {
			t.Error(err)
		}
		if !f.forced {
			t.Error("the agent was not ended at once")
		}
	})
}
