package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// Until there were journals, the engine kept records in tables of version 1. They had kinds of the gateway's own, its
// data as it is now, and hashes of another chain. Such a record becomes the one of a journal whose number is one higher,
// since a journal begins with a session record.

// Tables have records of an earlier version of the engine. A [Database] has them, too.
type Tables interface {
	// ListSessions, State, Records and Shares are those of [Database].
	ListSessions(ctx context.Context, q Query, after Position, n int) ([]Session, error)
	State(ctx context.Context, session string) (State, error)
	Records(ctx context.Context, key int64, from uint64, n, size int) ([]Record, error)
	Shares(ctx context.Context, session string) ([]Share, error)
}

// Names of the earlier version. A gap had a kind that begins with earlierGap, and its data began with the number of the
// first record and a seal. A record of kind earlierVouch said in the chain which gaps there are.
const (
	earlierGap     = "gap:"
	earlierVouch   = earlierGap + "vouch"
	earlierGapHead = 8 + sha256.Size
)

// earlierKinds are the kinds of the earlier version, and what they are now.
var earlierKinds = map[Kind]Kind{
	"prompt": journal.KindPrompt, "update": journal.KindUpdate, "child": journal.KindChild, "notice": journal.KindNotice,
	"dropped": journal.KindDropped, "fork": journal.KindFork, "start": journal.KindStart, "sent": journal.KindSent,
	"accepted": journal.KindAccepted, "mark": journal.KindMark, "turn_end": journal.KindEnd, "ask": journal.KindAsked,
	"ask_answer": journal.KindDecided, "ask_late": journal.KindLate, "share": journal.KindShared,
}

// nothing is the record in the place of one that has nothing to say any more.
var nothing = journal.Draft{Kind: journal.KindMark, Data: []byte("{}")}

// Earlier calls yield with the records of the journal that a session of an earlier version becomes: first, which must be
// a session record, and then those that t has, which it verifies. It leaves out what is damaged, so that the numbers say
// so to whoever reads the journal. An error of yield ends it and is returned as it is.
func Earlier(ctx context.Context, t Tables, st State, first journal.Draft, yield func(*Record) error) error {
	e := &earlier{id: st.Session, yield: yield, before: [][sha256.Size]byte{{}}, epoch: 1}
	n, failing := chunkRecords, 0
	for from := uint64(1); ; {
		some, err := t.Records(ctx, st.Key, from, n, chunkBytes)
		switch {
		case errors.Is(err, ErrCorrupt) && n > 1:
			n = 1 // up to where it can be read
			continue
		case errors.Is(err, ErrCorrupt) && from <= st.Seq && failing < maxSkipped:
			from, failing = from+1, failing+1
			continue
		case errors.Is(err, ErrCorrupt):
			some = nil
		case err != nil:
			return err
		}
		if e.at.Seq == 0 { // which has the epoch of what follows it
			if len(some) > 0 {
				e.epoch = max(some[0].Epoch, 1)
			}
			if err := e.next(1, &first); err != nil {
				return err
			}
		}
		if len(some) == 0 {
			break
		}
		for i := range some {
			if err := e.record(&some[i]); err != nil {
				return err
			}
		}
		n, failing, from = chunkRecords, 0, some[len(some)-1].Seq+1
	}
	if e.seq = max(e.seq, min(st.Seq, maxEarlier)); e.at.Seq == e.seq+1 {
		return nil
	}
	d := nothing // behind what is lost at the end, or nothing would tell
	d.At = e.last
	return e.next(e.seq+2, &d)
}

const (
	// maxSkipped bounds how many records are tried one by one behind one that cannot be read.
	maxSkipped = 10_000
	// maxEarlier bounds the numbers of records that are believed.
	maxEarlier = 1 << 48
)

// An earlier is a log of the earlier version that is being read, and what it has become.
type earlier struct {
	id     string
	seq    uint64              // the last record
	before [][sha256.Size]byte // what may be the hash of it; nil if that is not known
	at     Head                // of the journal
	epoch  uint32
	last   time.Time
	yield  func(*Record) error
}

