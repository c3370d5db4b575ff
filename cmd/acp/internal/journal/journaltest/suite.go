// Package journaltest is the suite that every backend of package journal passes. For tests only.
package journaltest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A Fixture is an empty set of journals to be tested.
type Fixture struct {
	// Open returns a backend of it, as one more process has.
	Open func(testing.TB) journal.Backend
	// Change changes the lines of a journal that nobody owns, without their ends. It is nil where that cannot be done.
	Change func(t testing.TB, id string, change func(lines [][]byte) [][]byte)
	// Real says that the backend waits for something outside of this process, so that it needs real time.
	Real bool
}

// Run runs the suite. fresh makes a fixture for each test.
func Run(t *testing.T, fresh func(testing.TB) Fixture) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Fixture)
	}{
		{"Records", testRecords},
		{"Invalid", testInvalid},
		{"Large", testLarge},
		{"Newer", testNewer},
		{"Empty", testEmpty},
		{"Concurrent", testConcurrent},
		{"Owners", testOwners},
		{"OwnRace", testOwnRace},
		{"List", testList},
		{"Owner", testOwner},
		{"Delete", testDelete},
		{"DeleteElsewhere", testDeleteElsewhere},
		{"Follow", testFollow},
		{"FollowLag", testFollowLag},
		{"FollowEnds", testFollowEnds},
		{"FollowElsewhere", testFollowElsewhere},
		{"FollowOwners", testFollowOwners},
		{"Compact", testCompact},
		{"CompactInvalid", testCompactInvalid},
		{"CompactFollow", testCompactFollow},
		{"Copy", testCopy},
		{"Witness", testWitness},
		{"Flipped", testFlipped},
		{"Exchanged", testExchanged},
		{"GapDamage", testGapDamage},
		{"Positions", testPositions},
		{"Synced", testSynced},
		{"SyncOrder", testSyncOrder},
		{"FollowQuiet", testFollowQuiet},
		{"SyncsAtOnce", testSyncsAtOnce},
		{"Lazy", testLazy},
		{"Backlog", testBacklog},
		{"Finish", testFinish},
		{"Stalled", testStalled},
		{"Failing", testFailing},
		{"FailingSync", testFailingSync},
		{"GivenUp", testGivenUp},
		{"GiveUp", testGiveUp},
		{"Begin", testBegin},
		{"Fenced", testFenced},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, fresh(t)) })
	}
}

