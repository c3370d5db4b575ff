package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

const (
	// Format is the version of records, which the first record of a journal names. A journal of a later one is refused.
	Format = 3
	// MaxRecord bounds the body of a record, in bytes. A [KindLost] record replaces one that is larger.
	MaxRecord = 64 << 20
)

// A Kind says what a record is.
type Kind string

// The kinds of records. Their data is described in docs/adr/0036-one-journal.md.
const (
	KindSession  Kind = "session" // what is known of the session; the first record is one, and the last one counts
	KindStart    Kind = "start"   // a life of the agent begins
	KindPrompt   Kind = "prompt"
	KindSent     Kind = "sent"     // a frame goes to the agent
	KindAccepted Kind = "accepted" // the agent has acknowledged it
	KindUpdate   Kind = "update"
	KindChild    Kind = "child" // the update of a subagent's session
	KindOutput   Kind = "output"
	KindAsked    Kind = "asked"
	KindDecided  Kind = "decided"
	KindLate     Kind = "late"    // an answer that came after the decision
	KindEnd      Kind = "end"     // of a turn
	KindDropped  Kind = "dropped" // a prompt that was cancelled before its turn began
	KindNotice   Kind = "notice"
	KindFork     Kind = "fork"
	KindMark     Kind = "mark"
	KindShared   Kind = "shared"
	KindReset    Kind = "reset" // only in what was imported
	// KindGap stands for records that [Writer.Compact] has replaced. No caller appends it.
	KindGap Kind = "gap"
	// KindLost stands for a record that was too large: a [Lost].
	KindLost Kind = "lost"

	// Those of the built-in agent.
	KindMessage   Kind = "message"
	KindIntent    Kind = "intent" // of an act, before the act
	KindResult    Kind = "result"
	KindUsage     Kind = "usage"
	KindCompacted Kind = "compacted"
	KindServed    Kind = "served"
	KindMended    Kind = "mended"
)

// relied has the kinds that this version knows, and whether somebody relies on a record of the kind, so that it is synced
// before it counts as kept.
var relied = map[Kind]bool{
	KindSession: true, KindStart: true, KindPrompt: true, KindSent: true, KindAccepted: false, KindUpdate: false, KindChild: false, KindDropped: true,
	KindOutput: false, KindAsked: false, KindDecided: true, KindLate: false, KindEnd: true, KindNotice: false,
	KindFork: true, KindMark: false, KindShared: true, KindReset: false, KindGap: false, KindLost: false,
	KindMessage: false, KindIntent: true, KindResult: false, KindUsage: false, KindCompacted: false, KindServed: false,
	KindMended: false,
}

// Known reports whether this version knows the kind. Readers ignore records of other kinds; nobody owns a journal that
// has one.
func (k Kind) Known() bool { _, ok := relied[k]; return ok }

// Relied reports whether a record of the kind is synced before it counts as kept.
func (k Kind) Relied() bool { return relied[k] }

// Lost is the data of a [KindLost] record.
type Lost struct {
	Kind  Kind `json:"kind"`
	Bytes int  `json:"bytes"`
}

// A Draft is what becomes a record.
type Draft struct {
	Kind Kind
	At   time.Time // zero means the time of Append
	// Data is JSON, which must not be modified any more; nil means null.
	Data []byte
}

// A Record is one entry of a journal. Its memory is shared by everybody who sees it, so nobody must modify it.
type Record struct {
	// Seq counts the records of a journal from 1, without gaps.
	Seq uint64
	// From is Seq, unless the record stands for several: those from From to Seq. If something is left of them, Kind and
	// Data are what is left. Otherwise Kind is [KindGap].
	From uint64
	// Epoch counts the owners of the journal; this is the one that wrote the record.
	Epoch uint32
	// Hash is SHA-256 over the hash before it, the id of the journal, Seq, Epoch and Body.
	Hash [sha256.Size]byte
	At   time.Time
	Kind Kind
	Data []byte // a part of Body
	// Body has the canonical bytes of the record: the JSON that is stored and hashed. Nobody encodes it again.
	Body []byte
}

// size is what a record counts for in bounds of memory.
func (r *Record) size() int { return max(len(r.Body), len(r.Data)) + recordBytes }

const recordBytes = 256

// A Head is the end of a journal; the zero value is that of an empty one.
type Head struct {
	Seq  uint64
	Hash [sha256.Size]byte
}

// hashVersion begins what is hashed, so that another encoding can never be mistaken for this one.
const hashVersion = "acp log 3\n"

