package transcript

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/overlay"
	"github.com/goacp/acp/internal/sample"
)

// fold applies updates given as JSON.
func fold(t testing.TB, c *Conversation, updates ...string) (changes []Change) {
	t.Helper()
	for _, u := range updates {
		changes = append(changes, c.Apply(parse(t, u)))
	}
	return changes
}

func parse(t testing.TB, u string) acpv2.SessionUpdate {
	t.Helper()
	v, err := acpv2.UnmarshalSessionUpdate([]byte(u))
	if err != nil {
		t.Fatalf("%v\n%s", err, u)
	}
	return v
}

// folded returns the snapshot after updates.
func folded(t testing.TB, updates ...string) *Snapshot {
	t.Helper()
	c := New(Config{})
	fold(t, c, updates...)
	return c.Snapshot()
}

// jsonOf returns the JSON form of a snapshot.
func jsonOf(t testing.TB, s *Snapshot) string {
	t.Helper()
	out, err := s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out) || bytes.ContainsAny(out, "\n\r") {
		t.Fatalf("not one line of JSON: %q", out)
	}
	return string(out)
}

// restored is the snapshot after a round trip through JSON.
func restored(t testing.TB, s *Snapshot) *Snapshot {
	t.Helper()
	out := jsonOf(t, s)
	r := new(Snapshot)
	if err := r.UnmarshalJSON([]byte(out)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

// updateOf returns the update that an entry stands for, as JSON.
func updateOf(t testing.TB, e Entry) string {
	t.Helper()
	out, err := e.Update().AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func load(t testing.TB, file string) *sample.Schema {
	t.Helper()
	set, err := overlay.Read(filepath.Join("..", "schema"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := set.Schema(file + ".json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sample.Load(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A supply makes random updates with few different ids, so that they meet.
type supply struct {
	rng    *rand.Rand
	v1, v2 *sample.Schema
}

func newSupply(t testing.TB, seed uint64) *supply {
	return &supply{rng: rand.New(rand.NewPCG(seed, seed)), v1: load(t, "v1.unstable"), v2: load(t, "v2.unstable")}
}

func (s *supply) id() string { return string('a' + rune(s.rng.IntN(3))) }

func (s *supply) v2Update() acpv2.SessionUpdate {
	for {
		u, err := acpv2.UnmarshalSessionUpdate(s.v2.Valid(s.rng, "SessionUpdate"))
		if err != nil {
			continue
		}
		switch u := u.(type) {
		case *acpv2.UserMessageChunk:
			u.MessageID = acpv2.MessageID(s.id())
		case *acpv2.AgentMessageChunk:
			u.MessageID = acpv2.MessageID(s.id())
		case *acpv2.AgentThoughtChunk:
			u.MessageID = acpv2.MessageID(s.id())
		case *acpv2.UserMessage:
			u.MessageID = acpv2.MessageID(s.id())
		case *acpv2.AgentMessage:
			u.MessageID = acpv2.MessageID(s.id())
		case *acpv2.AgentThought:
			u.MessageID = acpv2.MessageID(s.id())
		case *acpv2.ToolCallUpdate:
			u.ToolCallID = acpv2.ToolCallID(s.id())
		case *acpv2.ToolCallContentChunk:
			u.ToolCallID = acpv2.ToolCallID(s.id())
		case *acpv2.TerminalUpdate:
			u.TerminalID = acpv2.TerminalID(s.id())
		case *acpv2.TerminalOutputChunk:
			u.TerminalID = acpv2.TerminalID(s.id())
		case *acpv2.PlanRemoved:
			u.PlanID = acpv2.PlanID(s.id())
		case *acpv2.CompactionUpdate:
			u.CompactionID = acpv2.CompactionID(s.id())
		case *acpv2.CompactionSummaryChunk:
			u.CompactionID = acpv2.CompactionID(s.id())
		case *acpv2.SubagentUpdate:
			u.SessionID = acpv2.SessionID(s.id())
		case *acpv2.SessionMessage:
			u.MessageID = acpv2.MessageID(s.id())
		case *acpv2.SessionMessageChunk:
			u.MessageID = acpv2.MessageID(s.id())
		case *acpv2.PlanUpdate:
			switch p := u.Plan.(type) {
			case *acpv2.PlanItems:
				p.PlanID = acpv2.PlanID(s.id())
			case *acpv2.PlanMarkdown:
				p.PlanID = acpv2.PlanID(s.id())
			case *acpv2.PlanFile:
				p.PlanID = acpv2.PlanID(s.id())
			}
		}
		return u
	}
}

func (s *supply) v1Update() acpv1.SessionUpdate {
	for {
		if u, err := acpv1.UnmarshalSessionUpdate(s.v1.Valid(s.rng, "SessionUpdate")); err == nil {
			return u
		}
	}
}

func (s *supply) request() *acpv2.RequestPermissionRequest {
	for {
		req := new(acpv2.RequestPermissionRequest)
		if req.UnmarshalJSON(s.v2.Valid(s.rng, "RequestPermissionRequest")) == nil {
			return req
		}
	}
}

func (s *supply) outcome() acpv2.RequestPermissionOutcome {
	for {
		if o, err := acpv2.UnmarshalRequestPermissionOutcome(s.v2.Valid(s.rng, "RequestPermissionOutcome")); err == nil {
			return o
		}
	}
}

// check holds what must be true of every conversation at any time.
func check(t testing.TB, c *Conversation, s *Snapshot) {
	t.Helper()
	var seqs []uint64
	keys := map[key]bool{}
	for e := range s.Entries() {
		seqs = append(seqs, e.Seq())
		if s.Entry(e.Seq()) != e {
			t.Fatalf("entry %d is not found by its number", e.Seq())
		}
		if k := e.key(); k.space != spaceNone {
			if keys[k] {
				t.Fatalf("two entries for %v", k)
			}
			keys[k] = true
			if s.find(k) != e {
				t.Fatalf("%v is not found by its id", k)
			}
		}
		if x, ok := e.(*Terminal); ok && x.Plain() != printable(x.Plain()) {
			t.Fatalf("control characters in %q", x.Plain())
		}
	}
	if !slices.IsSorted(seqs) || len(seqs) != s.Len() {
		t.Fatalf("%d entries, numbers %v", s.Len(), seqs)
	}
	var back []uint64
	for e := range s.Backward() {
		back = append(back, e.Seq())
	}
	slices.Reverse(back)
	if !slices.Equal(back, seqs) {
		t.Fatalf("backwards %v, forwards %v", back, seqs)
	}
	if c == nil {
		return
	}
	total := sum(c.sess.core.sizes)
	for e := range c.list.all() {
		b := e.base()
		for _, n := range b.sizes {
			if n < 0 {
				t.Fatalf("sizes %v of %s", b.sizes, e.EntryKind())
			}
			total += n
		}
	}
	if total != c.total {
		t.Fatalf("counted %d bytes, there are %d", c.total, total)
	}
	if c.total > c.cfg.TotalBytes || c.list.count > c.cfg.Entries || len(c.unknown) > c.cfg.Unknown {
		t.Fatalf("over the bounds: %d bytes, %d entries, %d unknown", c.total, c.list.count, len(c.unknown))
	}
	if len(c.index.seqs) != len(keys) {
		t.Fatalf("%d keys in the index, %d in the entries", len(c.index.seqs), len(keys))
	}
}
