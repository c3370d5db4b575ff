package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

// opening opens the sessions in a directory, until the test ends.
func opening(t *testing.T, open func(context.Context, string) (*engine.Engine, error), dir string) *engine.Engine {
	t.Helper()
	e, err := open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func toServe(ctx context.Context, dir string) (*engine.Engine, error) {
	return Open(ctx, dir, "test", engine.Options{})
}

func toLook(ctx context.Context, dir string) (*engine.Engine, error) {
	return Look(ctx, dir, engine.Options{})
}

// claimed makes a session with some records, and claims it.
func begun(t *testing.T, e *engine.Engine, id string, records int) *engine.Owned {
	t.Helper()
	if _, err := e.Create(t.Context(), engine.Session{ID: id, Title: "made"}); err != nil {
		t.Fatal(err)
	}
	l, err := e.Lease(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	o, err := e.Claim(t.Context(), id, l)
	if err != nil {
		t.Fatal(err)
	}
	said(t, o, records)
	return o
}

func said(t *testing.T, o *engine.Owned, records int) {
	t.Helper()
	for i := range records {
		text := fmt.Appendf(nil, "%q", fmt.Sprint("record ", i))
		if _, err := o.Append(t.Context(), engine.Record{Kind: journal.KindUpdate, Data: text}); err != nil {
			t.Fatal(err)
		}
	}
}

// lengths returns how many records each session has, by what verifies them, and fails if one is damaged.
func lengths(t *testing.T, verify func(context.Context, func(string, error) error) error, c interface {
	Head(context.Context, string) (engine.Head, error)
}) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	err := verify(t.Context(), func(id string, err error) error {
		h, e := c.Head(t.Context(), id)
		all[id] = h.Seq
		return errors.Join(err, e)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBackup: a backup that is made while records are appended has what was acknowledged before. Restored, its sessions
// continue, and what was there is kept.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	e, err := toServe(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	a := begun(t, e, "a", 20)
	if err := begun(t, e, "b", 20).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := a.Head().Seq
	ctx, cancel := context.WithCancel(t.Context())
	long := []byte(`"` + strings.Repeat("x", 3000) + `"`)
	var writing sync.WaitGroup
	writing.Go(func() {
		for ctx.Err() == nil {
			_, _ = a.Append(ctx, engine.Record{Kind: journal.KindUpdate, Data: long})
		}
	})
	files := t.TempDir()
	name := filepath.Join(files, "backup")
	if err := os.WriteFile(name+".part", []byte("of one that was killed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Backup(t.Context(), filepath.Join(dir, journals), name); err != nil {
		t.Fatal(err)
	}
	cancel()
	writing.Wait()
	if err := Backup(t.Context(), filepath.Join(dir, journals), name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	info, err := os.Stat(name)
	if err != nil || os.PathSeparator == '/' && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	backup, err := file.OpenArchive(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer backup.Close()
	c := backup.Journals()
	has := lengths(t, c.Verify, c)
	if has["a"] < before || has["b"] != 21 || len(has) != 2 {
		t.Errorf("it has %v, there were %d", has, before)
	}
	// Later records are lost by the restore, and are no damage: that was asked for.
	said(t, a, 1)
	end := a.Head().Seq
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	// Of an agent, of an earlier version, of a restore that was interrupted, and what stays.
	for _, name := range []string{"sessions/a.live", "log.db-wal", "restoring", "node"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := Restore(t.Context(), backup, dir, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"index.db", "heads.db", "log.db-wal", "sessions/a.live"} {
		if !exists(filepath.Join(kept, name)) || exists(filepath.Join(dir, name)) {
			t.Errorf("%s was not moved", name)
		}
	}
	if exists(filepath.Join(dir, "restoring")) || !exists(filepath.Join(dir, "node")) {
		t.Error("more was moved, or less")
	}
	restored := opening(t, toServe, dir)
	if now := lengths(t, restored.VerifyAll, restored); !cmp.Equal(has, now) {
		t.Errorf("restored %v, the backup %v", now, has)
	}
	l, err := restored.Lease(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	if a, err = restored.Claim(t.Context(), "a", l); err != nil {
		t.Fatal(err)
	}
	said(t, a, 1)
	if s, err := restored.Session(t.Context(), "a"); err != nil || s.Title != "made" || a.Head().Seq != has["a"]+1 {
		t.Errorf("%+v at %d, %v", s, a.Head().Seq, err)
	}
	older := opening(t, toLook, kept)
	if was := lengths(t, older.VerifyAll, older); was["a"] != end {
		t.Errorf("what was there: %v", was)
	}
	left, err := os.ReadDir(files)
	if err != nil || len(left) != 1 {
		t.Errorf("%v beside the backup", left)
	}
	if kept, err = Restore(t.Context(), backup, t.TempDir(), ""); kept != "" || err != nil {
		t.Errorf("where nothing was: %q, %v", kept, err)
	}
}

// TestBackupFails: nothing is left of a backup, or changed by a restore, that fails.
func TestBackupFails(t *testing.T) {
	dir, files := t.TempDir(), t.TempDir()
	e := opening(t, toServe, dir)
	if err := begun(t, e, "a", 1).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(files, "backup")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Backup(ctx, filepath.Join(dir, journals), name); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, err := os.ReadDir(files); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if err := Backup(t.Context(), filepath.Join(dir, journals), filepath.Join(name, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := Backup(t.Context(), filepath.Join(dir, journals), name); err != nil {
		t.Fatal(err)
	}
	backup, err := file.OpenArchive(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer backup.Close()
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(ctx, backup, dir, ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	after, err := os.ReadDir(dir)
	if err != nil || fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("%v is %v, %v", before, after, err)
	}
}

// TestRestoreLog: a backup of an earlier version takes the place of everything. Another database, or one that is damaged,
// does not, unless the damage is accepted.
func TestRestoreLog(t *testing.T) {
	files := t.TempDir()
	whole, other, torn := filepath.Join(files, "whole"), filepath.Join(files, "other"), filepath.Join(files, "torn")
	d, err := OpenDatabase(t.Context(), whole, 0)
	if err != nil {
		t.Fatal(err)
	}
	x, err := OpenIndex(t.Context(), other)
	if err = errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(whole)
	if err = errors.Join(err, x.Close()); err != nil {
		t.Fatal(err)
	}
	clear(data[len(data)-pageSize:])
	dir := t.TempDir()
	text := filepath.Join(files, "text")
	err = errors.Join(os.WriteFile(torn, data, 0o600), os.WriteFile(text, []byte("SQLite format 3\x00, but no"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if err := begun(t, opening(t, toServe, dir), "a", 1).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{other, text, filepath.Join(files, "none")} {
		if _, err := RestoreLog(t.Context(), name, dir, "", true); err == nil {
			t.Errorf("%s was restored", name)
		}
	}
	if _, err := RestoreLog(t.Context(), torn, dir, "", false); !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("damaged: %v", err)
	}
	if after, err := os.ReadDir(dir); err != nil || fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("%v is %v, %v", before, after, err)
	}
	for name, damaged := range map[string]bool{whole: false, torn: true} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, journals), 0o700); err != nil {
			t.Fatal(err)
		}
		kept, err := RestoreLog(t.Context(), name, dir, "", damaged)
		if err != nil || !exists(filepath.Join(kept, journals)) || exists(filepath.Join(dir, journals)) {
			t.Errorf("%s: %q, %v", name, kept, err)
		}
		list, err := os.ReadDir(dir)
		if err != nil || len(list) != 2 || list[1].Name() != earlierName {
			t.Errorf("%s: there are %v, %v", name, list, err)
		}
	}
}

// TestLook: one who looks sees what the owner has made of the sessions, and changes nothing of the owner's.
func TestLook(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	e := opening(t, toServe, dir)
	own := begun(t, e, "a", 3)
	if err := begun(t, e, "b", 3).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := e.Update(t.Context(), "a", func(s *engine.Session) error { s.Title = "changed"; return nil })
	if err != nil {
		t.Fatal(err)
	}
	look := func(how string) {
		t.Helper()
		before, err := os.ReadDir(dir)
		e, err2 := toLook(t.Context(), dir)
		if err = errors.Join(err, err2); err != nil {
			t.Fatal(how, err)
		}
		s, err := e.Session(t.Context(), "a")
		page, err2 := e.List(t.Context(), engine.Query{})
		if err = errors.Join(err, err2); err != nil || s.Title != "changed" || len(page.Sessions) != 2 {
			t.Errorf("%s: %+v of %d, %v", how, s, len(page.Sessions), err)
		}
		if got := lengths(t, e.VerifyAll, e); got["a"] != own.Head().Seq || got["b"] != 4 {
			t.Errorf("%s: %v", how, got)
		}
		if err := e.Close(); err != nil {
			t.Error(how, err)
		}
		if after, err := os.ReadDir(dir); err != nil || fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("%s: there were %v, and are %v, %v", how, before, after, err)
		}
		if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
			t.Errorf("%s left %v, %v", how, left, err)
		}
	}
	look("while it is served")
	said(t, own, 2)
	look("again")
	index, err := os.ReadFile(filepath.Join(dir, indexName))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	look("later")
	after, err := os.ReadFile(filepath.Join(dir, indexName))
	if err != nil || len(after) < len(index) {
		t.Errorf("the index has %d bytes, it had %d, %v", len(after), len(index), err)
	}
	if err := os.WriteFile(filepath.Join(dir, indexName), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	look("with an index that is damaged")
	if data, err := os.ReadFile(filepath.Join(dir, indexName)); err != nil || string(data) != "damaged" {
		t.Errorf("%q, %v", data, err)
	}
	for _, name := range []string{indexName, witnessName} {
		if err := removeFiles(filepath.Join(dir, name), databaseEnds); err != nil {
			t.Fatal(err)
		}
	}
	look("without an index")
}
