package seek

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree makes files, by their paths; a path that ends with a slash is a directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		parent := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			parent = path
		}
		if err := os.MkdirAll(parent, 0o700); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "/") {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// visited runs a walk and returns the paths from top on, sorted.
func visited(t *testing.T, top string, w Walk) ([]string, Seen) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	w.Visit = func(_ int, path string) {
		rel, err := filepath.Rel(top, path)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, filepath.ToSlash(rel))
	}
	seen := w.Run(t.Context())
	slices.Sort(all)
	return all, seen
}

// TestWalk: which files are visited.
func TestWalk(t *testing.T) {
	top := tree(t, map[string]string{
		"repo/.git/info/exclude": "excluded\n", "repo/.git/config": "", "repo/.gitignore": "*.log\n/build/\nvendor\n!keep.log\n",
		"repo/a.go": "", "repo/a.log": "", "repo/keep.log": "", "repo/excluded": "", "repo/build/x.go": "", "repo/.hidden/h.go": "",
		"repo/sub/b.go": "", "repo/sub/b.ts": "", "repo/sub/b.log": "", "repo/sub/.gitignore": "*.ts\n!b.log\n", "repo/sub/build/c.go": "",
		"repo/sub/vendor/v/v.go": "", "repo/sub/vendor/v/v.log": "", "repo/sub/deep/.gitignore": "!d.ts\n", "repo/sub/deep/d.ts": "",
		"outside.log": "",
	})
	repo := filepath.Join(top, "repo")
	if err := os.Symlink(filepath.Join(top, "outside.log"), filepath.Join(repo, "link")); err != nil {
		t.Log(err) // a system without links
	}
	for _, test := range []struct {
		dir, base, glob string
		ignored         bool
		want            string
	}{
		{"repo", "repo", "", false, ".gitignore .hidden/h.go a.go keep.log sub/.gitignore sub/b.go sub/b.log sub/build/c.go sub/deep/.gitignore sub/deep/d.ts"},
		{"repo", "repo", "*.go", true, ".hidden/h.go a.go build/x.go sub/b.go sub/build/c.go sub/vendor/v/v.go"},
		{"repo/sub", "repo/sub", "", false, "sub/.gitignore sub/b.go sub/b.log sub/build/c.go sub/deep/.gitignore sub/deep/d.ts"}, // rules of above hold
		{"repo/sub", "repo", "*.{go,ts}", false, "sub/b.go sub/build/c.go sub/deep/d.ts"},
		{"repo/sub", "repo", "sub/*.go", false, "sub/b.go"}, // from the base on
		{"repo/sub", "repo", "deep/*", false, "sub/deep/.gitignore sub/deep/d.ts"},
		{"repo/sub", "repo", "./deep/*", true, "sub/deep/.gitignore sub/deep/d.ts"},
		{"repo/sub", "repo", "sub/*.go", true, "sub/b.go"},
		{"repo", "repo", "build", false, "sub/build/c.go"},
		{"repo", "repo", "build", true, "build/x.go sub/build/c.go"},
		{"repo", "repo", "!*.go", false, ".gitignore keep.log sub/.gitignore sub/b.log sub/deep/.gitignore sub/deep/d.ts"},
		{"repo/sub/vendor", "repo", "", false, "sub/vendor/v/v.go sub/vendor/v/v.log"}, // asked for by name
		{"repo/build", "repo", "*.go", false, "build/x.go"},
		{".", ".", "*.go", false, "../repo/.hidden/h.go ../repo/a.go ../repo/sub/b.go ../repo/sub/build/c.go"},
	} {
		w := Walk{Dir: filepath.Join(top, test.dir), Base: filepath.Join(top, test.base), Ignored: test.ignored}
		if test.glob != "" {
			w.Glob = NewGlob(test.glob)
		}
		from := repo
		if test.dir == "." {
			from = filepath.Join(top, "x")
		}
		got, seen := visited(t, from, w)
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" || seen.Fitting != len(got) {
			t.Errorf("%+v: %+v: %s", test, seen, diff)
		}
	}
	_, seen := visited(t, repo, Walk{Dir: repo, Base: repo})
	if diff := cmp.Diff(Seen{Files: 10, Fitting: 10, Ignored: Ignored{Files: 3, Dirs: 2, Names: []string{"build/", "vendor/"}}}, seen); diff != "" {
		t.Error(diff)
	}
}

