package trace

import (
	"math"
	"math/bits"
)

// A spread counts numbers by how large they are, to a 32nd of their size, in a bounded room. The zero
// value is empty.
type spread struct {
	counts []uint32
	n      int64
	sum    int64
	max    int64
}

const stepBits = 5

// add counts n, which is 0 if it is negative.
func (s *spread) add(n int64) {
	n = max(0, n)
	i := slot(uint64(n))
	if i >= len(s.counts) {
		s.counts = append(s.counts, make([]uint32, i+1-len(s.counts))...)
	}
	s.counts[i]++
	s.n++
	s.sum += n
	s.max = max(s.max, n)
}

// slot is where n is counted: small numbers have one each, others share it with those that begin with
// the same six bits.
func slot(n uint64) int {
	if n < 1<<(stepBits+1) {
		return int(n)
	}
	shift := bits.Len64(n) - stepBits - 1
	return shift<<stepBits + int(n>>shift)
}

// top is the largest number that is counted in slot i.
func top(i int) int64 {
	if i < 1<<(stepBits+1) {
		return int64(i)
	}
	shift := i>>stepBits - 1
	return int64((uint64(i-shift<<stepBits)+1)<<shift - 1)
}

// at returns the number that the given part of all does not exceed, 0.5 for the median: at most a 32nd
// more than it is.
func (s *spread) at(part float64) int64 {
	rank := max(1, int64(math.Ceil(part*float64(s.n))))
	var n int64
	for i, c := range s.counts {
		if n += int64(c); n >= rank {
			return min(top(i), s.max)
		}
	}
	return s.max
}
