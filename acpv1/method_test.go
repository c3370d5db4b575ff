package acpv1_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/internal/overlay"
)

// TestMethodCounts holds the numbers of the protocol: methods are counted once
// per side, whether they are requests, notifications or both.
func TestMethodCounts(t *testing.T) {
	type key struct {
		name string
		side acpv1.Side
	}
	stable, all := map[key]bool{}, map[key]bool{}
	for _, m := range acpv1.Methods() {
		k := key{m.Name, m.Side}
		all[k] = true
		if !m.Experimental {
			stable[k] = true
		}
		if m.Experimental != acpv1.Experimental(m.Name) {
			t.Errorf("%s: Methods says experimental %t, Experimental does not", m.Name, m.Experimental)
		}
	}
	if len(stable) != 25 || len(all) != 40 {
		t.Errorf("%d stable methods of %d, want 25 of 40", len(stable), len(all))
	}
}

// TestMethodsAgainstSchema reads the method tables of the schemas by itself.
func TestMethodsAgainstSchema(t *testing.T) {
	var want, got []string
	stable := map[string]bool{}
	for _, file := range []string{"v1.json", "v1.unstable.json"} {
		for name, d := range definitions(t, file) {
			if d.Method == "" || strings.HasSuffix(name, "Response") {
				continue
			}
			line := d.Method + " " + d.Side + map[bool]string{true: " notification", false: ""}[strings.HasSuffix(name, "Notification")]
			if file == "v1.json" {
				stable[line] = true
			} else if stable[line] {
				want = append(want, line)
			} else {
				want = append(want, line+" experimental")
			}
		}
	}
	for _, m := range acpv1.Methods() {
		line := m.Name + " " + string(m.Side)
		if m.Notification {
			line += " notification"
		}
		if m.Experimental {
			line += " experimental"
		}
		got = append(got, line)
	}
	slices.Sort(want)
	sorted := slices.Sorted(slices.Values(got))
	if diff := cmp.Diff(want, sorted); diff != "" {
		t.Error(diff)
	}
	if !slices.IsSortedFunc(acpv1.Methods(), func(a, b acpv1.MethodInfo) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("Methods is not sorted by name")
	}
}

func TestUpdates(t *testing.T) {
	stable := 0
	for name, experimental := range acpv1.Updates() {
		if !experimental {
			stable++
		}
		if experimental != acpv1.Experimental("SessionUpdate="+name) {
			t.Errorf("%s: Updates says experimental %t, Experimental does not", name, experimental)
		}
		// The schema and the decoder know the same tags: a known one is never
		// taken for unknown, whatever else is wrong with it (S82).
		u, err := acpv1.UnmarshalSessionUpdate([]byte(`{"sessionUpdate":"` + name + `"}`))
		if _, unknown := u.(*acpv1.UnknownSessionUpdate); unknown {
			t.Errorf("%s is taken for unknown: %v", name, err)
		}
	}
	if all := len(acpv1.Updates()); stable != 17 || all != 21 {
		t.Errorf("%d stable updates of %d, want 17 of 21", stable, all)
	}
	u, err := acpv1.UnmarshalSessionUpdate([]byte(`{"sessionUpdate":"_x"}`))
	if _, unknown := u.(*acpv1.UnknownSessionUpdate); !unknown || err != nil {
		t.Errorf("an unknown update became %T, %v", u, err)
	}
}

type definition struct {
	Properties   map[string]definition
	AnyOf, OneOf []definition
	Const        any
	Side         string `json:"x-side"`
	Method       string `json:"x-method"`
}

func definitions(t *testing.T, file string) map[string]definition {
	t.Helper()
	set, err := overlay.Read("../schema")
	if err != nil {
		t.Fatal(err)
	}
	data, err := set.Schema(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Defs map[string]definition `json:"$defs"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Defs
}
