package patch

// maxWork bounds the comparisons spent on the shortest difference of two texts.
const maxWork = 4 << 20

// edits says which lines of two texts have no counterpart in the other.
type edits struct {
	deleted  []bool // of the old text
	inserted []bool // of the new text
}

// A change replaces lines old to oldEnd by lines new to newEnd.
type change struct{ old, oldEnd, new, newEnd int }

// changes yields the changes from first to last.
func (e edits) changes(yield func(change) bool) {
	i, j := 0, 0
	for i < len(e.deleted) || j < len(e.inserted) {
		c := change{old: i, new: j}
		for i < len(e.deleted) && e.deleted[i] {
			i++
		}
		for j < len(e.inserted) && e.inserted[j] {
			j++
		}
		c.oldEnd, c.newEnd = i, j
		if (c.oldEnd > c.old || c.newEnd > c.new) && !yield(c) {
			return
		}
		i, j = i+1, j+1
	}
}

// compare finds a short way from one text to the other, by the algorithm of
// E. W. Myers in linear space.
func compare(old, new []string) edits {
	// Numbers are quicker to compare than lines.
	numbers := make(map[string]int32, len(old))
	number := func(lines []string) []int32 {
		out := make([]int32, len(lines))
		for i, line := range lines {
			n, ok := numbers[line]
			if !ok {
				n = int32(len(numbers))
				numbers[line] = n
			}
			out[i] = n
		}
		return out
	}
	d := differ{
		a: number(old), b: number(new), work: maxWork,
		edits: edits{deleted: make([]bool, len(old)), inserted: make([]bool, len(new))},
	}
	d.compare(0, len(old), 0, len(new))
	return d.edits
}

type differ struct {
	edits
	a, b []int32
	// For each diagonal how far the search from either end has come, made when
	// first needed. Diagonal k is at index k+offset.
	forward, backward []int
	offset            int
	work              int // comparisons left
}

// compare marks what differs between a[a0:a1] and b[b0:b1].
func (d *differ) compare(a0, a1, b0, b1 int) {
	for a0 < a1 && b0 < b1 && d.a[a0] == d.b[b0] {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && d.a[a1-1] == d.b[b1-1] {
		a1, b1 = a1-1, b1-1
	}
	if a0 < a1 && b0 < b1 {
		if x, y, ok := d.middle(a0, a1, b0, b1); ok {
			d.compare(a0, x, b0, y)
			d.compare(x, a1, y, b1)
			return
		}
	}
	for i := a0; i < a1; i++ {
		d.deleted[i] = true
	}
	for j := b0; j < b1; j++ {
		d.inserted[j] = true
	}
}

// middle finds a point on a shortest way that leaves half of it on either
// side; false if the work is used up. The stretches begin and end with lines
// that differ.
func (d *differ) middle(a0, a1, b0, b1 int) (x, y int, ok bool) {
	n, m := a1-a0, b1-b0
	if d.forward == nil {
		// No later stretch is longer than the first.
		d.offset = m + 1
		d.forward = make([]int, n+m+3)
		d.backward = make([]int, n+m+3)
	}
	f, r, off := d.forward, d.backward, d.offset
	f[off+1], r[off+1] = 0, 0
	delta := n - m
	odd := delta%2 != 0
	for h := 0; ; h++ {
		low, high := -(h - 2*max(0, h-m)), h-2*max(0, h-n)
		if d.work -= high - low + 2; d.work < 0 {
			return 0, 0, false
		}
		for k := low; k <= high; k += 2 {
			x := reach(f, off, k, h)
			y := x - k
			start := x
			for x < n && y < m && d.a[a0+x] == d.b[b0+y] {
				x, y = x+1, y+1
			}
			d.work -= x - start
			f[off+k] = x
			if c := delta - k; odd && -h < c && c < h && x+r[off+c] >= n {
				return a0 + x, b0 + y, true
			}
		}
		for k := low; k <= high; k += 2 {
			x := reach(r, off, k, h)
			y := x - k
			start := x
			for x < n && y < m && d.a[a1-1-x] == d.b[b1-1-y] {
				x, y = x+1, y+1
			}
			d.work -= x - start
			r[off+k] = x
			if c := delta - k; !odd && -h <= c && c <= h && x+f[off+c] >= n {
				return a1 - x, b1 - y, true
			}
		}
	}
}

// reach returns how far h steps come on diagonal k, from what one step less
// came to on its neighbours.
func reach(v []int, off, k, h int) int {
	if k == -h || k != h && v[off+k-1] < v[off+k+1] {
		return v[off+k+1]
	}
	return v[off+k-1] + 1
}
