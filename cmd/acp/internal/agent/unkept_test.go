package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

type noLocks struct{ file.System }

func (noLocks) Lock(file.File, bool) (bool, error) { return false, errors.ErrUnsupported }

// A fixedDisk lets nobody create a file, or nobody write one.
type fixedDisk struct {
	file.System
	err   error
	write bool
}

func (d fixedDisk) Open(name string, flag int) (file.File, error) {
	_, err := os.Stat(name)
	if create := flag&os.O_CREATE != 0 && err != nil; create || d.write && flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		return nil, &os.PathError{Op: "open", Path: name, Err: d.err}
	}
	return d.System.Open(name, flag)
}

// files are those of a directory whose names match, but for locks, which have nothing in them.
func files(t *testing.T, dir, pattern string) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, _ := filepath.Glob(filepath.Join(dir, pattern))
	for _, name := range names {
		if strings.HasSuffix(name, ".lock") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = string(data)
	}
	return all
}

// TestUnkept: a session that exists can be opened, read and forked where nothing can be written. The user is told that it is
// not kept.
func TestUnkept(t *testing.T) {
	const said = `"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":"I was here"}]`
	kinds := map[string]func(*testing.T, *talk, *store){
		"journal": func(t *testing.T, k *talk, s *store) {
			j, err := s.create("s1", about{Cwd: k.cwd}, journal.Draft{Kind: journal.KindUpdate, Data: []byte("{" + said + "}")})
			if err == nil {
				err = j.close()
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"old": func(t *testing.T, k *talk, s *store) {
			putOld(t, s, "s1", fmt.Sprintf(`{"acpSession":2,"id":"s1","cwd":%q}`+"\n"+`{"update":{`+said+"}}\n", k.cwd))
		},
	}
	for disk, d := range map[string]file.Disk{
		"no locks": noLocks{}, "full": fixedDisk{err: syscall.ENOSPC}, "read-only": fixedDisk{err: syscall.EROFS, write: true},
		"a directory of somebody else": fixedDisk{err: syscall.EACCES},
	} {
		for kind, put := range kinds {
			t.Run(disk+"/"+kind, func(t *testing.T) {
				k, v := grab(t)
				s := v.agent.store
				put(t, k, s)
				before, whole := files(t, k.dir, "*.*"), s.c
				s.c = file.Open(s.dir, file.Options{Options: journal.Options{GiveUp: true}, Disk: d})
				cfg := acp.SessionConfig{Cwd: k.cwd}
				if _, err := v.agent.setTitle(t.Context(), new(acp.AgentConn), "s1", "x"); err == nil || !strings.Contains(err.Error(), "cannot be saved") {
					t.Errorf("named: %v", err)
				}
				k.taken()
				opened, err := k.conn.Load(t.Context(), "s1", cfg)
				if err != nil {
					t.Fatal(err)
				}
				contains(t, k.taken(), "I was here")
				forked, err := k.conn.Fork(t.Context(), "s1", cfg)
				if err != nil {
					t.Fatal(err)
				}
				for _, now := range []*acp.ClientSession{opened, forked} {
					k.session = now
					contains(t, k.tell("/usage"), "Prompts in this session: 2", "This session cannot be saved: ")
					lacks(t, k.tell("/usage"), "cannot be saved")
					if err := now.SetMode(t.Context(), modeReadOnly); err != nil {
						t.Error(err)
					}
					if now == opened {
						k.taken()
						if _, err := k.conn.Load(t.Context(), "s1", cfg); err != nil { // its history once more
							t.Error(err)
						}
						contains(t, k.taken(), "I was here")
					}
					if err := now.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if diff := cmp.Diff(before, files(t, k.dir, "*.*")); diff != "" {
					t.Errorf("the files have changed: %s", diff)
				}
				s.c = whole
				if k.session, err = k.conn.Load(t.Context(), "s1", cfg); err != nil {
					t.Fatal(err)
				}
				told := k.tell("/usage")
				contains(t, told, "Prompts in this session: 2")
				lacks(t, told, "cannot be saved")
			})
		}
	}
}

// TestUnkeptDamage: a journal that an attempt to take a session over has left, and that is damaged, stays. The session is
// what the old file has.
func TestUnkeptDamage(t *testing.T) {
	s := stored(t.TempDir())
	k, err := s.create("s1", about{}, saying(10), saying(10))
	if err == nil {
		err = k.close()
	}
	data, readErr := os.ReadFile(s.path("s1"))
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "xxx", "\x00\x00\x00", 1)
	putOld(t, s, "s1", goodHeader+oldLine("a"))
	if err := os.WriteFile(s.path("s1"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	before, n := files(t, s.dir, "*.*"), 0
	k, err = s.open("s1", func(entry) { n++ })
	if err != nil || n != 1 || k.about.Cwd != "/x" || !errors.As(k.lost, new(*journal.DamageError)) {
		t.Fatalf("%d entries, %v", n, err)
	}
	if err := errors.Join(k.close(), s.read("s1", func(journal.Draft) error { n++; return nil })); err != nil || n != 3 {
		t.Errorf("read %d entries, %v", n-1, err)
	}
	if diff := cmp.Diff(before, files(t, s.dir, "*.*")); diff != "" {
		t.Errorf("the files have changed: %s", diff)
	}
}

// TestUnkeptFork: a disk that gets full while a session is copied takes nothing of what the fork knows, and no half of a copy
// stays.
func TestUnkeptFork(t *testing.T) {
	s := stored(t.TempDir())
	k, err := s.create("s1", about{Cwd: "/x"})
	for range 5 {
		if err == nil {
			err = k.add(saying(copyBytes / 2))
		}
	}
	if err == nil {
		err = k.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	before := files(t, s.dir, "s*")
	for most := range 3 {
		var left atomic.Int64
		left.Store(int64(most * copyBytes))
		s.c = file.Open(s.dir, file.Options{Options: journal.Options{GiveUp: true}, Disk: smallDisk{left: &left}})
		n := 0
		fork, err := s.copyOf("s1", "s2", about{Cwd: "/y"}, func(entry) { n++ })
		if err != nil || n != 5 || !errors.Is(fork.lost, syscall.ENOSPC) {
			t.Fatalf("with room for %d bytes: %d entries, %v", most*copyBytes, n, err)
		}
		for name, err := range map[string]error{
			"add": fork.add(saying(1)), "set": fork.set(func(a *about) { a.Title = "x" }), "sync": fork.sync(),
		} {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := fork.close(); err != nil {
			t.Error(err)
		}
		after := files(t, s.dir, "s*")
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("with room for %d bytes files have changed: %s", most*copyBytes, strings.Join(strings.Fields(diff), " "))
		}
	}
}

// A smallDisk has room for some bytes.
type smallDisk struct {
	file.System
	left *atomic.Int64
}

type smallFile struct {
	file.File
	left *atomic.Int64
}

func (d smallDisk) Open(name string, flag int) (file.File, error) {
	f, err := d.System.Open(name, flag)
	return smallFile{f, d.left}, err
}

func (d smallDisk) Lock(f file.File, exclusive bool) (bool, error) {
	return d.System.Lock(f.(smallFile).File, exclusive)
}

func (f smallFile) Write(b []byte) (int, error) {
	if f.left.Add(-int64(len(b))) < 0 {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(b)
}
