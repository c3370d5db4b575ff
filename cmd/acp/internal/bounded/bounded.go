// Package bounded keeps the beginning of what other programs print.
package bounded

import "bytes"

// A Buffer keeps the first Max bytes that are written to it, and drops the rest, so that the writer need not stop.
type Buffer struct {
	Max  int
	Full bool // something was dropped

	buf bytes.Buffer
}

// Write implements [io.Writer]. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	n := len(p)
	if room := b.Max - b.buf.Len(); room < n {
		b.Full = true
		p = p[:max(0, room)]
	}
	b.buf.Write(p)
	return n, nil
}

// Bytes returns what was kept. It is valid until the next Write.
func (b *Buffer) Bytes() []byte { return b.buf.Bytes() }
