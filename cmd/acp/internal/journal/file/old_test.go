package file

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/internal/long"
)

// oldID is the conversation in testdata/old, which commit 51d05fd has written: two recorders had it open at the same time.
const oldID = "oldconversation2"

// copyOld copies that conversation into a directory.
func copyOld(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "old"))))
	return dir
}

// oldTexts returns the records of a journal, each as a line.
func oldTexts(t testing.TB, c *journal.Container, id string) (all []string, damage *journal.DamageError) {
	t.Helper()
	err := c.Read(t.Context(), id, 0, func(r *journal.Record) error {
		all = append(all, fmt.Sprintf("%d %s %s %s", r.Seq, r.At.UTC().Format("05.000"), r.Kind, r.Data))
		return nil
	})
	if d, ok := errors.AsType[*journal.DamageError](err); ok {
		return all, d
	}
	must(t, err)
	return all, nil
}

// TestOld: a conversation of format 1 is read like a journal, and is one from the moment somebody owns it: with the same
// records, by the times of both parts.
func TestOld(t *testing.T) {
	dir := copyOld(t)
	c := Open(dir, Options{})
	defer c.Close()
	golden, err := os.ReadFile(filepath.Join("testdata", "old.golden"))
	must(t, err)
	want := strings.Split(strings.TrimSuffix(string(golden), "\n"), "\n")
	before, damage := oldTexts(t, c, oldID)
	if diff := cmp.Diff(want, before); diff != "" || damage != nil {
		t.Fatalf("damage %v, %s", damage, diff)
	}
	size := int64(0)
	must(t, c.List(t.Context(), func(id string, n int64) bool {
		if id != oldID {
			t.Errorf("listed: %s", id)
		}
		size += n
		return true
	}))
	if size == 0 {
		t.Error("it is not listed")
	}
	if is, err := c.Computed(t.Context(), oldID); !is || err != nil {
		t.Errorf("computed: %v, %v", is, err)
	}
	h, err := c.Head(t.Context(), oldID)
	must(t, err)
	w, err := c.Own(t.Context(), oldID, nil)
	must(t, err)
	if w.Head() != h || w.Damage() != nil {
		t.Errorf("the head was %v and is %v, damage %v", h, w.Head(), w.Damage())
	}
	must(t, texts(t, w, journal.KindUpdate, "more"))
	must(t, w.Release(t.Context()))
	if is, err := c.Computed(t.Context(), oldID); is || err != nil {
		t.Errorf("computed afterwards: %v, %v", is, err)
	}
	if _, err := c.Computed(t.Context(), "nobody"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("computed: %v", err)
	}
	after, damage := oldTexts(t, c, oldID)
	if diff := cmp.Diff(want, after[:len(after)-1]); diff != "" || damage != nil {
		t.Errorf("damage %v, %s", damage, diff)
	}
	// It has a record of an unknown kind, which the journal does not have.
	if diff := cmp.Diff([]string{oldID + ".1.old", oldID + ".2.old", oldID + suffix}, names(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestOldInterrupted: a part that was left when its conversation became a journal is not read again, and is deleted with it.
func TestOldInterrupted(t *testing.T) {
	dir := copyOld(t)
	part := filepath.Join(dir, oldID+".2"+suffix)
	second, err := os.ReadFile(part)
	must(t, err)
	c := Open(dir, Options{})
	defer c.Close()
	w, err := c.Own(t.Context(), oldID, nil)
	must(t, err)
	must(t, w.Release(t.Context()))
	want, _ := oldTexts(t, c, oldID)
	must(t, os.WriteFile(part, second, 0o600))
	if got, damage := oldTexts(t, c, oldID); !slices.Equal(got, want) || damage != nil {
		t.Errorf("%d records, there were %d, damage %v", len(got), len(want), damage)
	}
	must(t, c.List(t.Context(), func(id string, _ int64) bool {
		if id != oldID {
			t.Errorf("listed: %s", id)
		}
		return true
	}))
	must(t, c.Delete(t.Context(), oldID))
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}

// TestOldOwner: while an earlier version of the program writes one of the parts, nobody can own the conversation.
func TestOldOwner(t *testing.T) {
	for _, name := range []string{oldID, oldID + ".2"} {
		dir := copyOld(t)
		c := Open(dir, Options{})
		defer c.Close()
		f, err := os.OpenFile(filepath.Join(dir, name+suffix), os.O_RDWR, 0)
		must(t, err)
		defer f.Close()
		if ok, err := filelock.TryLock(f, true); !ok || err != nil {
			t.Skip("files cannot be locked here")
		}
		if _, owned, err := c.Owner(t.Context(), oldID); !owned || err != nil {
			t.Errorf("%s: owned %v, %v", name, owned, err)
		}
		if _, err := c.Own(t.Context(), oldID, nil); !errors.As(err, new(*journal.OwnedError)) || !strings.Contains(err.Error(), "earlier version") {
			t.Errorf("%s: %v", name, err)
		}
		must(t, f.Close())
		if _, owned, err := c.Owner(t.Context(), oldID); owned || err != nil {
			t.Errorf("%s: afterwards owned %v, %v", name, owned, err)
		}
		w, err := c.Own(t.Context(), oldID, nil)
		must(t, err)
		must(t, w.Release(t.Context()))
	}
}

// TestOldDamage: damage to a line costs its record, before and after the conversation becomes a journal.
func TestOldDamage(t *testing.T) {
	whole := copyOld(t)
	c := Open(whole, Options{})
	all, _ := oldTexts(t, c, oldID)
	must(t, c.Close())
	split := func(data []byte) [][]byte {
		lines := bytes.SplitAfter(data, []byte("\n"))
		return lines[:len(lines)-1]
	}
	for what, change := range map[string]func(lines [][]byte) [][]byte{
		"a byte": func(l [][]byte) [][]byte { l[2][len(l[2])-5] ^= 1; return l },
		"its hash": func(l [][]byte) [][]byte {
			l[2] = bytes.Replace(l[2], []byte(`"hash":"`), []byte(`"hash":"f`), 1)
			return l
		},
		"no line":    func(l [][]byte) [][]byte { l[2] = []byte("x\n"); return l },
		"missing":    func(l [][]byte) [][]byte { return append(l[:2], l[3:]...) },
		"its end":    func(l [][]byte) [][]byte { l[2][len(l[2])-1] = 'x'; return l },
		"the first":  func(l [][]byte) [][]byte { l[0][30] ^= 1; return l },
		"twice":      func(l [][]byte) [][]byte { return slices.Insert(l, 3, bytes.Clone(l[2])) },
		"torn":       func(l [][]byte) [][]byte { l[len(l)-1] = l[len(l)-1][:50]; return l },
		"a line too": func(l [][]byte) [][]byte { return slices.Insert(l, 3, []byte("{}\n")) },
	} {
		dir := copyOld(t)
		name := filepath.Join(dir, oldID+suffix)
		data, err := os.ReadFile(name)
		must(t, err)
		must(t, os.WriteFile(name, bytes.Join(change(split(data)), nil), 0o600))
		c := Open(dir, Options{})
		before, damage := oldTexts(t, c, oldID)
		if n := len(all) - len(before); n > 1 || n == 1 && damage == nil && what != "torn" || n == 0 && damage != nil {
			t.Errorf("%s: %d of %d records, damage %v", what, len(before), len(all), damage)
		}
		w, err := c.Own(t.Context(), oldID, nil)
		must(t, err)
		must(t, w.Release(t.Context()))
		if after, again := oldTexts(t, c, oldID); !slices.Equal(after, before) || (again == nil) != (damage == nil) {
			t.Errorf("%s: %d records, there were %d; damage %v, it was %v", what, len(after), len(before), again, damage)
		}
		must(t, c.Close())
	}
}

// formatOld returns a line of format 1, and its hash.
func formatOld(seq, epoch uint64, prev [16]byte, record string) (line string, hash [16]byte) {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(prev[:16:16], seq), epoch))
	h.Write([]byte(record))
	hash = [16]byte(h.Sum(nil))
	return fmt.Sprintf("{\"seq\":%d,\"epoch\":%d,\"prev\":\"%x\",\"hash\":\"%x\",\"record\":%s}\n", seq, epoch, prev, hash, record), hash
}

// writeOld writes a part of a conversation of format 1 with records, and returns its text.
func writeOld(t testing.TB, dir, id string, n int, records ...string) (text string) {
	t.Helper()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s.%d", id, n))
	hash := [16]byte(sum[:])
	for i, r := range records {
		var line string
		line, hash = formatOld(uint64(i+1), 1, hash, r)
		text += line
	}
	name := id
	if n > 1 {
		name = fmt.Sprintf("%s.%d", id, n)
	}
	must(t, os.WriteFile(filepath.Join(dir, name+suffix), []byte(text), 0o600))
	return text
}

const (
	oldSession = `{"at":"2026-01-02T03:04:05Z","kind":"session","data":{"format":1,"agent":"a"}}`
	oldTurn    = `{"at":"2026-01-02T03:04:07Z","kind":"turn","data":{"said":"MARK"}}`
)

// takeOver makes a journal of a conversation of format 1.
func takeOver(t testing.TB, dir, id string) {
	t.Helper()
	c := Open(dir, Options{})
	defer c.Close()
	w, err := c.Own(t.Context(), id, nil)
	must(t, err)
	must(t, w.Release(t.Context()))
}

// names returns the names in a directory.
func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range list {
		all = append(all, e.Name())
	}
	return all
}