// sum returns the hash of a record that follows another.
func sum(id string, before [sha256.Size]byte, seq uint64, epoch uint32, body []byte) (hash [sha256.Size]byte) {
	var head [160]byte
	b := append(head[:0], hashVersion...)
	b = append(b, before[:]...)
	b = binary.BigEndian.AppendUint64(b, seq)
	b = binary.BigEndian.AppendUint32(b, epoch)
	b = binary.BigEndian.AppendUint32(b, uint32(len(id)))
	b = append(b, id...)
	h := sha256.New()
	h.Write(b)
	h.Write(body)
	h.Sum(hash[:0])
	return hash
}

// The members of a body and of a line, in order. To change them is another [Format].
const (
	bodyAt   = `{"at":"`
	bodyKind = `","kind":"`
	bodyData = `","data":`

	lineSeq    = `{"seq":`
	lineEpoch  = `,"epoch":`
	lineHash   = `,"hash":"`
	lineRecord = `","record":`
	lineEnd    = "}"
)

// appendBody appends the canonical bytes of a record.
func appendBody(b []byte, kind Kind, at time.Time, data []byte) ([]byte, error) {
	if at = at.UTC(); at.Year() < 0 || at.Year() > 9999 {
		return nil, fmt.Errorf("%w: time %v", ErrInvalid, at)
	}
	if bytes.IndexByte(data, '\n') >= 0 {
		// Lines end records. In JSON a line feed is white space.
		var line bytes.Buffer
		if json.Compact(&line, data) != nil {
			return nil, fmt.Errorf("%w: the data of a record of kind %q is not JSON", ErrInvalid, kind)
		}
		data = line.Bytes()
	}
	b = append(b, bodyAt...)
	b = at.AppendFormat(b, time.RFC3339Nano)
	b = append(b, bodyKind...)
	b = append(b, kind...)
	b = append(b, bodyData...)
	if len(data) == 0 {
		b = append(b, "null"...)
	}
	b = append(b, data...)
	return append(b, lineEnd...), nil
}

// body makes the body of a draft.
func (d *Draft) body(now time.Time) (Kind, []byte, error) {
	at := d.At
	if at.IsZero() {
		at = now
	}
	const most = len(bodyAt) + len(time.RFC3339Nano) + len(bodyKind) + 16 + len(bodyData) + len(lineEnd)
	if len(d.Data) <= MaxRecord {
		b, err := appendBody(make([]byte, 0, most+len(d.Data)), d.Kind, at, d.Data)
		if err != nil || len(b) <= MaxRecord {
			return d.Kind, b, err
		}
	}
	data, err := json.Marshal(Lost{d.Kind, len(d.Data)})
	if err != nil {
		return "", nil, err
	}
	b, err := appendBody(nil, KindLost, at, data)
	return KindLost, b, err
}

