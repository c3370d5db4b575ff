package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// write appends entries with the numbers from..to as their detail.
func write(t *testing.T, l *Log, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		if err := l.Append(Entry{User: "me", Action: "test", Outcome: "done", Detail: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, dir string) (list []Entry) {
	t.Helper()
	if err := Read(dir, func(e Entry) error { list = append(list, e); return nil }); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestAppend: what is appended is read again, cut and without secrets, by whichever process.
func TestAppend(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	credential := "acp_" + strings.Repeat("a", 16) + "_" + strings.Repeat("b", 52)
	for _, e := range []Entry{
		{User: "me", Device: "phone", Address: "192.0.2.1", Action: "permission.answer", Session: "s1", Outcome: "allowed", Shown: strings.Repeat("0", 64), Detail: "go test"},
		{Action: "x", Detail: "token " + credential + " and " + strings.Replace(credential, "acp", "acpt", 1) + ", Authorization: Bearer 0123456789abcdefghij0123, eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lkIn0.c2lnbmF0dXJlc2lnbmF0dXJl"},
		{Action: strings.Repeat("ä", 200), Detail: strings.Repeat("x", 5000), User: "a\"\n\x00\xff"},
	} {
		if err := Open(dir).Append(e); err != nil { // each as another process
			t.Fatal(err)
		}
	}
	got := read(t, dir)
	want := []Entry{
		{Seq: 1, User: "me", Device: "phone", Address: "192.0.2.1", Action: "permission.answer", Session: "s1", Outcome: "allowed", Shown: strings.Repeat("0", 64), Detail: "go test"},
		{Seq: 2, Action: "x", Detail: "token «redacted» and «redacted», Authorization: Bearer «redacted 1», «redacted 2»"},
		{Seq: 3, Action: strings.Repeat("ä", 128), Detail: strings.Repeat("x", maxText), User: "a\"\n\x00\uFFFD"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Entry{}, "Time", "Prev")); diff != "" {
		t.Error(diff)
	}
	for _, e := range got {
		if e.Time.IsZero() {
			t.Error("no time")
		}
	}
	report, err := Verify(dir, "")
	if err != nil || report.Entries != 3 || report.First != 1 || report.Last != 3 || len(report.Hash) != 64 {
		t.Error(report, err)
	}
	if info, err := os.Stat(filepath.Join(dir, File)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if info, err := os.Stat(dir); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
}

// TestNote: an entry about what is done is written or its failure logged, and neither log is needed.
func TestNote(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		log            *Log
		written, heard bool
	}{
		"written":    {Open(filepath.Join(dir, "log")), true, false},
		"no log":     {nil, false, false},
		"it refuses": {Open(blocked), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			var heard bytes.Buffer
			for _, logger := range []*slog.Logger{nil, slog.New(slog.NewTextHandler(&heard, nil))} {
				tt.log.Note(logger, Entry{Action: "test"})
			}
			if got := strings.Contains(heard.String(), "the audit log cannot be written"); got != tt.heard {
				t.Errorf("heard %q", &heard)
			}
			if tt.written && len(read(t, tt.log.dir)) != 2 {
				t.Error("not written")
			}
		})
	}
}

// TestLongest: the longest entry there can be is one that can be read.
func TestLongest(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("\x01", 5000) // six bytes each in JSON
	if err := Open(dir).Append(Entry{User: long, Device: long, Address: long, Action: long, Session: long, Outcome: long, Shown: long, Detail: long}); err != nil {
		t.Fatal(err)
	}
	write(t, Open(dir), 1, 1)
	if r, err := Verify(dir, ""); err != nil || r.Entries != 2 {
		t.Error(r, err)
	}
}

// TestTogether: logs that are open at the same time, as those of several processes, make one chain.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	var work sync.WaitGroup
	for n := range 4 {
		l := Open(dir)
		work.Go(func() {
			for i := range 10 {
				if err := l.Append(Entry{Action: "test", Detail: fmt.Sprint(n, i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if r, err := Verify(dir, ""); err != nil || r.Entries != 40 {
		t.Error(r, err)
	}
}

// TestRotate: there are never more than the files there may be, and the chain goes through all of them.
func TestRotate(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir)
	l.max = 1000
	write(t, l, 1, 10)
	first, err := Verify(dir, "")
	if err != nil || first.First != 1 || first.Last != 10 {
		t.Fatal(first, err)
	}
	write(t, l, 11, 90)
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) < Files-1 || len(files) > Files {
		t.Errorf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Size() > 1000+maxLine {
			t.Error(info.Size(), err)
		}
	}
	r, err := Verify(dir, "")
	if err != nil || r.First <= 10 || r.Last != 90 || r.Entries != r.Last-r.First+1 {
		t.Error(r, err)
	}
	if _, err := Verify(dir, first.Hash); !errors.Is(err, ErrDamaged) {
		t.Errorf("an entry that was removed is found: %v", err)
	}
	if again, err := Verify(dir, r.Hash); err != nil || !again.Contains {
		t.Error(again, err)
	}
	// A file in the middle is missing.
	if err := os.Remove(filepath.Join(dir, name(3))); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(dir, ""); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// TestFull: a file that is full and cannot be rotated is not written to; one that ends within an entry is
// repaired first.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir)
	l.max = 500
	write(t, l, 1, 3)
	for n := 1; n < Files; n++ { // directories that are not empty are in the way
		if err := os.RemoveAll(filepath.Join(dir, name(n))); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, name(n), "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	for n := 0; n < 10 && err == nil; n++ {
		err = l.Append(Entry{Action: "test"})
	}
	before, e := os.Stat(filepath.Join(dir, File))
	if err == nil || e != nil {
		t.Fatal("it was rotated", e)
	}
	for range 3 {
		if err := l.Append(Entry{Action: "test"}); err == nil {
			t.Error("it was written")
		}
	}
	if after, err := os.Stat(filepath.Join(dir, File)); err != nil || after.Size() != before.Size() {
		t.Error(after.Size(), err)
	}
	dir = t.TempDir()
	l = Open(dir)
	l.max = 500
	for r := (Report{}); r.Last < 3; r, _ = Verify(dir, "") {
		write(t, l, 1, 1)
	}
	f, err := os.OpenFile(filepath.Join(dir, File), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(strings.Repeat("x", 500)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, l, 9, 12)
	if r, err := Verify(dir, ""); err != nil || r.Entries != 8 || r.First != 1 {
		t.Error(r, err)
	}
}

// TestTorn: an entry that was cut short is removed by the next append, which says so.
func TestTorn(t *testing.T) {
	for _, whole := range []int{0, 3} {
		dir := t.TempDir()
		l := Open(dir)
		write(t, l, 1, whole)
		file := filepath.Join(dir, File)
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(`{"seq":4,"ti`); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if r, err := Verify(dir, ""); err != nil || r.Torn != 12 || r.Entries != int64(whole) {
			t.Error(r, err)
		}
		write(t, l, 5, 5)
		got := read(t, dir)
		if len(got) != whole+2 || got[whole].Action != "audit.repair" || got[whole+1].Detail != "5" {
			t.Error(got)
		}
	}
}

// TestDamaged: a log whose last entry is damaged is not written to.
func TestDamaged(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"another text":    func(b []byte) []byte { return bytes.Replace(b, []byte(`"detail":"3"`), []byte(`"detail":"4"`), 1) },
		"no entry":        func(b []byte) []byte { return append(b, "hello\n"...) },
		"empty line":      func(b []byte) []byte { return append(b, '\n') },
		"a very long one": func(b []byte) []byte { return append(b, strings.Repeat("x", 3*maxLine)...) },
	} {
		dir := t.TempDir()
		write(t, Open(dir), 1, 3)
		file := filepath.Join(dir, File)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		data = change(data)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Open(dir).Append(Entry{Action: "x"}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, data) {
			t.Errorf("%s: it was changed, %v", name, err)
		}
		if _, err := Verify(dir, ""); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTamper: every change of a byte, every line that is removed, repeated or moved is found.
func TestTamper(t *testing.T) {
	dir := t.TempDir()
	write(t, Open(dir), 1, 5)
	data, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := verifyBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data[:len(data)-1] { // without the last line feed the last entry is incomplete
		changed := bytes.Clone(data)
		changed[i] ^= 1
		if r, err := verifyBytes(changed); err == nil && r.Hash == whole.Hash {
			t.Fatalf("byte %d can be changed", i)
		}
	}
	lines := bytes.SplitAfter(data, []byte("\n"))[:5]
	for i := range lines {
		if i > 0 && i < 4 {
			if _, err := verifyBytes(bytes.Join(append(append([][]byte{}, lines[:i]...), lines[i+1:]...), nil)); !errors.Is(err, ErrDamaged) {
				t.Errorf("entry %d can be removed: %v", i+1, err)
			}
		}
		if _, err := verifyBytes(bytes.Join(append(append([][]byte{}, lines[:i+1]...), lines[i:]...), nil)); !errors.Is(err, ErrDamaged) {
			t.Errorf("entry %d can be repeated: %v", i+1, err)
		}
		if i > 0 {
			moved := append([][]byte{}, lines...)
			moved[i-1], moved[i] = moved[i], moved[i-1]
			if _, err := verifyBytes(bytes.Join(moved, nil)); !errors.Is(err, ErrDamaged) {
				t.Errorf("entry %d can be moved: %v", i+1, err)
			}
		}
	}
	// Entries that are missing at either end are found by a hash that was noted.
	if r, err := verifyBytes(bytes.Join(lines[:4], nil)); err != nil || r.Hash == whole.Hash {
		t.Error(r, err)
	}
}

// verifyBytes verifies a log of one file.
func verifyBytes(data []byte) (Report, error) {
	v := new(verifier)
	err := v.read(bytes.NewReader(data), File, true, func(Entry) error { return nil })
	v.report.Hash = v.hash
	return v.report, err
}

func TestEmpty(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, File), nil, 0o600); err != nil { // a power loss before the first entry
		t.Fatal(err)
	}
	if r, err := Verify(dir, ""); err != nil || r != (Report{}) {
		t.Error(r, err)
	}
	if _, err := Verify(dir, "ff"); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Open(file).Append(Entry{Action: "x"}); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	stop := errors.New("on purpose")
	write(t, Open(dir), 1, 2)
	if err := Read(dir, func(Entry) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// FuzzVerify: no input makes the verifier panic, and an entry that it accepts is one that Append writes:
// its hash is that of its bytes.
func FuzzVerify(f *testing.F) {
	l := &Log{}
	good := l.add(nil, Entry{User: "me", Action: "test"})
	good = l.add(good, Entry{Action: "test", Detail: "<>"})
	f.Add(good)
	f.Add([]byte("\n"))
	f.Add([]byte(hashMember + strings.Repeat("0", hashLen) + lineEnd))
	f.Add([]byte(`{"seq":1}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := verifyBytes(data)
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%v", err)
		}
		if r.Entries < 0 || r.Entries > 0 && r.Last-r.First+1 != r.Entries {
			t.Errorf("%+v", r)
		}
		for line := range bytes.Lines(data) {
			e, hash, err := Decode(line)
			if err == nil && (e.Seq < 1 || !bytes.Contains(line, []byte(hash))) {
				t.Errorf("%q", line)
			}
		}
	})
}
