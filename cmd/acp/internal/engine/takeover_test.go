package engine_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// testdata/earlier has the log.db that the gateway of commit 51d05fd wrote: a session with a tool call, a permission, a title and
// shares (of which two have changed without a record), a fork of it, a turn that was cancelled, a session that was compacted and
// continued, one in which a turn ran when the file was copied, one without a prompt and one without records. Their agents
// outlive the gateway. read.json is what that commit read.

// An earlier is what a session said to the earlier version.
type earlier struct {
	Row     engine.Session `json:"row"`
	Shares  []engine.Share `json:"shares"`
	Records []struct {
		Seq  uint64          `json:"seq"`
		At   time.Time       `json:"at"`
		Kind string          `json:"kind"`
		Data json.RawMessage `json:"data"`
	} `json:"records"`
	Export string `json:"export"`
}

func unzip(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "earlier", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// earlierDir returns a directory with the log of the earlier version, and what that has read.
func earlierDir(t testing.TB) (dir string, all map[string]earlier) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "log.db"), unzip(t, "log.db"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(unzip(t, "read.json"), &all); err != nil {
		t.Fatal(err)
	}
	return dir, all
}

// change runs a statement in the log of the earlier version, as damage does.
func change(t testing.TB, dir, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// told is what an engine says when it is opened.
type told struct {
	mu      sync.Mutex
	notices []string
	alarms  map[string]error
}

func (o *told) options() engine.Options {
	return engine.Options{
		Says: gateway.Says, LeaseTTL: time.Hour,
		Notice: func(text string) { o.notices = append(o.notices, text) },
		Alarm: func(session string, err error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.alarms == nil {
				o.alarms = map[string]error{}
			}
			o.alarms[session] = err
		},
	}
}

func open(t testing.TB, dir string) (*engine.Engine, *told) {
	t.Helper()
	o := new(told)
	e, err := sqlite.Open(t.Context(), dir, "test", o.options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, o
}

// kinds are those that have other names now.
var kinds = map[string]engine.Kind{
	"turn_end": journal.KindEnd, "ask": journal.KindAsked, "ask_answer": journal.KindDecided, "ask_late": journal.KindLate,
	"share": journal.KindShared,
}

// A said is what a record says.
type said struct {
	Seq  uint64
	At   time.Time
	Kind engine.Kind
	Data string
}

// says returns what was read of a session, aside from what only earlier versions or journals have.
func (e *earlier) says() (all []said) {
	for _, r := range e.Records {
		kind, data := engine.Kind(r.Kind), ""
		if now, ok := kinds[r.Kind]; ok {
			kind = now
		}
		switch kind {
		case "gap:vouch": // which has said what gaps there are
			continue
		case journal.KindFork:
			var f struct {
				From string `json:"from"`
				At   uint64 `json:"at"`
				By   string `json:"by"`
			}
			_ = json.Unmarshal(r.Data, &f)
			data = fmt.Sprintf(`{"at":%d,"by":%q,"from":%q}`, f.At+1, f.By, f.From)
		default:
			var b bytes.Buffer
			_ = json.Compact(&b, r.Data)
			data = b.String()
		}
		all = append(all, said{r.Seq + 1, r.At, kind, data})
	}
	return all
}

// read returns the records that an earlier version has had, and then those that follow.
func read(t testing.TB, e *engine.Engine, id string, upTo uint64) (all, more []said, err error) {
	t.Helper()
	err = e.Read(t.Context(), id, 0, func(r engine.Record) error {
		switch s := (said{r.Seq, r.At, r.Kind, string(r.Data)}); {
		case r.Seq > upTo:
			more = append(more, s)
		case r.Seq > 1 && r.Kind != journal.KindGap && (r.Kind != journal.KindMark || string(r.Data) != "{}"):
			all = append(all, s)
		}
		return nil
	})
	return all, more, err
}

// row returns a row without what counts changes, and with attributes that can be compared.
func row(t testing.TB, s engine.Session) map[string]any {
	t.Helper()
	s.Epoch, s.Head, s.Version = 0, engine.Head{}, 0
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// want returns the row as it is now: numbers of records are one higher.
func (e *earlier) want(t testing.TB) map[string]any {
	t.Helper()
	all := row(t, e.Row)
	if a, ok := all["Attributes"].(map[string]any); ok {
		for _, name := range []string{"since", "compacted"} {
			if n, ok := a[name].(float64); ok && n > 0 {
				a[name] = n + 1
			}
		}
		if f, ok := a["fork"].(map[string]any); ok {
			f["at"] = f["at"].(float64) + 1
		}
	}
	return all
}

// same compares the sessions in an engine with what the earlier version has read.
func same(t *testing.T, e *engine.Engine, all map[string]earlier) {
	t.Helper()
	page, err := e.List(t.Context(), engine.Query{})
	if err != nil || len(page.Sessions) != len(all) {
		t.Fatalf("%d sessions of %d, %v", len(page.Sessions), len(all), err)
	}
	for _, s := range page.Sessions {
		was := all[s.ID]
		if diff := cmp.Diff(was.want(t), row(t, s)); diff != "" {
			t.Errorf("%s: %s", s.ID, diff)
		}
		got, _, err := read(t, e, s.ID, was.Row.Head.Seq+1)
		if diff := cmp.Diff(was.says(), got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", s.ID, err, diff)
		}
		shares, err := e.Shares(t.Context(), s.ID)
		if diff := cmp.Diff(was.Shares, shares); diff != "" || err != nil {
			t.Errorf("%s: %v %s", s.ID, err, diff)
		}
		var out bytes.Buffer
		if err := gateway.Export(t.Context(), e, s.ID, "acp test", &out); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(frames(was.Export), frames(out.String())); diff != "" {
			t.Errorf("%s: %s", s.ID, diff)
		}
	}
}

// frames returns what a recording has from each side, without what differs each time.
func frames(recording string) map[bool][]string {
	all := map[bool][]string{}
	for line := range strings.Lines(regexp.MustCompile(`"(t|started)":[^,]*,|msg_[a-z0-9]+_`).ReplaceAllString(recording, "")) {
		sent := strings.Contains(line, `"d":">"`)
		all[sent] = append(all[sent], line)
	}
	return all
}

// files returns the contents of the files in a directory.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range list {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name()] = string(data)
	}
	return all
}

// TestTakeOver: what an earlier version has kept says the same as journals, of which there is nothing to be told but that once. Whoever
// opens them again, or makes the index anew, sees the same.
func TestTakeOver(t *testing.T) {
	dir, all := earlierDir(t)
	e, o := open(t, dir)
	same(t, e, all)
	if len(o.notices) != 1 || !strings.HasPrefix(o.notices[0], fmt.Sprintf("%d sessions of an earlier version were taken over", len(all))) || len(o.alarms) > 0 {
		t.Errorf("it says %q, %v", o.notices, o.alarms)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	top := files(t, filepath.Join(dir, "sessions"))
	if _, err := os.Stat(filepath.Join(dir, "log.db.old")); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "index.db")); err != nil {
		t.Fatal(err)
	}
	e, o = open(t, dir)
	same(t, e, all)
	if len(o.notices) > 0 || len(o.alarms) > 0 {
		t.Errorf("the second time it says %q, %v", o.notices, o.alarms)
	}
	if diff := cmp.Diff(top, files(t, filepath.Join(dir, "sessions"))); diff != "" {
		t.Errorf("the second time it has changed something: %s", diff)
	}
	for id, was := range all {
		if h := held(t, was.Row.Attributes); h != "" && top[id+".live"] != h {
			t.Errorf("%s: how its agent is reached: %s", id, top[id+".live"])
		}
		if strings.Contains(top[id+".jsonl"], `"token"`) {
			t.Errorf("%s has a secret in its records", id)
		}
	}
}

