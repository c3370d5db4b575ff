package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// within makes a policy that permits one directory.
type within struct {
	rights
	dir string
}

func (w *within) Directory(dir string) error {
	if !w.MayWorkIn(dir) {
		return refusal("policy.directory")
	}
	return nil
}

func (w *within) MayWorkIn(dir string) bool {
	return dir == w.dir || strings.HasPrefix(dir, w.dir+string(filepath.Separator))
}

// found asks for files.
func (c *client) found(t *testing.T, p FilesRequest) ([]string, error) {
	t.Helper()
	res, err := FilesMethod.Call(t.Context(), c.conn.Conn(), &p)
	if err != nil {
		return nil, err
	}
	return res.Files, nil
}

// TestFiles: who may send prompts gets the files of a session's directory that match, on any node; nobody else does.
func TestFiles(t *testing.T) {
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"main.go", "src/deep/other.go", "src/readme.md", "src/bad\x01name", ".hidden"} {
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	a := newMember(t, dir, "a", talking(nil))
	b := newMember(t, dir, "b", talking(nil), func(c *Config) { c.Workspaces = []string{"/nowhere"} })
	byUser(a.rig)
	byUser(b.rig)
	for _, many := range []bool{false, true} {
		a.g.cfg.Many = many
		a.g.cfg.Policy = func(string, []string) Policy { return &within{dir: work} }
		s, err := a.as("ann", 2).conn.NewSession(t.Context(), acp.SessionConfig{Cwd: work})
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range []*member{a, b} {
			c := node.as("ann", 2)
			for query, want := range map[string][]string{
				"": {"main.go", "src/"}, "main": {"main.go"}, "readme": {"src/readme.md"}, "other": {"src/deep/other.go"}, "bad": nil, "../": nil,
			} {
				got, err := c.found(t, FilesRequest{SessionID: s.ID(), Query: query, Limit: 2})
				if err != nil || !cmp.Equal(append([]string{}, want...), got) {
					t.Errorf("many %t, node %s, %q: %q, want %q, %v", many, node.name, query, got, want, err)
				}
			}
			for _, p := range []FilesRequest{{Limit: -1}, {Limit: 51}, {Query: strings.Repeat("x", maxFileQuery+1)}} {
				p.SessionID = s.ID()
				if _, err := c.found(t, p); code(err) != jsonrpc.CodeInvalidParams {
					t.Errorf("limit %d, %d bytes: %v", p.Limit, len(p.Query), err)
				}
			}
		}
		a.as("ann", 2).share(t, s.ID(), "bob", RoleViewer)
		if _, err := a.as("bob", 2).found(t, FilesRequest{SessionID: s.ID()}); err == nil || !strings.Contains(err.Error(), "list files") {
			t.Errorf("a viewer: %v", err)
		}
	}
}

// TestFilesElsewhere: a directory that was replaced by a link to elsewhere is not listed.
func TestFilesElsewhere(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := filepath.Join(base, "mine"), filepath.Join(base, "theirs")
	for _, d := range []string{filepath.Join(mine, "work"), theirs} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(theirs, "secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, talking(nil))
	r.g.cfg.Many = true
	r.g.cfg.Policy = func(string, []string) Policy { return &within{dir: mine} } // which does not follow links
	c := r.connect(2)
	s, err := c.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: filepath.Join(mine, "work")})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(mine, "work")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(theirs, filepath.Join(mine, "work")); err != nil {
		t.Skip(err)
	}
	if got, err := c.found(t, FilesRequest{SessionID: s.ID()}); err == nil || strings.Contains(err.Error(), theirs) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestFileLists: what is remembered of directories is bounded.
func TestFileLists(t *testing.T) {
	var l fileLists
	listed := 0
	for i := range 2 * maxFileLists {
		for range 2 {
			files, err := l.of(t.Context(), "ann", fmt.Sprint(i), func() ([]string, error) {
				listed++
				return []string{"good", "b\xffd", "b\u202ed"}, nil
			})
			if err != nil || !cmp.Equal(files, []string{"good"}) {
				t.Errorf("%q, %v", files, err)
			}
		}
	}
	if len(l.all) != maxFileLists || listed != 2*maxFileLists {
		t.Errorf("%d lists are remembered, %d were made", len(l.all), listed)
	}
}

// TestFilesFound: files are looked for in so many directories at a time, and a request that ends while it waits looks for
// none; lists expire.
func TestFilesFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l fileLists
		var finding sync.WaitGroup
		looking, goOn := make(chan bool, 10), make(chan struct{})
		for range 5 * maxFinding {
			finding.Go(func() {
				if found, err := l.find(t.Context(), func() []string { looking <- true; <-goOn; return []string{"x"} }); err != nil || len(found) != 1 {
					t.Error(found, err)
				}
			})
		}
		synctest.Wait()
		if n := len(looking); n != maxFinding {
			t.Errorf("files are looked for %d times at once", n)
		}
		leaves := errors.New("the client leaves")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(leaves)
		if _, err := l.find(ctx, func() []string { t.Error("it was looked"); return nil }); !errors.Is(err, leaves) {
			t.Error(err)
		}
		close(goOn)
		finding.Wait()
		list := func() ([]string, error) { return []string{"x"}, nil }
		for i := range 3 {
			if _, err := l.of(t.Context(), "ann", fmt.Sprint(i), list); err != nil {
				t.Error(err)
			}
			time.Sleep(filesFor / 2)
		}
		l.expire()
		if len(l.all) != 1 || l.all[0].dir != "2" {
			t.Errorf("%d lists", len(l.all))
		}
	})
}
