package file

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// backUp returns a backup of a directory.
func backUp(t testing.TB, d Disk, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, backup(t.Context(), d, dir, &b))
	return b.Bytes()
}

// opened opens a backup.
func opened(t testing.TB, data []byte) *Archive {
	t.Helper()
	name := filepath.Join(t.TempDir(), "backup")
	must(t, os.WriteFile(name, data, 0o600))
	a, err := OpenArchive(t.Context(), name)
	must(t, err)
	t.Cleanup(func() { must(t, a.Close()) })
	return a
}

// verified returns how many texts each journal has, and what is wrong with those that are damaged.
func verified(t testing.TB, c *journal.Container) (texts map[string]int, damaged map[string]string) {
	t.Helper()
	texts, damaged = map[string]int{}, map[string]string{}
	must(t, c.Verify(t.Context(), func(id string, err error) error {
		if err != nil {
			damaged[id] = err.Error()
		}
		all, _ := read(t, c, id)
		texts[id] = len(all)
		return nil
	}))
	return texts, damaged
}

// TestBackup: a backup that is made while records are appended is whole, and has what was kept before. What is
// extracted continues.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	c := Open(dir, Options{})
	defer c.Close()
	make1(t, c, dir, "b", "0", "1")
	make1(t, c, dir, "a.agent", "0")
	w, err := c.Create(t.Context(), "a")
	must(t, err)
	must(t, texts(t, w, journal.KindPrompt, "0", "1", "2"))
	for _, name := range []string{"a.live", "a.jsonl.new", "b.1.old", "index.db", "no id.jsonl"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("a secret"), 0o600))
	}
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link"+suffix)))
	must(t, os.Mkdir(filepath.Join(dir, "directory"+suffix), 0o700))
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for ctx.Err() == nil {
			if err := texts(t, w, journal.KindUpdate, strings.Repeat("x", 3000)); err != nil {
				t.Error(err)
			}
		}
	})
	data := backUp(t, System{}, dir)
	cancel()
	writing.Wait()
	must(t, w.Release(t.Context()))
	if bytes.Contains(data, []byte("secret")) {
		t.Error("it has what is no journal")
	}
	a := opened(t, data)
	have, damaged := verified(t, a.Journals())
	if len(have) != 3 || have["a"] < 3 || have["b"] != 2 || have["a.agent"] != 1 || len(damaged) > 0 {
		t.Errorf("%v, damaged %v", have, damaged)
	}
	other := filepath.Join(t.TempDir(), "new", "sessions")
	must(t, a.Extract(t.Context(), other))
	restored := Open(other, Options{})
	defer restored.Close()
	w, err = restored.Own(t.Context(), "a", nil)
	must(t, err)
	if w.Damage() != nil || w.Head().Seq != uint64(have["a"]+1) {
		t.Errorf("damage %v, head %d, had %d texts", w.Damage(), w.Head().Seq, have["a"])
	}
	must(t, texts(t, w, journal.KindPrompt, "new"))
	must(t, w.Release(t.Context()))
	now, damaged := verified(t, restored)
	if have["a"]++; len(damaged) > 0 || !cmp.Equal(have, now) {
		t.Errorf("restored %v, damaged %v; the backup has %v", now, damaged, have)
	}
	list, err := os.ReadDir(other)
	must(t, err)
	for _, e := range list {
		if info, err := e.Info(); err != nil || os.PathSeparator == '/' && info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	if err := a.Extract(t.Context(), other); !errors.Is(err, fs.ErrExist) {
		t.Errorf("into a directory that is there: %v", err)
	}
}

// A meddler is a disk on which something happens as a file is opened.
type meddler struct {
	System
	opened func(name string)
}

func (m *meddler) Open(name string, flag int) (File, error) {
	f, err := m.System.Open(name, flag)
	m.opened(filepath.Base(name))
	return f, err
}

