package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// A shape is what is read of the schema of an input.
type shape struct {
	Type       string            `json:"type"`
	Properties map[string]*shape `json:"properties"`
	Required   []string          `json:"required"`
	Items      *shape            `json:"items"`
	Enum       []any             `json:"enum"`
	Minimum    *float64          `json:"minimum"`
	Maximum    *float64          `json:"maximum"`
	MinItems   int               `json:"minItems"`
	MaxItems   *int              `json:"maxItems"`
	Open       any               `json:"additionalProperties"` // false if there are no other members
}

// shapeOf reads a schema; nil if it is none of an object.
func shapeOf(schema json.RawMessage) *shape {
	var s shape
	if json.Unmarshal(schema, &s) != nil || s.Type != "object" || s.Properties == nil {
		return nil
	}
	return &s
}

// parse reads a JSON text. Characters in its strings that JSON wants escaped may be as they
// are.
func parse(text []byte) (any, bool) {
	if value, ok := decoded(text); ok {
		return value, true
	}
	return decoded(escaping(text))
}

// decoded reads a JSON text as it is.
func decoded(text []byte) (value any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&value) != nil || d.More() {
		return nil, false
	}
	return value, true
}

// escaping returns a JSON text with escapes for line ends and tabs in its strings.
func escaping(text []byte) []byte {
	var b bytes.Buffer
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\' && i+1 < len(text):
			b.WriteByte(c)
			i++
			b.WriteByte(text[i])
			continue
		case c == '"':
			inString = !inString
		case inString && c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
			continue
		}
		b.WriteByte(text[i])
	}
	return b.Bytes()
}

// unfenced returns what is in a block of Markdown, or a text as it is.
func unfenced(text string) string {
	inner, ok := strings.CutPrefix(strings.TrimSpace(text), "```json")
	if inner, end := strings.CutSuffix(inner, "```"); ok && end {
		return inner
	}
	return text
}

// encode writes a value without escapes that only HTML needs.
func encode(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// fit returns a value in the form that is wanted. It reports false if it has none.
func (s *shape) fit(value any) (any, bool) {
	switch s.Type {
	case "object":
		return s.fitObject(value)
	case "array":
		return s.fitArray(value)
	case "string":
		switch v := value.(type) {
		case json.Number:
			return v.String(), true
		case []any:
			if len(v) == 1 {
				if text, ok := v[0].(string); ok {
					return text, true
				}
			}
			return nil, false
		}
		_, ok := value.(string)
		return value, ok
	case "boolean":
		if text, ok := value.(string); ok {
			switch strings.ToLower(strings.TrimSpace(text)) {
			case "true":
				return true, true
			case "false":
				return false, true
			}
		}
		_, ok := value.(bool)
		return value, ok
	case "integer":
		return whole(value)
	}
	return value, true
}

// whole returns a whole number, however it is written.
func whole(value any) (any, bool) {
	text := strings.TrimSpace(textOf(value))
	if len(text) > 40 || strings.ContainsAny(text, "eE/_xX") {
		return nil, false
	}
	if n, ok := new(big.Rat).SetString(text); ok && n.IsInt() {
		return json.Number(n.Num().String()), true
	}
	return nil, false
}

// textOf returns how a string, a number or a truth value is written; "" for anything else.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return fmt.Sprint(v)
	}
	return ""
}

func (s *shape) fitArray(value any) (any, bool) {
	if text, ok := value.(string); ok {
		inner, ok := nested(text)
		switch {
		case ok:
			value = inner
		case s.Items != nil && s.Items.Type == "string" && strings.TrimSpace(text) != "":
			value = []any{text}
		default:
			return nil, false
		}
	}
	if o, ok := value.(map[string]any); ok {
		value = []any{o}
	}
	list, ok := value.([]any)
	if !ok {
		return nil, false
	}
	list = slices.Clone(list)
	for i, item := range list {
		if s.Items == nil {
			continue
		}
		// The names of members are not known to be right yet.
		if s.Items.Type == "object" {
			if text, isText := item.(string); isText {
				if item, ok = nested(text); !ok {
					return nil, false
				}
			}
			if list[i], ok = item.(map[string]any); !ok {
				return nil, false
			}
			continue
		}
		if list[i], ok = s.Items.fit(item); !ok {
			return nil, false
		}
	}
	return list, true
}

// nested returns the list or the object that a text is.
func nested(text string) (any, bool) {
	for range maxNested {
		value, ok := parse([]byte(unfenced(text)))
		if !ok {
			return nil, false
		}
		switch v := value.(type) {
		case []any, map[string]any:
			return v, true
		case string:
			text = v
		default:
			return nil, false
		}
	}
	return nil, false
}

