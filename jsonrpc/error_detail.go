package jsonrpc

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxDetailData = 64 << 10 // bytes of data that are worth looking at
	maxDetail     = 500      // bytes of the text
	maxDetailTry  = 6        // values within values
	minRepeated   = 8        // bytes of a text whose repetition in the message is no accident
)

// Detail returns the reason that the data gives for the error, for people to
// read, or "" if it gives none. It understands the shapes that are in use:
//
//	"reason"                              a string
//	{"path": "…", "reason": "…"}          as this package answers
//	{"details": "…"}, {"detail": "…"}
//	{"message": "…"}
//	{"error": "…"}, {"error": {"message": "…"}}
//
// A text that is itself a JSON object, such as the answer of a model's provider,
// is read in the same way. The result is one line of printable characters, at
// most 500 bytes long. It is empty if [Error.Message] says the same already, and if
// the data is longer than 64 kB.
func (e *Error) Detail() string {
	if len(e.Data) == 0 || len(e.Data) > maxDetailData {
		return ""
	}
	text := printable(detailOf(e.Data, maxDetailTry), maxDetail)
	if strings.EqualFold(e.Message, text) ||
		len(text) >= minRepeated && strings.Contains(strings.ToLower(e.Message), strings.ToLower(text)) {
		return ""
	}
	return text
}

// detailOf returns the reason in a JSON value, or "".
func detailOf(data json.RawMessage, tries int) string {
	var text string
	if json.Unmarshal(data, &text) == nil {
		if t := strings.TrimSpace(text); tries > 0 && strings.HasPrefix(t, "{") {
			if inner := detailOf(json.RawMessage(t), tries-1); inner != "" {
				return inner
			}
		}
		return text
	}
	var members map[string]json.RawMessage
	if tries == 0 || json.Unmarshal(data, &members) != nil {
		return ""
	}
	for _, name := range [...]string{"reason", "details", "detail", "message", "error"} {
		v := members[name]
		if len(v) == 0 {
			continue
		}
		text := detailOf(v, tries-1)
		if text == "" {
			continue
		}
		var path string
		if name == "reason" && json.Unmarshal(members["path"], &path) == nil && path != "" {
			return path + ": " + text
		}
		return text
	}
	return ""
}

// correlationID returns the id under which the peer has logged the error, or "".
func (e *Error) correlationID() string {
	const longest = 64
	if len(e.Data) == 0 || len(e.Data) > maxDetailData || e.Data[0] != '{' {
		return ""
	}
	var data struct {
		ID string `json:"correlationId"`
	}
	if json.Unmarshal(e.Data, &data) != nil || len(data.ID) > longest {
		return ""
	}
	for _, r := range data.ID {
		if r <= ' ' || r >= unicode.MaxASCII || strings.ContainsRune(`"'(),;`, r) {
			return ""
		}
	}
	return data.ID
}

// printable makes one line of at most limit bytes of a text: white space in a row
// becomes a space, and what does not print, escape sequences and marks that
// change the direction included, is left out.
func printable(s string, limit int) string {
	const more = "…"
	var b strings.Builder
	space := false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case !unicode.IsPrint(r):
			continue
		}
		need := utf8.RuneLen(r)
		if space {
			need++
		}
		if b.Len()+need > limit-len(more) {
			// The rest may still fit where the mark would be, but that is not
			// worth a second pass.
			b.WriteString(more)
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}
