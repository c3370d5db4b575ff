package file

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
	"github.com/goacp/acp/cmd/acp/internal/journal"
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

// texts1 returns the records of a journal, each as a line.
func texts1(t testing.TB, c *journal.Container, id string) (all []string, damage *journal.DamageError) {
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
	before, damage := texts1(t, c, oldID)
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
	h, err := c.Head(t.Context(), oldID)
	must(t, err)
	w, err := c.Own(t.Context(), oldID, nil)
	must(t, err)
	if w.Head() != h || w.Damage() != nil {
		t.Errorf("the head was %v and is %v, damage %v", h, w.Head(), w.Damage())
	}
	must(t, texts(t, w, journal.KindUpdate, "more"))
	must(t, w.Release(t.Context()))
	after, damage := texts1(t, c, oldID)
	if diff := cmp.Diff(want, after[:len(after)-1]); diff != "" || damage != nil {
		t.Errorf("damage %v, %s", damage, diff)
	}
	list, err := os.ReadDir(dir)
	must(t, err)
	if len(list) != 1 || list[0].Name() != oldID+suffix {
		t.Errorf("left: %v", list)
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
	want, _ := texts1(t, c, oldID)
	must(t, os.WriteFile(part, second, 0o600))
	if got, damage := texts1(t, c, oldID); !slices.Equal(got, want) || damage != nil {
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
	all, _ := texts1(t, c, oldID)
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
		before, damage := texts1(t, c, oldID)
		if n := len(all) - len(before); n > 1 || n == 1 && damage == nil && what != "torn" || n == 0 && damage != nil {
			t.Errorf("%s: %d of %d records, damage %v", what, len(before), len(all), damage)
		}
		w, err := c.Own(t.Context(), oldID, nil)
		must(t, err)
		must(t, w.Release(t.Context()))
		if after, again := texts1(t, c, oldID); !slices.Equal(after, before) || (again == nil) != (damage == nil) {
			t.Errorf("%s: %d records, there were %d; damage %v, it was %v", what, len(after), len(before), again, damage)
		}
		must(t, c.Close())
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
