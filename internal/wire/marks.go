package wire

import (
	"encoding/binary"
	"unsafe"
)

const (
	block     = 64 // bytes, one bit of a mark each
	maxBlocks = 16 // marked at once
	copySlop  = 16 // bytes that copyRun may touch behind a run
)

// markBlocksGo is what markBlocks does, for machines without one of their own.
func markBlocksGo(out *[maxBlocks]uint64, p unsafe.Pointer, blocks int) (hi uint64) {
	for i := range blocks {
		var m uint64
		for j := block - 8; j >= 0; j -= 8 {
			w := load8(p, i*block+j)
			hi |= w
			// The multiplication gathers the marks, one in each byte, in the
			// highest byte.
			m = m<<8 | special(w)*0x0002040810204081>>56
		}
		out[i] = m
	}
	return hi & high
}

func load8(p unsafe.Pointer, i int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, i))[:])
}

// copyRun copies r bytes in steps of 16, the first of which is always made.
func copyRun(o unsafe.Pointer, n int, p unsafe.Pointer, i, r int) {
	*(*[16]byte)(unsafe.Add(o, n)) = *(*[16]byte)(unsafe.Add(p, i))
	for r > 16 {
		n, i, r = n+16, i+16, r-16
		*(*[16]byte)(unsafe.Add(o, n)) = *(*[16]byte)(unsafe.Add(p, i))
	}
}
