// Package registry finds the Go type of a schema definition by name, for tests
// that go over all of them.
package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

// A Value is a decode target that encodes what it decoded.
type Value interface {
	json.Marshaler
	json.Unmarshaler
}

// New returns a fresh decode target for the definition schemaName of a
// protocol version, "v1" or "v2"; ok is false when there is none, which is the
// case for the message envelopes only.
func New(version, schemaName string) (v Value, ok bool) {
	f := types[version][schemaName]
	if f == nil {
		return nil, false
	}
	return f(), true
}

// Names returns the definitions of a protocol version that have a Go type,
// sorted.
func Names(version string) []string {
	return slices.Sorted(maps.Keys(types[version]))
}

type codec interface {
	AppendJSON(dst []byte) ([]byte, error)
}

func object[T any, P interface {
	*T
	Value
}]() func() Value {
	return func() Value { return P(new(T)) }
}

// A box holds a value whose type cannot have methods of its own.
type box[T any] struct {
	v         T
	unmarshal func([]byte) (T, error)
	marshal   func(T) ([]byte, error)
}

func (b *box[T]) UnmarshalJSON(data []byte) (err error) {
	b.v, err = b.unmarshal(data)
	return err
}

func (b *box[T]) MarshalJSON() ([]byte, error) { return b.marshal(b.v) }

func union[T codec](unmarshal func([]byte) (T, error)) func() Value {
	return func() Value {
		return &box[T]{unmarshal: unmarshal, marshal: func(v T) ([]byte, error) { return v.AppendJSON(nil) }}
	}
}

// plain is for strings.
func plain[T ~string]() func() Value {
	return func() Value {
		return &box[T]{
			unmarshal: func(data []byte) (T, error) { return wire.UnmarshalUnion(data, wire.String[T]) },
			marshal:   func(v T) ([]byte, error) { return wire.AppendText(&v, nil) },
		}
	}
}

// constant is for an enum of one value that is not open to others.
func constant[T ~string](want T) func() Value {
	return func() Value {
		return &box[T]{
			unmarshal: func(data []byte) (T, error) {
				return wire.UnmarshalUnion(data, func(v *T, d *wire.Decoder) {
					*v = want
					d.Tag(string(want))
				})
			},
			marshal: func(v T) ([]byte, error) { return wire.AppendText(&v, nil) },
		}
	}
}

// code is for the one enum of integers.
func code[T ~int32]() func() Value {
	return func() Value {
		return &box[T]{
			unmarshal: func(data []byte) (T, error) {
				return wire.UnmarshalUnion(data, func(v *T, d *wire.Decoder) { *v = T(d.Int32()) })
			},
			marshal: func(v T) ([]byte, error) { return wire.AppendInt(nil, int64(v)), nil },
		}
	}
}

func integer() func() Value {
	return func() Value {
		return &box[uint16]{
			unmarshal: func(data []byte) (uint16, error) { return wire.UnmarshalUnion(data, wire.Uint16Item) },
			marshal:   func(v uint16) ([]byte, error) { return wire.AppendUint16Item(&v, nil) },
		}
	}
}

func raw() func() Value {
	return func() Value {
		return &box[json.RawMessage]{
			unmarshal: func(data []byte) (json.RawMessage, error) { return wire.AppendRaw(nil, data) },
			marshal:   func(v json.RawMessage) ([]byte, error) { return wire.AppendRaw(nil, v) },
		}
	}
}

func form() func() Value {
	return func() Value {
		return &box[json.RawMessage]{
			unmarshal: func(data []byte) (json.RawMessage, error) { return wire.UnmarshalUnion(data, wire.FormItem) },
			marshal:   func(v json.RawMessage) ([]byte, error) { return wire.AppendRaw(nil, v) },
		}
	}
}

func id(null bool) func() Value {
	return func() Value {
		return &box[jsonrpc.ID]{
			unmarshal: func(data []byte) (v jsonrpc.ID, err error) {
				if err := v.UnmarshalJSON(data); err != nil {
					return v, err
				}
				if !v.IsString() && !v.IsInteger() && !(null && v.IsNull()) {
					return v, fmt.Errorf("not an id of this protocol version")
				}
				return v, nil
			},
			marshal: func(v jsonrpc.ID) ([]byte, error) { return v.AppendJSON(nil) },
		}
	}
}
