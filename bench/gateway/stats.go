package main

import (
	"fmt"
	"slices"
	"time"
)

// quantile returns the value below which a part of all is. It sorts them.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

// A spread is the median of some rounds, and their least and greatest.
type spread struct{ low, mid, high float64 }

func spreadOf(rounds []float64) spread {
	if len(rounds) == 0 {
		return spread{}
	}
	slices.Sort(rounds)
	return spread{rounds[0], rounds[len(rounds)/2], rounds[len(rounds)-1]}
}

// text writes a spread with a unit.
func (s spread) text(unit string) string {
	if s.low == s.high {
		return number(s.mid) + unit
	}
	return fmt.Sprintf("%s%s (%s–%s)", number(s.mid), unit, number(s.low), number(s.high))
}

// number writes a number with as many digits as one can believe.
func number(v float64) string {
	switch {
	case v >= 10000:
		n := int64(v+50) / 100 * 100
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

const mib = 1 << 20

func mb(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
