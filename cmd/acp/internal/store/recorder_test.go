package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/transcript"
)

// childEnv has the directory of the store for a copy of the test program that only writes to it.
const childEnv = "STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		var err error
		if shared := os.Getenv(sharedEnv); shared != "" {
			err = writeShared(dir, shared, os.Getenv(nameEnv))
		} else {
			err = writeForEver(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	leaktest.Main(m)
}

// writeForEver appends events and says what was written last.
func writeForEver(dir string) error {
	s, err := Open(context.Background(), Options{Path: dir})
	if err != nil {
		return err
	}
	o := RecordOptions{Trouble: func(_ string, err error) { fmt.Fprintln(os.Stderr, err); os.Exit(1) }}
	rec := s.Record(Session{Key: Key{"a", "x"}}, o)
	if v, err := s.Latest(context.Background(), Key{"a", "x"}); err == nil {
		was, err := s.Resume(context.Background(), v.Conversation, o, func(*transcript.Snapshot) bool { return false })
		if err != nil {
			return err
		}
		rec = was.Recorder
	}
	fmt.Println(rec.Conversation())
	for n := 0; n < 1_000_000; {
		batch := make([]Event, 1+n%7)
		for i := range batch {
			batch[i] = chunk("agent", "m", strings.Repeat("x", 10*(n%100)))
			n++
		}
		rec.Append(batch...)
		rec.mu.Lock()
		behind := rec.behind
		rec.mu.Unlock()
		if !behind { // else the machine is so busy that it is shown before it is written
			fmt.Println(rec.w.Head().Seq)
		}
	}
	return nil
}

// TestKill kills processes that write, again and again: everything they said was written is there.
// STORE_TEST_KILLS is how often.
func TestKill(t *testing.T) {
	rounds := 20
	if !long.All() {
		rounds = 5
	}
	if n, err := strconv.Atoi(os.Getenv("STORE_TEST_KILLS")); err == nil {
		rounds = n
	}
	dir := t.TempDir()
	s := openTest(t, dir)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range rounds {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), childEnv+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() {
			t.Fatal("the writer has ended")
		}
		id, acknowledged := lines.Text(), uint64(0)
		number := func() {
			if acknowledged, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		for range 1 + rand.IntN(40) {
			if !lines.Scan() {
				t.Fatal("the writer has ended")
			}
			number()
		}
		timer := time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		for lines.Scan() {
			number()
		}
		timer.Stop()
		_ = cmd.Wait()
		last := uint64(0)
		damage, err := s.read(t.Context(), id, func(r *journal.Record) bool {
			if r.Seq != last+1 {
				t.Fatalf("record %d after %d", r.Seq, last)
			}
			last = r.Seq
			return true
		})
		if err != nil || damage != nil {
			t.Fatal(damage, err)
		}
		if last < acknowledged {
			t.Fatalf("%d records, %d were acknowledged", last, acknowledged)
		}
	}
}

// faults is a file system that fails or blocks on demand.
type faults struct {
	file.System
	mu    sync.Mutex
	err   error         // of writes, after half of what is to be written
	stall chan struct{} // writes block while it is open
}

func (f *faults) set(err error, stall chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.stall = err, stall
}

func (f *faults) now() (stall chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stall, f.err
}

func (f *faults) Open(name string, flag int) (file.File, error) {
	if _, err := f.now(); err != nil && flag&os.O_EXCL != 0 {
		return nil, err
	}
	h, err := f.System.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return &faultyFile{h, f}, nil
}

// Lock implements [file.Disk].
func (f *faults) Lock(h file.File, exclusive bool) (bool, error) {
	return f.System.Lock(h.(*faultyFile).File, exclusive)
}

type faultyFile struct {
	file.File
	f *faults
}

func (f *faultyFile) Write(b []byte) (int, error) {
	stall, err := f.f.now()
	if stall != nil {
		<-stall
		return f.File.Write(b)
	}
	if err != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, err
	}
	return f.File.Write(b)
}

func (f *faults) Truncate(name string, size int64) error {
	if _, err := f.now(); errors.Is(err, syscall.EIO) {
		return err // not even that
	}
	return f.System.Truncate(name, size)
}

// troubles are what a recorder told.
type troubles struct {
	mu   sync.Mutex
	list []string
}

func (l *troubles) add(_ string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, fmt.Sprint(err))
}

func (l *troubles) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.list...)
}

