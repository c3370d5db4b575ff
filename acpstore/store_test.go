package acpstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpstore"
	"github.com/goacp/acp/acptest"
)

// keep returns an agent whose sessions are kept, and its store.
func keep(t *testing.T, dir string) (*acp.Agent, *acpstore.Store) {
	t.Helper()
	agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		if title, ok := strings.CutPrefix(t.Text(), "title "); ok {
			return acp.StopEndTurn, t.SetTitle(title)
		}
		return acp.StopEndTurn, t.Say("heard " + t.Text())
	}}
	store, err := acpstore.Keep(agent, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return agent, store
}

// TestKeep: sessions are listed, loaded, continued and deleted by another agent, with a
// line that a crash has left unfinished.
func TestKeep(t *testing.T) {
	for v := 1; v <= 2; v++ {
		t.Run(fmt.Sprintf("version %d", v), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "sessions")
			cfg := acp.SessionConfig{Cwd: t.TempDir()}
			agent, _ := keep(t, dir)
			conn, _ := acptest.Pair(t, agent, &acp.Client{MaxVersion: v})
			s, err := conn.NewSession(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"one\nmore", "title named"} {
				if _, err := s.Prompt(t.Context(), acp.Text(text)).Wait(); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			torn, err := os.OpenFile(filepath.Join(dir, string(s.ID())+".jsonl"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = torn.WriteString(`{"sessionUpdate":"user_mess`)
			if err := errors.Join(err, torn.Close()); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"unfinished.jsonl": `{"sess`, "other.jsonl": "{}\n", "notes.txt": "x"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}

			agent, store := keep(t, dir)
			var said []string
			conn, _ = acptest.Pair(t, agent, &acp.Client{MaxVersion: v, Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
				if u.Text() != "" {
					said = append(said, u.Text())
				}
			}})
			var listed []string
			for info, err := range conn.ListSessions(t.Context(), acp.ListOptions{Cwd: cfg.Cwd}) {
				if err != nil {
					t.Fatal(err)
				}
				listed = append(listed, string(info.SessionID)+" "+info.Title)
			}
			if diff := cmp.Diff([]string{string(s.ID()) + " named"}, listed); diff != "" {
				t.Errorf("listed: %s", diff)
			}
			again, err := conn.Load(t.Context(), s.ID(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := again.Prompt(t.Context(), acp.Text("two")).Wait(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"heard one\nmore", "heard two"}, said); diff != "" || again.Title() != "named" {
				t.Errorf("title %q, said: %s", again.Title(), diff)
			}
			_, history, err := store.Load(s.ID())
			prompts := 0
			for _, u := range history {
				if _, ok := u.(*acp.UserMessage); ok {
					prompts++
				}
			}
			if err != nil || prompts != 3 {
				t.Errorf("%d prompts are stored, %v", prompts, err)
			}
			if err := conn.Delete(t.Context(), s.ID()); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Load(t.Context(), s.ID(), cfg); !acp.IsSessionNotFound(err) {
				t.Errorf("after it was deleted: %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, string(s.ID())+"*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestIDs: an id that a client has made up is no way out of the directory.
func TestIDs(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "sessions")
	_, store := keep(t, inner)
	if err := os.WriteFile(filepath.Join(dir, "outside.jsonl"), []byte(`{"sessionId":"../outside","cwd":"/"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []acp.SessionID{"", ".", "..", "../outside", `..\outside`, "a/b", "a:b", "a\x00", "-rf", "é", acp.SessionID(strings.Repeat("x", 1000)), "missing"} {
		if _, _, err := store.Load(id); !acp.IsSessionNotFound(err) {
			t.Errorf("load %q: %v", id, err)
		}
		if err := store.Delete(id); !acp.IsSessionNotFound(err) {
			t.Errorf("delete %q: %v", id, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "outside.jsonl")); err != nil {
		t.Error(err)
	}
}

// TestPages: a list has pages, each session once.
func TestPages(t *testing.T) {
	dir := t.TempDir()
	_, store := keep(t, dir)
	for i := range 250 {
		id := fmt.Sprintf("s%03d", i)
		if err := os.WriteFile(filepath.Join(dir, id+".jsonl"), fmt.Appendf(nil, `{"sessionId":%q,"cwd":"/%d"}`+"\n", id, i%2), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for cwd, want := range map[string]int{"": 250, "/1": 125} {
		q, n, pages := &acp.SessionQuery{Cwd: cwd}, 0, 0
		for {
			page, err := store.List(q)
			if err != nil {
				t.Fatal(err)
			}
			n += len(page.Sessions)
			pages++
			if q.Cursor = page.NextCursor; q.Cursor == nil {
				break
			}
		}
		if n != want || pages != (want+99)/100 {
			t.Errorf("%q: %d sessions on %d pages", cwd, n, pages)
		}
	}
}

// FuzzLoad: whatever is in a file, loading it ends with a session of that id or an error,
// and what follows the last line break is not part of it.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"sessionId":"s","cwd":"/"}` + "\n" + `{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x"}}` + "\n" + `{"sess`))
	f.Add([]byte("{}\n\n"))
	f.Add([]byte("\xff\n"))
	dir := f.TempDir()
	store, err := acpstore.Open(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, "s.jsonl"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		info, history, err := store.Load("s")
		if err == nil && info.SessionID != "s" {
			t.Errorf("another session: %q", info.SessionID)
		}
		if lines := bytes.Count(data, []byte("\n")); err == nil && len(history) != lines-1 {
			t.Errorf("%d updates in %d lines", len(history), lines)
		}
	})
}
