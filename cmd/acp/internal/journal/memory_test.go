package journal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/journaltest"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestMemory(t *testing.T) {
	journaltest.Run(t, func(testing.TB) journaltest.Fixture {
		b := journal.NewMemory()
		return journaltest.Fixture{Open: func(testing.TB) journal.Backend { return b }}
	})
}

// TestMemoryBounds: a journal in memory drops its older half when it is too large, and the oldest journals make room.
func TestMemoryBounds(t *testing.T) {
	c := journal.New(journal.NewMemory(), journal.Options{})
	defer c.Close()
	w, err := c.Create(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	data := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	for range 100 {
		if err := w.Append([]journal.Draft{{Kind: journal.KindUpdate, Data: data}}, nil); err != nil {
			t.Fatal(err)
		}
		if err := w.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	next, n, size := uint64(1), 0, 0
	err = c.Read(t.Context(), "s", 0, func(r *journal.Record) error {
		if r.From != next {
			t.Errorf("record %d-%d, want %d", r.From, r.Seq, next)
		}
		next, n, size = r.Seq+1, n+1, size+len(r.Body)
		return nil
	})
	if err != nil || next != 102 || size > 64<<20 || size < 30<<20 {
		t.Errorf("%d records up to %d of %d bytes, %v", n, next-1, size, err)
	}
	for i := range 2000 {
		w, err := c.Create(t.Context(), fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Head(t.Context(), "s"); err != nil {
		t.Errorf("one that is owned: %v", err)
	}
	if _, err := c.Head(t.Context(), "0"); err == nil {
		t.Error("the oldest is still there")
	}
	if _, err := c.Head(t.Context(), "1999"); err != nil {
		t.Errorf("the latest: %v", err)
	}
}
