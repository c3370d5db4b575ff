package journaltest

import (
	"context"
	"errors"
	"slices"
	"strings"
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