// TestBackupMeanwhile: a journal that is exchanged, deleted or continued while a backup is made is in it as it was, or
// not at all.
func TestBackupMeanwhile(t *testing.T) {
	dir := t.TempDir()
	c := Open(dir, Options{})
	defer c.Close()
	w, err := c.Create(t.Context(), "compacted")
	must(t, err)
	must(t, texts(t, w, journal.KindUpdate, "0", "1", "2", "3"))
	gone := make1(t, c, dir, "deleted", "0")
	torn := make1(t, c, dir, "torn", "0", "1", "2")
	info, err := os.Stat(torn)
	must(t, err)
	must(t, os.Truncate(torn, info.Size()-3))
	must(t, os.WriteFile(filepath.Join(dir, "empty"+suffix), []byte(`{"seq":1,`), 0o600))
	make1(t, c, dir, "zz", "0")
	d := &meddler{opened: func(name string) {
		switch name {
		case "compacted" + suffix:
			must(t, w.Compact(t.Context(), journal.Gap{From: 2, To: 3}))
			must(t, texts(t, w, journal.KindPrompt, "4"))
			must(t, os.Remove(gone))
		case "torn" + suffix:
			make1(t, c, dir, "new", "0")
			make1(t, c, dir, "zzz", "0")
		}
	}}
	have, damaged := verified(t, opened(t, backUp(t, d, dir)).Journals())
	if want := map[string]int{"compacted": 4, "torn": 2, "zz": 1}; !cmp.Equal(want, have) || len(damaged) > 0 {
		t.Errorf("%v, damaged %v", have, damaged)
	}
	must(t, w.Release(t.Context()))
	have, damaged = verified(t, opened(t, backUp(t, System{}, dir)).Journals())
	want := map[string]int{"compacted": 4, "new": 1, "torn": 2, "zz": 1, "zzz": 1}
	if !cmp.Equal(want, have) || len(damaged) > 0 {
		t.Errorf("later %v, damaged %v", have, damaged)
	}
	if have, _ := verified(t, opened(t, backUp(t, System{}, filepath.Join(dir, "none"))).Journals()); len(have) > 0 {
		t.Errorf("of nothing: %v", have)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Backup(ctx, dir, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("when nobody waits: %v", err)
	}
}

// A shrinker is a disk whose files become shorter once their size is known.
type shrinker struct{ System }

func (s *shrinker) Open(name string, flag int) (File, error) {
	f, err := s.System.Open(name, flag)
	return &shrinking{File: f}, err
}

type shrinking struct {
	File
	reads int
}

func (f *shrinking) ReadAt(b []byte, at int64) (int, error) {
	if f.reads++; f.reads > 1 {
		return 0, io.EOF
	}
	return f.File.ReadAt(b, at)
}

// TestBackupShrunk: a journal whose owner cuts something off is not said to be in the backup.
func TestBackupShrunk(t *testing.T) {
	dir := t.TempDir()
	c := Open(dir, Options{})
	defer c.Close()
	make1(t, c, dir, "s", "0")
	err := backup(t.Context(), &shrinker{}, dir, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Error(err)
	}
}

// packed returns an archive of members, whose content is in their Linkname if they are plain files.
func packed(t testing.TB, members ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range members {
		content := ""
		if h.Typeflag == 0 {
			h.Typeflag, content, h.Linkname = tar.TypeReg, h.Linkname, ""
			h.Size = int64(len(content))
		}
		must(t, w.WriteHeader(&h))
		_, err := io.WriteString(w, content)
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func file(name string) tar.Header { return tar.Header{Name: name, Linkname: "{}\n"} }

func end(journals int) tar.Header { return about(fmt.Sprintf(`{"format":1,"journals":%d}`, journals)) }

func about(manifest string) tar.Header { return tar.Header{Name: manifestName, Linkname: manifest} }

// TestBackupRefused: what no Backup has written, or only the beginning of it, is refused.
func TestBackupRefused(t *testing.T) {
	dir := t.TempDir()
	c := Open(dir, Options{})
	defer c.Close()
	for _, id := range []string{"a", "b", strings.Repeat("long", 25)} {
		make1(t, c, dir, id, "0", "1")
	}
	whole := backUp(t, System{}, dir)
	type refused struct {
		name string
		data []byte
		why  string
	}
	tests := []refused{
		{"nothing", nil, "not a backup"},
		{"zeros", make([]byte, 4096), "not a backup"},
		{"a text", []byte("no tar, but long enough to be one" + strings.Repeat(".", 1000)), "not a backup"},
		{"another archive", packed(t, file("readme"), end(1)), "not a backup"},
		{"another program's", packed(t, about("{}")), "not a backup"},
		{"a later version's", packed(t, about(`{"format":2,"journals":0}`)), "later version"},
		{"a large manifest", packed(t, about(strings.Repeat(" ", maxManifest)+"{}")), "damaged"},
		{"another number", packed(t, file("a.jsonl"), end(2)), "manifest"},
		{"no end", packed(t, file("a.jsonl")), "not complete"},
		{"twice", packed(t, file("a.jsonl"), file("a.jsonl"), end(2)), `"a.jsonl"`},
		{"out of order", packed(t, file("b.jsonl"), file("a.jsonl"), end(2)), `"a.jsonl"`},
	}
	for _, name := range []string{
		"../b.jsonl", "/b.jsonl", "b/c.jsonl", `b\c.jsonl`, "..jsonl", "b..jsonl", ".b.jsonl", "b.live", "b",
		"ä.jsonl", "c:.jsonl",
	} {
		tests = append(tests, refused{name, packed(t, file("a.jsonl"), file(name), end(2)), ""})
		tests = append(tests, refused{name + " first", packed(t, file(name), end(1)), "not a backup"})
	}
	flags := []byte{tar.TypeSymlink, tar.TypeLink, tar.TypeDir, tar.TypeFifo, tar.TypeChar, tar.TypeGNUSparse}
	for _, flag := range flags {
		h := tar.Header{Format: tar.FormatGNU, Name: "b.jsonl", Typeflag: flag, Linkname: "/etc/passwd"}
		tests = append(tests, refused{"type " + string(flag), packed(t, file("a.jsonl"), h, end(2)), "has there"})
	}
	for n := range bytes.LastIndexByte(whole, '}') + 1 {
		if n%7 == 0 || n%512 == 0 {
			tests = append(tests, refused{fmt.Sprint("cut off at ", n), whole[:n], ""})
		}
	}
	for _, test := range tests {
		a, err := newArchive(t.Context(), bytes.NewReader(test.data), int64(len(test.data)))
		if err == nil || !strings.Contains(err.Error(), test.why) {
			t.Errorf("%s: refused %v, %v", test.name, a == nil, err)
		}
	}
	if _, err := OpenArchive(t.Context(), dir); err == nil {
		t.Error("a directory is a backup")
	}
	if _, err := OpenArchive(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestBackupSparse: a member that stands for more than was read is refused.
func TestBackupSparse(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "sparse.tar"))
	must(t, err)
	h, err := tar.NewReader(bytes.NewReader(data)).Next()
	if err != nil || h.Size < 1<<30 || h.Typeflag != tar.TypeReg {
		t.Fatalf("%+v, %v", h, err)
	}
	if a, err := newArchive(t.Context(), bytes.NewReader(data), int64(len(data))); err == nil {
		t.Errorf("it is %v", a.members[0])
	}
}

// TestBackupDamaged: a byte that is damaged in a backup costs the record, and is found.
func TestBackupDamaged(t *testing.T) {
	dir := t.TempDir()
	c := Open(dir, Options{})
	defer c.Close()
	for _, id := range []string{"a", "b", "c"} {
		make1(t, c, dir, id, "0 of "+id, "1 of "+id, "2 of "+id)
	}
	data := backUp(t, System{}, dir)
	data[bytes.Index(data, []byte("1 of b"))] ^= 1
	a := opened(t, data)
	have, damaged := verified(t, a.Journals())
	want := map[string]int{"a": 3, "b": 2, "c": 3}
	if !cmp.Equal(want, have) || len(damaged) != 1 || !strings.Contains(damaged["b"], "1 record is damaged") {
		t.Errorf("%v, damaged %v", have, damaged)
	}
	other := filepath.Join(t.TempDir(), "sessions")
	must(t, a.Extract(t.Context(), other))
	restored := Open(other, Options{})
	defer restored.Close()
	got, err := read(t, restored, "b")
	if !slices.Equal(got, []string{"0 of b", "2 of b"}) || !errors.As(err, new(*journal.DamageError)) {
		t.Errorf("restored %q, %v", got, err)
	}
	// Nothing can be written there.
	backup := a.Journals()
	defer backup.Close()
	for what, err := range map[string]error{
		"own":    func() error { _, err := backup.Own(t.Context(), "a", nil); return err }(),
		"create": func() error { _, err := backup.Create(t.Context(), "n"); return err }(),
		"delete": backup.Delete(t.Context(), "a"),
	} {
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if who, owned, err := backup.Owner(t.Context(), "a"); owned || err != nil {
		t.Errorf("owned by %q, %v", who, err)
	}
	if _, err := read(t, backup, "none"); !errors.Is(err, journal.ErrNotFound) {
		t.Error(err)
	}
}

// TestBackupOld: a conversation of format 1 is in a backup with all of its parts, and can be read there. If it becomes
// a journal meanwhile the journal is in it.
func TestBackupOld(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "old.golden"))
	must(t, err)
	want := strings.Split(strings.TrimSuffix(string(golden), "\n"), "\n")
	for name, at := range map[string]string{
		"as it is": "", "before it is opened": oldID + ".2" + suffix, "as it is opened": oldID + suffix,
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOld(t)
			c := Open(dir, Options{})
			defer c.Close()
			d := &meddler{opened: func(name string) {
				if name == at {
					w, err := c.Own(t.Context(), oldID, nil)
					must(t, err)
					must(t, w.Release(t.Context()))
				}
			}}
			backup := opened(t, backUp(t, d, dir)).Journals()
			got, damage := oldTexts(t, backup, oldID)
			if diff := cmp.Diff(want, got); diff != "" || damage != nil {
				t.Errorf("damage %v, %s", damage, diff)
			}
			must(t, backup.Verify(t.Context(), func(id string, err error) error {
				if id != oldID {
					t.Errorf("it has %s", id)
				}
				return err
			}))
		})
	}
}

