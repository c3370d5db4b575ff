package updatetest

import (
	"reflect"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// TestSamples: samples are of the kind that they stand for.
func TestSamples(t *testing.T) {
	for kind, s := range texts2 {
		us, at := decode(t, s, acpv2.UnmarshalSessionUpdate)
		if _, known := acpv2.Updates()[kind]; !known || isUnknown(us[at]) {
			t.Errorf("version 2: %s: no known update: %T", kind, us[at])
		}
	}
	for kind, s := range texts1 {
		us, at := decode(t, s, acpv1.UnmarshalSessionUpdate)
		if _, known := acpv1.Updates()[kind]; !known || isUnknown(us[at]) {
			t.Errorf("version 1: %s: no known update: %T", kind, us[at])
		}
	}
}

func isUnknown(u any) bool {
	name := reflect.TypeOf(u).Elem().Name()
	return name == "UnknownSessionUpdate" || name == "UnknownStateUpdate"
}