// open opens a container, which is closed at the end of the test.
func open(t testing.TB, b journal.Backend, o ...journal.Options) *journal.Container {
	t.Helper()
	c := journal.New(b, append(o, journal.Options{})[0])
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// create makes a journal.
func create(t testing.TB, c *journal.Container, id string) *journal.Writer {
	t.Helper()
	w, err := c.Create(t.Context(), id, journal.Draft{Kind: journal.KindSession, Data: []byte(`{"title":"a"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// own owns a journal.
func own(t testing.TB, c *journal.Container, id string) *journal.Writer {
	t.Helper()
	w, err := c.Own(t.Context(), id, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func release(t testing.TB, w *journal.Writer) {
	t.Helper()
	if err := w.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// drafts makes drafts of a kind, each with a text.
func drafts(kind journal.Kind, texts ...string) (all []journal.Draft) {
	for _, text := range texts {
		data, _ := json.Marshal(text) // a string cannot fail
		all = append(all, journal.Draft{Kind: kind, Data: data})
	}
	return all
}

// appendTexts appends updates and waits until they are kept.
func appendTexts(t testing.TB, w *journal.Writer, texts ...string) []*journal.Record {
	t.Helper()
	recs, err := wait(w, drafts(journal.KindUpdate, texts...))
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

// wait appends drafts and waits until they are kept.
func wait(w *journal.Writer, drafts []journal.Draft) (recs []*journal.Record, err error) {
	done := make(chan struct{})
	if err := w.Append(drafts, func(r []*journal.Record, e error) {
		recs, err = r, e
		close(done)
	}); err != nil {
		return nil, err
	}
	<-done
	return recs, err
}

// text returns the text of a record of drafts.
func text(r *journal.Record) (s string) {
	if json.Unmarshal(r.Data, &s) != nil {
		return "?" + string(r.Data)
	}
	return s
}

// read returns what follows a position.
func read(t testing.TB, c *journal.Container, id string, after uint64) (all []*journal.Record, err error) {
	t.Helper()
	err = c.Read(t.Context(), id, after, func(r *journal.Record) error {
		all = append(all, r)
		return nil
	})
	return all, err
}

// whole reads a journal that must be whole, and returns the texts behind the first record.
func whole(t testing.TB, c *journal.Container, id string) (texts []string) {
	t.Helper()
	all, err := read(t, c, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(1)
	for _, r := range all {
		if r.From != next {
			t.Fatalf("record %d comes after %d", r.From, next-1)
		}
		next = r.Seq + 1
		if r.Seq > 1 && r.Kind != journal.KindGap {
			texts = append(texts, text(r))
		}
	}
	return texts
}

// wantIs fails unless an error is one.
func wantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// wantTexts compares texts.
func wantTexts(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
		t.Errorf("%s: %.200q, want %.200q", what, got, want)
	}
}

// hash is SHA-256 of a record as the format says, computed apart from package journal.
func hash(id string, before [32]byte, seq uint64, epoch uint32, body string) [32]byte {
	b := append([]byte("acp log 3\n"), before[:]...)
	b = binary.BigEndian.AppendUint64(b, seq)
	b = binary.BigEndian.AppendUint32(b, epoch)
	b = binary.BigEndian.AppendUint32(b, uint32(len(id)))
	return sha256.Sum256(append(append(b, id...), body...))
}

// put makes a journal of bodies, as any version of the program might.
func put(t testing.TB, b journal.Backend, id string, bodies ...string) {
	t.Helper()
	chain, err := b.Create(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var records []journal.Record
	var before [32]byte
	for i, body := range bodies {
		seq := uint64(i + 1)
		before = hash(id, before, seq, 1, body)
		records = append(records, journal.Record{Seq: seq, From: seq, Epoch: 1, Hash: before, Body: []byte(body)})
	}
	if len(records) > 0 {
		_, err = chain.Write(records)
	}
	if err = errors.Join(err, chain.Close()); err != nil {
		t.Fatal(err)
	}
}

// A hooked backend has its writes and syncs changed.
type hooked struct {
	journal.Backend
	write func(id string, records []journal.Record, next func() (bool, error)) (bool, error) // nil changes nothing
	sync  func(id string, next func() error) error                                           // nil changes nothing
	scan  func()                                                                             // before each, unless it is nil
	make  func() error                                                                       // before each Create, unless it is nil
}

func (h *hooked) Scan(ctx context.Context, id string, after uint64, at int64, yield func(line []byte, end int64) bool) error {
	if h.scan != nil {
		h.scan()
	}
	return h.Backend.Scan(ctx, id, after, at, yield)
}

type hookedChain struct {
	journal.Chain
	h  *hooked
	id string
}

func (h *hooked) Create(ctx context.Context, id string) (journal.Chain, error) {
	if h.make != nil {
		if err := h.make(); err != nil {
			return nil, err
		}
	}
	return h.wrap(id)(h.Backend.Create(ctx, id))
}

func (h *hooked) Own(ctx context.Context, id string) (journal.Chain, error) {
	return h.wrap(id)(h.Backend.Own(ctx, id))
}

func (h *hooked) wrap(id string) func(journal.Chain, error) (journal.Chain, error) {
	return func(c journal.Chain, err error) (journal.Chain, error) {
		if err != nil {
			return nil, err
		}
		return &hookedChain{c, h, id}, nil
	}
}

// Write is never durable, unless a hook says so.
func (c *hookedChain) Write(records []journal.Record) (bool, error) {
	next := func() (bool, error) {
		_, err := c.Chain.Write(records)
		return false, err
	}
	if c.h.write == nil {
		return next()
	}
	return c.h.write(c.id, records, next)
}

func (c *hookedChain) Sync() error {
	if c.h.sync == nil {
		return c.Chain.Sync()
	}
	return c.h.sync(c.id, c.Chain.Sync)
}

// troubles are what Trouble was called with, in order.
type troubles struct {
	mu   sync.Mutex
	list []error
}

func (l *troubles) tell(_ string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, err)
}

func (l *troubles) all() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]error(nil), l.list...)
}

// testRecords: what was appended is read as it was, numbered without gaps, in a chain of the hashes that the format says.
func testRecords(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	w := create(t, c, "s")
	at := time.Date(2026, 11, 26, 1, 2, 3, 456789012, time.FixedZone("x", 3600))
	first, err := wait(w, []journal.Draft{
		{Kind: journal.KindUpdate, At: at, Data: []byte(`{"a":"ünïcode <&>"}`)},
		{Kind: journal.KindOutput},
		{Kind: journal.KindPrompt, Data: []byte("{\n\t\"a\": [1,\n2]}")},
	})
	if err != nil {
		t.Fatal(err)
	}
	second := appendTexts(t, w, "d")
	if err := w.Append(nil, func([]*journal.Record, error) { t.Error("called for nothing") }); err != nil {
		t.Error(err)
	}
	got, err := read(t, c, "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	bodies := []string{
		`","kind":"session","data":{"format":3,"title":"a"}}`,
		`{"at":"2026-11-26T00:02:03.456789012Z","kind":"update","data":{"a":"ünïcode <&>"}}`,
		`","kind":"output","data":null}`,
		`","kind":"prompt","data":{"a":[1,2]}}`,
		`","kind":"update","data":"d"}`,
	}
	if len(got) != len(bodies) {
		t.Fatalf("%d records, want %d", len(got), len(bodies))
	}
	var before [32]byte
	for i, r := range got {
		if r.Seq != uint64(i+1) || r.From != r.Seq || r.Epoch != 1 || !strings.HasSuffix(string(r.Body), bodies[i]) {
			t.Errorf("record %d is %d-%d, epoch %d: %s", i+1, r.From, r.Seq, r.Epoch, r.Body)
		}
		if before = hash("s", before, r.Seq, 1, string(r.Body)); r.Hash != before {
			t.Errorf("record %d has another hash", r.Seq)
		}
		if i == 0 {
			continue
		}
		if kept := append(first, second...)[i-1]; kept.Hash != r.Hash || kept.Seq != r.Seq || !kept.At.Equal(r.At) || kept.Kind != r.Kind || string(kept.Data) != string(r.Data) {
			t.Errorf("kept as %+v, read as %+v", kept, r)
		}
	}
	for after := range uint64(6) {
		part, err := read(t, c, "s", after)
		if err != nil || len(part) != int(5-after) || len(part) > 0 && part[0].Seq != after+1 {
			t.Errorf("after %d: %d records, %v", after, len(part), err)
		}
	}
	_, err = read(t, c, "s", 6)
	wantIs(t, "read beyond the end", err, journal.ErrBeyond)
	want := journal.Head{Seq: 5, Hash: before}
	if h, err := c.Head(t.Context(), "s"); err != nil || h != want || w.Head() != want {
		t.Errorf("head %v, %v", h, err)
	}
	stop := errors.New("stop")
	if err := c.Read(t.Context(), "s", 0, func(*journal.Record) error { return stop }); err != stop {
		t.Errorf("the error of yield becomes %v", err)
	}
	other := open(t, f.Open(t))
	if h, err := other.Head(t.Context(), "s"); err != nil || h != want {
		t.Errorf("head elsewhere %v, %v", h, err)
	}
	_, err = read(t, other, "s", 6)
	wantIs(t, "read beyond the end elsewhere", err, journal.ErrBeyond)
	_, err = read(t, c, "none", 0)
	wantIs(t, "read of nothing", err, journal.ErrNotFound)
	_, err = c.Head(t.Context(), "none")
	wantIs(t, "head of nothing", err, journal.ErrNotFound)
	_, err = c.Own(t.Context(), "none", nil)
	wantIs(t, "owner of nothing", err, journal.ErrNotFound)
	_, err = c.Create(t.Context(), "s")
	if !errors.As(err, new(*journal.OwnedError)) && !errors.Is(err, journal.ErrExists) {
		t.Errorf("created twice: %v", err)
	}
	release(t, w)
	_, err = c.Create(t.Context(), "s")
	wantIs(t, "created twice", err, journal.ErrExists)
	wantTexts(t, "afterwards", whole(t, c, "s"), `?{"a":"ünïcode <&>"}`, "", `?{"a":[1,2]}`, "d")
}

// testInvalid: what cannot be kept is refused.
func testInvalid(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	w := create(t, c, "s")
	for name, d := range map[string]journal.Draft{
		"no kind":          {},
		"an unknown kind":  {Kind: "other"},
		"a gap":            {Kind: journal.KindGap},
		"lines":            {Kind: journal.KindUpdate, Data: []byte("{\n")},
		"a strange time":   {Kind: journal.KindUpdate, At: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"a time before it": {Kind: journal.KindUpdate, At: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		_, err := wait(w, append(drafts(journal.KindUpdate, "x"), d))
		wantIs(t, name, err, journal.ErrInvalid)
	}
	wantTexts(t, "after all", whole(t, c, "s"))
	for _, id := range []string{"", ".", "..", "a.", ".a", "a/b", `a\b`, "ä", "a b", "a\x00", "con:", strings.Repeat("x", 101)} {
		_, err := c.Create(t.Context(), id)
		wantIs(t, "create "+id, err, journal.ErrInvalid)
		_, err = c.Own(t.Context(), id, nil)
		wantIs(t, "own "+id, err, journal.ErrInvalid)
		_, err = read(t, c, id, 0)
		wantIs(t, "read "+id, err, journal.ErrInvalid)
		wantIs(t, "delete "+id, c.Delete(t.Context(), id), journal.ErrInvalid)
		for _, err := range c.Follow(t.Context(), id, 0) {
			wantIs(t, "follow "+id, err, journal.ErrInvalid)
		}
	}
	for _, d := range []journal.Draft{{Kind: journal.KindUpdate, Data: []byte("{}")}, {Kind: journal.KindSession, Data: []byte("[]")}, {Kind: journal.KindSession}} {
		_, err := c.Create(t.Context(), "n", d)
		wantIs(t, fmt.Sprint("first ", d), err, journal.ErrInvalid)
	}
}
