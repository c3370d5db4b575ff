package journaltest

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/internal/long"
)

// testLarge: a record that is too large is replaced by one that says so.
func testLarge(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	w := create(t, c, "s")
	quoted := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	recs, err := wait(w, []journal.Draft{{Kind: journal.KindUpdate, Data: quoted(journal.MaxRecord)}})
	if err != nil || recs[0].Kind != journal.KindLost || string(recs[0].Data) != fmt.Sprintf(`{"kind":"update","bytes":%d}`, journal.MaxRecord) {
		t.Errorf("%+v, %v", recs, err)
	}
	if !long.All() {
		return
	}
	recs, err = wait(w, []journal.Draft{{Kind: journal.KindUpdate, Data: quoted(journal.MaxRecord - 200)}})
	if err != nil || recs[0].Kind != journal.KindUpdate {
		t.Fatal(err)
	}
	appendTexts(t, w, "last")
	release(t, w)
	all, err := read(t, c, "s", 0)
	if n := len(all); err != nil || n < 2 || text(all[n-1]) != "last" { // memory may have made room
		t.Errorf("%d records, %v", n, err)
	}
}

// testNewer: a later format is refused; kinds of a later version are read, and nobody owns the journal.
func testNewer(t *testing.T, f Fixture) {
	b := f.Open(t)
	const at = `{"at":"2026-11-26T00:00:00Z","kind":`
	put(t, b, "format", at+`"session","data":{"format":4}}`, at+`"update","data":"x"}`)
	put(t, b, "kind", at+`"session","data":{"format":3}}`, `{"more":1,"kind":"later","at":"2026-11-26T00:00:00Z","data":{}}`, at+`"update","data":"x"}`)
	c := open(t, b)
	for after := range uint64(2) {
		_, err := read(t, c, "format", after)
		if e, ok := errors.AsType[*journal.FormatError](err); !ok || e.Format != 4 {
			t.Errorf("read after %d: %v", after, err)
		}
		for _, err := range c.Follow(t.Context(), "format", after) {
			if !errors.As(err, new(*journal.FormatError)) {
				t.Errorf("follow after %d: %v", after, err)
			}
			break
		}
	}
	_, err := c.Own(t.Context(), "format", nil)
	if !errors.As(err, new(*journal.FormatError)) {
		t.Errorf("own: %v", err)
	}
	wantTexts(t, "with a later kind", whole(t, c, "kind"), "?{}", "x")
	for range 2 { // the first time has left it free
		_, err = c.Own(t.Context(), "kind", nil)
		if e, ok := errors.AsType[*journal.FormatError](err); !ok || e.Kind != "later" {
			t.Errorf("own: %v", err)
		}
	}
	if all, err := read(t, c, "kind", 0); err != nil || len(all) != 3 {
		t.Errorf("an owner that was refused has changed something: %d records, %v", len(all), err)
	}
}

// testEmpty: whoever makes a journal may be killed before its first record.
func testEmpty(t *testing.T, f Fixture) {
	b := f.Open(t)
	put(t, b, "s")
	c := open(t, b)
	wantTexts(t, "empty", whole(t, c, "s"))
	w := own(t, c, "s")
	appendTexts(t, w, "a")
	release(t, w)
	wantTexts(t, "continued", whole(t, c, "s"), "a")
	if all, err := read(t, c, "s", 0); err != nil || all[0].Kind != journal.KindSession || string(all[0].Data) != `{"format":3}` {
		t.Errorf("it begins with %+v, %v", all[0], err)
	}
}

