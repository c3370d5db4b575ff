package pattern

import (
	"strings"

	"github.com/goacp/acp/internal/wire"
)

// Quote returns s as a JSON string.
func Quote(s string) string { return string(wire.AppendString(nil, s)) }

// Text returns s as the value that it is in JSON, for captures.
func Text(s string) *Value { return &Value{Kind: String, Text: Quote(s), Str: s, Rest: -1} }

// Fill returns a template as JSON on one line, with what was captured; names that
// nothing was captured for become null.
func (v *Value) Fill(known Captures) string {
	var b strings.Builder
	v.fill(&b, known)
	return b.String()
}

func (v *Value) fill(b *strings.Builder, known Captures) {
	switch v.Kind {
	case Name:
		if val := known[v.Str]; val != nil {
			b.WriteString(val.Text)
		} else {
			b.WriteString("null")
		}
	case Object:
		b.WriteByte('{')
		for i, m := range v.Members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(Quote(m.Key) + ":")
			m.Val.fill(b, known)
		}
		b.WriteByte('}')
	case Array:
		b.WriteByte('[')
		for i, e := range v.Elems {
			if i > 0 {
				b.WriteByte(',')
			}
			e.fill(b, known)
		}
		b.WriteByte(']')
	default:
		b.WriteString(v.Text)
	}
}

// Message is Fill for a whole message: jsonrpc is added unless it is there.
func (v *Value) Message(known Captures) string {
	text := v.Fill(known)
	switch {
	case v.Get("jsonrpc") != nil:
		return text
	case len(v.Members) == 0:
		return `{"jsonrpc":"2.0"}`
	}
	return `{"jsonrpc":"2.0",` + text[1:]
}

// With returns an object of members, given as names and JSON texts, of which
// those in v replace others. v may be nil.
func (v *Value) With(known Captures, base ...string) string {
	var parts []string
	for i := 0; i+1 < len(base); i += 2 {
		if v.Get(base[i]) == nil {
			parts = append(parts, Quote(base[i])+":"+base[i+1])
		}
	}
	if v != nil {
		for _, m := range v.Members {
			parts = append(parts, Quote(m.Key)+":"+m.Val.Fill(known))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// Names calls f for each name in v and the values within.
func (v *Value) Names(f func(name string)) {
	if v == nil {
		return
	}
	if v.Kind == Name {
		f(v.Str)
	}
	for _, m := range v.Members {
		m.Val.Names(f)
	}
	for _, e := range v.Elems {
		e.Names(f)
	}
}
