package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A counting is a file system that counts the files that are open, and what is read at once.
type counting struct {
	System
	mu         sync.Mutex
	open, most int
	largest    int   // read at once
	syncErr    error // of syncs
	syncs      int
	wrote      map[int64]int // bytes by the offset of a WriteAt
}

type countedFile struct {
	File
	c *counting
}

func (c *counting) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := c.System.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	c.most = max(c.most, c.open)
	return &countedFile{f, c}, nil
}

func (c *counting) TryLock(f File, exclusive bool) (bool, error) {
	return c.System.TryLock(f.(*countedFile).File, exclusive)
}

func (f *countedFile) Close() error {
	f.c.mu.Lock()
	f.c.open--
	f.c.mu.Unlock()
	return f.File.Close()
}

func (f *countedFile) ReadAt(b []byte, at int64) (int, error) {
	f.c.mu.Lock()
	f.c.largest = max(f.c.largest, len(b))
	f.c.mu.Unlock()
	return f.File.ReadAt(b, at)
}

func (f *countedFile) WriteAt(b []byte, at int64) (int, error) {
	f.c.mu.Lock()
	if f.c.wrote == nil {
		f.c.wrote = map[int64]int{}
	}
	f.c.wrote[at] = len(b)
	f.c.mu.Unlock()
	return f.File.WriteAt(b, at)
}

func (f *countedFile) Sync() error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.c.syncs++
	if f.c.syncErr != nil {
		return f.c.syncErr
	}
	return f.File.Sync()
}

// TestManyParts reads a conversation of more parts than may be open, the records of which alternate: all of
// them come in the order of their times, also those in a line that is damaged, and no more files are
// open than there may be.
func TestManyParts(t *testing.T) {
	files := new(counting)
	s := openWith(t, Options{Path: t.TempDir(), Normal: true, Files: files})
	const parts, records = 3 * maxOpenParts, 5
	id := namedID("a", "many")
	at := time.Unix(1_700_000_000, 0)
	var want []string
	for n := 1; n <= parts; n++ {
		var data []byte
		prev := root(id, n)
		for seq := int64(1); seq <= records; seq++ {
			e := Event{Time: at.Add(time.Duration(seq*parts+int64(n)) * time.Second), Kind: EventTurn, Ref: fmt.Sprint(seq, ".", n)}
			data, prev = appendLine(data, &e, seq, 1, prev)
			if n%7 == 0 && seq == 2 {
				data[len(data)-1] = ' ' // it lost its end of line
			}
		}
		if err := os.WriteFile(filepath.Join(s.dir, logName(id, n)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for seq := 1; seq <= records; seq++ {
		for n := 1; n <= parts; n++ {
			want = append(want, fmt.Sprint(seq, ".", n))
		}
	}
	var got []string
	damage, err := s.read(t.Context(), id, func(e *Event) bool { got = append(got, e.Ref); return true })
	if err != nil || len(damage.Lost) > 0 || damage.Altered || damage.CutOff {
		t.Error(damage, err)
	}
	if !slices.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if files.most > maxOpenParts || files.open != 0 {
		t.Errorf("%d files were open, and %d are", files.most, files.open)
	}
}

// TestDamagedEnd goes on with a log that ends in nothing but damage: of its end a bounded part is read, and
// what follows is a part of its own. A log whose damage is short is gone on with.
func TestDamagedEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		garbage string
		part    int
	}{
		"long line":  {strings.Repeat("x", 5*maxTail), 2},
		"many lines": {strings.Repeat(strings.Repeat("x", 1000)+"\n", 2*maxTail/1000), 2},
		"short":      {strings.Repeat(strings.Repeat("x", 1000)+"\n", 1000), 1},
		"cut off":    {strings.Repeat("x", maxTail/2), 1},
	} {
		t.Run(name, func(t *testing.T) {
			files := new(counting)
			s := openWith(t, Options{Path: t.TempDir(), Normal: true, Files: files})
			id := write(t, s, Session{Key: key}, chunk("user", "m", "before"))
			log, err := os.OpenFile(filepath.Join(s.dir, logName(id, 1)), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := log.WriteString(tt.garbage); err != nil {
				t.Fatal(err)
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			write(t, s, Session{Key: key, Conversation: id}, chunk("agent", "m", "after"))
			got := all(t, s, id)
			if len(got) != 2 || !strings.Contains(string(got[1].Data), "after") || got[1].Part != tt.part {
				t.Errorf("%d events, damage of %d bytes", len(got), len(tt.garbage))
			}
			if files.largest > maxTail {
				t.Errorf("%d bytes were read at once", files.largest)
			}
		})
	}
}

// TestSyncFailing: after a sync that failed, what it was for is written once more and synced until that
// works; what is safe by then is not written again.
func TestSyncFailing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	synctest.Test(t, func(t *testing.T) {
		files := new(counting)
		s := openWith(t, Options{Path: dir, Files: files})
		defer s.Close()
		rec := s.Record(Session{Key: key}, RecordOptions{})
		size := func() int64 {
			info, err := os.Stat(filepath.Join(dir, logName(rec.Conversation(), 1)))
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		set := func(err error) (syncs int, wrote map[int64]int) {
			files.mu.Lock()
			defer files.mu.Unlock()
			files.syncErr = err
			return files.syncs, files.wrote
		}
		rec.Append(chunk("user", "0", "safe"))
		time.Sleep(2 * syncAfter)
		safe := size()
		set(syscall.EIO)
		rec.Append(chunk("agent", "m", strings.Repeat("x", 3<<20)))
		time.Sleep(time.Hour)
		before, _ := set(nil)
		if before < 3 || before > maxSyncs+2 {
			t.Errorf("%d syncs", before)
		}
		rec.Append(chunk("agent", "m", "more"))
		time.Sleep(time.Minute)
		after, wrote := set(nil)
		if after == before {
			t.Error("it was not synced once more")
		}
		n := 0
		for at, size := range wrote {
			if at < safe {
				t.Errorf("it was written again at %d, of which %d bytes are safe", at, safe)
			}
			n += size
		}
		if n < 3<<20 {
			t.Errorf("%d bytes were written again", n)
		}
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
		got, damage := messages(t, s, rec.Conversation())
		if want := []string{"user: safe", "agent: " + strings.Repeat("x", 3<<20) + "more"}; !cmp.Equal(got, want) || damage != nil {
			t.Errorf("%d messages, %v", len(got), damage)
		}
		// At the end, too.
		begin := size()
		set(syscall.EIO)
		rec = s.Record(Session{Key: key, Conversation: rec.Conversation()}, RecordOptions{})
		rec.Append(chunk("agent", "m", "the end"))
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
		if _, wrote := set(nil); wrote[begin] == 0 {
			t.Error("the end was not written once more")
		}
	})
}
