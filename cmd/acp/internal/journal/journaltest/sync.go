package journaltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A disk is what the writes and syncs of journals go through, which may be held up or fail.
type disk struct {
	mu      sync.Mutex
	events  []string
	writeIt func() error
	syncIt  func() error
	busy    map[string]int // syncs under way
	most    int
	oldest  time.Time // of the first write since the last sync began
	age     time.Duration
	scans   int
	makeErr error
}

// fail has journals not be made.
func (d *disk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.makeErr = err
}

// scanned returns how often journals were read.
func (d *disk) scanned() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.scans
}

func (d *disk) event(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, fmt.Sprintf(format, args...))
}

// take returns what has happened since it was called last.
func (d *disk) take() string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := strings.Join(d.events, " ")
	d.events = nil
	return s
}

func (d *disk) set(write, sync func() error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writeIt, d.syncIt = write, sync
}

// under returns how many syncs are under way.
func (d *disk) under() (n int) {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.busy {
		n += k
	}
	return n
}

// bubble runs a test with a disk of which it decides, and with a clock of its own.
func bubble(t *testing.T, f Fixture, run func(t *testing.T, d *disk, c *journal.Container, told *troubles)) {
	bubbleWith(t, f, journal.Options{}, run)
}

// bubbleWith is bubble with options.
func bubbleWith(t *testing.T, f Fixture, o journal.Options, run func(t *testing.T, d *disk, c *journal.Container, told *troubles)) {
	if f.Real {
		t.Skip("it needs real time")
	}
	synctest.Test(t, func(t *testing.T) {
		d := &disk{busy: map[string]int{}}
		var told troubles
		h := &hooked{Backend: f.Open(t)}
		h.write = func(_ string, records []journal.Record, next func() (bool, error)) (bool, error) {
			d.mu.Lock()
			do := d.writeIt
			d.mu.Unlock()
			if do != nil {
				if err := do(); err != nil {
					d.event("failed")
					return false, err
				}
			}
			d.mu.Lock()
			if d.oldest.IsZero() {
				d.oldest = time.Now()
			}
			d.mu.Unlock()
			d.event("write%d-%d", records[0].Seq, records[len(records)-1].Seq)
			return next()
		}
		h.sync = func(id string, next func() error) error {
			d.mu.Lock()
			do := d.syncIt
			d.busy[id]++
			sum := 0
			for _, n := range d.busy {
				sum += n
			}
			if d.most = max(d.most, sum); d.busy[id] > 1 {
				t.Errorf("%d syncs of %s at the same time", d.busy[id], id)
			}
			if !d.oldest.IsZero() {
				d.age, d.oldest = max(d.age, time.Since(d.oldest)), time.Time{}
			}
			d.mu.Unlock()
			var err error
			if do != nil {
				err = do()
			}
			d.mu.Lock()
			d.busy[id]--
			d.mu.Unlock()
			if err != nil {
				d.event("unsynced")
				return err
			}
			d.event("sync")
			return next()
		}
		h.make = func() error {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.makeErr
		}
		h.scan = func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.scans++
		}
		o.Trouble = told.tell
		run(t, d, open(t, h, o), &told)
	})
}

// add appends a draft of a kind, and notes when it is kept.
func (d *disk) add(t testing.TB, w *journal.Writer, kind journal.Kind) {
	t.Helper()
	if err := w.Append(drafts(kind, "x"), func(recs []*journal.Record, err error) {
		if err != nil {
			d.event("error")
			return
		}
		d.event("kept%d", recs[0].Seq)
	}); err != nil {
		t.Fatal(err)
	}
}

// gate returns what blocks until it is opened.
func gate() (wait func() error, open func()) {
	closed := make(chan struct{})
	return func() error { <-closed; return nil }, func() { close(closed) }
}

