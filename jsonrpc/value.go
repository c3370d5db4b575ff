package jsonrpc

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/goacp/acp/internal/wire"
)

// init lets the engine, and packages whose types hold ids, read ids and errors.
func init() {
	wire.Register(wire.Codec{Decode: func(v any, d *wire.Decoder) bool {
		x, ok := v.(interface{ decodeJSON(d *wire.Decoder) })
		if ok {
			x.decodeJSON(d)
		}
		return ok
	}})
}

// An appender encodes itself.
type appender interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// flatten encodes what has to go through encoding/json, so that no foreign code but
// AppendJSON runs under the write lock.
func flatten(v any) (any, error) {
	switch v.(type) {
	case nil, appender, json.RawMessage, *json.RawMessage:
		return v, nil
	}
	b, err := json.Marshal(v)
	return json.RawMessage(b), err
}

// appendValue appends a flattened value; nil and empty raw values are null.
func appendValue(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
	case json.RawMessage:
		if len(v) > 0 {
			return wire.AppendRaw(dst, v)
		}
	case *json.RawMessage:
		if v != nil && len(*v) > 0 {
			return wire.AppendRaw(dst, *v)
		}
	case appender:
		return v.AppendJSON(dst)
	}
	return append(dst, "null"...), nil
}

// isAbsent reports whether a flattened value is left out of a message.
func isAbsent(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case json.RawMessage:
		return len(v) == 0
	case *json.RawMessage:
		return v == nil || len(*v) == 0
	}
	return false
}

// decodeValue reads one value into v, a pointer.
func decodeValue(d *wire.Decoder, v any) {
	if raw, ok := v.(*json.RawMessage); ok {
		*raw = d.RawCopy()
		return
	}
	if !wire.Decode(v, d) {
		at := d.Pos()
		raw := d.Raw()
		if d.SyntaxErr() != nil {
			return
		}
		if err := json.Unmarshal(raw, v); err != nil {
			// The text of other errors may hold values.
			reason := "not acceptable"
			var te *json.UnmarshalTypeError
			if errors.As(err, &te) {
				reason = "expected a Go " + te.Type.Kind().String()
				if te.Field != "" {
					reason = "member " + te.Field + ": " + reason
				}
			}
			d.Invalid(at, reason)
		}
	}
}

// A message is what is encoded into the output buffer. It is passed by value
// through concrete functions only, so that sending allocates nothing.
type message struct {
	kind   messageKind
	method string
	call   int64 // id of our call
	id     ID    // id of their request
	value  any   // params, result or the text of an error, flattened
	err    *Error
	reply  bool // a handler's answer
	sendIf func() bool
}

type messageKind uint8

const (
	messageNotify messageKind = iota
	messageCall
	messageResult
	messageError
)

func (m *message) append(dst []byte) ([]byte, error) {
	switch m.kind {
	case messageNotify:
		dst = append(dst, `{"jsonrpc":"2.0","method":`...)
		dst = wire.AppendString(dst, m.method)
	case messageCall:
		dst = append(dst, `{"jsonrpc":"2.0","id":`...)
		dst = strconv.AppendInt(dst, m.call, 10)
		dst = append(dst, `,"method":`...)
		dst = wire.AppendString(dst, m.method)
	default:
		dst = append(dst, `{"jsonrpc":"2.0","id":`...)
		dst, _ = m.id.AppendJSON(dst)
		if m.kind == messageError {
			dst = append(dst, `,"error":`...)
			if !isAbsent(m.value) {
				n := len(dst)
				var err error
				if dst, err = appendValue(dst, m.value); err == nil {
					return append(dst, '}'), nil
				}
				dst = dst[:n]
			}
			dst, _ = m.err.AppendJSON(dst)
			return append(dst, '}'), nil
		}
		dst = append(dst, `,"result":`...)
		dst, err := appendValue(dst, m.value)
		return append(dst, '}'), err
	}
	if isAbsent(m.value) {
		return append(dst, '}'), nil
	}
	dst = append(dst, `,"params":`...)
	dst, err := appendValue(dst, m.value)
	return append(dst, '}'), err
}
