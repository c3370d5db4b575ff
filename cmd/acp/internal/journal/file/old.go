package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
)

// Conversations of format 1, as chat and exec wrote them until there was this package, are read as if they were journals,
// and become journals when somebody owns them. Each of their lines has half of a SHA-256 of itself and of the one before. A
// process that found a conversation locked wrote a part of its own, <id>.2.jsonl and so on; parts are merged by time.

const (
	// maxParts bounds the parts of a conversation, and maxOpen those that are open at once.
	maxParts, maxOpen = 10_000, 32
	// maxOldLine bounds a line of format 1, which allowed 256 MiB of data.
	maxOldLine = 256<<20 + 64<<10
	// maxDamaged bounds the damaged records that stand for those that are missing in one place.
	maxDamaged = 10_000
)

// partOf returns the conversation that a name belongs to, and the number of the part: 1 is the first one, or no part.
func partOf(name string) (id string, n int) {
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		n, err := strconv.Atoi(name[i+1:])
		if err == nil && n > 1 && n <= maxParts && strconv.Itoa(n) == name[i+1:] {
			return name[:i], n
		}
	}
	return name, 1
}

// oldHead returns what follows the first members of a line of format 1: its numbers, and the hash before it.
func oldHead(line []byte) (seq, epoch uint64, prev [16]byte, rest []byte, ok bool) {
	if seq = journal.SeqOf(line); seq == 0 {
		return 0, 0, prev, nil, false
	}
	_, rest, _ = bytes.Cut(line, []byte(`,"epoch":`))
	number, rest, ok := bytes.Cut(rest, []byte(`,"prev":"`))
	epoch, err := strconv.ParseUint(string(number[:min(len(number), 20)]), 10, 64)
	if !ok || err != nil || len(rest) < 2*len(prev) {
		return 0, 0, prev, nil, false
	}
	if _, err := hex.Decode(prev[:], rest[:2*len(prev)]); err != nil {
		return 0, 0, prev, nil, false
	}
	rest, ok = bytes.CutPrefix(rest[2*len(prev):], []byte(`","hash":"`))
	return seq, epoch, prev, rest, ok
}

// isOld reports whether a file has format 1: the first of its lines that is a line of either format.
func isOld(f io.ReaderAt, size int64) bool {
	head := make([]byte, min(size, 96))
	n, _ := f.ReadAt(head, 0)
	if isNew(head[:n]) {
		return false
	}
	head = make([]byte, min(size, searchStep))
	n, _ = f.ReadAt(head, 0)
	for line := range bytes.Lines(head[:n]) {
		if isNew(line) {
			return false
		}
		if _, _, _, _, ok := oldHead(line); ok {
			return true
		}
	}
	return false
}

// isNew reports whether bytes are the beginning of a line of a journal. One damaged byte does not make a line of format 1 one.
func isNew(line []byte) bool {
	_, rest, _ := bytes.Cut(line[:min(len(line), 96)], []byte(`,"epoch":`))
	return journal.SeqOf(line) > 0 && bytes.HasPrefix(bytes.TrimLeft(rest, "0123456789"), []byte(`,"hash":"`))
}