// TestFailing: what cannot be written is tried until it is, and told once; nothing is lost, also what a
// write has left behind that was cut off.
func TestFailing(t *testing.T) {
	for _, fault := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EIO} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprint(fault, first), func(t *testing.T) {
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					disk := new(faults)
					s := openWith(t, Options{Path: dir, Normal: true, Disk: disk})
					defer s.Close()
					var told troubles
					rec := s.Record(Session{Key: key}, RecordOptions{Trouble: told.add})
					if !first {
						rec.Append(chunk("agent", "m", "0 "))
					}
					disk.set(fault, nil)
					begin := time.Now()
					for i := 1; i <= 100; i++ {
						rec.Append(chunk("agent", "m", fmt.Sprintf("%d ", i)))
					}
					if took := time.Since(begin); took > appendWait {
						t.Errorf("Append took %v", took)
					}
					time.Sleep(time.Hour)
					if got := told.all(); len(got) != 1 || !strings.Contains(got[0], fault.Error()) {
						t.Errorf("told %q", got)
					}
					disk.set(nil, nil)
					time.Sleep(5 * time.Second) // the longest pause
					synctest.Wait()
					if got := told.all(); len(got) != 2 || got[1] != "<nil>" {
						t.Errorf("told %q", got)
					}
					rec.Append(chunk("agent", "m", "the end"))
					if err := rec.Close(); err != nil {
						t.Error(err)
					}
					want := ""
					for i := range 101 {
						if i > 0 || !first {
							want += fmt.Sprintf("%d ", i)
						}
					}
					if got, damage := messages(t, s, rec.Conversation()); !cmp.Equal(got, []string{"agent: " + want + "the end"}) || damage != nil {
						t.Errorf("%q, %v", got, damage)
					}
				})
			})
		}
	}
}

// TestAppendWait: what Append was called with is written when it returns, unless the disk takes longer than an option
// says.
func TestAppendWait(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disk := new(faults)
		s := openWith(t, Options{Path: dir, Disk: disk, AppendWait: time.Second})
		defer s.Close()
		rec := s.Record(Session{Key: key}, RecordOptions{})
		rec.Append(chunk("user", "0", "before"))
		if data, err := os.ReadFile(filepath.Join(s.dir, rec.id+".jsonl")); err != nil || !bytes.Contains(data, []byte("before")) {
			t.Errorf("Append returns before a disk that works has what it was called with: %v: %s", err, data)
		}
		stall := make(chan struct{})
		disk.set(nil, stall)
		begin := time.Now()
		rec.Append(chunk("agent", "m", "x"))
		if took := time.Since(begin); took != time.Second {
			t.Errorf("Append took %v", took)
		}
		close(stall)
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestStalled: a disk that does not answer holds Append up for 100 ms, once, up to the bound of what
// is kept in memory; another conversation is not affected.
func TestStalled(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disk := new(faults)
		s := openWith(t, Options{Path: dir, Disk: disk})
		defer s.Close()
		other := openWith(t, Options{Path: dir, Normal: true})
		defer other.Close()
		var told troubles
		rec := s.Record(Session{Key: key}, RecordOptions{Trouble: told.add})
		rec.Append(chunk("user", "0", "before"))
		stall := make(chan struct{})
		disk.set(nil, stall)
		begin := time.Now()
		rec.Append(chunk("agent", "m", "x"))
		if took := time.Since(begin); took != appendWait {
			t.Errorf("the first took %v", took)
		}
		begin = time.Now()
		text := strings.Repeat("x", 1<<20)
		n := 1
		for ; n < journal.MaxBacklog>>20; n++ {
			rec.Append(chunk("agent", "m", text))
		}
		write(t, other, Session{Key: key}, Event{Kind: journal.KindEnd})
		if took := time.Since(begin); took != 0 {
			t.Errorf("those behind it took %v", took)
		}
		rec.Append(chunk("agent", "m", text)) // up to the bound, and over it
		n++
		blocked := make(chan struct{})
		go func() {
			rec.Append(chunk("agent", "m", "last"))
			close(blocked)
		}()
		time.Sleep(time.Minute)
		select {
		case <-blocked:
			t.Error("it did not wait at the bound")
		default:
		}
		if got := told.all(); !cmp.Equal(got, []string{ErrStalled.Error()}) {
			t.Errorf("told %q", got)
		}
		disk.set(nil, nil)
		close(stall)
		<-blocked
		synctest.Wait()
		if got := told.all(); len(got) != 2 || got[1] != "<nil>" {
			t.Errorf("told %q", got)
		}
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
		if got := all(t, s, rec.Conversation()); len(got) != n+2 || !strings.Contains(string(got[n+1].Data), "last") {
			t.Errorf("%d events, want %d", len(got), n+2)
		}
	})
}

// TestCloseFailing: a recorder that cannot write is closed all the same, and says what is lost.
func TestCloseFailing(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disk := new(faults)
		s := openWith(t, Options{Path: dir, Normal: true, Disk: disk})
		defer s.Close()
		stall := make(chan struct{})
		for _, fault := range []error{syscall.ENOSPC, nil} {
			rec := s.Record(Session{Key: key}, RecordOptions{})
			if fault == nil {
				disk.set(nil, stall)
			} else {
				disk.set(fault, nil)
			}
			rec.Append(chunk("agent", "m", "x"))
			begin := time.Now()
			if err := rec.Close(); !errors.Is(err, ErrUnsaved) {
				t.Errorf("%v: Close: %v", fault, err)
			}
			if took := time.Since(begin); took > closeAfter {
				t.Errorf("%v: Close took %v", fault, took)
			}
			rec.Append(chunk("agent", "m", "dropped"))
			if err := rec.Close(); err != nil {
				t.Errorf("%v: again: %v", fault, err)
			}
		}
		close(stall)
	})
}