// parseBody sets what the body of a record says.
func (r *Record) parseBody() error {
	if r.parseOwn() {
		return nil
	}
	// Another version of the program may write further members, anywhere.
	var v struct {
		At   time.Time       `json:"at"`
		Kind Kind            `json:"kind"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(r.Body, &v); err != nil {
		return err
	}
	r.At, r.Kind, r.Data = v.At, v.Kind, v.Data
	return nil
}

// parseOwn is parseBody for what this version writes. Its data is what was written, and need not be examined.
func (r *Record) parseOwn() bool {
	rest, ok := bytes.CutPrefix(r.Body, []byte(bodyAt))
	if !ok {
		return false
	}
	text, rest, ok := bytes.Cut(rest, []byte(bodyKind))
	if !ok || len(text) > len(time.RFC3339Nano) {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return false
	}
	kind, rest, ok := bytes.Cut(rest, []byte(bodyData))
	if !ok || !Kind(kind).Known() || len(rest) < 2 || rest[len(rest)-1] != lineEnd[0] {
		return false
	}
	r.At, r.Kind, r.Data = at, Kind(kind), rest[:len(rest)-1:len(rest)-1]
	return true
}

// Next returns the record of a draft that follows another one in a journal, for a [Backend] that has its records in another
// form.
func Next(id string, before Head, epoch uint32, d Draft) (Record, error) {
	c, err := newCall([]Draft{d})
	if err != nil {
		return Record{}, err
	}
	r := c.records[0]
	r.Seq, r.From, r.Epoch = before.Seq+1, before.Seq+1, epoch
	r.Hash = sum(id, before.Hash, r.Seq, epoch, r.Body)
	return r, nil
}

// NextGap is Next for a record that stands for those behind another one up to a number: see [Gap].
func NextGap(id string, before Head, to uint64, epoch uint32, left Draft) (Record, error) {
	last := Record{Seq: to, Epoch: epoch, At: left.At, Hash: sum(id, before.Hash, to, epoch, left.Data)}
	r, err := makeGap(id, before.Hash, before.Seq+1, &last, &left)
	r.At, r.Kind, r.Data = left.At, left.Kind, left.Data
	if left.Kind == "" {
		r.Kind = KindGap
	}
	return r, err
}

// AppendLine appends the line of a record, with its end.
func AppendLine(b []byte, r *Record) []byte {
	b = append(b, lineSeq...)
	b = strconv.AppendUint(b, r.Seq, 10)
	b = append(b, lineEpoch...)
	b = strconv.AppendUint(b, uint64(r.Epoch), 10)
	b = append(b, lineHash...)
	b = hex.AppendEncode(b, r.Hash[:])
	b = append(b, lineRecord...)
	b = append(b, r.Body...)
	return append(b, lineEnd+"\n"...)
}

// maxSeq bounds the numbers of records: those that any reader of JSON can tell from each other.
const maxSeq = 1<<53 - 1

// MaxLine bounds a line, its end included. A longer one is no record.
const MaxLine = MaxRecord + 256

var errNoRecord = errors.New("not a record")

// ParseLine parses a line without its end. It verifies nothing; only Seq, Epoch, Hash and Body are set. Body is a part
// of line.
func ParseLine(line []byte) (r Record, err error) {
	rest, ok := line, len(line) <= MaxLine
	skip := func(what string) {
		if ok = ok && len(rest) >= len(what) && string(rest[:len(what)]) == what; ok {
			rest = rest[len(what):]
		}
	}
	number := func(bits int) (n uint64) {
		i := 0
		for i < len(rest) && i < 20 && '0' <= rest[i] && rest[i] <= '9' {
			i++
		}
		n, err := strconv.ParseUint(string(rest[:i]), 10, bits)
		ok = ok && err == nil && rest[0] != '0'
		rest = rest[i:]
		return n
	}
	skip(lineSeq)
	r.Seq = number(64)
	ok = ok && r.Seq <= maxSeq
	skip(lineEpoch)
	r.Epoch = uint32(number(32))
	skip(lineHash)
	if ok = ok && len(rest) >= 2*len(r.Hash); ok {
		_, err := hex.Decode(r.Hash[:], rest[:2*len(r.Hash)])
		ok, rest = err == nil, rest[2*len(r.Hash):]
	}
	skip(lineRecord)
	if !ok || len(rest) < len(lineEnd) || string(rest[len(rest)-len(lineEnd):]) != lineEnd {
		return Record{}, errNoRecord
	}
	r.Body = rest[: len(rest)-len(lineEnd) : len(rest)-len(lineEnd)]
	return r, nil
}

// SeqOf returns the number of the record whose line begins with some bytes, or 0 if they are not the beginning of one.
func SeqOf(line []byte) uint64 {
	rest, ok := bytes.CutPrefix(line, []byte(lineSeq))
	text, _, more := bytes.Cut(rest, []byte(lineEpoch))
	if !ok || !more || len(text) > 20 {
		return 0
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Pieces returns what may be lines in a line that is none, for a [Backend] that has its records in another form: if the end
// of a line was damaged, the next one is behind it.
func Pieces(line []byte) (all [][]byte) {
	for {
		i := bytes.Index(line[min(1, len(line)):], []byte(lineSeq))
		if i < 0 {
			return append(all, line)
		}
		all = append(all, line[:i]) // without what was the end of the line
		line = line[i+1:]
	}
}

// hashIn returns what may be the hash in a damaged line.
func hashIn(line []byte) (hashes [][sha256.Size]byte) {
	const digits = 2 * sha256.Size
	begin := 0
	for i := 0; i <= len(line) && i < 256; i++ {
		if i < len(line) && bytes.IndexByte([]byte("0123456789abcdef"), line[i]) >= 0 {
			continue
		}
		if i-begin >= digits { // one more if a quotation mark has become a digit
			for _, at := range []int{begin, i - digits} {
				var h [sha256.Size]byte
				if _, err := hex.Decode(h[:], line[at:at+digits]); err == nil {
					hashes = append(hashes, h)
				}
			}
			return hashes
		}
		begin = i + 1
	}
	return nil
}
