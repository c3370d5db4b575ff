package wire

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// TestMarks holds both implementations to the definition, byte by byte.
func TestMarks(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	data := make([]byte, maxBlocks*block)
	for round := range 2000 {
		blocks := r.IntN(maxBlocks + 1)
		for i := range data {
			data[i] = byte('a' + r.IntN(26))
			if r.IntN(9) == 0 {
				data[i] = byte(r.IntN(1 << (7 + round%2)))
			}
		}
		if round < 256 {
			copy(data, bytes.Repeat([]byte{byte(round)}, block))
		}
		var want [maxBlocks]uint64
		wantHi := false
		for i, c := range data[:blocks*block] {
			if c < 0x20 || c == '"' || c == '\\' {
				want[i/block] |= 1 << (i % block)
			}
			wantHi = wantHi || c >= 0x80
		}
		for name, f := range map[string]func(*[maxBlocks]uint64, unsafe.Pointer, int) uint64{"markBlocks": markBlocks, "markBlocksGo": markBlocksGo} {
			var got [maxBlocks]uint64
			hi := f(&got, unsafe.Pointer(&data[0]), blocks)
			if got != want || (hi&high != 0) != wantHi {
				t.Fatalf("%s of %d blocks: %x, %x, want %x, %t\n%q", name, blocks, got, hi, want, wantHi, data[:blocks*block])
			}
		}
	}
}

// dense returns a text of n bytes with an escape every few bytes, so that
// escapes begin and end on every place of a block.
func dense(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	every := 1 + r.IntN(60)
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
		if r.IntN(every) == 0 {
			b[i] = "\"\\\n\t\x01\x1f\u00e9"[r.IntN(8)]
		}
	}
	return b
}

// TestBlocks holds long strings, whose marks are made in blocks, to
// encoding/json, in memory that ends where they do.
func TestBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	page := guarded(t, 1<<16)
	for round := range 6000 {
		n := r.IntN(6 * block)
		if round%100 == 0 {
			n = r.IntN(40 * block)
		}
		s := each(string(dense(r, n)))
		src := page[len(page)-len(s):]
		copy(src, s)
		text := AppendString(make([]byte, 0, r.IntN(2*n+1)), unsafe.String(unsafe.SliceData(src), len(src)))
		var back string
		if err := json.Unmarshal(text, &back); err != nil || back != s {
			t.Fatalf("%q became %s", s, text)
		}
		// Other peers choose other escapes.
		if round%3 == 0 {
			text = bytes.ReplaceAll(text, []byte(`\n`), []byte(`\u000a`))
		}
		if r.IntN(8) == 0 && len(text) > 2 {
			i := 1 + r.IntN(len(text)-2)
			text[i] = "\\\"\n\x00\x80u"[r.IntN(6)]
		}
		err := json.Unmarshal(text, &back)
		for _, owned := range []bool{false, true} {
			in := page[len(page)-len(text):]
			copy(in, text)
			var d Decoder
			d.Reset(in, owned)
			got := d.Str()
			if e := d.Finish(); (e == nil) != (err == nil) || e == nil && got != back {
				t.Fatalf("owned %t: %s is %q, %v; encoding/json says %q, %v", owned, text, got, e, back, err)
			}
		}
	}
}
