package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// A hash is the first half of a SHA-256. It detects damage and lost records. It cannot resist
// somebody who can write the file, and who could compute all hashes again; 128 bits suffice for
// that, and halve its part of each line.
type hash [16]byte

// A record is the contents of a line of a log.
type record struct {
	Seq   int64 // in its part, from 1, without gaps
	Epoch int64 // how often the part was opened for writing before it was written
	Prev  hash  // of the record before
	Hash  hash  // of this one, Prev included
	Event
}

// The members of a line, in order. Changing them changes the format: docs/records.md.
const (
	lineSeq    = `{"seq":`
	lineEpoch  = `,"epoch":`
	linePrev   = `,"prev":"`
	lineHash   = `","hash":"`
	lineRecord = `","record":`
	lineEnd    = "}"

	recordAt   = `{"at":"`
	recordKind = `","kind":"`
	recordRef  = `","ref":"`
	recordData = `","data":`
)

// root stands for the hash before the first record of a part.
func root(id string, part int) hash {
	sum := sha256.Sum256(strconv.AppendInt([]byte(id+"."), int64(part), 10))
	return hash(sum[:])
}

// appendBody appends the body of a record: the bytes that are hashed.
func appendBody(b []byte, e *Event) []byte {
	b = append(b, recordAt...)
	b = e.Time.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, recordKind...)
	b = appendPlain(b, string(e.Kind))
	if e.Ref != "" {
		b = append(b, recordRef...)
		b = appendPlain(b, e.Ref)
	}
	b = append(b, recordData...)
	switch {
	case len(e.Data) == 0:
		b = append(b, "null"...)
	case bytes.IndexByte(e.Data, '\n') >= 0:
		// Lines end records. In JSON a line feed is white space.
		var line bytes.Buffer
		if json.Compact(&line, e.Data) != nil || bytes.IndexByte(line.Bytes(), '\n') >= 0 {
			b = append(b, "null"...) // not JSON
			break
		}
		b = append(b, line.Bytes()...)
	default:
		b = append(b, e.Data...)
	}
	return append(b, lineEnd...)
}

// appendPlain appends what stands between the quotation marks of a string.
func appendPlain(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string cannot fail
			return append(b, quoted[1:len(quoted)-1]...)
		}
	}
	return append(b, s...)
}

// chain returns the hash of a record.
func chain(prev hash, seq, epoch int64, body []byte) hash {
	var head [32]byte
	copy(head[:], prev[:])
	binary.BigEndian.PutUint64(head[16:], uint64(seq))
	binary.BigEndian.PutUint64(head[24:], uint64(epoch))
	h := sha256.New()
	h.Write(head[:])
	h.Write(body)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return hash(sum[:len(hash{})])
}

// appendLine appends the line of a record that follows prev, and returns its hash.
func appendLine(b []byte, e *Event, seq, epoch int64, prev hash) ([]byte, hash) {
	b = append(b, lineSeq...)
	b = strconv.AppendInt(b, seq, 10)
	b = append(b, lineEpoch...)
	b = strconv.AppendInt(b, epoch, 10)
	b = append(b, linePrev...)
	b = hex.AppendEncode(b, prev[:])
	b = append(b, lineHash...)
	at := len(b)
	b = append(b, "00000000000000000000000000000000"...)
	b = append(b, lineRecord...)
	begin := len(b)
	b = appendBody(b, e)
	sum := chain(prev, seq, epoch, b[begin:])
	hex.Encode(b[at:], sum[:])
	return append(b, lineEnd+"\n"...), sum
}

var (
	errNoRecord = errors.New("not a record")
	errDamaged  = errors.New("the hash does not match")
)

// parseLine parses a line without its end. The data of the record aliases line.
func parseLine(line []byte) (r record, err error) {
	rest := line
	ok := true
	skip := func(what string) {
		if ok = ok && len(rest) >= len(what) && string(rest[:len(what)]) == what; ok {
			rest = rest[len(what):]
		}
	}
	number := func() (n int64) {
		i := 0
		for i < len(rest) && i < 19 && '0' <= rest[i] && rest[i] <= '9' {
			n = n*10 + int64(rest[i]-'0')
			i++
		}
		ok = ok && i > 0 && n > 0
		rest = rest[i:]
		return n
	}
	sum := func() (h hash) {
		if ok = ok && len(rest) >= 2*len(h); ok {
			_, err := hex.Decode(h[:], rest[:2*len(h)])
			ok = err == nil
			rest = rest[2*len(h):]
		}
		return h
	}
	skip(lineSeq)
	r.Seq = number()
	skip(lineEpoch)
	r.Epoch = number()
	skip(linePrev)
	r.Prev = sum()
	skip(lineHash)
	r.Hash = sum()
	skip(lineRecord)
	if !ok || len(rest) < len(lineEnd) || string(rest[len(rest)-len(lineEnd):]) != lineEnd {
		return record{}, errNoRecord
	}
	body := rest[:len(rest)-len(lineEnd)]
	if chain(r.Prev, r.Seq, r.Epoch, body) != r.Hash {
		return record{}, errDamaged
	}
	if r.Event, err = parseBody(body); err != nil {
		return record{}, err
	}
	r.Event.Seq = r.Seq
	return r, nil
}

// parseBody parses the body of a record.
func parseBody(body []byte) (e Event, err error) {
	if e, ok := parseOwn(body); ok {
		return e, nil
	}
	// Another version of the program may write further members, anywhere.
	var v struct {
		At   time.Time       `json:"at"`
		Kind EventKind       `json:"kind"`
		Ref  string          `json:"ref"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return Event{}, err
	}
	return Event{Time: v.At, Kind: v.Kind, Ref: v.Ref, Data: v.Data}, nil
}

// parseOwn parses a record in the form in which this program writes it. Its hash was checked, so
// its data is what was written and need not be examined.
func parseOwn(body []byte) (e Event, ok bool) {
	rest, ok := bytes.CutPrefix(body, []byte(recordAt))
	if !ok {
		return Event{}, false
	}
	text := func() string {
		i := bytes.IndexByte(rest, '"')
		if i < 0 || bytes.IndexByte(rest[:i], '\\') >= 0 {
			ok = false
			return ""
		}
		s := string(rest[:i])
		rest = rest[i:]
		return s
	}
	at, err := time.Parse(time.RFC3339Nano, text())
	if err != nil {
		return Event{}, false
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(recordKind)); !ok {
		return Event{}, false
	}
	e = Event{Time: at, Kind: EventKind(text())}
	if after, has := bytes.CutPrefix(rest, []byte(recordRef)); has {
		rest = after
		e.Ref = text()
	}
	if !ok {
		return Event{}, false
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(recordData)); !ok || len(rest) < 2 || rest[len(rest)-1] != '}' {
		return Event{}, false
	}
	e.Data = rest[: len(rest)-1 : len(rest)-1]
	return e, true
}
