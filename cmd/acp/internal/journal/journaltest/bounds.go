package journaltest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// testLazy: with Options.Lazy only Sync, Release and what begins a journal sync it, and nothing else waits for that.
func testLazy(t *testing.T, f Fixture) {
	bubbleWith(t, f, journal.Options{Lazy: true}, func(t *testing.T, d *disk, c *journal.Container, _ *troubles) {
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
		d.add(t, w, journal.KindPrompt)
		want("a prompt", "write3-3 kept3")
		time.Sleep(time.Hour)
		want("after an hour", "")
		if err := w.Sync(t.Context()); err != nil {
			t.Error(err)
		}
		want("a sync that was asked for", "sync")
		d.add(t, w, journal.KindEnd)
		release(t, w)
		want("released", "write4-4 kept4 sync")
	})
}

// testGiveUp: with Options.GiveUp an error of the disk ends the writer, and who waits in Keep gets it. A disk that takes long
// ends nothing.
func testGiveUp(t *testing.T, f Fixture) {
	bubbleWith(t, f, journal.Options{GiveUp: true}, func(t *testing.T, d *disk, c *journal.Container, told *troubles) {
		prompt := journal.Draft{Kind: journal.KindPrompt}
		for name, fail := range map[string][2]error{"write": {syscall.ENOSPC, nil}, "sync": {nil, syscall.EIO}} {
			w := create(t, c, name)
			if err := errors.Join(w.Keep(t.Context(), prompt, prompt), w.Keep(t.Context())); err != nil || w.Head().Seq != 3 {
				t.Errorf("%s: %v, %d records are kept", name, err, w.Head().Seq)
			}
			d.set(func() error { return fail[0] }, func() error { return fail[1] })
			why := cmp.Or(fail[0], fail[1])
			wantIs(t, name, w.Keep(t.Context(), prompt), why)
			<-w.Lost()
			d.set(nil, nil)
			wantIs(t, name+" later", w.Keep(t.Context(), prompt), why)
			wantIs(t, name+" released", w.Release(t.Context()), journal.ErrUnsaved)
			again, err := c.Own(t.Context(), name, nil)
			if err != nil {
				t.Fatal(err)
			}
			release(t, again)
		}
		w := create(t, c, "behind")
		d.set(nil, func() error { return syscall.EIO })
		if err := w.Keep(t.Context(), journal.Draft{Kind: journal.KindUpdate}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		wantIs(t, "a sync that nobody waits for", w.Err(), syscall.EIO)
		d.set(nil, nil)
		if list := told.all(); len(list) > 0 {
			t.Errorf("told %v", list)
		}
		w = create(t, c, "stalled")
		wait, open := gate()
		d.set(wait, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantIs(t, "a disk that does not answer", w.Keep(ctx, prompt), context.DeadlineExceeded)
		open()
		release(t, w)
		wantTexts(t, "a disk that answers", whole(t, c, "stalled"), "")
	})
}

// testFinish: who is about to release a journal has room once more, and does not wait for more.
func testFinish(t *testing.T, f Fixture) {
	bubble(t, f, func(t *testing.T, d *disk, c *journal.Container, _ *troubles) {
		w := create(t, c, "s")
		wait, open := gate()
		d.set(wait, nil)
		defer open()
		big := []byte(`"` + strings.Repeat("x", 8<<20) + `"`)
		fill := func() (n int) {
			for ; w.Append([]journal.Draft{{Kind: journal.KindUpdate, Data: big}}, nil) == nil; n++ {
			}
			return n
		}
		before := fill()
		room := make(chan error, 1)
		go func() { room <- w.Room(t.Context()) }()
		synctest.Wait()
		if w.Finished() {
			t.Error("it is finished before it was")
		}
		w.Finish()
		if err := <-room; err != nil || !w.Finished() {
			t.Errorf("room: %v", err)
		}
		if more := fill(); before != 8 || more != 8 {
			t.Errorf("there was room for %d, and then for %d", before, more)
		}
	})
}

// testBacklog: 64 MiB wait, and twice as much of what somebody relies on. Then nothing is accepted until there is room.
func testBacklog(t *testing.T, f Fixture) {
	bubble(t, f, func(t *testing.T, d *disk, c *journal.Container, told *troubles) {
		w := create(t, c, "s")
		wait, open := gate()
		d.set(wait, nil)
		big := []byte(`"` + strings.Repeat("x", 8<<20) + `"`)
		var kept []uint64
		add := func(kind journal.Kind) error {
			return w.Append([]journal.Draft{{Kind: kind, Data: big}}, func(recs []*journal.Record, err error) {
				if err != nil {
					t.Error(err)
					return
				}
				kept = append(kept, recs[0].Seq)
			})
		}
		count := func(kind journal.Kind) (n int, err error) {
			for ; n < 100; n++ {
				if err := add(kind); err != nil {
					return n, err
				}
			}
			return n, nil
		}
		n, err := count(journal.KindUpdate)
		if n != 8 || !errors.Is(err, journal.ErrBehind) {
			t.Errorf("%d updates, %v", n, err)
		}
		n, err = count(journal.KindEnd)
		if n != 8 || !errors.Is(err, journal.ErrBehind) {
			t.Errorf("%d ends, %v", n, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantIs(t, "room", w.Room(ctx), context.DeadlineExceeded)
		if list := told.all(); len(list) != 1 || !errors.Is(list[0], journal.ErrStalled) {
			t.Errorf("told %v", list)
		}
		open()
		if err := errors.Join(w.Room(t.Context()), w.Sync(t.Context())); err != nil {
			t.Error(err)
		}
		if err := add(journal.KindUpdate); err != nil {
			t.Error(err)
		}
		release(t, w)
		if len(kept) != 17 || !slices.IsSorted(kept) || kept[0] != 2 {
			t.Errorf("kept %v", kept)
		}
	})
}