// record takes the next record.
func (e *earlier) record(r *Record) error {
	if r.Seq <= e.seq || r.Seq > maxEarlier {
		return nil
	}
	inner, from := *r, r.Seq
	gap := strings.HasPrefix(string(r.Kind), earlierGap) && r.Kind != earlierVouch
	var seal [sha256.Size]byte
	if gap && len(r.Data) >= earlierGapHead {
		inner.Kind = Kind(strings.TrimPrefix(string(r.Kind), earlierGap))
		from, inner.Data = binary.BigEndian.Uint64(r.Data), r.Data[earlierGapHead:]
		copy(seal[:], r.Data[8:])
	}
	if from > e.seq+1 {
		e.before = nil // some are missing
	}
	sound := e.before == nil
	sums := [][sha256.Size]byte{r.Hash}
	for _, before := range e.before {
		sum := earlierSum(&inner, before, e.id)
		if gap {
			sound = sound || earlierSeal(from, r.Hash, sum) == seal
		} else {
			sound, sums = sound || sum == r.Hash, append(sums, sum)
		}
	}
	sound = sound && from > e.seq && from <= r.Seq && (!gap || len(r.Data) >= earlierGapHead)
	e.seq, e.before = r.Seq, sums[:1]
	if !sound {
		e.before = sums
		return nil
	}
	e.epoch, e.last = max(e.epoch, r.Epoch), r.At
	d := renewed(&inner)
	if !gap || e.at.Seq != from { // what is missing before a gap is missing with it
		return e.next(r.Seq+1, &d)
	}
	if inner.Kind == "" {
		d = journal.Draft{At: d.At}
	}
	made, err := journal.NextGap(e.id, e.at, r.Seq+1, e.epoch, d)
	return e.add(&made, err)
}

// next adds a record to the journal.
func (e *earlier) next(seq uint64, d *journal.Draft) error {
	made, err := journal.Next(e.id, Head{Seq: seq - 1, Hash: e.at.Hash}, e.epoch, *d)
	return e.add(&made, err)
}

func (e *earlier) add(r *Record, err error) error {
	if err != nil {
		return err
	}
	e.at = Head{Seq: r.Seq, Hash: r.Hash}
	return e.yield(r)
}

// renewed returns what a record says in a journal.
func renewed(r *Record) journal.Draft {
	kind, known := earlierKinds[r.Kind]
	switch {
	case r.Kind == earlierVouch || r.Kind == "":
		return journal.Draft{Kind: nothing.Kind, At: r.At, Data: nothing.Data}
	case !known || len(r.Data) > 0 && !json.Valid(r.Data):
		data, _ := json.Marshal(journal.Lost{Kind: r.Kind, Bytes: len(r.Data)}) // never fails
		return journal.Draft{Kind: journal.KindLost, At: r.At, Data: data}
	case kind == journal.KindFork: // of a record of another session, which has another hash now
		return journal.Draft{Kind: kind, At: r.At, Data: shifted(r.Data, []string{"at"}, "hash")}
	}
	return journal.Draft{Kind: kind, At: r.At, Data: r.Data}
}

// EarlierAttributes returns the attributes of a session of an earlier version with the numbers of records as they are now.
func EarlierAttributes(data json.RawMessage) json.RawMessage {
	data = shifted(data, []string{"since", "compacted"})
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil || all["fork"] == nil {
		return data
	}
	all["fork"] = shifted(all["fork"], []string{"at", "since"})
	out, err := json.Marshal(all)
	if err != nil {
		return data
	}
	return out
}

// shifted returns an object in which some members, which are numbers of records, are one higher, unless they are 0, and
// others are removed. Anything else is returned as it is.
func shifted(data []byte, members []string, without ...string) []byte {
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil || all == nil {
		return data
	}
	changed := false
	for name, v := range all {
		var n uint64
		switch {
		case slices.Contains(without, name):
			delete(all, name)
		case slices.Contains(members, name) && json.Unmarshal(v, &n) == nil && n > 0:
			all[name] = json.RawMessage(fmt.Sprint(n + 1))
		default:
			continue
		}
		changed = true
	}
	if !changed {
		return data
	}
	out, err := json.Marshal(all)
	if err != nil {
		return data
	}
	return out
}

// earlierSum returns the hash of a record of the earlier version.
func earlierSum(r *Record, before [sha256.Size]byte, session string) (sum [sha256.Size]byte) {
	b := append([]byte("acp engine record 1\n"), before[:]...)
	b = binary.BigEndian.AppendUint64(b, r.Seq)
	b = binary.BigEndian.AppendUint32(b, r.Epoch)
	for _, n := range []int64{r.At.UnixNano(), int64(len(session)), int64(len(r.Kind)), int64(len(r.Data))} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	h := sha256.New()
	h.Write(b)
	h.Write([]byte(session))
	h.Write([]byte(r.Kind))
	h.Write(r.Data)
	h.Sum(sum[:0])
	return sum
}

// earlierSeal returns the seal of a gap of the earlier version. sum is the hash of what is left, which has the number of
// the last record, whose hash is last.
func earlierSeal(from uint64, last, sum [sha256.Size]byte) [sha256.Size]byte {
	b := binary.BigEndian.AppendUint64([]byte("acp engine gap 1\n"), from)
	return sha256.Sum256(bytes.Join([][]byte{b, last[:], sum[:]}, nil))
}
