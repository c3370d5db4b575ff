package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/holder"
	"github.com/goacp/acp/internal/leaktest"
)

// TestMain makes the test binary a holder, as the program is, if it is called acp hold.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{"hold"}) {
		main()
	}
	leaktest.Main(m)
}

// hold starts an agent that returns what it gets, in a holder of its own.
func hold(tb testing.TB, program ...string) *holder.Agent {
	tb.Helper()
	dir, err := os.MkdirTemp("", "h") // paths of sockets are short
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	a, err := holder.Start(tb.Context(), holder.Spec{Program: program, Config: holder.Config{
		Dir: dir, Lease: time.Minute, Command: holder.Command{Path: "/bin/cat"},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// TestHold: acp hold, which no help mentions, is the process of a holder, and outlives its gateway.
func TestHold(t *testing.T) {
	a := hold(t)
	b, err := holder.Attach(t.Context(), a.Socket(), a.Token(), holder.State{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.WriteFrame([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	if f, err := b.ReadFrame(); err != nil || string(f.Data) != "{}" {
		t.Errorf("%q, %v", f.Data, err)
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", b.HolderPID()))
	if err != nil || filepath.Base(string(data[:max(0, slices.Index(data, 0))])) != filepath.Base(os.Args[0]) {
		t.Errorf("%q, %v", data, err)
	}
	// It looks for no program, and has nothing linked look for one: the agent has the PATH.
	for pid, want := range map[int]bool{b.HolderPID(): false, b.PID(): true} {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if has := slices.ContainsFunc(strings.Split(string(env), "\x00"), func(v string) bool { return strings.HasPrefix(v, "PATH=") }); err != nil || has != want {
			t.Errorf("process %d has a PATH: %t, %v", pid, has, err)
		}
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	_ = a.Close()
}

// BenchmarkHold measures the start of a holder with its agent, up to the first answer, and the memory of
// one that is idle.
func BenchmarkHold(b *testing.B) {
	exe := program(b)
	var started, resident []float64
	for b.Loop() {
		start := time.Now()
		a := hold(b, exe, "hold")
		if err := a.WriteFrame([]byte("{}")); err != nil {
			b.Fatal(err)
		}
		if _, err := a.ReadFrame(); err != nil {
			b.Fatal(err)
		}
		started = append(started, ms(start))
		time.Sleep(2 * time.Second)
		resident = append(resident, residentMB(b, a.HolderPID()))
		if err := a.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	report(b, started, "start-ms")
	report(b, resident, "resident-MB")
}
