package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what is kept. Values beyond them are refused with [ErrInvalid].
const (
	// MaxData bounds the data of a record, and of all records of one Append together, in bytes.
	MaxData = 16 << 20
	// MaxRecords bounds how many records one Append may have, and one transaction.
	MaxRecords = 256
	// MaxName bounds ids, kinds, nodes and principals, in bytes.
	MaxName = 512
	// MaxText bounds each text attribute of a session, in bytes.
	MaxText = 8 << 10
	// MaxValue bounds a session's Attributes, in bytes.
	MaxValue = 256 << 10
)

// A Record is one entry of the log of a session. Its memory is shared by everybody who sees it, so
// Data must not be modified, not even by the caller of Append after the call.
type Record struct {
	// Seq counts the records of a session from 1, without gaps.
	Seq uint64
	// Epoch is that of the owner that wrote it. It never decreases within a session.
	Epoch uint32
	// Time is in UTC, with nanoseconds. Append sets it if it is zero.
	Time time.Time
	Kind string
	Data []byte
	// Hash is SHA-256 over the hash of the record before it (zeros for the first one), the session's
	// id, and all fields above.
	Hash [32]byte
}

// size is what a record counts for in bounds of memory.
func (r *Record) size() int { return len(r.Data) + len(r.Kind) + 128 }

// chainVersion begins what is hashed, so that another encoding can never be mistaken for this one.
const chainVersion = "acp engine record 1\n"

// sum returns the hash of a record. Fields of variable length are preceded by their lengths, so that
// no two records have the same encoding.
func (r *Record) sum(prev [32]byte, session string) (sum [32]byte) {
	var head [160]byte
	b := append(head[:0], chainVersion...)
	b = append(b, prev[:]...)
	b = binary.BigEndian.AppendUint64(b, r.Seq)
	b = binary.BigEndian.AppendUint32(b, r.Epoch)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Time.UnixNano()))
	b = binary.BigEndian.AppendUint64(b, uint64(len(session)))
	b = binary.BigEndian.AppendUint64(b, uint64(len(r.Kind)))
	b = binary.BigEndian.AppendUint64(b, uint64(len(r.Data)))
	h := sha256.New()
	h.Write(b)
	h.Write([]byte(session))
	h.Write([]byte(r.Kind))
	h.Write(r.Data)
	h.Sum(sum[:0])
	return sum
}

// A Head is the end of a log: the zero value is that of an empty one.
type Head struct {
	Seq  uint64
	Hash [32]byte
}

// seal numbers records that follow head and computes their hashes. It returns the new head.
func seal(recs []Record, session string, epoch uint32, head Head) Head {
	for i := range recs {
		r := &recs[i]
		r.Seq, r.Epoch = head.Seq+1, epoch
		r.Hash = r.sum(head.Hash, session)
		head = Head{r.Seq, r.Hash}
	}
	return head
}

// Times outside of these cannot be stored in nanoseconds.
var minTime, maxTime = time.Unix(0, -1<<63), time.Unix(0, 1<<63-1)

// prepareRecords returns copies of records that can be stored, with their total size in bytes.
func prepareRecords(in []Record) (out []Record, size int, err error) {
	if len(in) > MaxRecords {
		return nil, 0, fmt.Errorf("%w: %d records in one append, at most %d", ErrInvalid, len(in), MaxRecords)
	}
	out = make([]Record, len(in))
	now, data := time.Now(), 0
	for i, r := range in {
		if err := checkName("kind", r.Kind, false); err != nil {
			return nil, 0, err
		}
		if data += len(r.Data); data > MaxData {
			return nil, 0, fmt.Errorf("%w: more than %d bytes in one append", ErrInvalid, MaxData)
		}
		if r.Time.IsZero() {
			r.Time = now
		}
		if r.Time.Before(minTime) || r.Time.After(maxTime) {
			return nil, 0, fmt.Errorf("%w: time %v", ErrInvalid, r.Time)
		}
		// Without a monotonic clock, and equal to what is read back.
		out[i] = Record{Time: time.Unix(0, r.Time.UnixNano()).UTC(), Kind: r.Kind, Data: r.Data}
		size += out[i].size()
	}
	return out, size, nil
}

// checkText refuses text that some database would refuse, so that it never fails a batch.
func checkText(what, s string, limit int) error {
	switch {
	case len(s) > limit:
		return fmt.Errorf("%w: %s has %d bytes, at most %d", ErrInvalid, what, len(s), limit)
	case !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0:
		return fmt.Errorf("%w: %s %q is not text", ErrInvalid, what, s)
	}
	return nil
}

// checkName is checkText for names, which may be required.
func checkName(what, s string, required bool) error {
	if required && s == "" {
		return fmt.Errorf("%w: no %s", ErrInvalid, what)
	}
	return checkText(what, s, MaxName)
}

// checkValue refuses bytes that are too many.
func checkValue(what string, b []byte) error {
	if len(b) > MaxValue {
		return fmt.Errorf("%w: %s has %d bytes, at most %d", ErrInvalid, what, len(b), MaxValue)
	}
	return nil
}

// checkJSON refuses what is neither empty nor JSON.
func checkJSON(what string, b []byte) error {
	if len(b) > 0 && !json.Valid(b) {
		return fmt.Errorf("%w: %s is not JSON", ErrInvalid, what)
	}
	return checkValue(what, b)
}
