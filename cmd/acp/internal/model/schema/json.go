package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// An object is a JSON object whose members keep their order: models write what they are asked for in the order
// in which a schema names it.
type object struct{ members []member }

type member struct {
	name  string
	value any // *object, []any, json.Number, string, bool or nil
}

func (o *object) get(name string) (any, bool) {
	if o == nil {
		return nil, false
	}
	for _, m := range o.members {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

// set replaces a member, or adds it at the end.
func (o *object) set(name string, value any) {
	for i, m := range o.members {
		if m.name == name {
			o.members[i].value = value
			return
		}
	}
	o.members = append(o.members, member{name, value})
}

func (o *object) remove(name string) {
	o.members = slices.DeleteFunc(o.members, func(m member) bool { return m.name == name })
}

func (o *object) clone() *object { return &object{slices.Clone(o.members)} }

// MarshalJSON returns the members in their order.
func (o *object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o.members {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// Marshal returns the JSON text of a value without the escapes that only HTML needs: they would make source code that a
// model is sent a tenth longer, and what is opaque would not stay as it is.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// parse reads a JSON value. Of members that are there twice the last one counts.
func parse(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := value(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// maxNested bounds how deep values are nested.
const maxNested = 200

func value(d *json.Decoder, depth int) (any, error) {
	if depth > maxNested {
		return nil, errors.New("nested too deep")
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := &object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := value(d, depth+1)
			if err != nil {
				return nil, err
			}
			o.set(name.(string), v) // a decoder returns no other names
		}
		_, err := d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := value(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return t, nil
}
