package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// states returns how many records each session of a log has, and which are damaged.
func states(t *testing.T, e *engine.Engine) (heads map[string]uint64, damaged []string) {
	t.Helper()
	heads = map[string]uint64{}
	err := e.VerifyAll(t.Context(), func(s engine.Session, damage *engine.DamageError) error {
		heads[s.ID] = s.Head.Seq
		if damage != nil {
			damaged = append(damaged, s.ID)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return heads, damaged
}

// TestBackup: a backup that is made while records are appended is whole, and has what was acknowledged before; restored,
// it is a log that continues, and what was there is kept.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	e, l := opened(t, dir, Options{})
	fill(t, e, l, 20, "a", "b")
	o, err := e.Claim(t.Context(), "a", l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for ctx.Err() == nil {
			_, _ = o.Append(ctx, engine.Record{Data: make([]byte, 3000)})
		}
	})
	files := t.TempDir()
	file := filepath.Join(files, "backup")
	before := o.Head().Seq
	if err := Backup(t.Context(), dir, file); err != nil {
		t.Fatal(err)
	}
	cancel()
	writing.Wait()
	if err := Backup(t.Context(), dir, file); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	copied, err := OpenFile(t.Context(), file, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	heads, damaged := states(t, copied)
	if err := copied.Close(); err != nil || len(damaged) > 0 || heads["a"] < before || heads["b"] != 20 {
		t.Errorf("%v, damaged %v, had %d, %v", heads, damaged, before, err)
	}
	// Later records are lost by the restore, and are no damage: that was asked for.
	if _, err := o.Append(t.Context(), engine.Record{}); err != nil {
		t.Fatal(err)
	}
	end := o.Head().Seq
	e.Close()
	kept, err := Restore(t.Context(), file, dir)
	if err != nil {
		t.Fatal(err)
	}
	e, l = opened(t, dir, Options{})
	now, damaged := states(t, e)
	if len(damaged) > 0 || now["a"] != heads["a"] || now["a"] == end {
		t.Errorf("restored %v, damaged %v; the backup %v, before %d", now, damaged, heads, end)
	}
	if o, err = e.Claim(t.Context(), "a", l); err != nil {
		t.Fatal(err)
	}
	if recs, err := o.Append(t.Context(), engine.Record{}); err != nil || recs[0].Seq != heads["a"]+1 {
		t.Errorf("%v, %v", recs, err)
	}
	e.Close()
	older, _ := opened(t, kept, Options{})
	if was, damaged := states(t, older); was["a"] != end || len(damaged) > 0 {
		t.Errorf("what was there: %v, damaged %v", was, damaged)
	}
	left, err := os.ReadDir(files)
	if err != nil || len(left) != 1 {
		t.Errorf("%v beside the backup", left)
	}
}

// TestBackupRefused: a file that is not a log is not a backup, and replaces nothing; a damaged session is found.
func TestBackupRefused(t *testing.T) {
	dir := t.TempDir()
	e, l := opened(t, dir, Options{})
	fill(t, e, l, 40, "a", "b", "c")
	e.Close()
	bad := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(bad, []byte("no database, but long enough to have a header of one"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{bad, bad + "-missing"} {
		if _, err := Restore(t.Context(), file, dir); err == nil {
			t.Errorf("%s was restored", file)
		}
		if _, err := OpenFile(t.Context(), file, engine.Options{}); err == nil {
			t.Errorf("%s was opened", file)
		}
	}
	change(t, dir, "<b-30>", func(file []byte, at int) { file[at+20] ^= 4 })
	e, _ = opened(t, dir, Options{})
	if heads, damaged := states(t, e); len(heads) != 3 || len(damaged) != 1 || damaged[0] != "b" {
		t.Errorf("%v, damaged %v", heads, damaged)
	}
}
