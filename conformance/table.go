package conformance

import (
	"hash/maphash"
	"strconv"
)

// A table remembers things by id. At its limit it forgets the older half, and
// knows that it did: who then misses an id cannot say that it never was.
type table[T any] struct {
	m      map[string]entry[T]
	max    int
	seq    uint64
	forgot bool
}

type entry[T any] struct {
	v   T
	seq uint64
}

// tableMax bounds tables that say nothing else.
const tableMax = 4096

func (t *table[T]) put(id string, v T) {
	if t.m == nil {
		t.m = map[string]entry[T]{}
	}
	id = brief(id)
	limit := t.max
	if limit == 0 {
		limit = tableMax
	}
	if _, ok := t.m[id]; !ok && len(t.m) >= limit {
		t.halve(limit)
	}
	t.seq++
	t.m[id] = entry[T]{v, t.seq}
}

// halve forgets what was put in before the newest half.
func (t *table[T]) halve(limit int) {
	t.forgot = true
	for t.seq >= uint64(limit) && len(t.m) >= limit {
		// Ids that were taken out leave gaps, so this may need several rounds.
		oldest := t.seq
		for _, e := range t.m {
			oldest = min(oldest, e.seq)
		}
		cut := oldest + (t.seq-oldest)/2
		for id, e := range t.m {
			if e.seq <= cut {
				delete(t.m, id)
			}
		}
	}
}

func (t *table[T]) get(id string) (v T, ok bool) {
	e, ok := t.m[brief(id)]
	return e.v, ok
}

func (t *table[T]) drop(id string) { delete(t.m, brief(id)) }

// lacks reports that id was never added, as far as is known.
func (t *table[T]) lacks(id string) bool {
	_, ok := t.m[brief(id)]
	return !ok && !t.forgot
}

const briefMax = 128

var briefSeed = maphash.MakeSeed()

// brief stands for an id that may be too long to be kept.
func brief(id string) string {
	if len(id) <= briefMax {
		return id
	}
	return id[:64] + "#" + strconv.Itoa(len(id)) + "#" + strconv.FormatUint(maphash.String(briefSeed, id), 36)
}
