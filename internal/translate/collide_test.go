package translate

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/overlay"
	"github.com/goacp/acp/internal/sample"
)

// memberNames lists the members of all definitions of both versions.
func memberNames(t *testing.T) []string {
	t.Helper()
	seen := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if props, ok := v["properties"].(map[string]any); ok {
				for name := range props {
					seen[name] = true
				}
			}
			for _, w := range v {
				walk(w)
			}
		case []any:
			for _, w := range v {
				walk(w)
			}
		}
	}
	set, err := overlay.Read(filepath.Join("..", "..", "schema"))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1", "v2"} {
		data, err := set.Schema(version + ".unstable.json")
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		walk(v)
	}
	var names []string
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// insert adds a member to every object in a value that has none of that name.
func insert(t *testing.T, data []byte, name string, value any) []byte {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, w := range v {
				walk(w)
			}
			if _, ok := v[name]; !ok {
				v[name] = value
			}
		case []any:
			for _, w := range v {
				walk(w)
			}
		}
	}
	walk(v)
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCollisions: a member that one version does not know and the other does
// never keeps a value from being encoded there.
func TestCollisions(t *testing.T) {
	names := memberNames(t)
	if len(names) < 100 {
		t.Fatalf("%d names", len(names))
	}
	if !long.All() {
		names = slices.DeleteFunc(names, func(name string) bool { return len(name)%5 != 0 })
	}
	s1, s2 := load(t, "v1"), load(t, "v2")
	rng := rand.New(rand.NewPCG(6, 6))
	each := func(s *sample.Schema, def string, try func(t *testing.T, in []byte) bool) {
		accepted := 0
		for _, name := range names {
			for _, value := range []any{1, "s", map[string]any{}} {
				if try(t, insert(t, s.Valid(rng, def), name, value)) {
					accepted++
				}
			}
		}
		if accepted < len(names)/2 {
			t.Errorf("%s: only %d values were accepted", def, accepted)
		}
	}
	for _, n := range nouns() {
		if n.v1 != "" {
			each(s1, n.v1, n.crosses1)
		}
		if n.v2 != "" {
			each(s2, n.v2, n.crosses2)
		}
	}
	for range 10 {
		each(s1, "SessionUpdate", func(t *testing.T, in []byte) bool {
			u, err := acpv1.UnmarshalSessionUpdate(in)
			if err == nil {
				checked2(t, new(FromV1).Update(u), in)
			}
			return err == nil
		})
		each(s2, "SessionUpdate", func(t *testing.T, in []byte) bool {
			u, err := acpv2.UnmarshalSessionUpdate(in)
			if err == nil {
				to := ToV1{Caps: everything}
				checked1(t, to.Update(u), in)
			}
			return err == nil
		})
	}
	each(s2, "RequestPermissionRequest", func(t *testing.T, in []byte) bool {
		var r acpv2.RequestPermissionRequest
		if r.UnmarshalJSON(in) != nil {
			return false
		}
		v, err := new(ToV1).Permission(r, nil)
		if err != nil {
			return true // no option of a known kind
		}
		if _, err := v.AppendJSON(nil); err != nil {
			t.Errorf("%v\n%s", err, in)
		}
		return true
	})
	each(s1, "RequestPermissionRequest", func(t *testing.T, in []byte) bool {
		var r acpv1.RequestPermissionRequest
		if r.UnmarshalJSON(in) != nil {
			return false
		}
		v := PermissionFromV1(r)
		if _, err := v.AppendJSON(nil); err != nil && len(v.Options) > 0 {
			t.Errorf("%v\n%s", err, in)
		}
		return true
	})
}

// crosses decodes a value, converts it and encodes it on the other side; false
// if it cannot be decoded. A conversion may say that it is not possible.
func crosses[A, B any](t *testing.T, in []byte, a codec[A], b codec[B], there func(A) (B, error)) bool {
	t.Helper()
	v, err := a.read(in)
	if err != nil {
		return false
	}
	w, err := there(v)
	if err != nil {
		return true
	}
	out, err := b.write(w)
	if err != nil {
		t.Errorf("not encoded: %v\n%s", err, in)
		return true
	}
	if _, err := b.read(out); err != nil {
		t.Errorf("not decoded: %v\n%s\n%s", err, in, out)
	}
	return true
}
