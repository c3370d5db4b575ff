package registry_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/goacp/acp/internal/registry"
)

// FuzzTypes decodes arbitrary bytes as every type of both versions, unions
// above all: no input may panic or hang, what is accepted is encoded as one line
// of valid JSON, and what was encoded decodes to the same.
func FuzzTypes(f *testing.F) {
	versions := []string{"v1", "v2"}
	for i, version := range versions {
		s := load(f, version+".unstable")
		rng := rand.New(rand.NewPCG(2, 2))
		for j, name := range registry.Names(version) {
			v := s.Valid(rng, name)
			f.Add(byte(i), uint16(j), v)
			f.Add(byte(i), uint16(j), s.Mutate(rng, name, v))
		}
	}
	f.Fuzz(func(t *testing.T, version byte, index uint16, data []byte) {
		ver := versions[int(version)%len(versions)]
		names := registry.Names(ver)
		name := names[int(index)%len(names)]
		v, _ := registry.New(ver, name)
		if v.UnmarshalJSON(data) != nil {
			return
		}
		out, err := v.MarshalJSON()
		if err != nil {
			t.Fatalf("%s %s: decoded but not encoded: %v\n%q", ver, name, err, data)
		}
		if !json.Valid(out) || bytes.ContainsAny(out, "\n\r") {
			t.Fatalf("%s %s: not one line of JSON: %q\n%q", ver, name, out, data)
		}
		w, _ := registry.New(ver, name)
		if err := w.UnmarshalJSON(out); err != nil {
			t.Fatalf("%s %s: %v\n%q\n%q", ver, name, err, data, out)
		}
		again, err := w.MarshalJSON()
		if err != nil || !bytes.Equal(out, again) {
			t.Fatalf("%s %s: unstable\n%q\n%q\n%q %v", ver, name, data, out, again, err)
		}
	})
}
