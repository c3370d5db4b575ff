package transcript

import (
	"encoding/json"
	"math"
	"unicode/utf8"

	"github.com/goacp/acp/acpv2"
)

// A Config bounds what a [Conversation] keeps. The zero value is ready to use: a bound
// that is not positive has its default. Reaching a bound is never an error.
//
// Bytes are counted as the length of a value's JSON form, plus an estimate of its
// overhead in memory. If there are many tiny values, the memory in use can be several
// times that.
type Config struct {
	// TotalBytes bounds everything. The default is 64 MiB, the minimum 64 kB. At the
	// bound the oldest entries lose their bulky parts (content, raw input and output,
	// locations, metadata, terminal output), until 7/8 of the bound are in use. If
	// that is not enough, the oldest entries are dropped.
	TotalBytes int

	// EntryBytes bounds one entry, without terminal output, and the state of the
	// session as a whole. The default is 8 MiB, the maximum an eighth of TotalBytes. At
	// the bound texts and lists are cut at the end; other values are kept whole or not
	// at all. Independently of it, titles, commands, error texts and the like are cut
	// at 64 kB, and metadata is kept up to 1 MiB.
	EntryBytes int

	// TerminalBytes bounds the output that is kept of one terminal. The default is
	// 256 kB, the maximum a sixteenth of TotalBytes. The latest output is kept, and of
	// longer output also the beginning, a quarter as much. The text without control
	// sequences has the same bound again.
	TerminalBytes int

	// Entries bounds the number of entries; the default is 65536. At the bound the
	// oldest one is dropped.
	Entries int

	// Unknown bounds the number of [Unknown] entries; the default is 256. At the bound
	// the oldest of them is dropped.
	Unknown int
}

const (
	// idBytes bounds ids. An update with a longer one is ignored.
	idBytes = 4096
	// shortBytes bounds titles, commands, errors and the like, which are cut there.
	shortBytes = 64 << 10
	// metaBytes bounds metadata, because the time to merge a key grows with its length.
	metaBytes = 1 << 20
	// nesting bounds how deep updates may be nested. Deeper ones are ignored: in the
	// JSON form they would be nested deeper than can be read.
	nesting = 480
	// entryCost and itemCost are the overheads in memory of an entry and of an item of
	// a list.
	entryCost = 512
	itemCost  = 128
	// scratchKeep bounds the buffer kept between updates.
	scratchKeep = 64 << 10
)

func (cfg Config) withDefaults() Config {
	fill := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	fill(&cfg.TotalBytes, 64<<20)
	fill(&cfg.EntryBytes, 8<<20)
	fill(&cfg.TerminalBytes, 256<<10)
	fill(&cfg.Entries, 65536)
	fill(&cfg.Unknown, 256)
	cfg.TotalBytes = max(cfg.TotalBytes, 64<<10)
	cfg.EntryBytes = min(cfg.EntryBytes, cfg.TotalBytes/8)
	cfg.TerminalBytes = min(cfg.TerminalBytes, cfg.TotalBytes/16)
	return cfg
}

// unbounded are the bounds for reading what was within other bounds before.
var unbounded = Config{
	TotalBytes: math.MaxInt, EntryBytes: math.MaxInt / 8, TerminalBytes: math.MaxInt / 16,
	Entries: math.MaxInt, Unknown: math.MaxInt,
}

// A Loss counts what was lost at the bounds of a [Config].
type Loss struct {
	Entries uint64 // entries that were dropped
	Bytes   uint64 // of content of entries and of the session, as the bounds count them
	Updates uint64 // updates that were ignored: see [Conversation.Apply]
}

// A codec encodes itself; values of the wire types do.
type codec interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// encode returns the JSON form of a value until the next call.
func (c *Conversation) encode(v codec) ([]byte, error) {
	b, err := v.AppendJSON(c.scratch[:0])
	if cap(b) <= scratchKeep {
		c.scratch = b
	}
	return b, err
}

// size returns the number of bytes that a value counts.
func (c *Conversation) size(v codec) int {
	if v == nil {
		return 0
	}
	b, _ := c.encode(v)
	return len(b) + itemCost
}

// owned returns a copy of an update that shares no memory with it: a value that was
// decoded from a peer's frame may keep that frame alive, and the caller may modify its
// own. It returns nil for an update that cannot be encoded or is nested too deep.
func (c *Conversation) owned(u acpv2.SessionUpdate) acpv2.SessionUpdate {
	return clone(c, u, acpv2.UnmarshalSessionUpdate)
}

func clone[T codec](c *Conversation, v T, unmarshal func([]byte) (T, error)) (none T) {
	b, err := c.encode(v)
	if err != nil || tooDeep(b, c.nesting) {
		return none
	}
	if v, err = unmarshal(b); err != nil {
		return none
	}
	return v
}

func tooDeep(b []byte, limit int) bool {
	opening := 0
	for _, c := range b {
		if c|0x20 == '{' {
			opening++
		}
	}
	if opening <= limit {
		return false
	}
	depth, text := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			text = !text
		case c == '\\':
			i++
		case text:
		case c|0x20 == '{':
			if depth++; depth > limit {
				return true
			}
		case c|0x20 == '}':
			depth--
		}
	}
	return false
}

