package served

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSeen: which lines are known, while they are shown, changed by the model and by others.
func TestSeen(t *testing.T) {
	const text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	f := (*File)(nil).At(text).Shown(2, 2).Shown(7, 1).Shown(4, 1)
	check := func(f *File, want ...Range) {
		t.Helper()
		if diff := cmp.Diff(want, f.Seen()); diff != "" {
			t.Errorf("%s\n%s", f.text, diff)
		}
	}
	check(f, Range{2, 3}, Range{7, 1})
	if !f.Has(2, 3) || f.Has(2, 4) || f.Has(1, 1) || f.Has(5, 1) || !f.Has(7, 1) || f.Whole() {
		t.Error(f.Seen())
	}
	check(f.At("0\n"+text), Range{3, 3}, Range{8, 1})
	check(f.At(strings.Replace(text, "3\n", "x\ny\n", 1)), Range{2, 1}, Range{5, 1}, Range{8, 1})
	check(f.At(strings.Replace(text, "3\n", "", 1)), Range{2, 2}, Range{6, 1})
	check(f.Changed(strings.Replace(text, "3\n", "x\ny\n", 1), false), Range{2, 4}, Range{8, 1})
	check(f.Changed(strings.Replace(text, "9\n", "x\n", 1), false), Range{2, 3}, Range{7, 1})
	check(f.Changed("a\nb", true), Range{1, 2})
	check(f.At(""))
	check(f.Shown(9, 100), Range{2, 3}, Range{7, 1}, Range{9, 1})
	for _, r := range []Range{{0, 1}, {10, 1}, {3, 0}, {3, -1}} {
		check(f.Shown(r.From, r.N), Range{2, 3}, Range{7, 1})
	}
	whole := f.Shown(1, 9)
	if !whole.Whole() || whole.At(text+"10\n").Whole() || whole.At("1\n").Whole() || !whole.At("1\n").Shown(1, 1).Whole() {
		t.Error("which is whole")
	}
	if was, ok := whole.At("1\n").Known(); !ok || was != text {
		t.Errorf("%q, %t", was, ok)
	}
	var none *File
	if none.Has(1, 1) || none.Whole() || none.Stale() || none.Lost() || none.Gone() != nil || none.Seen() != nil || none.Lines() != 0 {
		t.Error("nil knows something")
	}
}

// TestRestored: a record that is made from what was kept of another one knows the same, for
// as long as nobody else has changed something unseen, and never more.
func TestRestored(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	again := new(Record)
	r := &Record{Keep: func(s State) {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var kept State
		if err := json.Unmarshal(data, &kept); err != nil {
			t.Fatal(err)
		}
		again.Restore(kept)
	}}
	texts := map[string]string{}
	for i := range 2000 {
		path := fmt.Sprintf("/%d", rng.IntN(3))
		text := texts[path]
		n := strings.Count(text, "\n")
		line := fmt.Sprintf("line – %d\n", rng.IntN(50))
		at := rng.IntN(n + 1)
		lines := strings.SplitAfter(text, "\n")
		after := strings.Join(lines[:at], "") + line + strings.Join(lines[min(n, at+rng.IntN(3)):], "")
		switch rng.IntN(6) {
		case 0, 1:
			r.Show(path, text, Range{1 + at, rng.IntN(10)})
		case 2:
			r.Change(path, text, after, Made{Edit: Hash(line, "x"), Range: Range{at + 1, 1}})
			texts[path] = after
		case 3:
			texts[path] = after // by somebody else
		case 4:
			r.Glimpse(path, text, Range{1 + at, 1})
		case 5:
			if rng.IntN(20) == 0 {
				r.Move(path, "/0")
				texts["/0"] = text
			}
		}
		path = fmt.Sprintf("/%d", rng.IntN(3))
		f, g := r.File(path, texts[path]), again.File(path, texts[path])
		if !f.Stale() && !f.Lost() && !g.Lost() && !g.Stale() {
			if diff := cmp.Diff(f.Seen(), g.Seen()); diff != "" {
				t.Fatalf("step %d: %s", i, diff)
			}
		}
		for _, l := range g.Seen() {
			if !f.Has(l.From, l.N) {
				t.Fatalf("step %d: it knows lines %v that were not shown", i, l)
			}
		}
		if g.Whole() && !f.Whole() {
			t.Fatalf("step %d: it believes to know all", i)
		}
	}
}

