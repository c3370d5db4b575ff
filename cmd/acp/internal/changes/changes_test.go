package changes

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/internal/patch"
	"github.com/goacp/acp/transcript"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// lines returns numbered lines, some of them replaced.
func lines(n int, replaced map[int]string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		text, ok := replaced[i]
		if !ok {
			text = "line " + strings.Repeat("i", i)
		}
		if text != "" {
			b.WriteString(text + "\n")
		}
	}
	return b.String()
}

// A change is a change that an agent reports: of a file that it creates if before is "-", and
// deletes if after is.
type change struct{ path, before, after string }

// record returns the record of a session in which an agent has reported changes.
func record(status acpv2.ToolCallStatus, changes ...change) *transcript.Snapshot {
	c := transcript.New(transcript.Config{})
	for i, ch := range changes {
		d := &acpv2.Diff{}
		f := patch.File{OldPath: ch.path, NewPath: ch.path, Old: ch.before, New: ch.after}
		var op acpv2.DiffOperation = &acpv2.DiffModify{Path: ch.path}
		switch {
		case ch.before == "-":
			f.OldPath, f.Old, op = "", "", &acpv2.DiffAdd{Path: ch.path}
		case ch.after == "-":
			f.NewPath, f.New, op = "", "", &acpv2.DiffDelete{Path: ch.path}
		}
		d.Changes = []acpv2.DiffChange{{Operation: op}}
		d.Patch = &acpv2.DiffPatch{Format: acpv2.DiffPatchFormatGitPatch, Text: patch.Git(f)}
		c.Apply(&acpv2.ToolCallUpdate{
			ToolCallID: acpv2.ToolCallID(string(rune('a' + i))), Title: acpv2.Set("edit"), Status: acpv2.Set(status),
			Content: acpv2.Set([]acpv2.ToolCallContent{d}),
		})
	}
	return c.Snapshot()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// short describes files for comparison.
func short(dir string, files []File) []string {
	var out []string
	for _, f := range files {
		rel, _ := filepath.Rel(dir, f.Path)
		s := filepath.ToSlash(rel) + " " + []string{"recorded", "compared", "partly"}[f.Source]
		if !f.Existed {
			s += " new"
		}
		if !f.Exists {
			s += " deleted"
		}
		if f.Opaque != "" {
			s += " (" + f.Opaque + ")"
		}
		for _, h := range f.Hunks {
			s += " @" + string(rune('0'+h.Line%10)) + strings.Repeat("+", h.Added) + strings.Repeat("-", h.Removed)
		}
		out = append(out, s)
	}
	return out
}

// TestRecorded: what the agent reported is found without Git, also under what the user has written
// since, and single hunks are taken back without that.
func TestRecorded(t *testing.T) {
	dir := t.TempDir()
	a, b, gone, same, other := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "gone"), filepath.Join(dir, "same"), filepath.Join(dir, "other")
	one := lines(30, nil)
	two := lines(30, map[int]string{5: "five"})
	three := lines(30, map[int]string{5: "five", 25: "twenty-five\ntwenty-five and a half"})
	snap := record(acpv2.ToolCallStatusCompleted,
		change{a, one, two}, change{a, two, three}, change{b, "-", "new\n"}, change{gone, "old\n", "-"}, change{same, "x\n", "y\n"}, change{same, "y\n", "x\n"},
		change{other, "no\n", "yes\n"})
	users := "the user's first line\n" + three
	write(t, a, users)
	write(t, b, "new\n")
	write(t, same, "x\n")
	write(t, other, "something else\n")
	files, err := Find(t.Context(), dir, nil, snap)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a recorded @3+- @3++-", "b recorded new @1+", "gone recorded deleted @1-"}
	if diff := cmp.Diff(want, short(dir, files)); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	again, err := files[0].TakeBack(1)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, a); got != "the user's first line\n"+two {
		t.Errorf("%q", got)
	}
	if err := again(); err != nil || text(t, a) != users {
		t.Errorf("%v, %q", err, text(t, a))
	}
	if _, err := files[0].TakeBack(-1); err != nil || text(t, a) != "the user's first line\n"+one {
		t.Errorf("%v, %q", err, text(t, a))
	}
	if info, err := os.Stat(a); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := files[0].TakeBack(0); !errors.Is(err, ErrMoved) {
		t.Errorf("%v, want ErrMoved", err)
	}
	for _, f := range files[1:] {
		if _, err := f.TakeBack(0); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(b); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("b: %v", err)
	}
	if text(t, gone) != "old\n" {
		t.Errorf("%q", text(t, gone))
	}
	// What was taken back is no change any longer.
	if files, err = Find(t.Context(), dir, nil, snap); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", short(dir, files), err)
	}
	// A call that did not succeed has changed nothing.
	write(t, b, "new\n")
	if files, err = Find(t.Context(), dir, nil, record(acpv2.ToolCallStatusFailed, change{b, "-", "new\n"})); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", short(dir, files), err)
	}
}