// lines calls yield with the lines that the journal of the conversation has. Afterwards lossy says whether they have
// everything that the parts have.
func (o *oldParts) lines(ctx context.Context, yield func(line []byte, end int64) bool) error {
	var sources []*oldSource
	defer func() {
		for _, s := range sources {
			s.stop()
		}
	}()
	for _, records := range o.records() {
		s := &oldSource{}
		s.pull, s.stop = iter.Pull2(records)
		sources = append(sources, s)
		s.advance()
	}
	var at journal.Head
	end := int64(0)
	for n := 1; ; n++ {
		var next *oldSource
		for _, s := range sources {
			if s.err != nil {
				return s.err
			}
			if s.more && (next == nil || s.at.Before(next.at)) {
				next = s
			}
		}
		if next == nil {
			return nil
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r, err := next.rec.renewed(o.id, at)
		if err != nil {
			return err
		}
		o.lossy = o.lossy || r.Kind == journal.KindLost && next.rec.Kind != string(journal.KindLost)
		at = journal.Head{Seq: r.Seq, Hash: r.Hash}
		line := bytes.TrimSuffix(journal.AppendLine(nil, &r), []byte("\n"))
		end += int64(len(line)) + 1
		if !yield(line, end) {
			return nil
		}
		next.advance()
	}
}

// An oldSource is a part with its next record.
type oldSource struct {
	pull func() (oldRecord, error, bool)
	stop func()
	rec  oldRecord
	at   time.Time // of rec, and never before the preceding ones
	more bool
	err  error
}

func (s *oldSource) advance() {
	if s.rec, s.err, s.more = s.pull(); s.more && s.rec.At.After(s.at) {
		s.at = s.rec.At
	}
}

// records returns the records of each part. Those of more parts than may be open at once are not merged by time: they are
// those of a single one.
func (o *oldParts) records() (all []iter.Seq2[oldRecord, error]) {
	if len(o.parts) <= maxOpen {
		for _, p := range o.parts {
			all = append(all, o.recordsOf(p))
		}
		return all
	}
	return append(all, func(yield func(oldRecord, error) bool) {
		for _, p := range o.parts {
			for r, err := range o.recordsOf(p) {
				if !yield(r, err) {
					return
				}
			}
		}
	})
}

// An oldRecord is a record of format 1. One without a kind stands for one that is damaged.
type oldRecord struct {
	At   time.Time       `json:"at"`
	Kind string          `json:"kind"`
	Ref  string          `json:"ref"`
	Data json.RawMessage `json:"data"`
	// large is how many bytes of data there were, if they are more than a journal can have.
	large int
}

// recordsOf returns the records of a part, which are hashed from its name on.
func (o *oldParts) recordsOf(p *oldPart) iter.Seq2[oldRecord, error] {
	return func(yield func(oldRecord, error) bool) {
		if p.f == nil {
			if err := o.open(p, os.O_RDONLY); err != nil {
				yield(oldRecord{}, err)
				return
			}
			defer p.close()
		}
		c := oldChecker{last: p.root(o.id), yield: yield}
		read := int64(0)
		more, tail, err := split(p.f, 0, p.size, maxOldLine, func(line []byte, end int64) bool {
			read = end
			return c.line(line, true)
		})
		if err != nil {
			yield(oldRecord{}, err)
			return
		}
		if more && read < p.size { // the line feed is all that is missing, or more; or the line is too long
			more = c.line(tail, false)
		}
		if more {
			c.damaged(c.bad)
		}
		o.lossy = o.lossy || c.lossy
	}
}

// An oldChecker verifies the lines of a part, one after the other.
type oldChecker struct {
	last  [16]byte // the hash of the last sound record
	seq   uint64   // and its number
	bad   uint64   // lines since then that are none
	lossy bool     // something was left out
	yield func(oldRecord, error) bool
}

// line takes a line, and reports whether there is to be more. The rest of one that ends in the middle is no damage.
func (c *oldChecker) line(line []byte, whole bool) bool {
	if len(bytes.TrimRight(line, "\r")) == 0 && line != nil {
		return true
	}
	if l, ok := parseOld(line); ok {
		return c.record(l)
	}
	all := journal.Pieces(line)
	for i, piece := range all {
		l, ok := oldLine{}, false
		if len(all) > 1 {
			l, ok = parseOld(piece)
		}
		switch {
		case ok:
			if !c.record(l) {
				return false
			}
		case whole || i < len(all)-1:
			c.bad++
		default:
			c.lossy = true // torn
		}
	}
	return true
}

// record takes a sound record.
func (c *oldChecker) record(l oldLine) bool {
	if l.seq <= c.seq { // twice, or out of order
		c.lossy = true
		return true
	}
	missing := l.seq - c.seq - 1
	if missing == 0 && c.bad == 0 && l.prev != c.last {
		missing = 1 // another one was here
	}
	c.last, c.seq, c.bad = l.hash, l.seq, 0
	if len(l.rec.Data) > journal.MaxRecord {
		l.rec.large, l.rec.Data = len(l.rec.Data), nil
	}
	return c.damaged(missing) && c.yield(l.rec, nil)
}

// damaged has records that are damaged in the place of some.
func (c *oldChecker) damaged(n uint64) bool {
	c.lossy = c.lossy || n > 0
	for range min(n, maxDamaged) {
		if !c.yield(oldRecord{}, nil) {
			return false
		}
	}
	return true
}

// An oldLine is a line of format 1.
type oldLine struct {
	seq        uint64
	prev, hash [16]byte
	rec        oldRecord
}

// parseOld parses a line of format 1 and checks its hash.
func parseOld(line []byte) (l oldLine, ok bool) {
	seq, epoch, prev, rest, ok := oldHead(line)
	sum, record, is := bytes.Cut(rest, []byte(`","record":`))
	record, ends := bytes.CutSuffix(record, []byte("}"))
	if !ok || !is || !ends || len(sum) != 2*len(l.hash) {
		return l, false
	}
	l.seq, l.prev = seq, prev
	_, err := hex.Decode(l.hash[:], sum)
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(prev[:len(prev):len(prev)], seq), epoch))
	h.Write(record)
	if err != nil || !bytes.Equal(h.Sum(nil)[:len(l.hash)], l.hash[:]) || json.Unmarshal(record, &l.rec) != nil {
		return oldLine{}, false
	}
	return l, l.rec.Kind != ""
}

