package file

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// TestPut: a journal that was put is one that can be continued; without all of its records there is none.
func TestPut(t *testing.T) {
	dir := t.TempDir()
	cut := errors.New("cut off")
	put := func(n uint64, end error) error {
		return Put(dir, "s", func(add func(*journal.Record) error) error {
			at := journal.Head{}
			for at.Seq < n {
				kind := journal.KindSession
				if at.Seq > 0 {
					kind = journal.KindMark
				}
				r, err := journal.Next("s", at, 3, journal.Draft{Kind: kind, Data: []byte(`{"format":3}`)})
				if at.Seq == 5 {
					r, err = journal.NextGap("s", at, 9, 3, journal.Draft{Kind: journal.KindUpdate, Data: []byte(`{"a":"<"}`)})
				}
				if err = errors.Join(err, add(&r)); err != nil {
					return err
				}
				at = journal.Head{Seq: r.Seq, Hash: r.Hash}
			}
			return end
		})
	}
	if err := put(7, cut); !errors.Is(err, cut) {
		t.Errorf("cut off: %v", err)
	}
	if list, err := os.ReadDir(dir); len(list) > 0 || err != nil {
		t.Errorf("cut off: %v %v", list, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "s"+renewed), []byte("killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := put(12, nil); err != nil {
		t.Fatal(err)
	}
	if err := put(12, nil); !errors.Is(err, journal.ErrExists) {
		t.Errorf("again: %v", err)
	}
	c := Open(dir, Options{})
	defer c.Close()
	w, err := c.Own(t.Context(), "s", nil)
	if err != nil || w.Damage() != nil || w.Epoch() != 4 || w.Head().Seq != 12 {
		t.Fatal(w, err)
	}
	var froms []uint64
	if err := c.Read(t.Context(), "s", 0, func(r *journal.Record) error {
		froms = append(froms, r.From)
		if r.Seq == 9 && (r.Kind != journal.KindUpdate || !bytes.Equal(r.Data, []byte(`{"a":"<"}`))) {
			t.Errorf("what is left is %s %s", r.Kind, r.Data)
		}
		return nil
	}); err != nil || !slices.Equal(froms, []uint64{1, 2, 3, 4, 5, 6, 10, 11, 12}) {
		t.Errorf("%v %v", froms, err)
	}
	if err := Put(dir, "..", nil); !errors.Is(err, journal.ErrInvalid) {
		t.Errorf("an id that is a directory: %v", err)
	}
}
