package safetext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// PrintJSON writes a value as one line of JSON that a terminal may be shown; see [JSON]. Errors are those of
// the encoding and of the writer.
func PrintJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(JSON(b.Bytes()))
	return err
}

// JSON returns data, which is JSON, with those characters escaped that a terminal would obey or that
// change how the text around them looks. It returns data itself if there is none.
func JSON(data []byte) []byte {
	var out []byte // nil while there is nothing to escape
	last := 0
	for i := 0; i < len(data); {
		if c := data[i]; c < utf8.RuneSelf && c != 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(data[i:])
		if r == 0x7f || r > 0x7f && (r < 0xa0 || unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029) {
			out = append(out, data[last:i]...)
			if a, b := utf16.EncodeRune(r); a != unicode.ReplacementChar {
				out = fmt.Appendf(out, `\u%04x\u%04x`, a, b)
			} else {
				out = fmt.Appendf(out, `\u%04x`, r)
			}
			last = i + n
		}
		i += n
	}
	if last == 0 {
		return data
	}
	return append(out, data[last:]...)
}
