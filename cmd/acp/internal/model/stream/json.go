package stream

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model/schema"
)

// AppendJSON appends what [schema.Marshal] returns of v to b.
func AppendJSON(b []byte, v any) ([]byte, error) {
	text, err := schema.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(b, text...), nil
}

// Elements returns the JSON texts of values as the elements of a list, without its brackets.
func Elements[T any](values []T) ([]byte, error) {
	var b []byte
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = AppendJSON(b, v); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// A Joiner puts the pieces of a text together. Its zero value is ready to use.
//
// Some servers cut a text between the two halves of a character that JSON escapes as a
// pair, such as an emoji. Decoded alone, each half would be lost.
type Joiner struct{ half string }

// Next returns what the next piece, a JSON string, adds to the text. Anything but a
// string adds nothing.
func (j *Joiner) Next(piece json.RawMessage) string {
	raw := strings.TrimSpace(string(piece))
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	raw = j.half + raw[1:len(raw)-1]
	j.half = ""
	if cut := len(raw) - len(`\ud83d`); cut >= 0 && highHalf(raw[cut:]) && !escaped(raw[:cut]) {
		raw, j.half = raw[:cut], raw[cut:]
	}
	var s string
	if json.Unmarshal([]byte(`"`+raw+`"`), &s) != nil {
		return ""
	}
	return s
}

// highHalf reports whether s is the escape of the first half of a pair.
func highHalf(s string) bool {
	return strings.EqualFold(s[:3], `\ud`) && strings.ContainsRune("89abAB", rune(s[3])) && isHex(s[4]) && isHex(s[5])
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// escaped reports whether what follows s is escaped by a backslash at its end.
func escaped(s string) bool {
	return (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1
}

// AppendFields appends the fields of a JSON object to one that is not closed yet, and
// closes it: {"a":1 and {"b":2} become {"a":1,"b":2}.
func AppendFields(b []byte, v any) ([]byte, error) {
	n := len(b)
	b, err := AppendJSON(append(b, ','), v)
	if err != nil {
		return nil, err
	}
	if len(b) <= n+2 || b[n+1] != '{' {
		return nil, fmt.Errorf("%T is not a JSON object", v)
	}
	if b[n+2] == '}' {
		return append(b[:n], '}'), nil
	}
	return append(b[:n+1], b[n+2:]...), nil
}
