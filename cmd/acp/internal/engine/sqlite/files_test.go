package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// says has ends say states, and shares themselves.
func says(r *engine.Record) (said engine.Said) {
	switch r.Kind {
	case journal.KindEnd:
		_ = json.Unmarshal(r.Data, &said.State)
	case journal.KindShared:
		_ = json.Unmarshal(r.Data, &said.Share)
	}
	return said
}

var options = engine.Options{Says: says}

// A known is what is known of a session, aside from what only counts in one index.
type known struct {
	Session engine.Session
	Shares  []engine.Share
}

// rows returns what an engine knows, in the order of its list.
func rows(t testing.TB, e *engine.Engine) (all []known) {
	t.Helper()
	page, err := e.List(t.Context(), engine.Query{Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range page.Sessions {
		shares, err := e.Shares(t.Context(), s.ID)
		if err != nil {
			t.Fatal(err)
		}
		s.Version, s.Epoch, s.Head = 0, 0, engine.Head{}
		all = append(all, known{s, shares})
	}
	return all
}

// saved copies a directory as it stands, as if the process were killed at that moment.
func saved(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func remove(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := removeFiles(filepath.Join(dir, name), databaseEnds); err != nil {
			t.Fatal(err)
		}
	}
}

// claimed claims a session.
func claimed(t testing.TB, e *engine.Engine, id string) *engine.Owned {
	t.Helper()
	l, err := e.Lease(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	o, err := e.Claim(t.Context(), id, l)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func add(t testing.TB, o *engine.Owned, kind engine.Kind, data string) {
	t.Helper()
	if _, err := o.Append(t.Context(), engine.Record{Kind: kind, Data: []byte(data)}); err != nil {
		t.Fatal(err)
	}
}

// TestIndexLost: whenever a process is killed, and whatever becomes of the index and the witness, the next one knows the same.
func TestIndexLost(t *testing.T) {
	dir := t.TempDir()
	e := opened(t, dir, "a", options)
	update := func(id string, change func(*engine.Session)) {
		t.Helper()
		if _, err := e.Update(t.Context(), id, func(s *engine.Session) error { change(s); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	create := func(s engine.Session) {
		t.Helper()
		if _, err := e.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	var o *engine.Owned
	older := saved(t, dir)
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"nothing", func() {}},
		{"two are created", func() {
			create(engine.Session{ID: "a", Title: "<b> \u2028 ü", Owner: "ann", Created: time.Unix(1, 2),
				Attributes: json.RawMessage(`{"held":{"token":"secret"},"x":[1, {"y":"<z>"}]}`)})
			create(engine.Session{ID: "b", Agent: "x", AgentSession: "y", Cwd: "/tmp", State: "idle", Parent: "a", Owner: "bob"})
		}},
		{"a free one is updated", func() {
			update("b", func(s *engine.Session) { s.Title, s.Attributes = "B", json.RawMessage(`{"n":1}`) })
		}},
		{"one is claimed", func() { o = claimed(t, e, "a") }},
		{"records come", func() {
			for i := range 20 {
				add(t, o, journal.KindUpdate, fmt.Sprint(i))
			}
		}},
		{"records say something", func() {
			add(t, o, journal.KindEnd, `"running"`)
			for _, user := range []string{"bob", "cy", "dan"} {
				add(t, o, journal.KindShared, fmt.Sprintf(`{"User":%q,"Role":"viewer"}`, user))
			}
			add(t, o, journal.KindShared, `{"User":"cy"}`)
			add(t, o, journal.KindShared, `{"User":"dan","Role":"owner"}`)
		}},
		{"the one that is owned is updated", func() {
			update("a", func(s *engine.Session) {
				s.Title, s.Attributes = "A", json.RawMessage(`{"held":{"token":"other"},"z":true}`)
			})
			add(t, o, journal.KindEnd, `"idle"`)
		}},
		{"it is compacted", func() {
			if err := o.Compact(t.Context(), []engine.Gap{{From: 3, To: 10}}); err != nil {
				t.Fatal(err)
			}
		}},
		{"an attribute goes", func() { update("a", func(s *engine.Session) { s.Attributes = nil }) }},
		{"it is released", func() {
			if err := o.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
		{"one is deleted and one comes", func() {
			if _, err := e.Delete(t.Context(), "b"); err != nil {
				t.Fatal(err)
			}
			create(engine.Session{ID: "c", Parent: "b"})
		}},
	} {
		step.do()
		want := rows(t, e)
		now := saved(t, dir)
		for name, lose := range losses(t, older) {
			dir := saved(t, now)
			lose(dir)
			for _, again := range []string{"", ", the second time"} {
				wantRows(t, step.name+", "+name+" lost"+again, dir, want)
			}
		}
		older = now
	}
}

// losses are what may happen to the files that are not journals. older is the directory as it was before.
func losses(t testing.TB, older string) map[string]func(dir string) {
	return map[string]func(string){
		"nothing is":     func(string) {},
		"the index is":   func(dir string) { remove(t, dir, indexName) },
		"the witness is": func(dir string) { remove(t, dir, witnessName) },
		"both are":       func(dir string) { remove(t, dir, indexName, witnessName) },
		"the last changes of the index are": func(dir string) {
			remove(t, dir, indexName)
			for _, end := range []string{"", "-wal"} {
				if data, err := os.ReadFile(filepath.Join(older, indexName+end)); err == nil {
					if err := os.WriteFile(filepath.Join(dir, indexName+end), data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
		},
	}
}

// wantRows fails unless an engine that is opened in a directory knows what is wanted, and raises no alarm.
func wantRows(t *testing.T, what, dir string, want []known) {
	t.Helper()
	o := options
	o.Alarm = func(id string, err error) { t.Errorf("%s: alarm of %q: %v", what, id, err) }
	e := opened(t, dir, "b", o)
	if diff := cmp.Diff(want, rows(t, e), cmp.Comparer(sameJSON)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// sameJSON compares what may have another order.
func sameJSON(a, b json.RawMessage) bool {
	var v, w any
	return len(a) == 0 && len(b) == 0 || json.Unmarshal(a, &v) == nil && json.Unmarshal(b, &w) == nil && cmp.Equal(v, w)
}

// TestLive: how an agent is reached is in a file that only the user reads, and nowhere else on the disk but in the index.
func TestLive(t *testing.T) {
	dir := t.TempDir()
	e := opened(t, dir, "a", options)
	if _, err := e.Create(t.Context(), engine.Session{ID: "s", Attributes: json.RawMessage(`{"held":"secret-1","x":1}`)}); err != nil {
		t.Fatal(err)
	}
	o := claimed(t, e, "s")
	live := filepath.Join(dir, journals, "s.live")
	holds := func(attributes, want string) {
		t.Helper()
		if attributes != "" {
			if _, err := e.Update(t.Context(), "s", func(s *engine.Session) error { s.Attributes = json.RawMessage(attributes); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(live)
		if string(data) != want || err != nil && want != "" {
			t.Errorf("with %s the file has %q, want %q, %v", attributes, data, want, err)
		}
		if info, err := os.Stat(live); err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("the file has mode %v", info.Mode())
		}
		if data, err := os.ReadFile(filepath.Join(dir, journals, "s.jsonl")); err != nil || bytes.Contains(data, []byte("secret")) || bytes.Contains(data, []byte("held")) {
			t.Errorf("the journal has it, or %v", err)
		}
	}
	holds("", `"secret-1"`)
	holds(`{"held":"secret-2"}`, `"secret-2"`)
	holds(`{"held":"secret-2","y":2}`, `"secret-2"`)
	holds(`{"y":2}`, "")
	holds(`{"held":"secret-3"}`, `"secret-3"`)
	other := opened(t, dir, "b", options)
	if _, err := other.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	_, err := e.Update(t.Context(), "s", func(s *engine.Session) error { s.Attributes = json.RawMessage(`{"held":"secret-4"}`); return nil })
	if !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("update: %v", err)
	}
	if err := o.Release(t.Context()); err != nil {
		t.Error(err)
	}
	left, err := fs.Glob(os.DirFS(dir), journals+"/*")
	if err != nil || len(left) != 0 {
		t.Errorf("%q are left, %v", left, err)
	}
}

// TestFound: sessions are what journals there are. Those that cannot be read are reported, and hold up no others.
func TestFound(t *testing.T) {
	dir := t.TempDir()
	e := opened(t, dir, "a", options)
	for _, id := range []string{"gone", "stays", "later", "cut"} {
		if _, err := e.Create(t.Context(), engine.Session{ID: id, Title: id}); err != nil {
			t.Fatal(err)
		}
		add(t, claimed(t, e, id), journal.KindPrompt, `"x"`)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, journals, name) }
	if err := os.Remove(at("gone.jsonl")); err != nil {
		t.Fatal(err)
	}
	const later = `{"at":"2030-01-01T00:00:00Z","kind":"session","data":{"format":99}}`
	sum := sha256.Sum256([]byte("acp log 3\n" + strings.Repeat("\x00", 32) + "\x00\x00\x00\x00\x00\x00\x00\x01" + "\x00\x00\x00\x01" + "\x00\x00\x00\x05later" + later))
	for name, text := range map[string]string{
		"later.jsonl": fmt.Sprintf(`{"seq":1,"epoch":1,"hash":"%x","record":%s}`+"\n", sum, later),
		"none.jsonl":  strings.Repeat("no journal\n", 3),
		"empty.jsonl": "",
		"other.txt":   "x",
	} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(at("dir.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	lines(t, dir, "cut", func(all [][]byte) [][]byte { all[1] = all[1][:len(all[1])/2]; return all })
	for _, want := range []map[string]int{{"later": 1, "none": 1, "cut": 1}, {"later": 1, "none": 1}} { // the witness misses a record of cut
		alarms := map[string]int{}
		o := options
		o.Alarm = func(id string, err error) { alarms[id]++ }
		e := opened(t, dir, "a", o)
		titles := map[string]string{}
		for _, r := range rows(t, e) {
			titles[r.Session.ID] = r.Session.Title
		}
		// What the index knows of the one that is of a later version by now it has from before.
		if diff := cmp.Diff(map[string]string{"stays": "stays", "cut": "cut", "later": "later"}, titles); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want, alarms); diff != "" {
			t.Errorf("alarms: %s", diff)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDamagedDescription: what is known of a session stays if the record is damaged that said it, as long as there is an index.
func TestDamagedDescription(t *testing.T) {
	dir := t.TempDir()
	e := opened(t, dir, "a", options)
	if _, err := e.Create(t.Context(), engine.Session{ID: "s", Owner: "ann", Title: "A", Attributes: json.RawMessage(`{"x":1,"y":1,"z":1}`)}); err != nil {
		t.Fatal(err)
	}
	o := claimed(t, e, "s")
	add(t, o, journal.KindShared, `{"User":"bob","Role":"viewer"}`)
	if _, err := e.Update(t.Context(), "s", func(s *engine.Session) error { s.Attributes = json.RawMessage(`{"x":1,"y":2}`); return nil }); err != nil {
		t.Fatal(err)
	}
	add(t, o, journal.KindEnd, `"idle"`)
	if _, err := e.Create(t.Context(), engine.Session{ID: "t", Title: "T", Created: time.Unix(1, 0), Attributes: json.RawMessage(`{"held":1}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Update(t.Context(), "t", func(s *engine.Session) error {
		s.Title, s.Attributes, s.Updated = "U", nil, time.Unix(2, 0)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := rows(t, e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	lines(t, dir, "t", func(all [][]byte) [][]byte { all[1][len(all[1])-3] ^= 1; return all })
	damaged := options
	alarms := 0
	damaged.Alarm = func(string, error) { alarms++ }
	for _, n := range []int{0, 2, 1} {
		lines(t, dir, "s", func(all [][]byte) [][]byte { all[n][len(all[n])-3] ^= 1; return all })
		killed := saved(t, dir) // while it was owned, so that it is read again
		execute(t, filepath.Join(killed, indexName), `UPDATE acp_size SET size = -2`)
		again := opened(t, killed, "a", damaged)
		got := rows(t, again)
		got[0].Session.Updated = want[0].Session.Updated
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("record %d (-want +got):\n%s", n+1, diff)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		e := opened(t, dir, "a", damaged)
		for _, use := range []func(){
			func() {},
			func() { _ = claimed(t, e, "s").Release(t.Context()) },
			func() {
				_, err := e.Update(t.Context(), "s", func(s *engine.Session) error { s.Title += "!"; return nil })
				want[0].Session.Title += "!"
				if err != nil {
					t.Error(err)
				}
			},
		} {
			use()
			got := rows(t, e)
			got[0].Session.Updated = want[0].Session.Updated
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("record %d (-want +got):\n%s", n+1, diff)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if alarms < 6 {
		t.Errorf("%d alarms", alarms)
	}
}

// TestForeignIndex: a file of another program or a later version is not touched, and one that is damaged is made anew.
func TestForeignIndex(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, indexName)
	execute(t, path, `CREATE TABLE x (y)`)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, "a", options); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("a database of another program: %v", err)
	}
	// That it is in WAL mode now is all.
	if after, err := os.ReadFile(path); err != nil || len(after) != len(before) {
		t.Errorf("it has %d bytes, had %d (%v)", len(after), len(before), err)
	}
	remove(t, dir, indexName)
	e := opened(t, dir, "a", options)
	for i := range 60 {
		if _, err := e.Create(t.Context(), engine.Session{ID: fmt.Sprint(i), Title: strings.Repeat("x", 300)}); err != nil {
			t.Fatal(err)
		}
	}
	want := rows(t, e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	size := 0
	if data, err := os.ReadFile(path); err == nil {
		size = len(data)
	}
	for page := 0; page < size/pageSize; page++ {
		dir := saved(t, dir)
		path := filepath.Join(dir, indexName)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		copy(data[page*pageSize:], bytes.Repeat([]byte{0xee}, pageSize))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := Open(t.Context(), dir, "a", options)
		if err != nil {
			t.Errorf("page %d: %v", page, err)
			continue
		}
		if got, err := e.List(t.Context(), engine.Query{Limit: 500}); err != nil || len(got.Sessions) != len(want) {
			t.Errorf("page %d: %d sessions, %v", page, len(got.Sessions), err)
		} else if diff := cmp.Diff(want, rows(t, e)); diff != "" {
			t.Errorf("page %d (-want +got):\n%s", page, diff)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	execute(t, path, `INSERT INTO acp_meta VALUES (99)`)
	if _, err := Open(t.Context(), dir, "a", options); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("a later version: %v", err)
	}
	remove(t, dir, indexName)
	if err := os.WriteFile(filepath.Join(dir, witnessName), bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, "a", options); !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("a witness that is no database: %v", err)
	}
}

// TestWitnessed: the end of a session that was not used since it was found is known, and it is noticed if that is lost.
func TestWitnessed(t *testing.T) {
	dir := t.TempDir()
	e := opened(t, dir, "a", options)
	if _, err := e.Create(t.Context(), engine.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	add(t, claimed(t, e, "s"), journal.KindEnd, `"idle"`)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	remove(t, dir, indexName, witnessName) // as if it was restored
	if err := opened(t, dir, "a", options).Close(); err != nil {
		t.Fatal(err)
	}
	lines(t, dir, "s", func(all [][]byte) [][]byte { return all[:len(all)-2] }) // behind the last one is nothing
	err := opened(t, dir, "a", options).Verify(t.Context(), "s")
	if damage := (*engine.DamageError)(nil); !errors.As(err, &damage) || damage.Missing != 1 {
		t.Errorf("%v", err)
	}
}

// TestNoLease: where files are locked a lease lapses when it is released, or another is taken, and there are no nodes.
func TestNoLease(t *testing.T) {
	e := opened(t, t.TempDir(), "a", engine.Options{LeaseTTL: 1})
	l, err := e.Lease(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := errors.Join(l.Keep(ctx), l.Renew(ctx), l.Describe(ctx, json.RawMessage(`{}`))); err != nil || l.Node() != "n" {
		t.Errorf("%q, %v", l.Node(), err)
	}
	if nodes, err := e.Nodes(t.Context()); err != nil || len(nodes) > 0 {
		t.Errorf("%v, %v", nodes, err)
	}
	if _, err := e.Create(t.Context(), engine.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	if o, err := e.Claim(t.Context(), "s", l); err != nil {
		t.Error(err)
	} else if _, err := o.Append(t.Context(), engine.Record{Kind: journal.KindUpdate}); err != nil {
		t.Error(err)
	}
	next, err := e.Lease(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Keep(t.Context()); !errors.Is(err, engine.ErrLapsed) {
			t.Error(err)
		}
		if _, err := e.Claim(t.Context(), "s", l); !errors.Is(err, engine.ErrLapsed) {
			t.Error(err)
		}
		if l = next; l.Release(t.Context()) != nil {
			t.Error("not released")
		}
	}
}
