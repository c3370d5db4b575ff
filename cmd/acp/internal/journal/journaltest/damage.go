package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/internal/long"
)

// small makes a journal of twelve texts that nobody owns, and returns its lines.
func small(t testing.TB, f Fixture, c *journal.Container, id string) (lines [][]byte) {
	t.Helper()
	if f.Change == nil {
		t.Skip("it cannot be damaged")
	}
	w := create(t, c, id)
	appendTexts(t, w, upTo(12)...)
	release(t, w)
	f.Change(t, id, func(all [][]byte) [][]byte {
		lines = all
		return all
	})
	return lines
}

func upTo(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprint("text ", i))
	}
	return texts
}

// readTexts returns the texts that can be read, and what is damaged.
func readTexts(t testing.TB, c *journal.Container, id string) (texts []string, damage *journal.DamageError) {
	t.Helper()
	err := c.Read(t.Context(), id, 0, func(r *journal.Record) error {
		if r.Kind == journal.KindUpdate {
			texts = append(texts, text(r))
		}
		return nil
	})
	if damage, ok := errors.AsType[*journal.DamageError](err); ok {
		return texts, damage
	} else if err != nil {
		t.Fatal(err)
	}
	return texts, nil
}

// testFlipped flips bits: nothing but the record with the bit is missing, and is named; the next owner continues behind it
// and loses nothing more.
func testFlipped(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	lines := small(t, f, c, "s")
	data := bytes.Join(lines, []byte("\n"))
	random := rand.New(rand.NewPCG(1, 2))
	times := 60
	if long.All() {
		times = 2000
	}
	for range times {
		at, bit := random.IntN(len(data)), random.IntN(8)
		broken := bytes.Clone(data)
		broken[at] ^= 1 << bit
		f.Change(t, "s", func([][]byte) [][]byte { return [][]byte{broken} })
		hit, end := 0, 0 // the record with the byte; the end of its line belongs to it
		for end+len(lines[hit])+1 <= at {
			end += len(lines[hit]) + 1
			hit++
		}
		got, damage := readTexts(t, c, "s")
		less := upTo(12)
		if hit > 0 {
			less = slices.Delete(less, hit-1, hit)
		}
		what := fmt.Sprintf("bit %d of byte %d, in record %d", bit, at, hit+1)
		switch {
		case slices.Equal(got, less) && damage != nil && slices.Equal(damage.Lost, []journal.Range{{From: uint64(hit + 1), To: uint64(hit + 1)}}) && !damage.Altered:
		case slices.Equal(got, upTo(12)) && damage == nil: // the end of a line, or a number that the hash tells
		default:
			t.Fatalf("%s: %q, %v", what, got, damage)
		}
		w := own(t, c, "s")
		appendTexts(t, w, "new")
		release(t, w)
		after, damage := readTexts(t, c, "s")
		if !slices.Equal(after, append(got, "new")) || damage != nil && damage.Altered {
			t.Fatalf("%s, gone on with: %q, %v", what, after, damage)
		}
	}
}

// testExchanged: records that are whole but not where they were are noticed, by whoever reads, follows or owns.
func testExchanged(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	lines, foreign := small(t, f, c, "s"), small(t, f, c, "other")
	for what, list := range map[string][][]byte{
		"one missing":  slices.Concat(lines[:5], lines[6:]),
		"one twice":    slices.Concat(lines[:5], lines[4:]),
		"two swapped":  slices.Concat(lines[:4], [][]byte{lines[5], lines[4]}, lines[6:]),
		"another's":    slices.Concat(lines[:1], foreign[1:2], lines[2:]),
		"a line more":  slices.Concat(lines[:5], [][]byte{[]byte("{}")}, lines[5:]),
		"no beginning": lines[3:],
		"zeros":        slices.Concat(lines[:5], [][]byte{make([]byte, 3*len(lines[5]))}, lines[6:]),
		"bad ends":     slices.Concat(lines[:5], [][]byte{lines[5][:30], lines[6][:30], lines[7][:30], lines[8][:150], lines[9][:31]}),
	} {
		f.Change(t, "s", func([][]byte) [][]byte { return list })
		got, damage := readTexts(t, c, "s")
		if harmless := what == "a line more"; (damage == nil) != harmless {
			t.Errorf("%s: %v", what, damage)
		} else if damage != nil && (!strings.Contains(damage.Error(), "s: ") || damage.Records() == 0 && !damage.Altered) {
			t.Errorf("%s: it says %v", what, damage)
		}
		if len(got) < 4 {
			t.Errorf("%s: only %q can be read", what, got)
		}
		seen := 0
		for _, err := range c.Follow(t.Context(), "s", 0) {
			if errors.As(err, new(*journal.DamageError)) {
				break // it comes after what can be read
			} else if err != nil {
				t.Errorf("%s: %v", what, err)
			} else if seen++; damage == nil && seen == 13 {
				break
			}
		}
		if damage != nil && seen < len(got) {
			t.Errorf("%s: %d records before the damage, %d can be read", what, seen, len(got))
		}
		w := own(t, c, "s")
		if found := w.Damage(); (found != nil) != (damage != nil) {
			t.Errorf("%s: the owner finds %v", what, found)
		}
		appendTexts(t, w, "new")
		release(t, w)
		if after, _ := readTexts(t, c, "s"); !slices.Equal(after, append(got, "new")) {
			t.Errorf("%s: %q, gone on with: %q", what, got, after)
		}
	}
}