// testConcurrent: journals are appended to by several goroutines each. Everything is there, in order, each call in one
// piece, and the callbacks come in the order of their records.
func testConcurrent(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	const journals, writers, rounds = 20, 4, 10
	var wg sync.WaitGroup
	for i := range journals {
		w := create(t, c, fmt.Sprint("s", i))
		last := new(atomic.Uint64)
		last.Store(1)
		for k := range writers {
			wg.Go(func() {
				var told sync.WaitGroup
				for n := range rounds {
					kind := []journal.Kind{journal.KindUpdate, journal.KindPrompt}[n%2]
					said := fmt.Sprintf("%d.%d.%d", i, k, n)
					told.Add(1)
					err := w.Append(drafts(kind, said, said, said), func(recs []*journal.Record, err error) {
						defer told.Done()
						if err != nil || !last.CompareAndSwap(recs[0].Seq-1, recs[2].Seq) || text(recs[0]) != said {
							t.Errorf("%s became %d records after %d, %v", said, len(recs), last.Load(), err)
						}
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
				told.Wait()
			})
		}
	}
	wg.Wait()
	for i := range journals {
		next := map[string]int{}
		all := whole(t, c, fmt.Sprint("s", i))
		for k := 0; k < len(all); k += 3 {
			var w string
			var s, n int
			if _, err := fmt.Sscanf(all[k], "%d.%1s.%d", &s, &w, &n); err != nil || s != i || n != next[w] || all[k+1] != all[k] || all[k+2] != all[k] {
				t.Fatalf("journal %d, record %d: %q is out of order", i, k, all[k])
			}
			next[w]++
		}
		if len(all) != writers*rounds*3 {
			t.Errorf("journal %d has %d records", i, len(all))
		}
	}
}

// testOwners: a journal has one owner, and others learn who that is; each has an epoch, and folds what there is.
func testOwners(t *testing.T, f Fixture) {
	a, b := open(t, f.Open(t)), open(t, f.Open(t))
	w := create(t, a, "s")
	appendTexts(t, w, "1")
	for _, c := range []*journal.Container{a, b} {
		_, err := c.Own(t.Context(), "s", nil)
		if e, ok := errors.AsType[*journal.OwnedError](err); !ok || e.Who == "" {
			t.Errorf("a second owner: %v", err)
		}
	}
	if err := w.Append(drafts(journal.KindUpdate, "2"), nil); err != nil {
		t.Fatal(err)
	}
	release(t, w)
	release(t, w)
	_, err := wait(w, drafts(journal.KindUpdate, "no"))
	wantIs(t, "append after release", err, journal.ErrReleased)
	wantIs(t, "sync after release", w.Sync(t.Context()), journal.ErrReleased)
	wantIs(t, "room after release", w.Room(t.Context()), journal.ErrReleased)
	wantIs(t, "err after release", w.Err(), journal.ErrReleased)
	<-w.Lost()
	var folded []string
	next, err := b.Own(t.Context(), "s", func(r *journal.Record) error {
		folded = append(folded, text(r))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantTexts(t, "folded", folded[1:], "1", "2")
	if next.Epoch() != 2 || next.ID() != "s" || next.Head().Seq != 3 {
		t.Errorf("the second owner of %s has epoch %d after record %d", next.ID(), next.Epoch(), next.Head().Seq)
	}
	if recs := appendTexts(t, next, "3"); recs[0].Epoch != 2 || recs[0].Seq != 4 {
		t.Errorf("%+v", recs[0])
	}
	if err := next.Sync(t.Context()); err != nil {
		t.Error(err)
	}
	wantTexts(t, "elsewhere", whole(t, a, "s"), "1", "2", "3")
	release(t, next)
	stop := errors.New("stop")
	if _, err := a.Own(t.Context(), "s", func(*journal.Record) error { return stop }); err != stop {
		t.Errorf("the error of fold becomes %v", err)
	}
	last := own(t, a, "s")
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	_, err = wait(last, drafts(journal.KindUpdate, "no"))
	wantIs(t, "append after close", err, journal.ErrReleased)
	_, err = a.Own(t.Context(), "s", nil)
	wantIs(t, "own after close", err, journal.ErrClosed)
}

// testOwnRace: of several processes that want a journal at the same time, one gets it, again and again.
func testOwnRace(t *testing.T, f Fixture) {
	first := open(t, f.Open(t))
	release(t, create(t, first, "s"))
	var wg sync.WaitGroup
	var owners, wins atomic.Int32
	for range 4 {
		c := open(t, f.Open(t))
		wg.Go(func() {
			for range 10 {
				w, err := c.Own(t.Context(), "s", nil)
				if errors.As(err, new(*journal.OwnedError)) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := owners.Add(1); n != 1 {
					t.Errorf("%d owners", n)
				}
				if _, err := wait(w, drafts(journal.KindUpdate, "x")); err != nil {
					t.Error(err)
				}
				wins.Add(1)
				owners.Add(-1)
				if err := w.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all, err := read(t, first, "s", 0)
	if err != nil || len(all) != int(wins.Load())+1 || len(all) < 2 {
		t.Fatalf("%d records of %d owners, %v", len(all), wins.Load(), err)
	}
	for i, r := range all {
		if r.Epoch != uint32(i+1) {
			t.Errorf("record %d has epoch %d", r.Seq, r.Epoch)
		}
	}
}

// testDelete: what is deleted is gone, with what belongs to it, and its writers fail.
func testDelete(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	w, part, other := create(t, c, "s"), create(t, c, "s.agent"), create(t, c, "sister")
	release(t, create(t, c, "s.2"))
	if err := c.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*journal.Writer{w, part} {
		_, err := wait(w, drafts(journal.KindPrompt, "no"))
		wantIs(t, "append to "+w.ID(), err, journal.ErrDeleted)
		wantIs(t, "the end of "+w.ID(), w.Err(), journal.ErrDeleted)
		<-w.Lost()
		release(t, w)
	}
	for _, id := range []string{"s", "s.agent", "s.2"} {
		_, err := read(t, c, id, 0)
		wantIs(t, "read "+id, err, journal.ErrNotFound)
	}
	appendTexts(t, other, "x")
	wantIs(t, "deleted twice", c.Delete(t.Context(), "s"), journal.ErrNotFound)
	anew(t, c, "s")
}

// anew makes a journal whose id was deleted, unless that is refused.
func anew(t *testing.T, c *journal.Container, id string) {
	t.Helper()
	w, err := c.Create(t.Context(), id)
	if errors.Is(err, journal.ErrExists) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	release(t, w)
	wantTexts(t, "made anew", whole(t, c, id))
}

// testDeleteElsewhere: an owner in another process learns of it when it next writes, and does not bring it back.
func testDeleteElsewhere(t *testing.T, f Fixture) {
	a, b := open(t, f.Open(t)), open(t, f.Open(t))
	w := create(t, a, "s")
	if err := b.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	_, err := wait(w, drafts(journal.KindUpdate, "no"))
	wantIs(t, "append", err, journal.ErrNotFound)
	<-w.Lost()
	anew(t, b, "s")
	if err := w.Release(t.Context()); err != nil && !errors.Is(err, journal.ErrUnsaved) {
		t.Error(err)
	}
	_, err = read(t, b, "s", 0)
	if err != nil {
		wantIs(t, "read", err, journal.ErrNotFound)
	}
}

// sizes returns the list of a container.
func sizes(t *testing.T, c *journal.Container) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	if err := c.List(t.Context(), func(id string, size int64) bool {
		if _, ok := all[id]; ok {
			t.Errorf("%s is listed twice", id)
		}
		all[id] = size
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// testList: all journals are listed, with sizes that change when they do.
func testList(t *testing.T, f Fixture) {
	b := f.Open(t)
	c := open(t, b)
	if all := sizes(t, c); len(all) > 0 {
		t.Errorf("listed of nothing: %v", all)
	}
	for _, id := range []string{"a", "b", "a.agent", "c"} {
		w := create(t, c, id)
		appendTexts(t, w, "0")
		if id != "b" {
			release(t, w)
		} else {
			defer release(t, w)
		}
	}
	before := sizes(t, c)
	if again := sizes(t, c); len(before) != 4 || before["a"] == 0 || !maps.Equal(again, before) {
		t.Errorf("listed %v, and then %v", before, again)
	}
	w := own(t, c, "a")
	appendTexts(t, w, "1")
	release(t, w)
	after := sizes(t, c)
	if after["a"] <= before["a"] || after["b"] != before["b"] || after["a.agent"] != before["a.agent"] {
		t.Errorf("listed %v, and then %v", before, after)
	}
	n := 0
	if err := c.List(t.Context(), func(string, int64) bool { n++; return false }); err != nil || n != 1 {
		t.Errorf("it was not ended: %d, %v", n, err)
	}
	if err := c.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if all := sizes(t, c); len(all) != 2 {
		t.Errorf("after a deletion %v", all)
	}
}

// testOwner: who owns a journal is known, here and in another container, however many ask, and to ask disturbs nobody who is
// about to own it.
func testOwner(t *testing.T, f Fixture) {
	b := f.Open(t)
	c := open(t, b)
	owned := func(what string, c *journal.Container, want bool) {
		t.Helper()
		if who, is, err := c.Owner(t.Context(), "s"); is != want || err != nil || !is && who != "" {
			t.Errorf("%s: owned by %q: %v, %v", what, who, is, err)
		}
	}
	other := journal.New(b, journal.Options{}) // it has the same backend, which c closes
	owned("before it is made", c, false)
	w := create(t, c, "s")
	owned("made", c, true)
	owned("made, elsewhere", other, true)
	release(t, w)
	owned("released", c, false)
	owned("released, elsewhere", other, false)
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, _, err := other.Owner(t.Context(), "s"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 50 {
		release(t, own(t, c, "s"))
	}
	close(stop)
	asking.Wait()
	owned("in the end", other, false)
	if _, _, err := c.Owner(t.Context(), "../s"); !errors.Is(err, journal.ErrInvalid) {
		t.Errorf("of a wrong id: %v", err)
	}
}
