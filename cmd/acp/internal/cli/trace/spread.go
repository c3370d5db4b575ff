package trace

import (
	"math"
	"math/bits"
)

// A spread is a histogram of numbers. Its precision is 1/32 of a number, and its memory is bounded:
// about 2000 counters for all of int64. The zero value is empty.
type spread struct {
	counts []uint32
	n      int64
	sum    int64
	max    int64
}

const stepBits = 5

// addNumber counts n; a negative number counts as 0.
func (s *spread) addNumber(n int64) {
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

// slot returns the index of the counter for n. Numbers below 64 have a counter each; larger ones
// share it with the numbers that have the same length and the same first six bits.
func slot(n uint64) int {
	if n < 1<<(stepBits+1) {
		return int(n)
	}
	shift := bits.Len64(n) - stepBits - 1
	return shift<<stepBits + int(n>>shift)
}

// top returns the largest number that slot i counts.
func top(i int) int64 {
	if i < 1<<(stepBits+1) {
		return int64(i)
	}
	shift := i>>stepBits - 1
	return int64((uint64(i-shift<<stepBits)+1)<<shift - 1)
}

// at returns a quantile: the number that the given part of all numbers does not exceed, such as 0.5
// for the median. The result is at most 1/32 too large.
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