// held returns how an agent is reached that outlives its gateway.
func held(t testing.TB, attributes json.RawMessage) string {
	t.Helper()
	var a struct{ Held json.RawMessage }
	if len(attributes) == 0 {
		return ""
	}
	if err := json.Unmarshal(attributes, &a); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if len(a.Held) > 0 {
		if err := json.Compact(&b, a.Held); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestTakeOverWitness: the ends that the witness of the earlier version has noted tell what is missing, and do not make journals
// look damaged.
func TestTakeOverWitness(t *testing.T) {
	dir, all := earlierDir(t)
	w, err := sqlite.OpenWitness(t.Context(), filepath.Join(dir, "heads.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "heads.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for id, was := range all {
		h := was.Row.Head
		sum := sha256.Sum256(fmt.Appendf(binary.BigEndian.AppendUint64(nil, h.Seq), "%s%s", h.Hash[:], id))
		if _, err := db.ExecContext(t.Context(), `INSERT INTO head VALUES (?, ?, ?, ?)`, id, int64(h.Seq), h.Hash[:], sum[:16]); err != nil {
			t.Fatal(err)
		}
	}
	const lacks, n = "s_e84ca94f1a4b729930f6d7a8", 14 // of 17 records
	change(t, dir, `DELETE FROM acp_record WHERE seq > ? AND n = (SELECT n FROM acp_head WHERE id = ?)`, n, lacks)
	change(t, dir, `UPDATE acp_head SET seq = ?, hash = (SELECT hash FROM acp_record WHERE n = acp_head.n AND seq = ?) WHERE id = ?`, n, n, lacks)
	e, o := open(t, dir)
	damage := (*journal.DamageError)(nil)
	if len(o.alarms) != 1 || !errors.As(o.alarms[lacks], &damage) || !cmp.Equal(damage.Lost, []journal.Range{{From: n + 2, To: 18}}) {
		t.Errorf("alarms: %v", o.alarms)
	}
	if _, err := e.Delete(t.Context(), lacks); err != nil {
		t.Fatal(err)
	}
	delete(all, lacks)
	same(t, e, all)
}

// A cut is the tables of an earlier version that cannot be read any more after some calls.
type cut struct {
	engine.Tables
	left *atomic.Int64
}

var errCut = errors.New("that is the end")

func (c cut) Records(ctx context.Context, key int64, from uint64, n, size int) ([]engine.Record, error) {
	if c.left.Add(-1) < 0 {
		return nil, errCut
	}
	return c.Tables.Records(ctx, key, from, min(n, 3), size)
}

// TestTakeOverCutOff: wherever it is cut off, each journal that is there is whole, and the rest is made the next time.
func TestTakeOverCutOff(t *testing.T) {
	dir, all := earlierDir(t)
	e, _ := open(t, dir)
	want := files(t, filepath.Join(dir, "sessions"))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	cutOff := 0
	for n := int64(1); ; n += 3 {
		dir, _ := earlierDir(t)
		db, err := sqlite.OpenEarlier(t.Context(), filepath.Join(dir, "log.db"))
		if err != nil {
			t.Fatal(err)
		}
		left := new(atomic.Int64)
		left.Store(n)
		_, err = engine.TakeOver(t.Context(), filepath.Join(dir, "sessions"), cut{db, left}, new(told).options())
		if e := db.Close(); e != nil {
			t.Fatal(e)
		}
		if err != nil && !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		for name, data := range files(t, filepath.Join(dir, "sessions")) {
			if data != want[name] {
				t.Errorf("cut off after %d: %s has %d bytes of %d", n, name, len(data), len(want[name]))
			}
		}
		// What a process that is killed leaves.
		for id := range all {
			if err := os.WriteFile(filepath.Join(dir, "sessions", id+".jsonl.new"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		e, o := open(t, dir)
		same(t, e, all)
		if len(o.notices) != 1 || len(o.alarms) > 0 {
			t.Errorf("it says %q, %v", o.notices, o.alarms)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			break
		}
		cutOff++
	}
	if cutOff < 5 {
		t.Errorf("it was cut off %d times", cutOff)
	}
}

// TestTakeOverOnce: a session that is a journal already stays as it is, and a file that comes later does not replace one that was
// kept.
func TestTakeOverOnce(t *testing.T) {
	dir, all := earlierDir(t)
	e, _ := open(t, dir)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	before := files(t, filepath.Join(dir, "sessions"))
	if err := os.WriteFile(filepath.Join(dir, "log.db"), unzip(t, "log.db"), 0o600); err != nil {
		t.Fatal(err)
	}
	change(t, dir, `UPDATE acp_session SET title = 'another'`)
	e, o := open(t, dir)
	same(t, e, all)
	if len(o.notices) != 1 || !strings.HasPrefix(o.notices[0], "0 sessions") || !strings.Contains(o.notices[0], "log.db.old.2") {
		t.Errorf("it says %q", o.notices)
	}
	if diff := cmp.Diff(before, files(t, filepath.Join(dir, "sessions"))); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "log.db.old")); err != nil {
		t.Error(err)
	}
}

// TestTakeOverInUse: nothing is taken over while a program of the earlier version runs, and none begins meanwhile.
func TestTakeOverInUse(t *testing.T) {
	dir, all := earlierDir(t)
	db, err := sql.Open("sqlite", filepath.Join(dir, "log.db")+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE acp_session SET title = title`); err != nil {
		t.Fatal(err)
	}
	if e, err := sqlite.Open(t.Context(), dir, "test", new(told).options()); err == nil || !strings.Contains(err.Error(), "must end first") {
		t.Errorf("%v, %v", e, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	x, err := sqlite.OpenEarlier(t.Context(), filepath.Join(dir, "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", filepath.Join(dir, "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := other.QueryRowContext(t.Context(), `SELECT 1 FROM acp_meta`).Scan(new(int)); err == nil {
		t.Error("another program can read what is taken over")
	}
	if err := errors.Join(other.Close(), x.Close()); err != nil {
		t.Fatal(err)
	}
	e, _ := open(t, dir)
	same(t, e, all)
}

// BenchmarkTakeOver takes over 500 sessions with 200 records of 600 bytes.
func BenchmarkTakeOver(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		dir, _ := earlierDir(b)
		raw := earlierFile(b, dir)
		for i := range 500 {
			grow(b, raw, fmt.Sprintf("n%04d", i), 200)
		}
		if err := raw.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		e, _ := open(b, dir)
		b.StopTimer()
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