// TestOldFirst: a damaged byte in the first line costs one record.
func TestOldFirst(t *testing.T) {
	all, _ := oldTexts(t, Open(copyOld(t), Options{}), oldID)
	for at := range 121 {
		dir := copyOld(t)
		name := filepath.Join(dir, oldID+suffix)
		data, err := os.ReadFile(name)
		must(t, err)
		data[at] ^= 1
		must(t, os.WriteFile(name, data, 0o600))
		got, damage := oldTexts(t, Open(dir, Options{}), oldID)
		if len(got) < len(all)-1 || len(got) < len(all) && damage == nil {
			t.Errorf("byte %d: %d of %d records, damage %v", at, len(got), len(all), damage)
		}
		takeOver(t, dir, oldID)
	}
}

// TestOldContent: what format 1 allowed and a journal does not is read all the same.
func TestOldContent(t *testing.T) {
	for record, want := range map[string]string{
		`{"at":"2026-01-02T03:04:05Z","kind":"session","data":null}`:             `2026-01-02T03:04:05Z session {"format":3}`,
		`{"at":"9999-12-31T23:00:00-12:00","kind":"turn","data":{}}`:             `1970-01-01T00:00:00Z end {}`,
		`{"at":"0000-01-01T00:00:00+12:00","kind":"turn","data":{}}`:             `1970-01-01T00:00:00Z end {}`,
		`{"at":"2026-01-02T03:04:05Z","kind":"dream","data":{"of":"sheep"}}`:     `2026-01-02T03:04:05Z lost {"kind":"dream","bytes":14}`,
		`{"at":"2026-01-02T03:04:05Z","kind":"lost","data":{"kind":"x"}}`:        `2026-01-02T03:04:05Z lost {"kind":"x"}`,
		`{"at":"2026-01-02T03:04:05Z","kind":"asked","ref":"1","data":{"a":1}}`:  `2026-01-02T03:04:05Z asked {"id":"1","request":{"a":1}}`,
		`{"at":"2026-01-02T03:04:05Z","kind":"session","data":[{"format":1},2]}`: `2026-01-02T03:04:05Z session [{"format":1},2]`,
	} {
		dir := t.TempDir()
		writeOld(t, dir, "s", 1, record)
		c := Open(dir, Options{})
		var got string
		must(t, c.Read(t.Context(), "s", 0, func(r *journal.Record) error {
			got = fmt.Sprintf("%s %s %s", r.At.UTC().Format(time.RFC3339), r.Kind, r.Data)
			return nil
		}))
		if got != want {
			t.Errorf("%s: %s, want %s", record, got, want)
		}
		must(t, c.Close())
	}
}

