package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
)

func modeOf(s *acp.ClientSession) string {
	for _, o := range s.Options() {
		if k, ok := o.Kind.(*acp.SessionConfigSelect); ok && o.ConfigID == optionMode {
			return string(k.CurrentValue)
		}
	}
	return ""
}

// TestNeverPrompted: a session in which nothing was said comes back in another process, with the mode
// that was set, is not listed, and becomes one that is with the first prompt.
func TestNeverPrompted(t *testing.T) {
	for _, dir := range []bool{true, false} {
		t.Run(fmt.Sprintf("directory %t", dir), func(t *testing.T) {
			for _, version := range []int{1, 2} {
				t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
					var change []func(*talk)
					if !dir {
						change = append(change, inMemory)
					}
					k := start(t, version, change...)
					id := k.session.ID()
					if err := k.session.SetMode(t.Context(), modeReadOnly); err != nil {
						t.Fatal(err)
					}
					again := func() *acp.ClientSession {
						t.Helper()
						if dir {
							k.connect() // another agent, as in another process
						} else if err := k.session.Close(t.Context()); err != nil {
							t.Fatal(err)
						}
						s, err := k.conn.Load(t.Context(), id, acp.SessionConfig{Cwd: k.cwd})
						if err != nil {
							t.Fatal(err)
						}
						return s
					}
					k.session = again()
					if got := modeOf(k.session); got != modeReadOnly {
						t.Errorf("the mode is %q", got)
					}
					list := func() (ids []acp.SessionID) {
						for s, err := range k.conn.ListSessions(t.Context(), acp.ListOptions{}) {
							if err != nil {
								t.Fatal(err)
							}
							ids = append(ids, s.SessionID)
						}
						return ids
					}
					if slices.Contains(list(), id) {
						t.Error("it is listed")
					}
					k.tell("/mode")
					if !slices.Contains(list(), id) {
						t.Error("it is not listed after a prompt")
					}
					if dir {
						if left, _ := os.ReadDir(filepath.Join(k.dir, blankDir)); len(left) != 0 {
							t.Errorf("%v is left", left)
						}
					}
					if dir {
						if err := k.session.Close(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					k.session = again()
					if got := modeOf(k.session); got != modeReadOnly {
						t.Errorf("after a prompt the mode is %q", got)
					}
				})
			}
		})
	}
}

// TestBlanksAreBounded: only the latest sessions in which nothing was said are kept, one that is deleted
// is gone, and one that is no session is not read.
func TestBlanksAreBounded(t *testing.T) {
	for _, dir := range []string{filepath.Join(t.TempDir(), "sessions"), ""} {
		s := stored(dir)
		id := func(i int) acp.SessionID { return acp.SessionID(fmt.Sprintf("s%06d", i)) }
		for i := range maxBlanks + 10 {
			if err := s.setBlank(id(i), about{Cwd: "/"}, new(acp.ConfigOptionUpdate)); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		for i := range maxBlanks + 10 {
			if s.readBlank(id(i), nil) {
				n++
			}
		}
		last := id(maxBlanks + 9)
		if n != maxBlanks || !s.readBlank(last, nil) {
			t.Errorf("%d blanks are kept", n)
		}
		if err := s.remove(last); err != nil || s.readBlank(last, nil) {
			t.Errorf("not removed: %v", err)
		}
		if s.readBlank("../s000001", nil) || s.removeBlank("../s000001") {
			t.Error("a path is taken for an id")
		}
		if err := s.setBlank("s", about{Cwd: string(make([]byte, maxBlankSize))}, new(acp.ConfigOptionUpdate)); err == nil {
			t.Error("a blank of any size is kept")
		}
	}
}

// grab returns the agent's session behind that of the client, of a directory.
func grab(t *testing.T) (*talk, *session) {
	t.Helper()
	k := start(t, 2)
	a, err := New(Options{Dir: k.dir})
	if err != nil {
		t.Fatal(err)
	}
	var v *session
	begin := a.NewSession
	a.NewSession = func(ctx context.Context, s *acp.AgentSession) error {
		err := begin(ctx, s)
		v = sessionOf(s)
		return err
	}
	k.conn, _ = acptest.Pair(t, a, &k.client)
	k.open()
	return k, v
}

var readOnly = &acp.SessionConfigOptionValueID{Value: modeReadOnly}

// TestDeletedStaysDeleted: an option that is set while its session is deleted does not bring the session
// back.
func TestDeletedStaysDeleted(t *testing.T) {
	for _, prompted := range []bool{false, true} {
		k, v := grab(t)
		if prompted {
			k.tell("/mode")
		}
		if err := k.session.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		v.optionChanged(optionMode, readOnly)
		if _, err := k.conn.Load(t.Context(), k.session.ID(), acp.SessionConfig{Cwd: k.cwd}); err == nil {
			t.Errorf("prompted %v: the session is back", prompted)
		}
	}
}

// TestBlankBesideJournal: deleting a session removes its journal and a blank that was left beside it.
func TestBlankBesideJournal(t *testing.T) {
	for _, dir := range []string{filepath.Join(t.TempDir(), "sessions"), ""} {
		s := stored(dir)
		const id = "s1"
		j, err := s.create(id, about{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.close(), s.setBlank(id, about{Cwd: "/"}, new(acp.ConfigOptionUpdate))); err != nil {
			t.Fatal(err)
		}
		if err := s.remove(id); err != nil {
			t.Fatal(err)
		}
		if s.exists(id) || s.readBlank(id, nil) {
			t.Errorf("in %q: journal %v, blank %v", dir, s.exists(id), s.readBlank(id, nil))
		}
	}
}

// TestOptionBesidePrompt: of an option that is set beside the first entry of the journal no blank is left,
// and the journal has the option.
func TestOptionBesidePrompt(t *testing.T) {
	k, first := grab(t)
	for range 100 {
		v := newSession(first.agent, first.acp)
		var both sync.WaitGroup
		both.Go(func() { v.optionChanged(optionMode, readOnly) })
		both.Go(func() { v.keep(&acp.UserMessage{MessageID: "m"}) })
		both.Wait()
		if err := v.close(); err != nil {
			t.Fatal(err)
		}
		back := newSession(first.agent, first.acp)
		if err := back.load(); err != nil {
			t.Fatal(err)
		}
		if mode, _ := back.currentMode(); mode != modeReadOnly {
			t.Fatalf("the mode is %q", mode)
		}
		if err := back.close(); err != nil {
			t.Fatal(err)
		}
		if first.agent.store.readBlank(k.session.ID(), nil) {
			t.Fatal("a blank is left beside the journal")
		}
		if err := first.agent.store.remove(k.session.ID()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTitleBeforePrompt: a session that is named before its first prompt keeps the mode that was set.
func TestTitleBeforePrompt(t *testing.T) {
	k := start(t, 2)
	if err := k.session.SetMode(t.Context(), modeReadOnly); err != nil {
		t.Fatal(err)
	}
	if _, err := k.conn.SetTitle(t.Context(), k.session.ID(), "named"); err != nil {
		t.Fatal(err)
	}
	if err := k.session.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := k.conn.Load(t.Context(), k.session.ID(), acp.SessionConfig{Cwd: k.cwd})
	if err != nil {
		t.Fatal(err)
	}
	if got := modeOf(s); got != modeReadOnly {
		t.Errorf("the mode is %q", got)
	}
}
