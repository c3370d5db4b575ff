package store

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// childEnv has the path of the store for a copy of the test program that only writes to it; and
// childID the id of its session.
const (
	childEnv = "STORE_TEST_CHILD"
	childID  = "STORE_TEST_ID"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if err := writeForEver(path, os.Getenv(childID)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writeForEver appends events and says which number was written last.
func writeForEver(path, id string) error {
	s, damage, err := Open(context.Background(), Options{Path: path})
	if err != nil || damage != nil {
		return fmt.Errorf("%v, %v", damage, err)
	}
	k := Key{"a", id}
	for n := 0; n < 1_000_000; {
		batch := make([]Event, 1+n%7)
		for i := range batch {
			batch[i] = chunk("agent", "m", strings.Repeat("x", 10*(n%100)))
			n++
		}
		if err := s.Append(context.Background(), k, batch); err != nil {
			return err
		}
		fmt.Println(batch[len(batch)-1].Seq)
	}
	return nil
}

// startChild starts a writer.
func startChild(t *testing.T, path, id string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+path, childID+"="+id)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// TestKill kills processes that write, again and again: everything they said was written is there.
func TestKill(t *testing.T) {
	rounds := 50
	if testing.Short() {
		rounds = 5
	}
	path := filepath.Join(t.TempDir(), "s.db")
	acknowledged := int64(0)
	for range rounds {
		cmd, lines := startChild(t, path, "x")
		after := 1 + rand.IntN(40) // acknowledgements, then some moment
		delay := time.Duration(rand.IntN(3000)) * time.Microsecond
		for range after {
			if !lines.Scan() {
				t.Fatal("the writer has ended")
			}
			acknowledged = number(t, lines.Text())
		}
		timer := time.AfterFunc(delay, func() { _ = cmd.Process.Kill() })
		for lines.Scan() {
			acknowledged = number(t, lines.Text())
		}
		timer.Stop()
		_ = cmd.Wait()
		s := openTest(t, path)
		got, err := s.Session(t.Context(), Key{"a", "x"})
		if err != nil {
			t.Fatal(err)
		}
		last := int64(0)
		for e, err := range s.Events(t.Context(), Key{"a", "x"}, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Seq != last+1 {
				t.Fatalf("event %d after %d", e.Seq, last)
			}
			last = e.Seq
		}
		if last < acknowledged || got.Events != last {
			t.Fatalf("%d events, the session says %d, %d were acknowledged", last, got.Events, acknowledged)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func number(t *testing.T, line string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestProcesses has several processes writing to one store, which none of them has made before, while
// this one reads.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	var writers sync.WaitGroup
	for i := range 4 {
		cmd, lines := startChild(t, path, fmt.Sprintf("s%d", i))
		writers.Go(func() {
			for n := 0; n < 30 && lines.Scan(); n++ {
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	s := openTest(t, path)
	ended := make(chan struct{})
	go func() { writers.Wait(); close(ended) }()
	for running := true; running; {
		select {
		case <-ended:
			running = false
		default:
		}
		if _, err := s.List(t.Context(), Query{Text: "xx"}); err != nil {
			t.Error(err)
		}
	}
	for i := range 4 {
		got, err := s.Session(t.Context(), Key{"a", fmt.Sprintf("s%d", i)})
		if err != nil || got.Events < 30 {
			t.Errorf("%+v, %v, want 30 events", got, err)
		}
	}
}

// TestGoroutines has readers, writers and searches at once on one store.
func TestGoroutines(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		var all sync.WaitGroup
		for i := range 4 {
			k := Key{"a", fmt.Sprintf("s%d", i)}
			all.Go(func() {
				for range 20 {
					if err := s.Append(t.Context(), k, []Event{chunk("agent", "m", "word "), {Kind: EventTurn}}); err != nil {
						t.Error(err)
					}
				}
			})
			all.Go(func() {
				for range 20 {
					if _, err := s.List(t.Context(), Query{Text: "word"}); err != nil {
						t.Error(err)
					}
					for _, err := range s.Events(t.Context(), k, 0) {
						// Writing while reading must not wait for itself.
						if err == nil {
							err = s.Put(t.Context(), Session{Key: k, Title: "t"})
						}
						if err != nil {
							t.Error(err)
						}
						break
					}
				}
			})
		}
		all.Wait()
		for i := range 4 {
			if got, err := s.Session(t.Context(), Key{"a", fmt.Sprintf("s%d", i)}); err != nil || got.Turns != 20 || got.Events != 40 {
				t.Errorf("%+v, %v, want 20 turns, 40 events", got, err)
			}
		}
	})
}
