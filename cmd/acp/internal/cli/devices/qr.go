package devices

import (
	"fmt"
	"strings"

	"rsc.io/qr"
)

// quiet is the light margin around a code, in modules, which readers need.
const quiet = 2

// drawQR returns a text as a QR code for a terminal: two modules are one character, above each other. The
// colours are set, since a code in the colours of a dark terminal is one that many cameras do not read.
func drawQR(text string) (string, error) {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return "", fmt.Errorf("the link does not fit into a QR code: %w", err)
	}
	dark := func(x, y int) bool { // false outside
		return x >= 0 && y >= 0 && x < code.Size && y < code.Size && code.Black(x, y)
	}
	var b strings.Builder
	for y := -quiet; y < code.Size+quiet; y += 2 {
		b.WriteString("\x1b[30;107m") // black on white
		for x := -quiet; x < code.Size+quiet; x++ {
			switch upper, lower := dark(x, y), dark(x, y+1); {
			case upper && lower:
				b.WriteRune('█')
			case upper:
				b.WriteRune('▀')
			case lower:
				b.WriteRune('▄')
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteString("\x1b[0m\n")
	}
	return b.String(), nil
}
