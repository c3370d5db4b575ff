package engine_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// TestTakeOverDamaged: what is damaged costs itself, and whoever reads the session learns of it.
func TestTakeOverDamaged(t *testing.T) {
	lost := func(from, to uint64) []journal.Range { return []journal.Range{{From: from, To: to}} }
	const one, compacted = "s_e84ca94f1a4b729930f6d7a8", "s_90e6f3e3d8d7052942949ce7" // the records of a session
	for name, test := range map[string]struct {
		id, statement string
		lost          []journal.Range
	}{
		"data":          {one, `UPDATE acp_record SET data = replace(cast(data AS text), 'one', 'two') WHERE n = ? AND seq = 2`, lost(3, 3)},
		"no JSON":       {one, `UPDATE acp_record SET data = x'00' WHERE n = ? AND seq = 5`, lost(6, 6)},
		"hash":          {one, `UPDATE acp_record SET hash = zeroblob(32) WHERE n = ? AND seq = 4`, lost(5, 5)},
		"nonsense":      {one, `UPDATE acp_record SET hash = x'00' WHERE n = ? AND seq = 4`, lost(5, 5)},
		"first":         {one, `DELETE FROM acp_record WHERE n = ? AND seq = 1`, lost(2, 2)},
		"some":          {one, `DELETE FROM acp_record WHERE n = ? AND seq BETWEEN 5 AND 7`, lost(6, 8)},
		"last":          {one, `DELETE FROM acp_record WHERE n = ? AND seq > 15`, lost(17, 18)},
		"all":           {one, `DELETE FROM acp_record WHERE n = ?`, lost(2, 18)},
		"gap":           {compacted, `UPDATE acp_record SET data = substr(data, 1, 50) WHERE n = ? AND seq = 7`, lost(5, 8)},
		"before a gap":  {compacted, `DELETE FROM acp_record WHERE n = ? AND seq = 2`, lost(3, 3)},
		"where it ends": {compacted, `UPDATE acp_record SET data = x'ffffffffffffffff' || substr(data, 9) WHERE n = ? AND seq = 7`, lost(5, 8)},
	} {
		t.Run(name, func(t *testing.T) {
			dir, all := earlierDir(t)
			change(t, dir, strings.Replace(test.statement, "n = ?", "n = (SELECT n FROM acp_head WHERE id = ?)", 1), test.id)
			e, o := open(t, dir)
			damage := (*journal.DamageError)(nil)
			was := all[test.id]
			got, _, err := read(t, e, test.id, was.Row.Head.Seq+1)
			if !errors.As(err, &damage) || !cmp.Equal(damage.Lost, test.lost) || !errors.As(o.alarms[test.id], new(*journal.DamageError)) || len(o.alarms) > 1 {
				t.Errorf("%v, alarms %v", err, o.alarms)
			}
			var want []said
			for _, s := range was.says() {
				if !slices.ContainsFunc(test.lost, func(r journal.Range) bool { return r.From <= s.Seq && s.Seq <= r.To }) {
					want = append(want, s)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			s, err := e.Session(t.Context(), test.id)
			if diff := cmp.Diff(was.want(t), row(t, s)); diff != "" || err != nil {
				t.Error(err, diff)
			}
			l, err := e.Lease(t.Context(), "n")
			if err != nil {
				t.Fatal(err)
			}
			own, err := e.Claim(t.Context(), test.id, l)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := own.Append(t.Context(), engine.Record{Kind: journal.KindMark, Data: []byte("{}")}); err != nil {
				t.Error(err)
			}
			if err := own.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTakeOverDamagedPage: a page of the file that cannot be read costs the records in it.
func TestTakeOverDamagedPage(t *testing.T) {
	dir, all := earlierDir(t)
	raw := earlierFile(t, dir)
	grow(t, raw, "large", 600)
	if _, err := raw.ExecContext(t.Context(), `UPDATE acp_record SET data = replace(cast(data AS text), 'word', '!300') WHERE seq = 300`); err != nil {
		t.Fatal(err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "log.db")
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const size = 4096
	page := file[bytes.Index(file, []byte("!300"))/size*size:][:size]
	copy(page, bytes.Repeat([]byte{0xee}, size))
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	e, o := open(t, dir)
	got, _, err := read(t, e, "large", 601)
	damage := (*journal.DamageError)(nil)
	if !errors.As(err, &damage) || damage.Records() != 600-uint64(len(got)) || len(got) < 580 || damage.Lost[0].From > 301 || damage.Lost[0].To < 301 || len(o.alarms) != 1 {
		t.Errorf("%d records, %v, alarms %v", len(got), err, o.alarms)
	}
	if _, err := e.Delete(t.Context(), "large"); err != nil {
		t.Fatal(err)
	}
	same(t, e, all)
}
