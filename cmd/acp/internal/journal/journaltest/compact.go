package journaltest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

func gap(from, to uint64, left string) journal.Gap {
	g := journal.Gap{From: from, To: to}
	if left != "" {
		g.Left = drafts(journal.KindUpdate, left)[0]
	}
	return g
}

// testCompact: gaps stand for what they replace; the chain is whole before, between and behind them, also for the next
// owner.
func testCompact(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	w := create(t, c, "s")
	for i := 2; i <= 12; i++ {
		appendTexts(t, w, fmt.Sprint(i))
	}
	before, err := read(t, c, "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Compact(t.Context()); err != nil {
		t.Error(err)
	}
	if err := w.Compact(t.Context(), gap(3, 5, "3+4+5"), gap(6, 6, ""), gap(8, 9, "")); err != nil {
		t.Fatal(err)
	}
	if err := w.Compact(t.Context(), gap(10, 11, "<10 & 11>")); err != nil {
		t.Fatal(err)
	}
	check := func(what string, c *journal.Container, more ...string) {
		t.Helper()
		wantTexts(t, what, whole(t, c, "s"), append([]string{"2", "3+4+5", "7", "<10 & 11>", "12"}, more...)...)
	}
	check("compacted", c)
	appendTexts(t, w, "13")
	check("continued", c, "13")
	all, err := read(t, c, "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Seq > 12 {
			continue
		}
		was := before[r.Seq-1]
		if r.Hash != was.Hash || !r.At.Equal(was.At) || r.Epoch != was.Epoch {
			t.Errorf("record %d-%d is %+v, and was %+v", r.From, r.Seq, r, was)
		}
		if silent := r.From == 6 || r.From == 8; silent != (r.Kind == journal.KindGap) || silent && r.Data != nil {
			t.Errorf("record %d-%d has kind %q, data %s", r.From, r.Seq, r.Kind, r.Data)
		}
	}
	for after, want := range map[uint64]int{0: 9, 2: 7, 5: 6, 6: 5, 9: 3, 11: 2, 13: 0} {
		if part, err := read(t, c, "s", after); err != nil || len(part) != want {
			t.Errorf("after %d: %d records, %v", after, len(part), err)
		}
	}
	for after, want := range map[uint64]uint64{3: 2, 4: 2, 8: 7, 10: 9} {
		_, err := read(t, c, "s", after)
		e, ok := errors.AsType[*journal.CompactedError](err)
		if !ok || e.Before != want || !errors.Is(err, journal.ErrCompacted) {
			t.Errorf("after %d: %v", after, err)
		}
	}
	release(t, w)
	w = own(t, open(t, f.Open(t)), "s")
	appendTexts(t, w, "14")
	check("of the next owner", c, "13", "14")
}

// testCompactInvalid: gaps that cannot be are refused, and nothing changes.
func testCompactInvalid(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	w := create(t, c, "s")
	appendTexts(t, w, "2", "3", "4", "5", "6")
	if err := w.Compact(t.Context(), gap(3, 4, "")); err != nil {
		t.Fatal(err)
	}
	bad := gap(5, 5, "x")
	bad.Left.Data = []byte("{")
	for name, gaps := range map[string][]journal.Gap{
		"the first record": {gap(1, 2, "")},
		"nothing":          {gap(0, 0, "")},
		"backwards":        {gap(5, 4, "")},
		"out of order":     {gap(5, 5, ""), gap(2, 2, "")},
		"beyond the end":   {gap(5, 7, "")},
		"where one is":     {gap(2, 4, "")},
		"inside of one":    {gap(3, 3, "")},
		"an unknown kind":  {{From: 5, To: 5, Left: journal.Draft{Kind: "other"}}},
		"no JSON":          {bad},
	} {
		wantIs(t, name, w.Compact(t.Context(), gaps...), journal.ErrInvalid)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantIs(t, "given up", w.Compact(ctx, gap(5, 5, "")), context.Canceled)
	wantTexts(t, "after all", whole(t, c, "s"), "2", "5", "6")
	var many []string
	for range journal.MaxCompact + 1 {
		many = append(many, "x")
	}
	appendTexts(t, w, many...)
	wantIs(t, "too many", w.Compact(t.Context(), gap(7, 7+journal.MaxCompact, "")), journal.ErrTooMany)
	if err := w.Compact(t.Context(), gap(7, 6+journal.MaxCompact, "")); err != nil {
		t.Error(err)
	}
	release(t, w)
	wantIs(t, "released", w.Compact(t.Context(), gap(5, 5, "")), journal.ErrReleased)
}

// testCompactFollow: who follows is not disturbed by what is compacted behind it, and who comes later gets the gaps.
func testCompactFollow(t *testing.T, f Fixture) {
	b := f.Open(t)
	a, c := open(t, f.Open(t)), open(t, b)
	w := create(t, a, "s")
	here, elsewhere := follow(t, a, "s", 0), follow(t, c, "s", 0)
	polls := b.Poll() > 0
	n := uint64(1)
	const rounds = 2
	for round := range rounds {
		begin := n + 1
		for range 20 {
			appendTexts(t, w, fmt.Sprint("text ", n))
			n++
		}
		here.upTo(t, n)
		if polls {
			elsewhere.upTo(t, n)
		}
		if err := w.Compact(t.Context(), gap(begin, begin+9, ""), gap(begin+10, begin+18, "left")); err != nil {
			t.Fatal(round, err)
		}
	}
	appendTexts(t, w, "last")
	here.upTo(t, n+1)
	if polls {
		elsewhere.upTo(t, n+1)
	}
	if late := follow(t, a, "s", 0).upTo(t, n+1); len(late) != 1+rounds*3+1 {
		t.Errorf("%d records: %q", len(late), late)
	}
}

// testCopy: a copy has the same bytes, and can be continued.
func testCopy(t *testing.T, f Fixture) {
	for _, id := range []string{"to", "fro"} {
		from, to := open(t, f.Open(t)), open(t, journal.NewMemory())
		if id == "fro" {
			from, to = to, from
		}
		w := create(t, from, id)
		appendTexts(t, w, "2", "3", "4", "5")
		if err := w.Compact(t.Context(), gap(3, 4, "3+4")); err != nil {
			t.Fatal(err)
		}
		release(t, w)
		w = own(t, from, id)
		appendTexts(t, w, "6")
		if err := to.Copy(t.Context(), from, id); err != nil {
			t.Fatal(id, err)
		}
		wantIs(t, "in use", to.Copy(t.Context(), from, id), journal.ErrExists)
		was, err := read(t, from, id, 0)
		if err != nil {
			t.Fatal(err)
		}
		is, err := read(t, to, id, 0)
		if err != nil || len(is) != len(was) {
			t.Fatalf("%s: %d records of %d, %v", id, len(is), len(was), err)
		}
		for i, r := range is {
			if string(r.Body) != string(was[i].Body) || r.Hash != was[i].Hash || r.From != was[i].From || r.Epoch != was[i].Epoch {
				t.Errorf("%s: %+v was %+v", id, r, was[i])
			}
		}
		wantTexts(t, id, whole(t, to, id), "2", "3+4", "5", "6")
		w = own(t, to, id)
		if recs := appendTexts(t, w, "7"); recs[0].Epoch != 3 || recs[0].Seq != 7 {
			t.Errorf("%s: %+v", id, recs[0])
		}
		release(t, w)
		wantIs(t, "of nothing", to.Copy(t.Context(), from, "none"), journal.ErrNotFound)
		_, err = to.Head(t.Context(), "none")
		wantIs(t, "what is left of that", err, journal.ErrNotFound)
	}
}
