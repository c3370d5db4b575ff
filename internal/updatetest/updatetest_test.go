package updatetest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// TestSamples: samples are of the kind that they stand for.
func TestSamples(t *testing.T) {
	for kind, s := range texts2 {
		us, at, err := decode(s, acpv2.UnmarshalSessionUpdate)
		if err != nil {
			t.Fatal(err)
		}
		if _, known := acpv2.Updates()[kind]; !known || isUnknown(us[at]) {
			t.Errorf("version 2: %s: no known update: %T", kind, us[at])
		}
	}
	for kind, s := range texts1 {
		us, at, err := decode(s, acpv1.UnmarshalSessionUpdate)
		if err != nil {
			t.Fatal(err)
		}
		if _, known := acpv1.Updates()[kind]; !known || isUnknown(us[at]) {
			t.Errorf("version 1: %s: no known update: %T", kind, us[at])
		}
	}
}

// TestTexts: every kind of both versions is there, as JSON that needs nothing more.
func TestTexts(t *testing.T) {
	for version, samples := range map[int]map[string]sample{1: texts1, 2: texts2} {
		texts := Texts(version)
		if len(texts) != len(samples) {
			t.Errorf("version %d: %d kinds of %d", version, len(texts), len(samples))
		}
		for kind, all := range texts {
			found := false
			for _, text := range all {
				var u struct{ SessionUpdate string }
				if err := json.Unmarshal([]byte(text), &u); err != nil {
					t.Errorf("version %d: %s: %v", version, text, err)
				}
				found = found || u.SessionUpdate == kind
			}
			if !found {
				t.Errorf("version %d: %s is not among %q", version, kind, all)
			}
		}
	}
}

// TestDecode: a sample that cannot be read, marks nothing or is missing is an error.
func TestDecode(t *testing.T) {
	for _, s := range []sample{"", ">{", `{"sessionUpdate":"plan_removed","planId":"p"}`} {
		if us, _, err := decode(s, acpv2.UnmarshalSessionUpdate); err == nil {
			t.Errorf("%q: %v", s, us)
		}
	}
}

// TestFault holds what Check complains about.
func TestFault(t *testing.T) {
	for _, tt := range []struct {
		with, without, reason string
		ignored               bool
		want                  string // the beginning; "" for nothing
	}{
		{"a b", "a", "", false, ""},
		{"a", "a", "a reason", true, ""},
		{"a", "a", "", false, "makes no difference"},
		{"a", "a", "", true, "is ignored without a reason"},
		{"a b", "a", "a reason", true, "is listed as ignored (a reason)"},
		{"a, Unknown update", "a", "", false, "is taken for an unknown update"},
	} {
		got := fault(tt.with, tt.without, tt.reason, tt.ignored)
		if (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

func isUnknown(u any) bool {
	name := reflect.TypeOf(u).Elem().Name()
	return name == "UnknownSessionUpdate" || name == "UnknownStateUpdate"
}