// TestOldKept: what of a conversation does not become a part of its journal is kept beside it, and deleted with it.
func TestOldKept(t *testing.T) {
	const id = "s"
	for what, test := range map[string]struct {
		make func(dir string)
		want []string // the names
		n    int      // records that are sound
	}{
		"whole":      {func(string) {}, []string{"s.jsonl"}, 4},
		"no end":     {func(dir string) { cutOld(t, dir, 1) }, []string{"s.jsonl"}, 4},
		"torn":       {func(dir string) { cutOld(t, dir, 9) }, []string{"s.1.old", "s.2.old", "s.jsonl"}, 3},
		"damaged":    {func(dir string) { changeOld(t, dir) }, []string{"s.1.old", "s.2.old", "s.jsonl"}, 3},
		"a part":     {func(dir string) { must(t, os.Remove(dir+"/s.2.jsonl")); writeOld(t, dir, id, 7, oldSession) }, []string{"s.1.old", "s.7.old", "s.jsonl"}, 3},
		"other kind": {func(dir string) { writeOld(t, dir, id, 2, `{"at":"2026-01-02T03:04:05Z","kind":"dream","data":1}`) }, []string{"s.1.old", "s.2.old", "s.jsonl"}, 3},
	} {
		dir := t.TempDir()
		writeOld(t, dir, id, 1, oldSession, oldTurn)
		writeOld(t, dir, id, 2, oldSession, oldTurn)
		test.make(dir)
		first, err := os.ReadFile(filepath.Join(dir, "s.jsonl"))
		must(t, err)
		takeOver(t, dir, id)
		if diff := cmp.Diff(test.want, names(t, dir)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		if was, err := os.ReadFile(filepath.Join(dir, "s.1.old")); len(test.want) > 1 && (err != nil || !bytes.Equal(was, first)) {
			t.Errorf("%s: the first part is not what it was: %v", what, err)
		}
		c := Open(dir, Options{})
		if got, _ := oldTexts(t, c, id); len(got) != test.n {
			t.Errorf("%s: %q, want %d records", what, got, test.n)
		}
		must(t, c.Delete(t.Context(), id))
		must(t, c.Close())
		if left := names(t, dir); len(left) > 0 {
			t.Errorf("%s: left: %q", what, left)
		}
	}
}

// TestOldListed: a reader finds all parts, also after a list: those behind a number that is missing, and new ones.
func TestOldListed(t *testing.T) {
	dir := t.TempDir()
	looked := 0
	c := Open(dir, Options{Disk: &hookDisk{dir: func() { looked++ }}})
	defer c.Close()
	check := func(want int) {
		t.Helper()
		if got, damage := oldTexts(t, c, "s"); len(got) != want || damage != nil {
			t.Errorf("%d records, want %d, damage %v", len(got), want, damage)
		}
	}
	for _, n := range []int{1, 2, 7} {
		writeOld(t, dir, "s", n, oldSession)
	}
	check(3)
	must(t, c.List(t.Context(), func(string, int64) bool { return true }))
	before := looked
	check(3)
	for n := range 3 {
		writeOld(t, dir, "s", 8+n, oldSession)
		check(4 + n)
	}
	if looked != before {
		t.Errorf("the directory was read %d times after the list", looked-before)
	}
}

// cutOld removes the end of the second part.
func cutOld(t *testing.T, dir string, n int) {
	t.Helper()
	name := filepath.Join(dir, "s.2.jsonl")
	data, err := os.ReadFile(name)
	must(t, err)
	must(t, os.WriteFile(name, data[:len(data)-n], 0o600))
}

// changeOld damages a byte of the last record of the second part.
func changeOld(t *testing.T, dir string) {
	t.Helper()
	name := filepath.Join(dir, "s.2.jsonl")
	data, err := os.ReadFile(name)
	must(t, err)
	data[len(data)-9] ^= 1
	must(t, os.WriteFile(name, data, 0o600))
}

// TestOldLarge: a record that is too large for a journal leaves its size.
func TestOldLarge(t *testing.T) {
	short := oldRecord{At: time.Unix(1, 0), Kind: "turn", large: 1 << 30}
	if r, err := short.renewed("s", journal.Head{}); err != nil || r.Kind != journal.KindLost || string(r.Data) != `{"kind":"end","bytes":1073741824}` {
		t.Errorf("%s %s, %v", r.Kind, r.Data, err)
	}
	long.Test(t)
	dir := t.TempDir()
	data := `{"sessionUpdate":"user_message","x":"` + strings.Repeat("x", journal.MaxRecord) + `"}`
	writeOld(t, dir, "s", 1, oldSession, `{"at":"2026-01-02T03:04:06Z","kind":"update","data":`+data+`}`, oldTurn)
	takeOver(t, dir, "s")
	c := Open(dir, Options{})
	defer c.Close()
	got, damage := oldTexts(t, c, "s")
	want := fmt.Sprintf(`2 06.000 lost {"kind":"update","bytes":%d}`, len(data))
	if damage != nil || len(got) != 3 || got[1] != want {
		t.Errorf("%q, damage %v, want %s", got, damage, want)
	}
	if diff := cmp.Diff([]string{"s.1.old", "s.jsonl"}, names(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestOldMany: a conversation of more parts than may be open at once is read and taken over.
func TestOldMany(t *testing.T) {
	dir := t.TempDir()
	for n := range 3 * maxOpen {
		writeOld(t, dir, "s", n+1, oldSession, oldTurn)
	}
	d := &hookDisk{}
	c := Open(dir, Options{Disk: d})
	defer c.Close()
	before, damage := oldTexts(t, c, "s")
	if len(before) != 6*maxOpen || damage != nil {
		t.Errorf("%d records, damage %v", len(before), damage)
	}
	if _, owned, err := c.Owner(t.Context(), "s"); owned || err != nil {
		t.Error(owned, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "s.96.jsonl"), os.O_RDWR, 0)
	must(t, err)
	if ok, err := filelock.TryLock(f, true); ok && err == nil {
		if _, owned, err := c.Owner(t.Context(), "s"); !owned || err != nil {
			t.Error(owned, err)
		}
		if _, err := c.Own(t.Context(), "s", nil); !errors.As(err, new(*journal.OwnedError)) {
			t.Error(err)
		}
	}
	must(t, f.Close())
	w, err := c.Own(t.Context(), "s", nil)
	must(t, err)
	must(t, w.Release(t.Context()))
	if after, damage := oldTexts(t, c, "s"); !slices.Equal(after, before) || damage != nil {
		t.Errorf("%d records, damage %v", len(after), damage)
	}
	if left := names(t, dir); len(left) != 1 || d.files.Load() != 0 || d.most.Load() > maxOpen+2 {
		t.Errorf("left: %q; %d files are open, %d were", left, d.files.Load(), d.most.Load())
	}
}

// FuzzOld has anything read and continued as a conversation of format 1.
func FuzzOld(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "old", oldID+suffix))
	must(f, err)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add(bytes.Replace(data, []byte(`"epoch":1`), []byte(`"epoch":18446744073709551615`), 2))
	f.Add(bytes.Replace(data, []byte(`{"seq":2`), []byte(`{"seq":9007199254740991`), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		name := filepath.Join(dir, "s"+suffix)
		must(t, os.WriteFile(name, data, 0o600))
		c := Open(dir, Options{})
		defer c.Close()
		before, _ := read(t, c, "s")
		w, err := c.Own(t.Context(), "s", nil)
		if err != nil {
			return // neither of this nor of that format
		}
		if err := texts(t, w, journal.KindPrompt, "new"); err != nil {
			t.Fatal(err)
		}
		must(t, w.Release(t.Context()))
		after, _ := read(t, c, "s")
		if len(after) == 0 || after[len(after)-1] != "new" || len(before) > len(after) {
			t.Errorf("%q, continued as %q", before, after)
		}
	})
}
