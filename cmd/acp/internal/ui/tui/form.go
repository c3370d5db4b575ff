package tui

import (
	"encoding/json"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// A form is an elicitation that waits for the user's answer.
type form struct {
	req    *acp.ElicitationRequest
	fields []*field
	answer chan *acp.ElicitationResponse
}

// reply answers the elicitation. Only the first answer counts.
func (f *form) reply(res *acp.ElicitationResponse) {
	select {
	case f.answer <- res:
	default:
	}
}

// formatSecret is the format of a text that is not shown. Agents use it for keys, though the
// schema has no such format.
const formatSecret acpv2.StringFormat = "password"

// A fieldKind determines how the user fills in a field.
type fieldKind int

const (
	fieldText    fieldKind = iota
	fieldNumber            // any number
	fieldInteger           // a whole number
	fieldBool              // a box to tick
	fieldOne               // one of several options
	fieldSome              // any number of several options
	fieldUnknown           // a kind that this program does not know
)

// A field is one field of a form.
type field struct {
	name, title, what string
	kind              fieldKind
	required          bool
	options           []acpv2.EnumOption
	chosen            map[int]bool // indexes of the chosen options
	on                bool
	text              string
	at                int // index of the option under the cursor

	minLen, maxLen *uint32
	pattern        string
	format         acpv2.StringFormat
	min, max       *float64
	minI, maxI     *int64
	minN, maxN     *uint64
	problem        string
}

func newForm(req *acp.ElicitationRequest) *form {
	f := &form{req: req, answer: make(chan *acp.ElicitationResponse, 1)}
	if req.Form == nil {
		return f
	}
	for _, p := range req.Form.Properties {
		w := &field{name: p.Name, required: slices.Contains(req.Form.Required, p.Name), chosen: map[int]bool{}}
		w.applySchema(p.Schema)
		if w.title == "" {
			w.title = seen(p.Name)
		}
		f.fields = append(f.fields, w)
	}
	return f
}

// applySchema sets the kind, the texts, the bounds and the default of a field.
func (w *field) applySchema(schema acpv2.ElicitationPropertySchema) {
	switch s := schema.(type) {
	case *acpv2.StringPropertySchema:
		w.title, w.what = seen(s.Title), seen(s.Description)
		w.minLen, w.maxLen, w.pattern, w.format = s.MinLength, s.MaxLength, s.Pattern, s.Format
		w.options = slices.Clone(s.OneOf)
		for _, e := range s.Enum {
			w.options = append(w.options, acpv2.EnumOption{Const: e})
		}
		if len(w.options) > 0 {
			w.kind = fieldOne
		}
		if s.Default != nil {
			w.text = *s.Default
			for i, o := range w.options {
				if o.Const == *s.Default {
					w.chosen[i], w.at = true, i
				}
			}
		}
	case *acpv2.NumberPropertySchema:
		w.kind, w.title, w.what = fieldNumber, seen(s.Title), seen(s.Description)
		w.min, w.max = s.Minimum, s.Maximum
		if s.Default != nil {
			w.text = strconv.FormatFloat(*s.Default, 'g', -1, 64)
		}
	case *acpv2.IntegerPropertySchema:
		w.kind, w.title, w.what = fieldInteger, seen(s.Title), seen(s.Description)
		w.minI, w.maxI = s.Minimum, s.Maximum
		if s.Default != nil {
			w.text = strconv.FormatInt(*s.Default, 10)
		}
	case *acpv2.BooleanPropertySchema:
		w.kind, w.title, w.what = fieldBool, seen(s.Title), seen(s.Description)
		if s.Default != nil {
			w.on = *s.Default
		}
	case *acpv2.MultiSelectPropertySchema:
		w.kind, w.title, w.what = fieldSome, seen(s.Title), seen(s.Description)
		w.minN, w.maxN = s.MinItems, s.MaxItems
		switch items := s.Items.(type) {
		case *acpv2.StringMultiSelectItems:
			for _, e := range items.Enum {
				w.options = append(w.options, acpv2.EnumOption{Const: e})
			}
		case *acpv2.TitledMultiSelectItems:
			w.options = slices.Clone(items.AnyOf)
		}
		for i, o := range w.options {
			if slices.Contains(s.Default, o.Const) {
				w.chosen[i] = true
			}
		}
	default:
		w.kind = fieldUnknown
	}
}

// label returns the name of an option.
func (w *field) label(i int) string {
	if t := seen(w.options[i].Title); t != "" {
		return t
	}
	return seen(w.options[i].Const)
}

// value returns the value of the field as JSON, or nil if it is empty. If the value is not valid,
// the second result says why.
func (w *field) value() (json.RawMessage, string) {
	missing := func() (json.RawMessage, string) {
		if w.required {
			return nil, "required"
		}
		return nil, ""
	}
	switch w.kind {
	case fieldText:
		if w.text == "" {
			return missing()
		}
		if p := w.textProblem(); p != "" {
			return nil, p
		}
		return encode(w.text), ""
	case fieldNumber:
		if strings.TrimSpace(w.text) == "" {
			return missing()
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(w.text), 64)
		switch {
		case err != nil || math.IsInf(n, 0) || math.IsNaN(n):
			return nil, "not a number"
		case w.min != nil && n < *w.min:
			return nil, fmt.Sprintf("at least %v", *w.min)
		case w.max != nil && n > *w.max:
			return nil, fmt.Sprintf("at most %v", *w.max)
		}
		return encode(n), ""
	case fieldInteger:
		if strings.TrimSpace(w.text) == "" {
			return missing()
		}
		n, err := strconv.ParseInt(strings.TrimSpace(w.text), 10, 64)
		switch {
		case err != nil:
			return nil, "not a whole number"
		case w.minI != nil && n < *w.minI:
			return nil, fmt.Sprintf("at least %d", *w.minI)
		case w.maxI != nil && n > *w.maxI:
			return nil, fmt.Sprintf("at most %d", *w.maxI)
		}
		return encode(n), ""
	case fieldBool:
		return encode(w.on), ""
	case fieldOne:
		for i := range w.options {
			if w.chosen[i] {
				return encode(w.options[i].Const), ""
			}
		}
		return missing()
	case fieldSome:
		all := []string{}
		for i, o := range w.options {
			if w.chosen[i] {
				all = append(all, o.Const)
			}
		}
		n := uint64(len(all))
		switch {
		case n == 0 && !w.required:
			return nil, ""
		case w.minN != nil && n < *w.minN:
			return nil, fmt.Sprintf("choose at least %d", *w.minN)
		case w.maxN != nil && n > *w.maxN:
			return nil, fmt.Sprintf("choose at most %d", *w.maxN)
		}
		return encode(all), ""
	}
	if w.required {
		return nil, "a kind of field that this program does not know"
	}
	return nil, ""
}

// textProblem returns what is wrong with a text, or "".
func (w *field) textProblem() string {
	n := uint32(min(utf8.RuneCountInString(w.text), math.MaxUint32))
	switch {
	case w.minLen != nil && n < *w.minLen:
		return fmt.Sprintf("at least %d characters", *w.minLen)
	case w.maxLen != nil && n > *w.maxLen:
		return fmt.Sprintf("at most %d characters", *w.maxLen)
	}
	if w.pattern != "" {
		// Patterns are JavaScript's. A pattern that Go cannot compile is left to the agent.
		if re, err := regexp.Compile(w.pattern); err == nil && !re.MatchString(w.text) {
			return "must match " + seen(w.pattern)
		}
	}
	switch w.format {
	case acpv2.StringFormatEmail:
		if a, err := mail.ParseAddress(w.text); err != nil || a.Address != w.text {
			return "not an e-mail address"
		}
	case acpv2.StringFormatURI:
		if u, err := url.Parse(w.text); err != nil || u.Scheme == "" {
			return "not a URL"
		}
	case acpv2.StringFormatDate:
		if _, err := time.Parse(time.DateOnly, w.text); err != nil {
			return "not a date such as 2026-01-31"
		}
	case acpv2.StringFormatDateTime:
		if _, err := time.Parse(time.RFC3339, w.text); err != nil {
			return "not a time such as 2026-01-31T15:04:05Z"
		}
	}
	return ""
}

// values returns the values of all fields. ok is false if a value is not valid; then bad is the
// first such field, and each of them has its problem set.
func (f *form) values() (v map[string]json.RawMessage, bad int, ok bool) {
	v, bad, ok = map[string]json.RawMessage{}, -1, true
	for i, w := range f.fields {
		raw, problem := w.value()
		w.problem = problem
		if problem != "" {
			if ok {
				bad = i
			}
			ok = false
		} else if raw != nil {
			v[w.name] = raw
		}
	}
	return v, bad, ok
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