// charge sets the size of a part.
func (c *Conversation) charge(e *core, part, n int) {
	c.total += n - e.sizes[part]
	if n > e.sizes[part] && part != partFixed {
		c.stripAt = min(c.stripAt, e.seq)
	}
	e.sizes[part] = n
}

// dropped counts n bytes of an entry that were dropped at a bound.
func (c *Conversation) dropped(e *core, n int) {
	e.dropped += int64(n)
	c.loss.Bytes += uint64(n)
}

// room returns how big a part may be, given the others.
func (c *Conversation) room(e *core, part int) int {
	return max(c.cfg.EntryBytes-(e.bulk()-e.sizes[part]-e.sizes[partTerminal]), 0)
}

// fit returns the items for which there is room.
func fit[T any](c *Conversation, e *core, part int, items []T, size func(*T) int) []T {
	room, n := c.room(e, part), 0
	for i := range items {
		s := size(&items[i])
		if n+s <= room {
			n += s
			continue
		}
		lost := 0
		for j := i; j < len(items); j++ {
			lost += size(&items[j])
		}
		c.dropped(e, lost)
		items = append([]T(nil), items[:i]...) // so that the rest can be freed
		break
	}
	c.charge(e, part, n)
	return items
}

// fitRaw returns raw JSON if there is room for it.
func (c *Conversation) fitRaw(e *core, part int, raw json.RawMessage) json.RawMessage {
	if len(raw) > c.room(e, part) {
		c.dropped(e, len(raw))
		raw = nil
	}
	c.charge(e, part, len(raw))
	return raw
}

func (c *Conversation) applyMeta(e *core, stored *json.RawMessage, patch json.RawMessage) {
	if len(patch) == 0 {
		return
	}
	meta := patchMeta(*stored, patch)
	if len(meta) > metaBytes {
		c.dropped(e, len(meta))
		meta = nil
	}
	*stored = c.fitRaw(e, partMeta, meta)
}

// patchShort patches a text that is kept short.
func patchShort[T ~string](c *Conversation, e *core, p acpv2.Patch[T], v *T) {
	if p.IsZero() {
		return
	}
	n := len(*v)
	*v = short(c, e, p.Or(""))
	c.charge(e, partFixed, e.sizes[partFixed]+len(*v)-n)
}

// short cuts a text to its bound.
func short[T ~string](c *Conversation, e *core, s T) T {
	if limit := min(shortBytes, c.cfg.EntryBytes); len(s) > limit {
		kept := T(cut(string(s), limit))
		c.dropped(e, len(s)-len(kept))
		return kept
	}
	return s
}

// cut returns the beginning of s, up to a whole character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := 0; i < utf8.UTFMax-1 && n > 0 && !utf8.RuneStart(s[n]); i++ {
		n--
	}
	return string(append([]byte(nil), s[:n]...)) // so that the rest can be freed
}

// add puts a new entry at the end.
func (c *Conversation) add(e Entry, id int) {
	b := e.base()
	b.gen = c.gen
	b.seq = c.list.push(c.gen, e)
	if k := e.key(); k.space != spaceNone {
		c.index.put(k, b.seq)
	}
	switch e := e.(type) {
	case *Message:
		if e.Role == RoleAgent {
			c.last = b.seq
		}
	case *Unknown:
		c.unknown = append(c.unknown, b.seq)
	}
	c.charge(b, partFixed, entryCost+2*id)
}

// enforce applies the bounds on all entries together, and reports whether anything was
// dropped.
func (c *Conversation) enforce() (trimmed bool) {
	for len(c.unknown) > c.cfg.Unknown {
		c.remove(c.unknown[0])
		trimmed = true
	}
	for c.list.count > c.cfg.Entries {
		c.removeFirst()
		trimmed = true
	}
	if c.total <= c.cfg.TotalBytes {
		return trimmed
	}
	target := c.cfg.TotalBytes / 8 * 7
	for ; c.stripAt < c.list.next && c.total > target; c.stripAt++ {
		e := c.list.get(c.stripAt)
		if e == nil || e.base().bulk() == 0 {
			continue
		}
		e = e.edited(c)
		e.strip()
		b := e.base()
		for part := partFixed + 1; part < parts; part++ {
			c.dropped(b, b.sizes[part])
			c.total -= b.sizes[part]
			b.sizes[part] = 0
		}
	}
	for c.total > target && c.list.count > 0 {
		c.removeFirst()
	}
	return true
}

func (c *Conversation) removeFirst() {
	for c.list.get(c.first) == nil {
		c.first++
	}
	c.remove(c.first)
}

func (c *Conversation) remove(seq uint64) {
	e := c.list.get(seq)
	b := e.base()
	for _, n := range b.sizes {
		c.total -= n
	}
	c.loss.Entries++
	c.loss.Bytes += uint64(b.bulk())
	if len(c.unknown) > 0 && c.unknown[0] == seq {
		c.unknown = c.unknown[1:]
	}
	c.index.remove(e.key())
	c.list.remove(c.gen, seq)
}
