//go:build amd64 && !purego

package wire

import "unsafe"

// markBlocks sets a bit in out for each byte of the blocks at p, up to
// maxBlocks of them, that special marks. hi has bits of
// the constant high when there are bytes outside ASCII. It uses SSE2, which every amd64 machine has.
//
//go:noescape
func markBlocks(out *[maxBlocks]uint64, p unsafe.Pointer, blocks int) (hi uint64)
