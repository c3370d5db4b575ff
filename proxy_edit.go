package acp

import (
	"encoding/json"
	"errors"

	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/internal/wire"
)

var errNoObject = errors.New("acp: not a JSON object")

// withMember returns a JSON object in which a member has another value, or none if value
// is nil. Everything else in it stays byte for byte the same.
func withMember(raw json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	var d wire.Decoder
	d.Reset(raw, false)
	if d.Peek() != '{' {
		return nil, errNoObject
	}
	out := make([]byte, 0, len(raw)+len(name)+len(value)+4)
	out = append(out, '{')
	put := func(key string, v []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(wire.AppendString(out, key), ':'), v...)
	}
	done := value == nil
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		key := string(k)
		v := d.Raw()
		switch {
		case key != name:
			put(key, v)
		case !done:
			put(key, value)
			done = true
		}
	}
	if err := d.Finish(); err != nil {
		return nil, err
	}
	if !done {
		put(name, value)
	}
	return append(out, '}'), nil
}

type appender interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// appendAll encodes a list.
func appendAll[T appender](list []T) (_ json.RawMessage, err error) {
	b := []byte{'['}
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = v.AppendJSON(b); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// encodeBlocks encodes content in a version of the protocol.
func encodeBlocks(version int, blocks []ContentBlock) (json.RawMessage, error) {
	if version == 1 {
		return appendAll(translate.BlocksToV1(blocks))
	}
	return appendAll(blocks)
}

// encoded returns the JSON of a value, or nil if it cannot be encoded.
func encoded(v appender) json.RawMessage {
	b, err := v.AppendJSON(nil)
	if err != nil {
		return nil
	}
	return b
}