// testGapDamage: damage to a gap costs what it stands for.
func testGapDamage(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	small(t, f, c, "s")
	w := own(t, c, "s")
	if err := w.Compact(t.Context(), gap(3, 5, "abc")); err != nil {
		t.Fatal(err)
	}
	release(t, w)
	f.Change(t, "s", func(lines [][]byte) [][]byte {
		lines[2] = bytes.Replace(lines[2], []byte("abc"), []byte("xyz"), 1)
		return lines
	})
	got, damage := readTexts(t, c, "s")
	if want := slices.Delete(upTo(12), 1, 4); !slices.Equal(got, want) || damage == nil || !slices.Equal(damage.Lost, []journal.Range{{From: 3, To: 5}}) {
		t.Errorf("%q, %v", got, damage)
	}
	w = own(t, c, "s")
	err := w.Compact(t.Context(), gap(7, 8, ""))
	if !errors.As(err, new(*journal.DamageError)) {
		t.Errorf("what is damaged was compacted: %v", err)
	}
	release(t, w)
}

// testPositions: what follows a position is found in a large journal, damaged or not.
func testPositions(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	w := create(t, c, "s")
	const records = 4000
	var texts []string
	for i := range records - 1 {
		texts = append(texts, fmt.Sprint(i+2, strings.Repeat(" long", 60)))
	}
	appendTexts(t, w, texts...)
	release(t, w)
	stop := errors.New("stop")
	random := rand.New(rand.NewPCG(1, 2))
	check := func(what string, after uint64) {
		t.Helper()
		next := after
		err := c.Read(t.Context(), "s", after, func(r *journal.Record) error {
			if next = r.Seq; r.Seq < after+10 {
				return nil
			}
			return stop
		})
		if next < after+1 || next > after+11 || err != stop {
			t.Fatalf("%s, after %d: up to %d, %v", what, after, next, err)
		}
	}
	for range 50 {
		check("whole", random.Uint64N(records-11))
	}
	if f.Change == nil {
		return
	}
	for n := range 20 {
		f.Change(t, "s", func(lines [][]byte) [][]byte {
			if n == 0 {
				lines[1000] = []byte(`{"seq":7,"epoch":1,"hash":"`) // a number that misleads
				lines[2000] = []byte(`{"seq":9999999,"epoch":1,"hash":"`)
			}
			at := random.IntN(len(lines)-1) + 1
			lines[at] = bytes.Replace(lines[at], []byte(`{"seq":`), []byte(`{"seq":`+fmt.Sprint(random.IntN(3))), 1)
			return lines
		})
		for _, after := range []uint64{1, 999, 1000, 1001, 1002, 1999, 2000, 2001, 2100, 3900, random.Uint64N(records - 11)} {
			check(fmt.Sprint("damaged ", n), after)
		}
	}
}

// testWitness: what somebody has noted elsewhere is missed.
func testWitness(t *testing.T, f Fixture) {
	var seen journal.Head
	witness := func(_ context.Context, id string) (journal.Head, bool) { return seen, id == "s" }
	c := open(t, f.Open(t), journal.Options{Witness: witness})
	small(t, f, c, "s")
	all, err := read(t, c, "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all { // it may be behind
		seen = journal.Head{Seq: r.Seq, Hash: r.Hash}
		if _, err := read(t, c, "s", 0); err != nil {
			t.Error(err)
		}
	}
	f.Change(t, "s", func(lines [][]byte) [][]byte { return lines[:10] })
	got, damage := readTexts(t, c, "s")
	if len(got) != 9 || damage == nil || damage.Missing != 3 || damage.Altered {
		t.Errorf("%d texts, %v", len(got), damage)
	}
	w := own(t, c, "s")
	if found := w.Damage(); found == nil || found.Missing != 3 {
		t.Errorf("the owner finds %v", found)
	}
	appendTexts(t, w, "a", "b", "c", "d")
	release(t, w)
	if _, damage := readTexts(t, c, "s"); damage == nil || damage.Missing != 0 || !damage.Altered {
		t.Errorf("after it was continued: %v", damage)
	}
}
