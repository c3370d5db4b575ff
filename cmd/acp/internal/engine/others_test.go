package engine_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// chats is what another program on the machine writes into the directory of an engine.
type chats struct {
	t *testing.T
	c *journal.Container
}

func chatsIn(t *testing.T, dir string) chats {
	c := file.Open(filepath.Join(dir, "sessions"), file.Options{Who: "a chat"})
	t.Cleanup(func() { _ = c.Close() })
	return chats{t, c}
}

// begin begins a conversation, and returns what writes it.
func (c chats) begin(id, description string) *journal.Writer {
	c.t.Helper()
	w, err := c.c.Create(c.t.Context(), id, journal.Draft{Kind: journal.KindSession, Data: []byte(description)})
	if err != nil {
		c.t.Fatal(err)
	}
	return w
}

func (c chats) append(w *journal.Writer, kind journal.Kind, data string) {
	c.t.Helper()
	done := make(chan error, 1)
	if err := w.Append([]journal.Draft{{Kind: kind, Data: []byte(data)}}, func(_ []*journal.Record, err error) { done <- err }); err != nil {
		c.t.Fatal(err)
	}
	if err := <-done; err != nil {
		c.t.Fatal(err)
	}
}

func titles(t *testing.T, e *engine.Engine) map[string]string {
	t.Helper()
	page, err := e.List(t.Context(), engine.Query{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, s := range page.Sessions {
		all[s.ID] = s.Title + ", " + s.Owner
	}
	return all
}

// TestOthers: what another program writes is listed, belongs to the user of the machine, and tells who has it open. The
// conversation of a subagent is in no list, and is deleted with the one that it is part of, however late it began.
func TestOthers(t *testing.T) {
	dir := t.TempDir()
	a := chatsIn(t, dir)
	e, err := sqlite.Open(t.Context(), dir, "a", engine.Options{Says: says, Owner: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	l, err := e.Lease(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if got := titles(t, e); len(got) > 0 {
		t.Fatal(got)
	}
	const chat, child, grandchild = "abcdefghijklmnop", "bcdefghijklmnopq", "cdefghijklmnopqr"
	w := a.begin(chat, `{"agent":"a","session":"s","cwd":"/x","title":"Chat"}`)
	if s, err := e.Session(t.Context(), chat); err != nil || s.Title != "Chat" || s.Owner != "ann" || s.AgentSession != "s" {
		t.Errorf("%+v, %v", s, err)
	}
	owned := (*journal.OwnedError)(nil)
	if _, err := e.Claim(t.Context(), chat, l); !errors.Is(err, engine.ErrOwned) || !errors.As(err, &owned) || owned.Who != "a chat" {
		t.Errorf("a session that a chat has open: %v", err)
	}
	a.append(w, journal.KindSession, `{"agent":"a","session":"s2","cwd":"/x","title":"Renamed","command":["c"]}`)
	if err := w.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, err := e.Claim(t.Context(), chat, l)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := e.Session(t.Context(), chat); err != nil || s.Title != "Renamed" || s.AgentSession != "s2" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := e.Update(t.Context(), chat, func(s *engine.Session) error { s.Title = "By the gateway"; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := o.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	var last records.Description
	if err := a.c.Read(t.Context(), chat, 0, func(r *journal.Record) error {
		if r.Kind == journal.KindSession {
			last = records.Description{}
			return json.Unmarshal(r.Data, &last)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if last.State == nil || last.Title != "By the gateway" || last.Session != "s2" || last.Owner != "ann" {
		t.Errorf("a chat reads %+v", last)
	}
	for id, parent := range map[string]string{child: chat, grandchild: child} {
		if err := a.begin(id, `{"agent":"a","session":"x","parent":"`+parent+`"}`).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e.Outdate()
	if diff := cmp.Diff(map[string]string{chat: "By the gateway, ann"}, titles(t, e)); diff != "" {
		t.Error(diff)
	}
	const late = "defghijklmnopqrs"
	if err := a.begin(late, `{"agent":"a","session":"y","parent":"`+grandchild+`"}`).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Delete(t.Context(), chat); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "sessions", "*.jsonl")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestListOwned: a list does not read a session that the engine owns, whose row only its owner writes.
func TestListOwned(t *testing.T) {
	dir := t.TempDir()
	e, l, x, _ := indexed(t, dir, nil)
	if _, err := e.Create(t.Context(), engine.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	o, err := e.Claim(t.Context(), "s", l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Append(t.Context(), engine.Record{Kind: journal.KindUpdate, Data: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	x.put = func(id string) { t.Errorf("a list has written the row of %s", id) }
	for range 2 {
		e.Outdate()
		if got := titles(t, e); len(got) != 1 {
			t.Error(got)
		}
	}
	x.put = nil
	if err := o.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestGone: a session whose file somebody has removed is not there any more.
func TestGone(t *testing.T) {
	dir := t.TempDir()
	e, _, _, _ := indexed(t, dir, nil)
	if _, err := e.Create(t.Context(), engine.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "sessions", "s.jsonl")); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Session(t.Context(), "s"); !errors.Is(err, engine.ErrNotFound) {
		t.Error(err)
	}
	e.Outdate()
	if got := titles(t, e); len(got) > 0 {
		t.Error(got)
	}
}
