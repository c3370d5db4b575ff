package mention

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// tree makes files.
func tree(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("*.log\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func all(string) error { return nil }

// TestWalk: a walk leaves out what nobody mentions, and follows no link out of the directory.
func TestWalk(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	tree(t, dir, "a.go", "sub/b.go", ".hidden/c", "node_modules/d.js", ".e")
	tree(t, outside, "secret", "deep/secret")
	want := []string{"a.go", "sub/", "sub/b.go"}
	for name, to := range map[string]string{"link": outside, "sub/up": filepath.Join("..", "..")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
		want = append(want, name) // as a file: where it leads is not looked at
	}
	slices.SortFunc(want, func(a, b string) int {
		if Less(a, b) {
			return -1
		}
		return 1
	})
	got, err := Walk(t.Context(), dir, all)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q, %v", got, want, err)
	}
	refused := errors.New("not there")
	real := ""
	if _, err := Walk(t.Context(), filepath.Join(dir, "link"), func(path string) error { real = path; return refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
	if want, _ := filepath.EvalSymlinks(outside); real != want {
		t.Errorf("asked about %q, want %q", real, want)
	}
	if _, err := Walk(t.Context(), filepath.Join(dir, "none"), all); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestList: in a git repository what git ignores is left out.
func TestList(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, "a.go", "b.log", ".gitignore")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	if got, want := List(t.Context(), dir), []string{"a.go", ".gitignore"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFind: what is found is bounded, and only what is accepted.
func TestFind(t *testing.T) {
	var files []string
	for i := range 100 {
		files = append(files, fmt.Sprintf("dir/file%d.go", i))
	}
	yes := func(string) bool { return true }
	if got := Find("", files, 3, yes); !slices.Equal(got, files[:3]) {
		t.Errorf("%q", got)
	}
	if got := Find("f42", files, 3, yes); len(got) == 0 || got[0] != "dir/file42.go" {
		t.Errorf("%q", got)
	}
	if got := Find("file", files, 50, func(f string) bool { return f != files[0] }); len(got) != 50 || slices.Contains(got, files[0]) {
		t.Errorf("%q", got)
	}
	if got := Find("zzz", files, 3, yes); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// TestWalkEnds: a walk that ends early because nobody needs it fails: what it has is not all there is.
func TestWalkEnds(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, "a.go")
	leaves := errors.New("nobody waits for it")
	ctx, cancel := context.WithCancelCause(t.Context())
	if got, err := Walk(ctx, dir, func(string) error { cancel(leaves); return nil }); !errors.Is(err, leaves) || len(got) > 0 {
		t.Errorf("%q, %v", got, err)
	}
}

// TestMaxBytes: the names are bounded, however long they are.
func TestMaxBytes(t *testing.T) {
	const long = 1000
	dir := make(fstest.MapFS)
	for i := range 2 * MaxBytes / long {
		dir[fmt.Sprintf("%0*d", long, i)] = new(fstest.MapFile)
	}
	if n := len(walkFiles(t.Context(), dir)); n != MaxBytes/long {
		t.Errorf("%d files, want %d", n, MaxBytes/long)
	}
	deep, size := strings.Repeat("d/", 4*long), 0
	for _, name := range directories([]string{deep + "file", "x" + deep + "file"}) {
		size += len(name)
	}
	if size > MaxBytes || size < MaxBytes-2*len(deep) {
		t.Errorf("directories of %d bytes", size)
	}
}

// TestLarge: all files of a large repository are found, and a list that is cut says so.
func TestLarge(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	var index strings.Builder // names alone, which need no files
	for i := range 30_000 {
		fmt.Fprintf(&index, "100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 0\tdir%d/file%d.go\n", i/1000, i)
	}
	add := exec.CommandContext(t.Context(), "git", "-C", dir, "update-index", "--index-info")
	add.Stdin = strings.NewReader(index.String())
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files := List(t.Context(), dir)
	if got := Find("file29999", files, 1, func(string) bool { return true }); !slices.Equal(got, []string{"dir29/file29999.go"}) {
		t.Errorf("of %d files: %q", len(files), got)
	}
	if IsCut(files) || !IsCut(slices.Repeat([]string{"a"}, MaxFiles)) || !IsCut(slices.Repeat([]string{strings.Repeat("a", 1000)}, MaxBytes/1000)) {
		t.Error("whether it is cut is wrong")
	}
}