// fitObject changes the members of an object. Those that are not known, and those that may
// be missing and say nothing, are left out.
func (s *shape) fitObject(value any) (any, bool) {
	if text, ok := value.(string); ok {
		if value, ok = nested(text); !ok {
			return nil, false
		}
	}
	in, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	for name, value := range in {
		p := s.Properties[name]
		switch {
		case p == nil && s.Open == false:
			delete(in, name)
		case p == nil:
		case !slices.Contains(s.Required, name) && p.says(value):
			delete(in, name)
		default:
			fitted, ok := p.fit(value)
			if !ok {
				return nil, false
			}
			if list, isList := fitted.([]any); isList && p.Items != nil && p.Items.Type == "object" {
				for i := range list {
					if list[i], ok = p.Items.fit(list[i]); !ok {
						return nil, false
					}
				}
			}
			in[name] = fitted
		}
	}
	return in, true
}

// says reports whether a value of a member that may be missing says nothing.
func (s *shape) says(value any) bool {
	if value == nil {
		return true
	}
	text := strings.TrimSpace(textOf(value))
	switch s.Type {
	case "string":
		return false // an empty one may be meant
	case "integer":
		return text == "" && empty(value) || text == "0" && s.Minimum != nil && *s.Minimum > 0
	}
	return value == ""
}

// takes reports whether a value can be one of a member.
func (s *shape) takes(value any) bool {
	if value == nil {
		return false
	}
	switch s.Type {
	case "array":
		_, ok := s.fitArray(value)
		return ok
	case "object":
		return true
	}
	_, ok := s.fit(value)
	return ok
}

// empty reports whether a value says nothing.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return strings.TrimSpace(v) == ""
	case bool:
		return !v
	case json.Number:
		return v == "0"
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// Wrong says what is wrong with the input of a tool, and how it is written, in one line; ""
// if it does not know.
func Wrong(t Tool, input json.RawMessage) string {
	m, s := mendings[t.Name], shapeOf(t.Schema)
	value, ok := parse(input)
	if m == nil || s == nil || !ok {
		return ""
	}
	if o, isObject := value.(map[string]any); isObject { // what is in a text is looked at, too
		for name, p := range s.Properties {
			if fitted, ok := p.fit(o[name]); ok && p.Type == "array" {
				o[name] = fitted
			}
		}
	}
	why := s.wrong(value, "")
	if why == "" {
		return ""
	}
	return why + ": write " + m.example
}

// wrong says what is wrong with a value; "" if nothing is.
func (s *shape) wrong(value any, at string) string {
	name := at
	if at == "" {
		name = "the input"
	}
	if value == nil {
		return name + " is null"
	}
	switch v := value.(type) {
	case map[string]any:
		if s.Type != "object" {
			return name + " is an object"
		}
		if at != "" {
			at += "."
		}
		for _, r := range s.Required {
			if _, ok := v[r]; !ok {
				return at + r + " is missing"
			}
		}
		for _, n := range sortedNames(v) {
			p := s.Properties[n]
			if p == nil && s.Open == false {
				return "there is no member " + prose.OneLine(at+n, 60)
			}
			if p == nil {
				continue
			}
			if why := p.wrong(v[n], at+n); why != "" {
				return why
			}
		}
		return ""
	case []any:
		switch {
		case s.Type != "array":
			return name + " is a list"
		case len(v) < s.MinItems:
			return name + " is empty"
		case s.MaxItems != nil && len(v) > *s.MaxItems:
			return fmt.Sprintf("%s has more than %d entries", name, *s.MaxItems)
		}
		for i, item := range v {
			if s.Items != nil {
				if why := s.Items.wrong(item, fmt.Sprintf("%s[%d]", at, i)); why != "" {
					return why
				}
			}
		}
		return ""
	}
	return s.wrongText(value, name)
}

func (s *shape) wrongText(value any, name string) string {
	text := prose.OneLine(textOf(value), 40)
	switch v := value.(type) {
	case string:
		if s.Type != "string" {
			return fmt.Sprintf("%s is the text %q, and no %s", name, text, kindOf(s.Type))
		}
	case bool:
		if s.Type != "boolean" {
			return fmt.Sprintf("%s is %t, and no %s", name, v, kindOf(s.Type))
		}
	case json.Number:
		n, err := v.Float64()
		switch {
		case s.Type != "integer" && s.Type != "number":
			return fmt.Sprintf("%s is a number, and no %s", name, kindOf(s.Type))
		case s.Type == "integer" && strings.ContainsAny(text, ".eE"):
			return fmt.Sprintf("%s is %s, and no whole number", name, text)
		case s.Minimum != nil && (err != nil || n < *s.Minimum), s.Maximum != nil && n > *s.Maximum:
			return fmt.Sprintf("%s is %s, which is out of bounds", name, text)
		}
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		words := make([]string, len(s.Enum))
		for i, w := range s.Enum {
			words[i] = fmt.Sprint(w)
		}
		return fmt.Sprintf("%s is %q, not one of %s", name, text, strings.Join(words, ", "))
	}
	return ""
}

// kindOf is a type of JSON in other words.
func kindOf(kind string) string {
	switch kind {
	case "array":
		return "list"
	case "string":
		return "text"
	case "integer":
		return "whole number"
	}
	return kind
}