// TestOutside: nothing outside of the project is ever written, also not through a link.
func TestOutside(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	secret := filepath.Join(out, "secret")
	write(t, secret, "new\n")
	if err := os.Symlink(out, filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{secret, filepath.Join(dir, "link", "secret"), filepath.Join(dir, "..", filepath.Base(out), "secret")} {
		files, err := Find(t.Context(), dir, nil, record(acpv2.ToolCallStatusCompleted, change{path, "evil\n", "new\n"}))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		if _, err := files[0].TakeBack(0); err == nil {
			t.Errorf("%s was written", path)
		}
		if text(t, secret) != "new\n" {
			t.Fatalf("%q", text(t, secret))
		}
	}
}

// TestCompared: Git knows what commands have changed, what was changed before does not count, and
// both can be told apart in one file.
func TestCompared(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	git("init", "-q")
	empty, err := TakeBase(t.Context(), dir)
	if err != nil || empty == nil {
		t.Fatal(empty, err)
	}
	write(t, in(".gitignore"), "*.log\n")
	for _, name := range []string{"clean", "dirty", "sub/edited", "deleted", "binary", "dir with space/ä\tb"} {
		write(t, in(name), lines(20, nil))
	}
	if files, err := Find(t.Context(), dir, empty); err != nil || len(files) != 7 {
		t.Errorf("%v, %v", short(dir, files), err)
	}
	git("add", ".")
	git("commit", "-q", "-m", "one")
	write(t, in("dirty"), lines(20, map[int]string{2: "the user's"}))
	write(t, in("untracked"), "before\n")
	base, err := TakeBase(t.Context(), in("sub"))
	if err != nil {
		t.Fatal(err)
	}
	if files, err := Find(t.Context(), in("sub"), base); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", short(dir, files), err)
	}
	write(t, in("dirty"), lines(20, map[int]string{2: "the user's", 15: "a command's"}))
	write(t, in("untracked"), "after\n")
	write(t, in("sub/edited"), lines(20, map[int]string{3: "the agent's", 18: "a command's"}))
	write(t, in("dir with space/ä\tb"), "")
	write(t, in("binary"), "\x00")
	write(t, in("made.log"), "ignored")
	write(t, in("made"), "a\nb")
	if err := os.Remove(in("deleted")); err != nil {
		t.Fatal(err)
	}
	git("add", "made")
	git("commit", "-q", "-m", "two") // what an agent commits has changed, too
	snap := record(acpv2.ToolCallStatusCompleted, change{in("sub/edited"), lines(20, nil), lines(20, map[int]string{3: "the agent's"})})
	files, err := Find(t.Context(), dir, base, snap)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"binary compared (binary)", "deleted compared deleted @1" + strings.Repeat("-", 20), "dir with space/ä\tb compared @1" + strings.Repeat("-", 20),
		"dirty compared @2+-", "made compared new @1++", "sub/edited recorded @1+-", "untracked compared @1+-",
	}
	if diff := cmp.Diff(want, short(dir, files)); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	for _, f := range files[1:] {
		if _, err := f.TakeBack(0); err != nil {
			t.Errorf("%s: %v", f.Path, err)
		}
	}
	for name, want := range map[string]string{
		"deleted": lines(20, nil), "dir with space/ä\tb": lines(20, nil), "made": "", "untracked": "before\n",
		"dirty": lines(20, map[int]string{2: "the user's"}), "sub/edited": lines(20, map[int]string{18: "a command's"}),
	} {
		if got := text(t, in(name)); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestHunks: each hunk alone, taken back, leaves exactly the others; at both ends of a file, with
// and without a final line break.
func TestHunks(t *testing.T) {
	for name, c := range map[string][2]string{
		"ends":     {"a\nb\n", "x\na\nb\ny\n"},
		"no break": {"a\nb", "a\nb\nc"},
		"break":    {"a\nb", "a\nb\n"},
		"emptied":  {"a\nb\n", ""},
		"filled":   {"", "a\nb\n"},
		"far":      {lines(40, nil), lines(40, map[int]string{1: "", 20: "twenty", 40: ""})},
		"cr":       {"a\r\nb\r\n", "a\r\nc\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			hunks := len(compare(c[0], c[1]))
			for order := range 2 {
				write(t, path, c[1])
				for range hunks {
					files, err := Find(t.Context(), dir, nil, record(acpv2.ToolCallStatusCompleted, change{path, c[0], c[1]}))
					if err != nil || len(files) != 1 {
						t.Fatalf("%v, %v", short(dir, files), err)
					}
					if _, err := files[0].TakeBack(order * (len(files[0].Hunks) - 1)); err != nil {
						t.Fatal(err)
					}
				}
				if got := text(t, path); got != c[0] {
					t.Errorf("%q, want %q", got, c[0])
				}
			}
		})
	}
}

// FuzzParse: no patch of an agent crashes.
func FuzzParse(f *testing.F) {
	f.Add(patch.Git(patch.File{OldPath: "/a b", NewPath: "/a b", Old: lines(20, nil), New: lines(20, map[int]string{4: "x"})}), "line i\n")
	f.Add("--- a\n+++ b\n@@ -1,9999999999 +1 @@\n\n\\ No newline\n", "")
	f.Fuzz(func(t *testing.T, text, now string) {
		for _, hunks := range parse(text) {
			undo(content([]byte(now)), []step{{hunks: hunks}, {added: true, hunks: hunks}})
		}
	})
}
