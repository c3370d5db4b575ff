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

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/journaltest"
	"github.com/goacp/acp/internal/long"
)

func TestSuite(t *testing.T) {
	journaltest.Run(t, func(t testing.TB) journaltest.Fixture {
		dir := filepath.Join(t.TempDir(), "journals")
		return journaltest.Fixture{
			Open: func(testing.TB) journal.Backend { return NewBackend(dir, Options{}) },
			Change: func(t testing.TB, id string, change func([][]byte) [][]byte) {
				name := filepath.Join(dir, id+suffix)
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
				if err := os.WriteFile(name, append(bytes.Join(change(lines), []byte("\n")), '\n'), 0o600); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// texts appends updates and waits until they are kept.
func texts(t testing.TB, w *journal.Writer, kind journal.Kind, all ...string) error {
	t.Helper()
	var drafts []journal.Draft
	for _, text := range all {
		drafts = append(drafts, journal.Draft{Kind: kind, Data: fmt.Appendf(nil, "%q", text)})
	}
	done := make(chan error, 1)
	if err := w.Append(drafts, func(_ []*journal.Record, err error) { done <- err }); err != nil {
		return err
	}
	return <-done
}

// read returns the texts of a journal, behind the first record.
func read(t testing.TB, c *journal.Container, id string) (all []string, err error) {
	t.Helper()
	err = c.Read(t.Context(), id, 0, func(r *journal.Record) error {
		if r.Seq > 1 {
			all = append(all, strings.Trim(string(r.Data), `"`))
		}
		return nil
	})
	return all, err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// make1 makes a journal with texts that nobody owns, and returns its file's name.
func make1(t testing.TB, c *journal.Container, dir, id string, all ...string) string {
	t.Helper()
	w, err := c.Create(t.Context(), id)
	must(t, err)
	must(t, texts(t, w, journal.KindUpdate, all...))
	must(t, w.Release(t.Context()))
	return filepath.Join(dir, id+suffix)
}

// TestTruncated cuts a file after its bytes: all whole records before that are there, and the next owner cuts the rest
// and continues behind them.
func TestTruncated(t *testing.T) {
	dir := t.TempDir()
	c := Open(dir, Options{})
	defer c.Close()
	name := make1(t, c, dir, "s", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	data, err := os.ReadFile(name)
	must(t, err)
	every := 1
	if !long.All() {
		every = 13
	}
	for n := 0; n < len(data); n += every {
		must(t, os.WriteFile(name, data[:n], 0o600))
		var want []string
		for i := range max(bytes.Count(data[:n], []byte("\n"))-1, 0) {
			want = append(want, fmt.Sprint(i))
		}
		got, err := read(t, c, "s")
		if !slices.Equal(got, want) || err != nil {
			t.Fatalf("after %d bytes: %q, %v", n, got, err)
		}
		w, err := c.Own(t.Context(), "s", nil)
		must(t, err)
		must(t, texts(t, w, journal.KindUpdate, "new"))
		must(t, w.Release(t.Context()))
		if got, err := read(t, c, "s"); !slices.Equal(got, append(want, "new")) || err != nil {
			t.Fatalf("after %d bytes, gone on with: %q, %v", n, got, err)
		}
	}
}

// TestTornTold: an owner learns what it has cut.
func TestTornTold(t *testing.T) {
	dir := t.TempDir()
	c := Open(dir, Options{})
	defer c.Close()
	name := make1(t, c, dir, "s", "0", "1")
	info, err := os.Stat(name)
	must(t, err)
	must(t, os.Truncate(name, info.Size()-10))
	w, err := c.Own(t.Context(), "s", nil)
	must(t, err)
	defer w.Release(t.Context())
	if damage := w.Damage(); damage == nil || damage.Cut == 0 || !strings.Contains(damage.Error(), "cut off") {
		t.Errorf("told %v", damage)
	}
}

// TestForeign: an owner that finds its file changed by others writes nothing more.
func TestForeign(t *testing.T) {
	for name, change := range map[string]func(name string) error{
		"appended to": func(name string) error {
			f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("x\n")
			return errors.Join(err, f.Close())
		},
		"truncated": func(name string) error { return os.Truncate(name, 10) },
		"replaced": func(name string) error {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			return errors.Join(os.Rename(name, name+".old"), os.WriteFile(name, data, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := Open(dir, Options{})
			defer c.Close()
			w, err := c.Create(t.Context(), "s")
			must(t, err)
			must(t, change(filepath.Join(dir, "s"+suffix)))
			before, err := os.ReadFile(filepath.Join(dir, "s"+suffix))
			must(t, err)
			if err := texts(t, w, journal.KindUpdate, "no"); !errors.Is(err, journal.ErrFenced) {
				t.Errorf("append: %v", err)
			}
			<-w.Lost()
			_ = w.Release(t.Context())
			after, err := os.ReadFile(filepath.Join(dir, "s"+suffix))
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("it was changed, %v", err)
			}
		})
	}
}

// TestFiles: what is made can be read by its owner only, and nothing is left beside a journal that nobody owns.
func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "directory")
	files, _ := os.ReadDir("/proc/self/fd") // where there are such
	defer func() {
		if now, _ := os.ReadDir("/proc/self/fd"); len(now) > len(files) {
			t.Errorf("%d files are open, %d were", len(now), len(files))
		}
	}()
	c := Open(dir, Options{Who: "acp chat\nof ä person" + strings.Repeat("x", 300)})
	defer c.Close()
	if _, err := read(t, c, "s"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("without a directory: %v", err)
	}
	if err := c.Delete(t.Context(), "s"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("without a directory: %v", err)
	}
	w, err := c.Create(t.Context(), "s")
	must(t, err)
	other := Open(dir, Options{})
	defer other.Close()
	_, err = other.Own(t.Context(), "s", nil)
	if e, ok := errors.AsType[*journal.OwnedError](err); !ok || !strings.HasPrefix(e.Who, "acp chat of ä personxx") || len(e.Who) > 200 || !strings.Contains(e.Error(), e.Who) {
		t.Errorf("owned by %v", err)
	}
	list, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range list {
		info, err := e.Info()
		must(t, err)
		if mode := info.Mode(); os.PathSeparator == '/' && mode != 0o600 {
			t.Errorf("%s has mode %v", e.Name(), mode)
		}
	}
	if info, err := os.Stat(dir); err != nil || os.PathSeparator == '/' && info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v, %v", info.Mode(), err)
	}
	must(t, w.Release(t.Context()))
	// Locks and copies of owners that were killed are no hindrance.
	for _, end := range []string{locked, renewed} {
		must(t, os.WriteFile(filepath.Join(dir, "s"+end), []byte(strings.Repeat("process 1\n", 100)), 0o600))
	}
	w, err = c.Own(t.Context(), "s", nil)
	must(t, err)
	_, err = other.Own(t.Context(), "s", nil)
	if e, ok := errors.AsType[*journal.OwnedError](err); !ok || !strings.HasPrefix(e.Who, "acp chat of") {
		t.Errorf("owned by %v", err)
	}
	must(t, w.Release(t.Context()))
	if list, err = os.ReadDir(dir); err != nil || os.PathSeparator == '/' && (len(list) != 1 || list[0].Name() != "s"+suffix) {
		t.Errorf("left behind: %v, %v", list, err)
	}
	const old = `{"seq":1,"epoch":1,"prev":"00","hash":"00","record":{"at":"2026-11-22T19:00:00Z","kind":"session","data":{}}}` + "\n"
	must(t, os.WriteFile(filepath.Join(dir, "old"+suffix), []byte(old), 0o600))
	if _, err := c.Own(t.Context(), "old", nil); !errors.As(err, new(*journal.FormatError)) {
		t.Errorf("of an earlier version: %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "old"+suffix)); err != nil || string(data) != old {
		t.Errorf("of an earlier version, now %q, %v", data, err)
	}
	must(t, os.Mkdir(filepath.Join(dir, "d"+suffix), 0o700))
	if _, err := c.Own(t.Context(), "d", nil); err == nil {
		t.Error("a directory can be owned")
	}
}

// TestList lists so many files that several goroutines ask for their sizes, with names among them that are no journals'.
func TestList(t *testing.T) {
	dir := t.TempDir()
	want := map[string]int64{}
	for i := range 3 * statters * statAtOnce {
		id := fmt.Sprint("s", i)
		must(t, os.WriteFile(filepath.Join(dir, id+suffix), make([]byte, i), 0o600))
		if want[id] = int64(i); i%97 == 1 {
			must(t, os.WriteFile(filepath.Join(dir, id+".2"+suffix), make([]byte, 5), 0o600)) // of an earlier version
			want[id] += 5
		}
	}
	for _, name := range []string{"index.db", "x.lock", "y" + renewed, "no id" + suffix, "left.2" + suffix} {
		must(t, os.WriteFile(filepath.Join(dir, name), make([]byte, 1), 0o600))
	}
	must(t, os.Mkdir(filepath.Join(dir, "directory"+suffix), 0o700))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "link"+suffix)))
	c := Open(dir, Options{})
	defer c.Close()
	got := map[string]int64{}
	must(t, c.List(t.Context(), func(id string, size int64) bool { got[id] = size; return true }))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestReadOnly: a directory that cannot be written can be read, and says why not more.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	d := &faulty{}
	c := journal.New(newBackend(d, dir, ""), journal.Options{})
	defer c.Close()
	make1(t, c, dir, "s", "0", "1")
	d.set(os.ErrPermission)
	if got, err := read(t, c, "s"); err != nil || len(got) != 2 {
		t.Errorf("%q, %v", got, err)
	}
	for what, f := range map[string]func() error{
		"own":    func() error { _, err := c.Own(t.Context(), "s", nil); return err },
		"create": func() error { _, err := c.Create(t.Context(), "n"); return err },
		"delete": func() error { return c.Delete(t.Context(), "s") },
	} {
		if err := f(); !errors.Is(err, os.ErrPermission) {
			t.Errorf("%s: %v", what, err)
		}
	}
	d.set(nil)
	d.unlocked = true
	if _, err := c.Own(t.Context(), "s", nil); !errors.Is(err, journal.ErrNoLocks) {
		t.Errorf("without locks: %v", err)
	}
}

// TestVerify: all journals are verified in order, damage to one ends nothing, and one that is deleted meanwhile is left out.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	c := Open(dir, Options{})
	defer c.Close()
	for _, id := range []string{"d", "b", "c", "a", "e"} {
		name := make1(t, c, dir, id, "0", "1")
		if id == "b" {
			data, err := os.ReadFile(name)
			must(t, err)
			must(t, os.WriteFile(name, bytes.Replace(data, []byte(`"0"`), []byte(`"X"`), 1), 0o600))
		}
	}
	var got []string
	must(t, c.Verify(t.Context(), func(id string, err error) error {
		got = append(got, fmt.Sprint(id, " ", errors.As(err, new(*journal.DamageError))))
		if id == "c" {
			return c.Delete(t.Context(), "d")
		}
		return nil
	}))
	if want := []string{"a false", "b true", "c false", "e false"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	enough := errors.New("enough")
	if err := c.Verify(t.Context(), func(string, error) error { return enough }); err != enough {
		t.Error(err)
	}
}

// FuzzLines has anything read and continued as a journal: nothing but errors comes of it, and what is added is there.
func FuzzLines(f *testing.F) {
	dir := f.TempDir()
	c := Open(dir, Options{})
	name := make1(f, c, dir, "s", "0", "1", "2")
	must(f, c.Close())
	whole, err := os.ReadFile(name)
	must(f, err)
	f.Add(whole)
	f.Add(whole[:len(whole)-5])
	f.Add(bytes.Replace(whole, []byte(`"epoch":1`), []byte(`"epoch":4294967295`), 2))
	f.Add(bytes.Replace(whole, []byte(`{"seq":2`), []byte(`{"seq":18446744073709551615`), 1))
	f.Add(bytes.Replace(bytes.Replace(whole, []byte(`{"seq":2`), []byte(`{"seq":9007199254740991`), 1), []byte(`"hash":"`), []byte(`"hash":"-`), 1))
	f.Add([]byte("{}\n\n\r\n" + `{"seq":1,"epoch":1,"hash":"` + strings.Repeat("0", 64) + `","record":{"at":"","kind":"gap","data":{"from":1}}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "s"+suffix), data, 0o600))
		c := Open(dir, Options{})
		defer c.Close()
		before, err := read(t, c, "s")
		if damage, ok := errors.AsType[*journal.DamageError](err); ok {
			_, _ = damage.Error(), damage.Records()
		}
		w, err := c.Own(t.Context(), "s", nil)
		if err != nil {
			return // of another version, or its numbers have no next
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
