package view

import (
	"strings"

	east "github.com/yuin/goldmark/extension/ast"
)

// minColumn is the minimum width of a column. If there is not enough room for that, the cells of
// each row are drawn below each other.
const minColumn = 6

// table draws a table. Cells that do not fit are wrapped.
func (m *markdownDrawer) table(n *east.Table, width int) []line {
	var rows [][][]line // row, column, lines of the cell
	cols := 0
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		k := look{}
		if _, ok := r.(*east.TableHeader); ok {
			k.attr = bold
		}
		var row [][]line
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			row = append(row, m.lines(c, k))
		}
		rows = append(rows, row)
		cols = max(cols, len(row))
	}
	if cols == 0 {
		return nil
	}
	natural := make([]int, cols)
	for _, row := range rows {
		for i, cell := range row {
			for _, l := range cell {
				natural[i] = max(natural[i], l.width())
			}
		}
	}
	widths := columns(natural, width-3*(cols-1))
	if widths == nil {
		return m.records(rows, width)
	}
	sep := line{{" │ ", m.th.dim}}
	var out []line
	for i, row := range rows {
		cells := make([][]line, cols)
		height := 1
		for c, w := range widths {
			if c < len(row) {
				for _, l := range row[c] {
					cells[c] = append(cells[c], wrap(l, w)...)
				}
			}
			height = max(height, len(cells[c]))
		}
		for h := range height {
			var l line
			for c, w := range widths {
				var cell line
				if h < len(cells[c]) {
					cell = cells[c][h]
				}
				if c > 0 {
					l = extend(l, sep)
				}
				l = extend(l, aligned(cell, w, alignment(n, c), c == cols-1))
			}
			out = append(out, l)
		}
		if i == 0 && len(rows) > 1 {
			var l line
			for c, w := range widths {
				if c > 0 {
					l = l.put("─┼─", m.th.dim)
				}
				l = l.put(strings.Repeat("─", w), m.th.dim)
			}
			out = append(out, l)
		}
	}
	return out
}

func alignment(n *east.Table, c int) east.Alignment {
	if c < len(n.Alignments) {
		return n.Alignments[c]
	}
	return east.AlignNone
}

// aligned returns the cell with spaces around it.
func aligned(cell line, width int, a east.Alignment, last bool) line {
	left := 0
	switch a {
	case east.AlignRight:
		left = width - cell.width()
	case east.AlignCenter:
		left = (width - cell.width()) / 2
	}
	var l line
	if left > 0 {
		l = l.put(strings.Repeat(" ", left), look{})
	}
	l = extend(l, cell)
	if !last {
		l = pad(l, width, look{})
	}
	return l
}

// columns distributes the width among columns with the given natural widths. Narrow columns get
// their natural width, and the others share the rest equally. It returns nil if there is not
// enough.
func columns(natural []int, width int) []int {
	out := make([]int, len(natural))
	left, open := width, len(natural)
	for open > 0 {
		share := left / open
		if share < minColumn {
			share = 0
		}
		settled := false
		for i, n := range natural {
			if out[i] == 0 && max(n, 1) <= max(share, 1) {
				out[i] = max(n, 1)
				left -= out[i]
				open--
				settled = true
			}
		}
		if settled {
			continue
		}
		if share < minColumn {
			return nil
		}
		for i := range natural {
			if out[i] == 0 {
				out[i] = left / open
				left -= out[i]
				open--
			}
		}
	}
	if left < 0 {
		return nil
	}
	return out
}

// records draws the rows of a table below each other, each cell with its heading.
func (m *markdownDrawer) records(rows [][][]line, width int) []line {
	var out []line
	for i, row := range rows {
		if i == 0 && len(rows) > 1 {
			continue
		}
		if len(out) > 0 {
			out = append(out, line{{strings.Repeat("─", min(width, 8)), m.th.dim}})
		}
		for c, cell := range row {
			for j, l := range cell {
				if j == 0 && len(rows) > 1 && c < len(rows[0]) && len(rows[0][c]) > 0 {
					l = extend(extend(nil, rows[0][c][0]).put(": ", look{attr: bold}), l)
				}
				out = append(out, wrap(l, width)...)
			}
		}
	}
	return out
}