// TestIndexOutOfUse: sessions are listed, found, searched and deleted whatever is wrong with the index,
// and nothing of it keeps a conversation from being written.
func TestIndexOutOfUse(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, s *Store){
		"deleted": func(t *testing.T, s *Store) {
			if err := errors.Join(os.Remove(s.index.path()), os.RemoveAll(s.index.path()+"-wal")); err != nil {
				t.Fatal(err)
			}
		},
		"locked": func(t *testing.T, s *Store) {
			db := openIndex(t, s.index.path())
			db.SetMaxOpenConns(1)
			do(t, db, `PRAGMA locking_mode = EXCLUSIVE`)
			do(t, db, `BEGIN IMMEDIATE`)
			do(t, db, `UPDATE session SET title = 'x'`)
		},
		"garbage": func(t *testing.T, s *Store) {
			if err := os.WriteFile(s.index.path(), []byte(strings.Repeat("garbage\n", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"damaged": func(t *testing.T, s *Store) {
			f, err := os.OpenFile(s.index.path(), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			info, _ := f.Stat()
			for at := int64(4096); at < info.Size(); at += 512 {
				if _, err := f.WriteAt([]byte("garbage"), at); err != nil {
					t.Fatal(err)
				}
			}
		},
		"value of another type": func(t *testing.T, s *Store) {
			db := openIndex(t, s.index.path())
			do(t, db, `UPDATE session SET protocol = 'x' WHERE id = 1`)
			db.Close()
		},
		"foreign": func(t *testing.T, s *Store) {
			db := openIndex(t, s.index.path())
			do(t, db, `PRAGMA application_id = 7`)
			db.Close()
		},
		"newer": func(t *testing.T, s *Store) {
			db := openIndex(t, s.index.path())
			do(t, db, `PRAGMA user_version = 99`)
			db.Close()
		},
		"a directory": func(t *testing.T, s *Store) {
			if err := errors.Join(os.Remove(s.index.path()), os.Mkdir(s.index.path(), 0o700)); err != nil {
				t.Fatal(err)
			}
		},
		"table gone": func(t *testing.T, s *Store) {
			db := openIndex(t, s.index.path())
			do(t, db, `DROP TABLE chunk`)
			db.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, filepath.Join(t.TempDir(), "kept"))
			ids := map[string]string{}
			for i := range 5 {
				id := fmt.Sprint("s", i)
				ids[id] = write(t, s, Session{Key: Key{"a", id}, Title: "Title"}, chunk("agent", "m", "word"+id), Event{Kind: journal.KindEnd})
			}
			if found, err := s.List(t.Context(), Query{}); err != nil || len(found) != 5 {
				t.Fatal(found, err)
			}
			// A list does not wait for an index that takes long to be made.
			if err := s.index.use(t.Context(), time.Minute, func(context.Context, *index) error { return nil }); err != nil {
				t.Fatal(err)
			}
			spoil(t, s)
			ids["s5"] = write(t, s, Session{Key: Key{"a", "s5"}}, chunk("agent", "m", "words5"), Event{Kind: journal.KindEnd})
			for text, want := range map[string]int{"": 6, "title": 5, "words5": 1, "words3": 1} {
				if found, err := s.List(t.Context(), Query{Text: text}); err != nil || len(found) != want {
					t.Errorf("%q: %d, %v, want %d", text, len(found), err, want)
				}
			}
			if v, err := s.Find(t.Context(), "", "s3"); err != nil || v.Conversation != ids["s3"] {
				t.Errorf("%+v, %v", v, err)
			}
			if err := s.Delete(t.Context(), ids["s3"]); err != nil {
				t.Error(err)
			}
			if found, err := s.List(t.Context(), Query{Text: "words3"}); err != nil || len(found) != 0 {
				t.Errorf("deleted: %d, %v", len(found), err)
			}
		})
	}
}

// TestGoroutines has writers, readers and searches at once on one store.
func TestGoroutines(t *testing.T) {
	s := openTest(t, t.TempDir())
	var work sync.WaitGroup
	ids := make([]string, 4)
	for i := range ids {
		rec := s.Record(Session{Key: Key{"a", fmt.Sprint("s", i)}}, RecordOptions{})
		ids[i] = rec.Conversation()
		work.Go(func() {
			for n := range 20 {
				rec.Put(Session{Key: Key{"a", fmt.Sprint("s", i)}, Title: fmt.Sprint("t", n)})
				rec.Append(chunk("agent", "m", "word "), Event{Kind: journal.KindEnd})
			}
			if err := rec.Close(); err != nil {
				t.Error(err)
			}
		})
		work.Go(func() {
			for range 5 {
				if _, err := s.List(t.Context(), Query{Text: "word"}); err != nil {
					t.Error(err)
				}
				if _, _, err := s.Snapshot(t.Context(), ids[i], Bounds()); err != nil && !errors.Is(err, ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	for i, id := range ids {
		if got, err := s.Find(t.Context(), "a", fmt.Sprint("s", i)); err != nil || got.Conversation != id || got.Turns != 20 || got.Events != 40 || got.Title != "t19" {
			t.Errorf("%+v, %v, want 20 turns, 40 events", got, err)
		}
	}
}
