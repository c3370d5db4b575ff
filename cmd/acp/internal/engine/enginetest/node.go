package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// testNodes: nodes find one another, and which of them owns a session.
func testNodes(t *testing.T, b Backend) {
	one, two := start(t, b, "one"), start(t, b, "two")
	if err := one.lease.Describe(t.Context(), json.RawMessage(`{"at":"here"}`)); err != nil {
		t.Fatal(err)
	}
	if err := two.lease.Describe(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := one.lease.Describe(t.Context(), json.RawMessage(`{"at":"there"}`)); err != nil {
		t.Fatal(err)
	}
	if err := two.lease.Describe(t.Context(), json.RawMessage(`{`)); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("described as what is not JSON: %v", err)
	}
	if err := two.lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := two.Nodes(t.Context())
	want := []engine.Node{{Name: "one", Info: json.RawMessage(`{"at":"there"}`), Live: true}, {Name: "two"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if err := two.ForgetNode(t.Context(), "one"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("forgotten while it is live: %v", err)
	}
	if err := one.ForgetNode(t.Context(), "two"); err != nil {
		t.Error(err)
	}
	if err := one.ForgetNode(t.Context(), "two"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("forgotten twice: %v", err)
	}
	if got, err := two.Nodes(t.Context()); len(got) != 1 || err != nil {
		t.Errorf("after one is forgotten: %v, %v", got, err)
	}
	if err := two.lease.Describe(t.Context(), nil); !errors.Is(err, engine.ErrLapsed) {
		t.Errorf("described without a lease: %v", err)
	}

	if _, _, err := two.Owner(t.Context(), "s"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("owner of what is not there: %v", err)
	}
	if _, err := one.Create(t.Context(), engine.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	if node, epoch, err := two.Owner(t.Context(), "s"); node != "" || epoch != 0 || err != nil {
		t.Errorf("owner before a claim: %q, %d, %v", node, epoch, err)
	}
	o, err := one.Claim(t.Context(), "s", one.lease)
	if err != nil {
		t.Fatal(err)
	}
	if node, epoch, err := two.Owner(t.Context(), "s"); node != "one" || epoch != 1 || err != nil {
		t.Errorf("owner: %q, %d, %v", node, epoch, err)
	}
	if err := o.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if node, _, err := two.Owner(t.Context(), "s"); node != "" || err != nil {
		t.Errorf("owner after a release: %q, %v", node, err)
	}
}

// testPublish: who follows a session of another node sees each record once and in order, whether it was published
// here, missed, or published twice.
func testPublish(t *testing.T, b Backend) {
	one, two := start(t, b, "one"), start(t, b, "two")
	if _, err := one.Create(t.Context(), engine.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	o, err := one.Claim(t.Context(), "s", one.lease)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seqs := make(chan uint64)
	done := make(chan error, 1)
	go func() {
		for r, err := range two.Follow(ctx, "s", 0) {
			if err != nil {
				done <- err
				return
			}
			seqs <- r.Seq
		}
		done <- nil
	}()
	var all []uint64
	read := func(n int) {
		for range n {
			select {
			case seq := <-seqs:
				all = append(all, seq)
			case err := <-done:
				t.Fatal(err)
			}
		}
	}
	add := func(n int) (records []engine.Record) {
		for range n {
			kept, err := o.Append(t.Context(), engine.Record{Data: []byte("x")})
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, kept...)
		}
		return records
	}
	records := add(2)
	two.Publish("s", records)
	read(2)
	two.Publish("s", records) // again
	two.Publish("s", add(1))
	read(1)
	add(1)                   // which is not published
	two.Publish("s", add(1)) // so that one is missing
	read(2)
	add(2)
	two.Missed("s")
	read(2)
	if want := []uint64{1, 2, 3, 4, 5, 6, 7}; !slices.Equal(all, want) {
		t.Errorf("%v", all)
	}
}
