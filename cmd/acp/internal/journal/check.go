package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"math"
)

// maxUnverified is above the numbers of records that are believed without the hash before them, so that damage leaves
// room for others.
const maxUnverified = maxSeq / 2

// A checker verifies the records of a journal, one after the other.
type checker struct {
	id   string
	head Head // the last sound record
	// epoch is that of the last sound record.
	epoch uint32
	// bad counts lines since then that are not sound records; alt has what may be the hash of the last of them.
	bad uint64
	alt [][sha256.Size]byte
	// loose says that the next record cannot be verified: the hash before it is not known.
	loose  bool
	damage DamageError
}

func newChecker(id string) *checker { return &checker{id: id, damage: DamageError{ID: id}} }

// expected is the number of the next record.
func (c *checker) expected() uint64 { return c.head.Seq + c.bad + 1 }

// line takes a line and calls yield with the sound records in it: one, unless the line is damaged. It reports whether
// yield has always returned true.
func (c *checker) line(line []byte, yield func(*Record) bool) bool {
	was := *c
	r, err := ParseLine(line)
	if err == nil && c.record(&r) {
		return yield(&r)
	}
	all := Pieces(line)
	if err == nil && len(all) == 1 {
		return true
	}
	for *c = was; len(all) > 0; all = all[1:] {
		piece := all[0]
		r, err := ParseLine(piece)
		if err != nil {
			c.broken(hashIn(piece)...)
		} else if c.record(&r) && !yield(&r) {
			return false
		}
	}
	return true
}

// broken counts a line that is not a sound record.
func (c *checker) broken(hashes ...[sha256.Size]byte) {
	c.bad++
	c.alt, c.loose = hashes, len(hashes) == 0
}

// verified reports whether a record follows with a number.
func (c *checker) verified(r *Record, seq uint64) bool {
	if sum(c.id, c.head.Hash, seq, r.Epoch, r.Body) == r.Hash {
		return true
	}
	for _, before := range c.alt {
		if sum(c.id, before, seq, r.Epoch, r.Body) == r.Hash {
			return true
		}
	}
	return false
}

// record checks a record that was parsed as a line, and sets its other fields. It reports whether the record is sound.
func (c *checker) record(r *Record) bool {
	r.From = r.Seq
	if err := r.parseBody(); err != nil {
		c.broken(r.Hash)
		return false
	}
	next := c.expected()
	switch {
	case r.Kind == KindGap:
		return c.gap(r)
	case r.Seq > c.head.Seq && c.verified(r, r.Seq):
	case r.Seq != next && c.verified(r, next):
		r.Seq, r.From = next, next // only its number was damaged
	case r.Seq <= c.head.Seq:
		c.damage.Altered = true // twice, or out of order
		return false
	case r.Seq >= maxUnverified: // no journal is so long
		c.broken()
		return false
	case c.loose:
	case r.Seq > next:
		c.damage.Altered = true // those before it were removed
	default:
		c.broken(r.Hash, sum(c.id, c.head.Hash, r.Seq, r.Epoch, r.Body))
		return false
	}
	c.sound(r)
	return true
}

// sound continues behind a record.
func (c *checker) sound(r *Record) {
	if r.From > c.head.Seq+1 {
		c.damage.lost(c.head.Seq+1, r.From-1)
	}
	c.head, c.epoch = Head{r.Seq, r.Hash}, r.Epoch
	c.bad, c.alt, c.loose = 0, nil, false
}

// end returns the end of the journal: behind what is damaged at its end, where the next owner continues with the hash that
// it has.
func (c *checker) end() Head {
	h := Head{c.head.Seq + c.bad, c.head.Hash}
	if len(c.alt) > 0 {
		h.Hash = c.alt[0]
	}
	return h
}

// finish notes what is damaged at the end.
func (c *checker) finish() {
	if c.bad > 0 {
		c.damage.lost(c.head.Seq+1, c.head.Seq+c.bad)
	}
}

// anchor begins a pass behind a position with the first record from there on. It reports whether it is the one there.
func (c *checker) anchor(r *Record, after uint64) (bool, error) {
	switch {
	case r.Seq == after:
		c.head, c.epoch = Head{r.Seq, r.Hash}, r.Epoch
		c.bad, c.alt, c.loose = 0, nil, false
		return true, nil
	case r.parseBody() == nil && r.Kind == KindGap:
		if g, ok := parseGap(r); ok && g.From <= after {
			return false, &CompactedError{Before: g.From - 1}
		}
	}
	return false, nil
}

// A gap is the data of a record that stands for several.
type gap struct {
	From uint64          `json:"from"`
	Seal string          `json:"seal"`
	Kind Kind            `json:"kind,omitempty"` // of what is left, if something is
	Data json.RawMessage `json:"data,omitempty"`
}

// noSeal stands in the place of a seal while it is computed.
var noSeal = string(bytes.Repeat([]byte("0"), 2*sha256.Size))

func parseGap(r *Record) (g gap, ok bool) {
	err := json.Unmarshal(r.Data, &g)
	return g, err == nil && len(g.Seal) == len(noSeal) && g.From >= 1 && g.From <= r.Seq
}

// gap checks a record that stands for several, and sets what it says. Its hash is that of the last of them, so its seal
// is verified instead.
func (c *checker) gap(r *Record) bool {
	g, ok := parseGap(r)
	if ok {
		at := bytes.Index(r.Body, []byte(g.Seal))
		body := bytes.Clone(r.Body)
		ok = at >= 0 && copy(body[at:], noSeal) == len(noSeal)
		ok = ok && (c.loose || seal(c.id, c.head.Hash, r, body) == g.Seal)
	}
	if !ok || g.From != c.head.Seq+1 && (!c.loose || r.Seq >= maxUnverified || g.From <= c.head.Seq) {
		c.broken(r.Hash)
		return false
	}
	r.From = g.From
	if g.Kind != "" {
		r.Kind, r.Data = g.Kind, g.Data
	} else {
		r.Data = nil
	}
	c.sound(r)
	return true
}

// all is after every record.
const all = math.MaxUint64

// checkFormat refuses a journal of a later format, by its first record.
func checkFormat(id string, first *Record) error {
	var v struct {
		Format int `json:"format"`
	}
	if json.Unmarshal(first.Data, &v) == nil && v.Format > Format {
		return &FormatError{ID: id, Format: v.Format}
	}
	return nil
}