// TestBounds: a record forgets what was used least recently.
func TestBounds(t *testing.T) {
	r := new(Record)
	text := strings.Repeat("a line of some text\n", 50_000)
	for i := range 40 {
		r.Show(fmt.Sprint(i), text, Range{1, 10})
		if r.size > MaxSize {
			t.Fatalf("%d bytes", r.size)
		}
	}
	if f := r.File("39", text); !f.Has(1, 10) || f.Lost() {
		t.Error("the latest is forgotten")
	}
	if f := r.File("0", text); f.Has(1, 1) || !f.Lost() {
		t.Error("the first is remembered")
	}
	for i := range MaxFiles + 100 {
		r.Show(fmt.Sprint("small", i), "x\n", Range{1, 1})
	}
	if len(r.files) > MaxFiles || r.size > MaxSize {
		t.Errorf("%d files of %d bytes", len(r.files), r.size)
	}
	large := strings.Repeat(text, 10)
	r.Show("large", large, Range{1, 10})
	if f := r.File("large", large); f.Has(1, 1) || f.Lost() {
		t.Error("a file is remembered that is too large")
	}
	f := (*File)(nil).At(text[:20_000]).Shown(1, 1000)
	for i := range 300 {
		now := strings.Replace(f.text, "a line", fmt.Sprint(i), 1)
		if i%2 == 0 {
			f = f.At(now)
		}
		f = f.Changed(now, false, Made{Edit: fmt.Sprint(i), Range: Range{i + 1, 1}})
	}
	if len(f.gone) > maxGone || len(f.made) > maxMade || f.size() > maxFile {
		t.Errorf("%d gone, %d made, %d bytes", len(f.gone), len(f.made), f.size())
	}
}

// FuzzState: a state that somebody else has written does no harm.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"path":"/a","sum":"x","of":3,"seen":[{"from":1,"n":3}],"made":[{"edit":"e","from":1,"n":1}],"text":"a\n","to":-1}`), "a\nb\n")
	f.Add([]byte(`{"path":"/a","sum":"x","of":-3,"seen":[{"from":-1,"n":9223372036854775807}],"text":"a","from":5,"to":2}`), "")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		var s State
		if json.Unmarshal(data, &s) != nil {
			return
		}
		r := new(Record)
		r.Restore(s)
		r.Restore(s)
		file := r.File(s.Path, text)
		r.Show(s.Path, text, Range{1, 2}, Range{2, 2})
		r.Change(s.Path, text, text+"x\n", Made{Edit: "e", Range: Range{1, 1}})
		r.File(s.Path, "y\n"+text)
		for _, l := range file.Seen() {
			if l.From < 1 || l.N < 1 || l.From+l.N-1 > file.Lines() {
				t.Errorf("lines %v of %d", l, file.Lines())
			}
		}
	})
}

// TestManyChanges: a model that has changed a file itself more often than is remembered knows it all the same, unless somebody
// else has changed it as well, or it has not read all of it.
func TestManyChanges(t *testing.T) {
	last := "last"
	text := func(n int) string { return fmt.Sprintf("count = %d\nnext\n%s\n", n, last) }
	for name, tc := range map[string]struct {
		lines int // that are shown
		other bool
		lost  bool
	}{
		"all of it was read": {lines: 3}, "not all": {lines: 2, lost: true}, "somebody else has changed it": {lines: 3, other: true, lost: true},
	} {
		last = "last"
		f := (*File)(nil).At(text(0)).Shown(1, tc.lines)
		if tc.other {
			last = "another"
			f = f.At(text(0))
		}
		for n := range maxGone + 10 {
			f = f.Changed(text(n+1), false)
		}
		if f.Lost() != tc.lost || f.Whole() == tc.lost || len(f.Gone()) > maxGone {
			t.Errorf("%s: lost %t, whole %t, %d have gone", name, f.Lost(), f.Whole(), len(f.Gone()))
		}
	}
}
