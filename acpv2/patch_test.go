package acpv2_test

import (
	"testing"

	"github.com/goacp/acp/acpv2"
)

func TestPatch(t *testing.T) {
	var unchanged acpv2.Patch[string]
	set, empty, clear := acpv2.Set("new"), acpv2.Set(""), acpv2.Clear[string]()
	for _, x := range []struct {
		name          string
		p             acpv2.Patch[string]
		zero, isClear bool
		value         string
		ok            bool
		or, applied   string
	}{
		{"unchanged", unchanged, true, false, "", false, "old", "old"},
		{"set", set, false, false, "new", true, "new", "new"},
		{"set to zero", empty, false, false, "", true, "", ""},
		{"cleared", clear, false, true, "", false, "old", ""},
	} {
		v, ok := x.p.Get()
		applied := "old"
		x.p.Apply(&applied)
		if x.p.IsZero() != x.zero || x.p.IsClear() != x.isClear || v != x.value || ok != x.ok ||
			x.p.Or("old") != x.or || applied != x.applied {
			t.Errorf("%s: zero %t, clear %t, Get %q %t, Or %q, Apply %q", x.name, x.p.IsZero(), x.p.IsClear(), v, ok, x.p.Or("old"), applied)
		}
	}
	if set != acpv2.Set("new") || set == empty || clear == unchanged {
		t.Error("patches do not compare like values")
	}
	// Set with an empty list clears the content but is not Clear (S78).
	list := []int{1}
	acpv2.Set([]int{}).Apply(&list)
	if list == nil || len(list) != 0 {
		t.Errorf("%v", list)
	}
	acpv2.Clear[[]int]().Apply(&list)
	if list != nil {
		t.Errorf("%v", list)
	}
}