// sign makes the checksums of headers right, so that more than those is tested.
func sign(data []byte) {
	for ; len(data) >= 512; data = data[512:] {
		if h := data[:512]; bytes.HasPrefix(h[257:], []byte("ustar")) {
			copy(h[148:], "        ")
			n := 0
			for _, b := range h {
				n += int(b)
			}
			copy(h[148:], fmt.Sprintf("%06o\x00 ", n))
		}
	}
}

// FuzzArchive has anything opened as a backup: what comes of it is not larger, and only in the directory that was
// named.
func FuzzArchive(f *testing.F) {
	dir := f.TempDir()
	c := Open(dir, Options{})
	make1(f, c, dir, "a", "0", "1")
	make1(f, c, dir, "b", "0")
	must(f, c.Close())
	whole := backUp(f, System{}, dir)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(packed(f, file("../a.jsonl"), end(1)))
	f.Add(packed(f, file("a.jsonl"), end(1)))
	if sparse, err := os.ReadFile(filepath.Join("testdata", "sparse.tar")); err == nil {
		f.Add(sparse)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sign(data)
		a, err := newArchive(t.Context(), bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		c := a.Journals()
		defer c.Close()
		n := 0
		must(t, c.Verify(t.Context(), func(string, error) error { n++; return nil }))
		if n > len(a.members) {
			t.Errorf("%d journals of %d", n, len(a.members))
		}
		root := t.TempDir()
		if err := a.Extract(t.Context(), filepath.Join(root, "sessions")); err != nil {
			t.Skip(err) // such as two names that differ by case
		}
		size := int64(0)
		must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if rel, _ := filepath.Rel(root, path); err != nil || filepath.Dir(rel) != "sessions" {
				t.Errorf("%s, %v", rel, err)
				return err
			}
			size += info.Size()
			return nil
		}))
		if size > int64(len(data)) {
			t.Errorf("%d bytes of %d", size, len(data))
		}
	})
}
