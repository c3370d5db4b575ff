package enginetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// seqs returns what records are, as text.
func seqs(all []engine.Record) (text []string) {
	for _, r := range all {
		if strings.HasPrefix(r.Kind, "gap:") {
			text = append(text, fmt.Sprint(r.Seq, " vouch"))
			continue
		}
		text = append(text, fmt.Sprint(r.Seq, " ", string(r.Data)))
	}
	return text
}

// testCompact: the records that were replaced are read as their gap, the others as they were, and the log is whole, also
// for a node that has seen the end of what was replaced, and it continues.
func testCompact(t *testing.T, b Backend) {
	n := start(t, b, "a")
	all := n.own(t, "s", "other")
	o := all[0]
	appendTexts(t, all[1], "untouched")
	appendTexts(t, o, "1", "2", "3", "4")
	other := start(t, b, "b")
	before := n.whole(t, "s")
	appendTexts(t, o, "5", "6", "7", "8")
	if err := o.Compact(t.Context(), []engine.Gap{{From: 1, To: 2}, {From: 3, To: 5, Kind: "text", Data: []byte("345")}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"5 345", "6 6", "7 7", "8 8", "9 vouch"}
	check := func(n *node, want []string) {
		t.Helper()
		got, err := n.read(t, "s", 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, seqs(got)); diff != "" {
			t.Error(diff)
		}
		if err := n.Verify(t.Context(), "s"); err != nil {
			t.Error(err)
		}
	}
	check(n, want)
	check(other, want)
	if got := n.whole(t, "other"); len(got) != 1 {
		t.Errorf("the other session has %d records", len(got))
	}
	for after, left := range map[uint64]int{2: 5, 5: 4, 6: 3, 9: 0} {
		if got, err := n.read(t, "s", after); err != nil || len(got) != left {
			t.Errorf("after %d: %d records, %v", after, len(got), err)
		}
	}
	for _, after := range []uint64{1, 3, 4} {
		_, err := n.read(t, "s", after)
		wantIs(t, fmt.Sprint("read after ", after), err, engine.ErrCompacted)
	}
	for at, want := range map[uint64]uint64{0: 0, 1: 0, 2: 2, 3: 2, 4: 2, 5: 5, 6: 6, 9: 9, 10: 10} {
		if got, err := n.Anchor(t.Context(), "s", at); err != nil || got != want {
			t.Errorf("%d is anchored at %d, want %d, %v", at, got, want, err)
		}
	}
	if _, err := n.Anchor(t.Context(), "none", 1); !errors.Is(err, engine.ErrNotFound) {
		t.Error(err)
	}
	// The rest of it, later; what the first gap is cannot be replaced again.
	wantIs(t, "over a gap", o.Compact(t.Context(), []engine.Gap{{From: 4, To: 6}}), engine.ErrInvalid)
	wantIs(t, "beyond the end", o.Compact(t.Context(), []engine.Gap{{From: 6, To: 60}}), engine.ErrInvalid)
	wantIs(t, "not in order", o.Compact(t.Context(), []engine.Gap{{From: 7, To: 7}, {From: 6, To: 6}}), engine.ErrInvalid)
	if err := o.Compact(t.Context(), []engine.Gap{{From: 6, To: 6, Kind: "text", Data: []byte("VI")}, {From: 7, To: 8, Kind: "text", Data: []byte("78")}}); err != nil {
		t.Fatal(err)
	}
	appendTexts(t, o, "11")
	check(n, []string{"5 345", "6 VI", "8 78", "9 vouch", "10 vouch", "11 11"})
	// A witness that has seen a record in the middle of a gap, and no more.
	if err := b.Witness(t).Note(t.Context(), map[string]engine.Head{"s": {Seq: 4, Hash: before[3].Hash}}); err != nil {
		t.Fatal(err)
	}
	if err := o.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := other.Claim(t.Context(), "s", other.lease)
	if err != nil {
		t.Fatal(err)
	}
	appendTexts(t, again, "12")
	wantIs(t, "fenced", o.Compact(t.Context(), []engine.Gap{{From: 9, To: 9}}), engine.ErrReleased)
	if _, err := again.Append(t.Context(), engine.Record{Kind: "gap:text"}); err == nil {
		t.Error("anybody may append a gap")
	}
}

// testCompactDamage: a gap that was changed or removed, and one that nobody vouches for, are damage.
func testCompactDamage(t *testing.T, b Backend) {
	n := start(t, b, "a")
	for i, test := range []struct {
		name, query string
		arg         any
	}{
		{"other data", `UPDATE acp_record SET kind = $1 WHERE seq = 4`, "gap:other"},
		{"removed", `DELETE FROM acp_record WHERE seq = $1`, 4},
		{"before it", `UPDATE acp_record SET kind = $1 WHERE seq = 1`, "other"},
		{"the next", `UPDATE acp_record SET kind = $1 WHERE seq = 5`, "other"},
		{"its voucher", `UPDATE acp_record SET kind = $1 WHERE seq = 6`, "text"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := fmt.Sprint("s", i)
			o := n.own(t, id)[0]
			appendTexts(t, o, "1", "2", "3", "4", "5")
			if err := o.Compact(t.Context(), []engine.Gap{{From: 2, To: 4, Kind: "text", Data: []byte("234")}}); err != nil {
				t.Fatal(err)
			}
			if err := n.Verify(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			b.Exec(t, test.query, test.arg)
			if err := n.Verify(t.Context(), id); err == nil {
				t.Error("it is whole")
			}
			<-n.alarms
			if _, err := n.Delete(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A compacting database calls before when records are about to be replaced, and does not replace them if that fails.
type compacting struct {
	engine.Database
	before func() error
}

func (c *compacting) Compact(ctx context.Context, b engine.Batch, froms []uint64) (bool, error) {
	if c.before != nil {
		if err := c.before(); err != nil {
			return false, err
		}
	}
	return c.Database.Compact(ctx, b, froms)
}

// testCompactRead: records that are replaced while somebody reads are no damage, neither if the reader has begun before
// it was written down what replaces them, nor if it has begun between that and the replacement, and not on another node
// either.
func testCompactRead(t *testing.T, b Backend) {
	db := &compacting{}
	n := start(t, b, "a", func(all engine.Database) engine.Database {
		db.Database = all
		return db
	})
	other := start(t, b, "b")
	const records = 1200 // several chunks
	gaps := []engine.Gap{{From: 11, To: 20}, {From: 901, To: 950, Kind: "text", Data: []byte("gap")}}
	for _, reader := range []*node{n, other} {
		for _, between := range []bool{false, true} {
			t.Run(fmt.Sprint(reader == n, between), func(t *testing.T) {
				id := fmt.Sprint("s", reader == n, between)
				o := n.own(t, id)[0]
				for i := 0; i < records; i += 240 {
					appendTexts(t, o, make([]string, 240)...)
				}
				compacted := make(chan error, 1)
				read := 0
				pass := func(compact func()) error {
					return reader.Read(t.Context(), id, 0, func(engine.Record) error {
						if read++; read == 1 {
							compact()
						}
						return nil
					})
				}
				var err error
				if between {
					written, replace := make(chan bool), make(chan bool)
					db.before = func() error {
						close(written)
						<-replace
						return nil
					}
					go func() { compacted <- o.Compact(t.Context(), gaps) }()
					<-written
					err = pass(func() {
						close(replace)
						if err := <-compacted; err != nil {
							t.Error(err)
						}
					})
					db.before = nil
				} else {
					err = pass(func() {
						if err := o.Compact(t.Context(), gaps); err != nil {
							t.Error(err)
						}
					})
				}
				if err != nil {
					t.Errorf("after %d records: %v", read, err)
				}
				if read < records-50 {
					t.Errorf("%d records were read", read)
				}
				if s, err := n.Session(t.Context(), id); err != nil || s.Damaged != "" {
					t.Errorf("damaged: %q, %v", s.Damaged, err)
				}
				appendTexts(t, o, "more")
				if err := reader.Verify(t.Context(), id); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// testCompactFails: what was written down of a replacement that has failed does not stand in the way of another one.
func testCompactFails(t *testing.T, b Backend) {
	db := &compacting{}
	n := start(t, b, "a", func(all engine.Database) engine.Database {
		db.Database = all
		return db
	})
	o := n.own(t, "s")[0]
	appendTexts(t, o, "1", "2", "3", "4", "5", "6")
	failure := errors.New("the server has ended")
	db.before = func() error { return failure }
	wantIs(t, "compact", o.Compact(t.Context(), []engine.Gap{{From: 1, To: 4}}), failure)
	db.before = nil
	if err := o.Compact(t.Context(), []engine.Gap{{From: 1, To: 2}, {From: 3, To: 5, Kind: "text", Data: []byte("345")}}); err != nil {
		t.Fatal(err)
	}
	all, err := n.read(t, "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"5 345", "6 6", "7 vouch", "8 vouch"}, seqs(all)); diff != "" {
		t.Error(diff)
	}
	if err := n.Verify(t.Context(), "s"); err != nil {
		t.Error(err)
	}
}
