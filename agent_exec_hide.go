package acp

import (
	"bytes"
	"strings"
)

// hidden stands in the place of a text that must not be shown.
const hidden = "•••"

// hiding leaves texts out of what passes in pieces.
type hiding struct {
	texts []string
	held  []byte // may be the begin of one
}

// next returns what may be shown after more has come; with last set that is all.
func (h *hiding) next(data []byte, last bool) []byte {
	if len(h.texts) == 0 {
		return data
	}
	data = append(h.held, data...)
	h.held = nil
	var out []byte
	for len(data) > 0 {
		at, size := len(data), 0
		for _, text := range h.texts {
			if i := bytes.Index(data, []byte(text)); text != "" && i >= 0 && (i < at || i == at && len(text) > size) {
				at, size = i, len(text)
			}
		}
		if size == 0 {
			break
		}
		out = append(append(out, data[:at]...), hidden...)
		data = data[at+size:]
	}
	keep := 0
	for _, text := range h.texts {
		for n := min(len(text)-1, len(data)); !last && n > keep; n-- {
			if strings.HasPrefix(text, string(data[len(data)-n:])) {
				keep = n
				break
			}
		}
	}
	h.held = bytes.Clone(data[len(data)-keep:])
	return append(out, data[:len(data)-keep]...)
}