// TestWalkMany: each of many files is visited once, also those of one large directory, and a
// walk that is given up ends.
func TestWalkMany(t *testing.T) {
	files := map[string]string{}
	for i := range 1500 {
		files[fmt.Sprintf("large/f%d", i)] = ""
		files[fmt.Sprintf("d%d/e%d/f%d", i%7, i%31, i)] = ""
	}
	dir := tree(t, files)
	got, seen := visited(t, dir, Walk{Dir: dir, Base: dir})
	if len(got) != 3000 || len(slices.Compact(got)) != 3000 || seen.Files != 3000 {
		t.Errorf("%d files, %+v", len(got), seen)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	w := Walk{Dir: dir, Base: dir, Visit: func(int, string) { once.Do(cancel) }}
	w.Run(ctx)
	got, seen = visited(t, dir, Walk{Dir: filepath.Join(dir, "none"), Base: dir})
	if len(got) > 0 || seen.Closed != 1 {
		t.Errorf("%v, %+v", got, seen)
	}
}

// TestIgnoredNames: of many ignored directories the same are named each time.
func TestIgnoredNames(t *testing.T) {
	files := map[string]string{".gitignore": "skip*/\n"}
	for i := range 40 {
		files[fmt.Sprintf("d%d/skip%02d/f", i%5, 39-i)] = ""
	}
	dir := tree(t, files)
	for range 10 {
		_, seen := visited(t, dir, Walk{Dir: dir, Base: dir})
		if got := strings.Join(seen.Ignored.Names, " "); got != "skip00/ skip01/ skip02/" || seen.Ignored.Dirs != 40 {
			t.Errorf("%d: %s", seen.Ignored.Dirs, got)
		}
	}
}

// TestWalkDeep: what is too deep is left out, which is said.
func TestWalkDeep(t *testing.T) {
	dir := tree(t, map[string]string{strings.Repeat("d/", MaxDepth) + "f": "", strings.Repeat("d/", MaxDepth+1) + "g": ""})
	got, seen := visited(t, dir, Walk{Dir: dir, Base: dir})
	if len(got) != 1 || !seen.Deep {
		t.Errorf("%v, %+v", got, seen)
	}
}

// TestRead: what is read of files, one after the other.
func TestRead(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", MaxFile/16)
	dir := tree(t, map[string]string{
		"empty": "", "small": "a\n", "first": strings.Repeat("x", firstRead), "more": strings.Repeat("y", 3*firstRead+1), "most": big,
		"large": big + "x", "binary": "\x89PNG\x00", "late": strings.Repeat("z", headBytes) + "\x00", "dir/": "",
	})
	var r Reader
	for _, test := range []struct {
		name string
		kind Kind
	}{
		{"most", Text}, {"small", Text}, {"large", Large}, {"empty", Text}, {"binary", Binary}, {"late", Text}, {"first", Text}, {"more", Text}, {"none", NotRead}, {"dir", NotRead},
	} {
		path := filepath.Join(dir, test.name)
		data, kind := r.Read(path)
		want, _ := os.ReadFile(path)
		if kind != test.kind || kind == Text && string(data) != string(want) {
			t.Errorf("%s: %d bytes, %d", test.name, len(data), kind)
		}
	}
}

func TestLines(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a\nb": "a\nb", "a\r\nb\r\n": "a\nb\n", "a\rb\r\n\r\n": "a\rb\n\n", "a\r": "a", "\r\r\nx": "\nx", "a\nb\r\r\n": "a\nb\n", "\r\n": "\n",
	} {
		if got := string(Lines([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