// renewed returns the record of a journal that a record becomes, behind another one.
func (r *oldRecord) renewed(id string, at journal.Head) (journal.Record, error) {
	d := journal.Draft{At: r.At}
	if y := r.At.UTC().Year(); r.At.IsZero() || y < 0 || y > 9999 {
		d.At = time.Unix(0, 0) // the same each time, since hashes depend on it
	}
	kind, data := r.content(at.Seq == 0)
	if d.Kind, d.Data = kind, data; kind == "" || r.large > 0 {
		if kind == "" {
			kind = journal.Kind(r.Kind)
		}
		d.Kind = journal.KindLost
		d.Data, _ = json.Marshal(journal.Lost{Kind: kind, Bytes: max(r.large, len(r.Data))})
	}
	made, err := journal.Next(id, at, 1, d)
	if err == nil && r.Kind == "" {
		made.Hash[0]++ // so that it is damaged here, too
	}
	return made, err
}

// content returns what a record has in a journal; the kind is empty if a journal has no such records.
func (r *oldRecord) content(first bool) (kind journal.Kind, data []byte) {
	data = r.Data
	switch r.Kind {
	case "session":
		about := map[string]json.RawMessage{}
		if json.Unmarshal(data, &about) == nil {
			if about == nil { // it was null
				about = map[string]json.RawMessage{}
			}
			delete(about, "conversation")
			if delete(about, "format"); first {
				about["format"] = strconv.AppendInt(nil, journal.Format, 10)
			}
			data, _ = json.Marshal(about) // it was JSON
		}
		return journal.KindSession, data
	case "update":
		if bytes.HasPrefix(data, []byte(`{"sessionUpdate":"user_message",`)) && !bytes.Contains(data, []byte(`"`+ownmeta.Key+`"`)) {
			return journal.KindPrompt, data // and no history that an agent has replayed
		}
		return journal.KindUpdate, data
	case "asked":
		data, _ = json.Marshal(struct { // it was JSON
			ID      string          `json:"id"`
			Request json.RawMessage `json:"request"`
		}{r.Ref, data})
		return journal.KindAsked, data
	case "answered":
		if rest, ok := bytes.CutPrefix(data, []byte(`{"asked":`)); ok {
			data = append([]byte(`{"id":`), rest...)
		}
		return journal.KindDecided, data
	case "turn":
		return journal.KindEnd, data
	case "output", "reset", "lost":
		return journal.Kind(r.Kind), data
	}
	return "", data
}
