package store

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/long"
)

// small makes the log of a small conversation, and returns its bytes and those of the lines.
func small(t *testing.T, s *Store) (id string, data []byte, lines [][]byte) {
	t.Helper()
	var events []Event
	for i := range 12 {
		events = append(events, chunk("agent", fmt.Sprint("m", i), fmt.Sprintf("text %d.", i)))
	}
	id = write(t, s, Session{Key: key, Title: "small"}, events...)
	data, err := os.ReadFile(filepath.Join(s.dir, logName(id, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return id, data, bytes.SplitAfter(data[:len(data)-1], []byte("\n"))
}

// texts reads what is there of a small conversation.
func smallTexts(t *testing.T, s *Store, id string) (got []int, damage *Damage) {
	t.Helper()
	said, damage := messages(t, s, id)
	for _, text := range said {
		var n int
		if _, err := fmt.Sscanf(text, "agent: text %d.", &n); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got = append(got, n)
	}
	return got, damage
}

func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// TestTruncated cuts a log after each of its bytes: all whole records before that are there, and a
// writer goes on behind them.
func TestTruncated(t *testing.T) {
	s := openTest(t, t.TempDir())
	id, data, lines := small(t, s)
	name := filepath.Join(s.dir, logName(id, 1))
	every := 1
	if !long.All() {
		every = 11
	}
	for n := 0; n < len(data); n += every {
		if err := os.WriteFile(name, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		whole, end := 0, 0
		for _, l := range lines {
			if end+len(bytes.TrimRight(l, "\n")) > n {
				break
			}
			whole, end = whole+1, end+len(l)
		}
		want := upTo(max(whole-1, 0)) // the first record says what the conversation is
		got, damage := smallTexts(t, s, id)
		if !slices.Equal(got, want) {
			t.Fatalf("after %d bytes: %v, want %v", n, got, want)
		}
		cut := n > 0 && end != n && end-1 != n
		if (damage != nil && damage.CutOff) != cut || damage != nil && len(damage.Lost) > 0 {
			t.Fatalf("after %d bytes: damage %+v, want cut off %v", n, damage, cut)
		}
		if n%7 != 0 {
			continue
		}
		write(t, s, Session{Conversation: id, Key: key}, chunk("agent", "new", "text 99."))
		if got, damage := smallTexts(t, s, id); !slices.Equal(got, append(want, 99)) || damage != nil {
			t.Fatalf("after %d bytes, gone on with: %v, %v", n, got, damage)
		}
	}
}

// TestFlipped flips bits of a log: nothing but the record with the bit is missing, and it is named.
func TestFlipped(t *testing.T) {
	s := openTest(t, t.TempDir())
	id, data, lines := small(t, s)
	name := filepath.Join(s.dir, logName(id, 1))
	random := rand.New(rand.NewPCG(1, 2))
	times := 400
	if !long.All() {
		times = 40
	}
	for range times {
		at, bit := random.IntN(len(data)), random.IntN(8)
		broken := bytes.Clone(data)
		broken[at] ^= 1 << bit
		if err := os.WriteFile(name, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		hit, end := 0, 0 // the record with the byte; its end of line belongs to it
		for end+len(lines[hit]) <= at {
			end += len(lines[hit])
			hit++
		}
		got, damage := smallTexts(t, s, id)
		all := upTo(12)
		less := slices.Clone(all)
		if hit > 0 {
			less = slices.Delete(less, hit-1, hit)
		}
		named := damage != nil && slices.Equal(damage.Lost, []Loss{{1, int64(hit + 1), int64(hit + 1)}})
		switch {
		case slices.Equal(got, less) && (named || damage != nil && hit == len(lines)-1 && damage.CutOff):
		case slices.Equal(got, all) && !named && (damage == nil || !damage.Altered):
			// The end of a line, or the case of a letter in a hash.
		default:
			t.Fatalf("bit %d of byte %d, in record %d: %v, %+v", bit, at, hit+1, got, damage)
		}
		if v, err := s.Session(t.Context(), id); err != nil || v.ID == "" {
			t.Fatalf("bit %d of byte %d: %+v, %v", bit, at, v, err)
		}
		// A writer goes on behind it, and loses nothing more.
		write(t, s, Session{Conversation: id, Key: key}, chunk("agent", "new", "text 99."))
		after, damage := smallTexts(t, s, id)
		if !slices.Equal(after, append(got, 99)) || damage != nil && damage.Altered {
			t.Fatalf("bit %d of byte %d, gone on with: %v, %+v", bit, at, after, damage)
		}
	}
}

// TestExchanged: records that are whole but not where they were are noticed.
func TestExchanged(t *testing.T) {
	s := openTest(t, t.TempDir())
	id, _, lines := small(t, s)
	name := filepath.Join(s.dir, logName(id, 1))
	other := write(t, s, Session{Key: key}, chunk("agent", "m", "text 50."), chunk("agent", "m", "text 51."))
	foreign, err := os.ReadFile(filepath.Join(s.dir, logName(other, 1)))
	if err != nil {
		t.Fatal(err)
	}
	theirs := bytes.SplitAfter(foreign, []byte("\n"))
	for what, list := range map[string][][]byte{
		"one missing": slices.Concat(lines[:5], lines[6:]),
		"one twice":   slices.Concat(lines[:5], lines[4:]),
		"two swapped": slices.Concat(lines[:4], [][]byte{lines[5], lines[4]}, lines[6:]),
		"another's":   slices.Concat(lines[:1], [][]byte{theirs[1]}, lines[2:]),
		"a line more": slices.Concat(lines[:5], [][]byte{[]byte("{}\n")}, lines[5:]),
	} {
		if err := os.WriteFile(name, append(bytes.Join(list, nil), '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		_, damage := messages(t, s, id)
		if (damage == nil) != (what == "a line more") {
			t.Errorf("%s: %+v", what, damage)
		}
	}
}

func TestDamageString(t *testing.T) {
	d := &Damage{CutOff: true}
	d.lost(1, 3, 3)
	d.lost(1, 4, 6)
	d.lost(2, 7, 7)
	want := "5 records are damaged and left out (3-6, 2:7); the last record was cut off"
	if got := d.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestParts: a second writer has a file of its own, and nothing of either is lost or mixed up.
func TestParts(t *testing.T) {
	s := openTest(t, t.TempDir())
	add := func(r *Recorder, e Event) {
		r.Append(e)
		if err := r.Sync(t.Context()); err != nil { // a slow disk must not change who was first
			t.Fatal(err)
		}
	}
	first := s.Record(Session{Key: key}, RecordOptions{})
	id := first.Conversation()
	add(first, chunk("user", "1", "one"))
	second := s.Record(Session{Key: key, Conversation: id}, RecordOptions{})
	add(second, chunk("agent", "2", "two "))
	add(first, chunk("agent", "3", "three "))
	add(second, chunk("agent", "2", "more"))
	add(first, chunk("agent", "3", "more"))
	for _, r := range []*Recorder{first, second} {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"user: one", "agent: two more", "agent: three more"}
	if got, damage := messages(t, s, id); !cmp.Equal(got, want) || damage != nil {
		t.Errorf("%q, %v", got, damage)
	}
	if v, err := s.Session(t.Context(), id); err != nil || v.Events != 5 {
		t.Errorf("%+v, %v", v, err)
	}
	found, err := s.List(t.Context(), Query{Text: "two three"})
	if err != nil || len(found) != 1 || found[0].Events != 5 {
		t.Errorf("%+v, %v", found, err)
	}
	write(t, s, Session{Key: key, Conversation: id}, Event{Kind: EventTurn})
	logs, err := filepath.Glob(filepath.Join(s.dir, "*"+suffix))
	if err != nil || len(logs) != 2 {
		t.Errorf("logs %q, %v", logs, err)
	}
	if err := s.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if logs, err = filepath.Glob(filepath.Join(s.dir, "*"+suffix)); err != nil || len(logs) != 0 {
		t.Errorf("left %q, %v", logs, err)
	}
}

// TestModes: what the store makes can be read by its owner only, through links, too.
func TestModes(t *testing.T) {
	base := t.TempDir()
	links := filepath.Join(base, "links")
	if err := os.Symlink(filepath.Join(base, "far", "away"), links); err != nil {
		t.Skip(err)
	}
	s := openTest(t, links)
	if err := os.Symlink(filepath.Join(base, "far", "elsewhere.db"), filepath.Join(links, indexName)); err != nil {
		t.Fatal(err)
	}
	write(t, s, Session{Key: key}, Event{Kind: EventTurn})
	if found, err := s.List(t.Context(), Query{}); err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	seen := 0
	err := filepath.WalkDir(filepath.Join(base, "far"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		seen++
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", strings.TrimPrefix(name, base), info.Mode())
		}
		return err
	})
	if err != nil || seen < 5 {
		t.Errorf("%d files, %v", seen, err)
	}
}

func FuzzLog(f *testing.F) {
	e := chunk("agent", "m", "text")
	one, sum := appendLine(nil, &e, 1, 1, root("abcdefghijklmnop", 1))
	two, _ := appendLine(nil, &Event{Kind: EventTurn, Ref: "x"}, 2, 3, sum)
	f.Add(one)
	f.Add(slices.Concat(one, two))
	f.Add(slices.Concat(one[:len(one)-1], []byte{'J'}, two))
	f.Add(slices.Concat(one, one[:20], two, two[:50]))
	f.Fuzz(func(t *testing.T, data []byte) {
		damage := new(Damage)
		// In pieces of any size the same is read.
		var got []record
		for _, size := range []int{1 << 20, 7} {
			var list []record
			scan := newScanner(&pieces{data, size}, 1, place{Hash: root("abcdefghijklmnop", 1)}, damage)
			for rec, ok := scan.next(); ok; rec, ok = scan.next() {
				if n := len(list); n > 0 && rec.Seq <= list[n-1].Seq {
					t.Fatalf("record %d after %d", rec.Seq, list[n-1].Seq)
				}
				rec.Data = bytes.Clone(rec.Data)
				list = append(list, rec)
			}
			if scan.at.Offset > int64(len(data)) {
				t.Fatalf("at %d of %d", scan.at.Offset, len(data))
			}
			if got != nil && len(got) != len(list) {
				t.Fatalf("%d records, or %d", len(got), len(list))
			}
			got = list
		}
		_ = damage.String()
		// Whatever is there, a writer goes on behind it.
		s := &Store{dir: t.TempDir(), files: System{}, normal: true}
		id := "abcdefghijklmnop"
		if err := os.WriteFile(filepath.Join(s.dir, logName(id, 1)), data, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := openLog(s.files, s.dir, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.append([]Event{{Kind: EventTurn, Ref: "last"}}); err != nil {
			t.Fatal(err)
		}
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
		n, last := 0, ""
		if _, err := s.read(t.Context(), id, func(e *Event) bool { n++; last = e.Ref; return true }); err != nil {
			t.Fatal(err)
		}
		if n < len(got)+1 && last != "last" || last != "last" {
			t.Fatalf("%d records before, %d with another, the last is %q", len(got), n, last)
		}
	})
}

// pieces is a reader that returns so many bytes at once.
type pieces struct {
	data []byte
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	n := copy(b[:min(len(b), p.n)], p.data)
	p.data = p.data[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
