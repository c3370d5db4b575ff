package overlay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// A Member is one member of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members splits a JSON object and keeps the order of its members.
func Members(raw json.RawMessage) ([]Member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if t != json.Delim('{') {
		return nil, fmt.Errorf("expected an object, found %v", t)
	}
	var out []Member
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, err
		}
		out = append(out, Member{k.(string), v})
	}
	_, err = dec.Token()
	return out, err
}

// Object makes a JSON object of its members.
func Object(ms []Member) json.RawMessage {
	out := []byte{'{'}
	for i, m := range ms {
		if i > 0 {
			out = append(out, ',')
		}
		k, _ := json.Marshal(m.Name)
		out = append(append(append(out, k...), ':'), m.Value...)
	}
	return append(out, '}')
}

// list makes a JSON array of its items.
func list(items []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, it := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, it...)
	}
	return append(out, ']')
}

func find(ms []Member, name string) int {
	return slices.IndexFunc(ms, func(m Member) bool { return m.Name == name })
}

// equal reports whether two values mean the same. Malformed ones equal nothing.
func equal(a, b json.RawMessage) bool {
	x, err1 := decode(a)
	y, err2 := decode(b)
	return err1 == nil && err2 == nil && reflect.DeepEqual(x, y)
}

func decode(raw json.RawMessage) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

// compact returns raw without white space, for errors.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
