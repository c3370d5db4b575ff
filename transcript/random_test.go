package transcript

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// configs are bounds that random conversations run into, and the default.
var configs = map[string]Config{
	"default": {},
	"tight":   {TotalBytes: 64 << 10, Entries: 20, Unknown: 2},
	"tiny":    {TotalBytes: 1, EntryBytes: 300, TerminalBytes: 7, Entries: 3, Unknown: 1},
}

// TestRandom: whatever the updates are, the invariants hold, the JSON form makes the
// same snapshot again, and snapshots taken on the way do not change.
func TestRandom(t *testing.T) {
	rounds := 1500
	if testing.Short() {
		rounds = 600
	}
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSupply(t, 7)
			c := New(cfg)
			type old struct {
				s    *Snapshot
				form string
			}
			var olds []old
			var open []uint64
			for i := range rounds {
				var changes []Change
				switch n := s.rng.IntN(20); {
				case n == 0:
					var seq uint64
					seq, changes = c.Asked(s.request())
					open = append(open, seq)
				case n == 1 && len(open) > 0:
					changes = []Change{c.Answered(open[s.rng.IntN(len(open))], s.outcome())}
				case n < 6:
					changes = c.ApplyV1(s.v1Update())
				default:
					changes = []Change{c.Apply(s.v2Update())}
				}
				if s.rng.IntN(40) > 0 {
					continue
				}
				snap := c.Snapshot()
				check(t, c, snap)
				for _, ch := range changes {
					e := snap.Entry(ch.Seq)
					if ch.Kind != "" && !ch.Trimmed && (e == nil || e.EntryKind() != ch.Kind || e.EntryID() != ch.ID) {
						t.Fatalf("change %+v is of entry %v", ch, e)
					}
				}
				form := jsonOf(t, snap)
				r := restored(t, snap)
				check(t, nil, r)
				if again := jsonOf(t, r); again != form {
					t.Fatalf("after %d updates the JSON form makes something else\n%s\n%s", i, form, again)
				}
				olds = append(olds, old{snap, form})
				if s.rng.IntN(10) == 0 { // go on from a snapshot, perhaps an old one and perhaps a read one
					snap = olds[s.rng.IntN(len(olds))].s
					if s.rng.IntN(2) == 0 {
						snap = restored(t, snap)
					}
					c, open = snap.Continue(cfg), nil
					check(t, c, c.Snapshot())
				}
			}
			for _, o := range olds {
				if jsonOf(t, o.s) != o.form {
					t.Fatal("a snapshot has changed")
				}
			}
		})
	}
}

// FuzzApply folds a random sequence of updates, of which one is given.
func FuzzApply(f *testing.F) {
	s := newSupply(f, 3)
	for i := range 60 {
		f.Add(uint64(i), []byte(s.v2.Valid(s.rng, "SessionUpdate")))
		f.Add(uint64(i), []byte(s.v1.Valid(s.rng, "SessionUpdate")))
	}
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		for _, cfg := range configs {
			s.rng = rand.New(rand.NewPCG(seed, 1))
			c := New(cfg)
			for range seed % 8 {
				c.Apply(s.v2Update())
			}
			for range 3 {
				if u, err := acpv2.UnmarshalSessionUpdate(data); err == nil {
					c.Apply(u)
				}
				if u, err := acpv1.UnmarshalSessionUpdate(data); err == nil {
					c.ApplyV1(u)
				}
				c.Apply(s.v2Update())
			}
			snap := c.Snapshot()
			check(t, c, snap)
			form := jsonOf(t, snap)
			if again := jsonOf(t, restored(t, snap)); again != form {
				t.Fatalf("the JSON form makes something else\n%s\n%s", form, again)
			}
		}
	})
}

// FuzzUnmarshal reads arbitrary bytes as a snapshot: what is accepted is written in
// a form that is read as the same, and can be continued.
func FuzzUnmarshal(f *testing.F) {
	s := newSupply(f, 5)
	for range 30 {
		c := New(Config{})
		for range 12 {
			c.Apply(s.v2Update())
		}
		_, _ = c.Asked(s.request())
		form := []byte(jsonOf(f, c.Snapshot()))
		f.Add(form)
		f.Add(form[:len(form)/2])
		f.Add(bytes.ReplaceAll(form, []byte(`"message"`), []byte(`"notice"`)))
	}
	f.Add([]byte(`{"version":1,"entries":[{"kind":"terminal","update":{"sessionUpdate":"terminal_update","terminalId":"t","output":{"data":"AAAA"}},"text":"x\u001b[31my\nz","skipped":5,"dropped":18446744073709551615}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var snap Snapshot
		if snap.UnmarshalJSON(data) != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepted what is no JSON: %q", data)
		}
		check(t, nil, &snap)
		form := jsonOf(t, &snap)
		r := restored(t, &snap)
		if again := jsonOf(t, r); again != form {
			t.Fatalf("unstable\n%s\n%s", form, again)
		}
		c := r.Continue(configs["tight"])
		c.Apply(&acpv2.TerminalOutputChunk{TerminalID: "t", Data: "Gw=="})
		c.Apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("more")})
		check(t, c, c.Snapshot())
		jsonOf(t, c.Snapshot())
	})
}

// FuzzScreen feeds terminal output in two ways: cut into pieces and as a whole.
func FuzzScreen(f *testing.F) {
	for _, s := range []string{
		"plain\n", "\x1b[1;31mred\x1b[0m\r\n", "10%\r20%\x1b[K\r100%\n", "a\bb\tc", "\x1b]0;title\x07x", "\x1b]8;;u\x1b\\link\x1b]8;;\x1b\\",
		"\x1bPsixel\x1b\\y", "\u009b31mz\u009c", "caf\xc3\xa9 \xf0\x9f\x98\x80 \xff\xfe", "\x1b(Bx\x1b7\x1b8", "\x1b[5G*\x1b[2D-\x1b[3C+", "\x1b[2K\x1b[1K",
	} {
		f.Add([]byte(s), uint8(1))
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, step uint8) {
		const limit = 1000
		var whole, pieces screen
		whole.feed(data, limit)
		n := int(step)%7 + 1
		for rest := data; len(rest) > 0; {
			k := min(n, len(rest))
			pieces.feed(rest[:k], limit)
			rest = rest[k:]
		}
		text := func(s *screen) string { return s.done.view() + string(s.line) }
		if a, b := text(&whole), text(&pieces); a != b || printable(a) != a {
			t.Fatalf("%q\nwhole  %q\npieces %q", data, a, b)
		}
		if len(whole.done.view()) > limit || len(whole.line) > lineCells {
			t.Fatalf("%d and %d bytes kept", len(whole.done.view()), len(whole.line))
		}
	})
}