// testSynced: what nobody waits for is kept when it is written, and synced once within 100 ms; what somebody relies on is
// kept when it is synced. When nothing is written nothing happens.
func testSynced(t *testing.T, f Fixture) {
	bubble(t, f, func(t *testing.T, d *disk, c *journal.Container, _ *troubles) {
		w := create(t, c, "s")
		want := func(what, want string) {
			t.Helper()
			if got := d.take(); got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		want("when it is made", "write1-1 sync")
		d.add(t, w, journal.KindUpdate)
		want("an update", "write2-2 kept2")
		time.Sleep(50 * time.Millisecond)
		d.add(t, w, journal.KindOutput)
		want("another one", "write3-3 kept3")
		time.Sleep(49 * time.Millisecond)
		want("within 100 ms", "sync")
		time.Sleep(time.Hour)
		want("after an hour", "")
		d.add(t, w, journal.KindPrompt)
		want("a prompt", "write4-4 sync kept4")
		time.Sleep(time.Hour)
		want("after another hour", "")
		for _, kind := range []journal.Kind{journal.KindSession, journal.KindStart, journal.KindPrompt, journal.KindSent, journal.KindDecided, journal.KindEnd, journal.KindIntent, journal.KindShared, journal.KindFork} {
			d.add(t, w, kind)
			if got := d.take(); !strings.Contains(got, " sync kept") {
				t.Errorf("%s: %s", kind, got)
			}
		}
		d.add(t, w, journal.KindUpdate)
		if err := w.Sync(t.Context()); err != nil {
			t.Error(err)
		}
		want("a sync that was asked for", "write14-14 kept14 sync")
		for range 200 {
			d.add(t, w, journal.KindUpdate)
			time.Sleep(10 * time.Millisecond)
		}
		if n := strings.Count(d.take(), "sync"); n < 20 || n > 26 {
			t.Errorf("%d syncs in 2 s", n)
		}
		if d.age > 100*time.Millisecond {
			t.Errorf("a sync began %v after the write", d.age)
		}
		time.Sleep(time.Hour)
		d.take()
		d.add(t, w, journal.KindUpdate)
		release(t, w)
		want("released", "write215-215 kept215 sync")
		own(t, c, "s")
		time.Sleep(100 * time.Millisecond)
		want("of an owner, whose predecessor may have been killed", "sync")
	})
}

// testSyncOrder: what comes behind something that waits for its sync waits with it, and nobody sees it earlier. While
// nobody waits for a sync nothing waits.
func testSyncOrder(t *testing.T, f Fixture) {
	bubble(t, f, func(t *testing.T, d *disk, c *journal.Container, _ *troubles) {
		w := create(t, c, "s")
		other := follow(t, c, "s", 0)
		wait, open := gate()
		d.set(nil, wait)
		d.add(t, w, journal.KindUpdate)
		time.Sleep(100 * time.Millisecond)
		if d.under() != 1 {
			t.Fatal("no sync is under way")
		}
		d.add(t, w, journal.KindUpdate)
		d.take()
		d.add(t, w, journal.KindUpdate)
		if got := d.take(); got != "write4-4 kept4" {
			t.Errorf("during a sync: %s", got)
		}
		d.add(t, w, journal.KindPrompt)
		d.add(t, w, journal.KindUpdate)
		if got := d.take(); strings.Contains(got, "kept") || !strings.HasSuffix(got, "-6") {
			t.Errorf("before a prompt is synced: %s", got)
		}
		all, err := read(t, c, "s", 0)
		if n := len(other.upTo(t, 4)); n != 4 || len(all) != 4 || err != nil || w.Head().Seq != 4 {
			t.Errorf("somebody sees %d, %d or %d records, %v", n, len(all), w.Head().Seq, err)
		}
		open()
		// The sync that was under way had begun before the prompt.
		if got := d.take(); got != "sync sync kept5 kept6" {
			t.Errorf("afterwards: %s", got)
		}
		other.upTo(t, 6)
	})
}

// testFollowQuiet: who follows what an owner in the same process writes gets it at once, and looks for nothing meanwhile.
func testFollowQuiet(t *testing.T, f Fixture) {
	bubble(t, f, func(t *testing.T, d *disk, c *journal.Container, _ *troubles) {
		w := create(t, c, "s")
		other := follow(t, c, "s", 0)
		other.upTo(t, 1)
		synctest.Wait()
		before := d.scanned()
		time.Sleep(time.Hour)
		begin := time.Now()
		d.add(t, w, journal.KindUpdate)
		other.upTo(t, 2)
		if n := d.scanned() - before; n != 0 || !time.Now().Equal(begin) {
			t.Errorf("it was read %d times, and the record took %v", n, time.Since(begin))
		}
	})
}

// testSyncsAtOnce: at most eight syncs are under way, of which six are such that nobody waits for.
func testSyncsAtOnce(t *testing.T, f Fixture) {
	bubble(t, f, func(t *testing.T, d *disk, c *journal.Container, _ *troubles) {
		var all []*journal.Writer
		for i := range 20 {
			all = append(all, create(t, c, fmt.Sprint("s", i)))
		}
		wait, open := gate()
		d.set(nil, wait)
		for _, w := range all {
			d.add(t, w, journal.KindUpdate)
		}
		time.Sleep(time.Second)
		if n := d.under(); n != 6 {
			t.Errorf("%d syncs that nobody waits for", n)
		}
		for _, w := range all[10:] {
			d.add(t, w, journal.KindPrompt)
		}
		if n := d.under(); n != 8 {
			t.Errorf("%d syncs", n)
		}
		d.take()
		open()
		if got := d.take(); strings.Count(got, "kept") != 10 || d.most != 8 {
			t.Errorf("at most %d syncs; %s", d.most, got)
		}
	})
}

// testStalled: Trouble gets that a disk does not answer, and the end of that.
func testStalled(t *testing.T, f Fixture) {
	bubble(t, f, func(t *testing.T, d *disk, c *journal.Container, told *troubles) {
		w := create(t, c, "s")
		for n, kind := range []journal.Kind{journal.KindUpdate, journal.KindPrompt, journal.KindUpdate} {
			wait, open := gate()
			if n == 0 {
				d.set(wait, nil)
			} else {
				d.set(nil, wait)
			}
			d.add(t, w, kind)
			time.Sleep(1900 * time.Millisecond)
			synctest.Wait()
			if list := told.all(); len(list) != 2*n {
				t.Errorf("%d: told %v", n, list)
			}
			time.Sleep(time.Hour)
			if list := told.all(); len(list) != 2*n+1 || !errors.Is(list[2*n], journal.ErrStalled) {
				t.Errorf("%d: told %v", n, list)
			}
			open()
			synctest.Wait()
			if list := told.all(); len(list) != 2*n+2 || list[2*n+1] != nil {
				t.Errorf("%d: told %v", n, list)
			}
		}
	})
}

// testFailing: what cannot be written is tried until it is; nothing is lost, twice, or out of order.
func testFailing(t *testing.T, f Fixture) {
	bubble(t, f, func(t *testing.T, d *disk, c *journal.Container, told *troubles) {
		w := create(t, c, "s")
		d.add(t, w, journal.KindUpdate)
		d.take()
		d.set(func() error { return syscall.ENOSPC }, nil)
		var want []string
		for i := range 100 {
			kind := journal.KindUpdate
			if i%10 == 0 {
				kind = journal.KindPrompt
			}
			d.add(t, w, kind)
			want = append(want, fmt.Sprint("kept", i+3))
		}
		time.Sleep(time.Hour)
		if n := strings.Count(d.take(), "failed"); n < 3600/5 || n > 3600/5+10 {
			t.Errorf("%d attempts in an hour", n)
		}
		if list := told.all(); len(list) != 1 || !errors.Is(list[0], syscall.ENOSPC) {
			t.Errorf("told %v", list)
		}
		d.set(nil, nil)
		time.Sleep(6 * time.Second)
		if got := d.take(); got != "write3-102 sync "+strings.Join(want, " ") {
			t.Errorf("afterwards: %.100s …", got)
		}
		if list := told.all(); len(list) != 2 || list[1] != nil {
			t.Errorf("told %v", list)
		}
	})
}

// testFailingSync: what somebody relies on does not count as kept while it cannot be synced; the rest does. Where files
// cannot be synced at all, they are as safe as they can be.
func testFailingSync(t *testing.T, f Fixture) {
	bubble(t, f, func(t *testing.T, d *disk, c *journal.Container, told *troubles) {
		w := create(t, c, "s")
		d.set(nil, func() error { return syscall.EIO })
		d.add(t, w, journal.KindUpdate)
		time.Sleep(time.Minute)
		if got := d.take(); !strings.Contains(got, "kept2 unsynced") {
			t.Errorf("an update: %s", got)
		}
		d.add(t, w, journal.KindPrompt)
		time.Sleep(time.Minute)
		if got := d.take(); strings.Contains(got, "kept") || !strings.Contains(got, "unsynced") {
			t.Errorf("a prompt: %s", got)
		}
		if list := told.all(); len(list) != 1 || !errors.Is(list[0], syscall.EIO) {
			t.Errorf("told %v", list)
		}
		d.set(nil, nil)
		time.Sleep(6 * time.Second)
		if got := d.take(); !strings.HasSuffix(got, "sync kept3") {
			t.Errorf("afterwards: %s", got)
		}
		if list := told.all(); len(list) != 2 || list[1] != nil {
			t.Errorf("told %v", list)
		}
		d.set(nil, func() error { return errors.ErrUnsupported })
		d.add(t, w, journal.KindPrompt)
		if got := d.take(); got != "write4-4 unsynced kept4" {
			t.Errorf("without syncs: %s", got)
		}
		d.add(t, w, journal.KindPrompt)
		if got := d.take(); got != "write5-5 unsynced kept5" {
			t.Errorf("without syncs: %s", got)
		}
		if list := told.all(); len(list) != 4 || !errors.Is(list[2], errors.ErrUnsupported) {
			t.Errorf("told %v", list)
		}
	})
}

// testGivenUp: a release tries once more, and does not wait for ever.
func testGivenUp(t *testing.T, f Fixture) {
	bubble(t, f, func(t *testing.T, d *disk, c *journal.Container, _ *troubles) {
		for name, fail := range map[string][2]error{"write": {syscall.ENOSPC, nil}, "sync": {nil, syscall.EIO}} {
			w := create(t, c, name)
			d.set(func() error { return fail[0] }, func() error { return fail[1] })
			d.add(t, w, journal.KindPrompt)
			time.Sleep(time.Minute)
			d.take()
			wantIs(t, name, w.Release(t.Context()), journal.ErrUnsaved)
			if got := d.take(); !strings.HasSuffix(got, "failed error") && !strings.HasSuffix(got, "unsynced error") {
				t.Errorf("%s: %s", name, got)
			}
			d.set(nil, nil)
		}
		w := create(t, c, "stalled")
		wait, open := gate()
		d.set(wait, nil)
		d.add(t, w, journal.KindPrompt)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := w.Release(ctx)
		wantIs(t, "a disk that does not answer", err, journal.ErrUnsaved)
		wantIs(t, "a disk that does not answer", err, context.DeadlineExceeded)
		d.take()
		open()
		release(t, w)
		if got := d.take(); got != "write2-2 sync kept2" {
			t.Errorf("when it answers: %s", got)
		}
	})
}

// testBegin: a journal can be begun while nothing can be written. What is appended waits as always, and nothing is lost.
func testBegin(t *testing.T, f Fixture) {
	bubble(t, f, func(t *testing.T, d *disk, c *journal.Container, told *troubles) {
		begin := func(id string) *journal.Writer {
			t.Helper()
			w, err := c.Begin(id, journal.Draft{Kind: journal.KindSession, Data: []byte(`{"title":"a"}`)})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		d.fail(syscall.ENOSPC)
		w := begin("s")
		if _, err := c.Begin("s"); !errors.As(err, new(*journal.OwnedError)) {
			t.Errorf("begun twice: %v", err)
		}
		for range 3 {
			d.add(t, w, journal.KindPrompt)
		}
		other := follow(t, c, "s", 0)
		time.Sleep(time.Hour)
		if list := told.all(); len(list) != 1 || !errors.Is(list[0], syscall.ENOSPC) || d.take() != "" || w.Epoch() != 0 {
			t.Errorf("told %v", list)
		}
		wantIs(t, "a follower", other.end(), journal.ErrNotFound)
		d.fail(nil)
		time.Sleep(6 * time.Second)
		if got := d.take(); got != "write1-4 sync kept2 kept3 kept4" || w.Epoch() != 1 {
			t.Errorf("afterwards: %s", got)
		}
		if list := told.all(); len(list) != 2 || list[1] != nil {
			t.Errorf("told %v", list)
		}
		wantTexts(t, "afterwards", whole(t, c, "s"), "x", "x", "x")
		release(t, w)
		w = begin("s")
		<-w.Lost()
		wantIs(t, "one that exists", w.Err(), journal.ErrExists)
		release(t, begin("fine"))
		wantTexts(t, "released at once", whole(t, c, "fine"))
		d.fail(syscall.EROFS)
		w = begin("never")
		time.Sleep(time.Minute)
		wantIs(t, "given up", w.Release(t.Context()), journal.ErrUnsaved)
		w = begin("deleted")
		time.Sleep(time.Minute)
		wantIs(t, "delete", c.Delete(t.Context(), "deleted"), journal.ErrNotFound)
		wantIs(t, "deleted", w.Err(), journal.ErrDeleted)
		d.fail(nil)
		_, err := read(t, c, "never", 0)
		wantIs(t, "read of what was given up", err, journal.ErrNotFound)
	})
}

// testFenced: a writer that was fenced is of no further use, and everybody learns of it.
func testFenced(t *testing.T, f Fixture) {
	bubble(t, f, func(t *testing.T, d *disk, c *journal.Container, _ *troubles) {
		w := create(t, c, "s")
		d.set(func() error { return fmt.Errorf("on purpose: %w", journal.ErrFenced) }, nil)
		for range 2 {
			if err := w.Append(drafts(journal.KindPrompt, "no"), func(_ []*journal.Record, err error) { wantIs(t, "kept", err, journal.ErrFenced) }); err != nil {
				wantIs(t, "append", err, journal.ErrFenced)
			}
		}
		<-w.Lost()
		_, err := wait(w, drafts(journal.KindUpdate, "no"))
		wantIs(t, "later", err, journal.ErrFenced)
		wantIs(t, "sync", w.Sync(t.Context()), journal.ErrFenced)
		if err := w.Release(t.Context()); err != nil {
			wantIs(t, "release", err, journal.ErrUnsaved)
		}
		d.set(nil, nil)
		appendTexts(t, own(t, c, "s"), "x")
		wantTexts(t, "afterwards", whole(t, c, "s"), "x")
	})
}
