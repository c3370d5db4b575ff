package picture

import (
	"encoding/binary"
	"errors"
)

func isWebP(data []byte) bool {
	return len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP"
}

// webpSize returns the width and the height of a WebP image. It fails if the image is cut off, is animated, or has
// no pixels. Whether they can be decoded is not known.
func webpSize(data []byte) (w, h int, err error) {
	const head = 12
	if len(data) < head+8 {
		return 0, 0, errors.New("it is cut off")
	}
	end := int64(binary.LittleEndian.Uint32(data[4:])) + 8
	if end < head || end > int64(len(data)) {
		return 0, 0, errors.New("it is cut off")
	}
	hasPixels := false
	rest := data[head:end]
	for len(rest) >= 8 {
		name, n := string(rest[:4]), int64(binary.LittleEndian.Uint32(rest[4:]))
		if n > int64(len(rest)-8) {
			return 0, 0, errors.New("it is cut off")
		}
		body := rest[8 : 8+n]
		switch {
		case name == "VP8X" && n >= 10:
			if body[0]&2 != 0 {
				return 0, 0, errors.New("it is animated")
			}
			w, h = 1+int(uint24(body[4:])), 1+int(uint24(body[7:]))
		case name == "VP8 " && n >= 10 && string(body[3:6]) == "\x9d\x01\x2a":
			hasPixels = true
			if w == 0 {
				w, h = int(binary.LittleEndian.Uint16(body[6:]))&0x3fff, int(binary.LittleEndian.Uint16(body[8:]))&0x3fff
			}
		case name == "VP8L" && n >= 5 && body[0] == 0x2f:
			hasPixels = true
			if bits := binary.LittleEndian.Uint32(body[1:]); w == 0 {
				w, h = 1+int(bits&0x3fff), 1+int(bits>>14&0x3fff)
			}
		}
		rest = rest[min(int64(len(rest)), 8+n+n&1):]
	}
	if !hasPixels {
		return 0, 0, errors.New("it has no pixels")
	}
	return w, h, nil
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }
