package transcript

import (
	"encoding/json"

	"github.com/goacp/acp/internal/wire"
)

// patchMeta applies the metadata of an update (S78): if it is absent, what is stored stays;
// null clears it; an object sets the keys it has, and removes those whose value is null.
func patchMeta(stored, patch json.RawMessage) json.RawMessage {
	if len(patch) == 0 {
		return stored
	}
	if string(patch) == "null" {
		return nil
	}
	var keys []string
	values := map[string][]byte{}
	for _, object := range [][]byte{stored, patch} {
		if len(object) == 0 {
			continue
		}
		var d wire.Decoder
		d.Reset(object, false)
		for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
			name := string(k)
			v := d.Raw()
			if _, known := values[name]; !known {
				keys = append(keys, name)
			}
			values[name] = v
		}
		if d.Finish() != nil {
			return stored
		}
	}
	out := []byte{'{'}
	for _, k := range keys {
		if v := values[k]; string(v) != "null" {
			out = append(wire.AppendString(out, k), ':')
			out = append(append(out, v...), ',')
		}
	}
	if len(out) == 1 {
		return nil
	}
	return wire.CloseObject(out)
}

// notNull returns the raw JSON that an update sets; null removes what is stored (S78).
func notNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// taggedOnly returns an object with only a discriminator and at most one other member.
func taggedOnly(tag, value string, more ...string) json.RawMessage {
	out := wire.AppendString([]byte(`{"`+tag+`":`), value)
	if len(more) == 2 {
		out = wire.AppendString(append(out, `,"`+more[0]+`":`...), more[1])
	}
	return append(out, '}')
}
