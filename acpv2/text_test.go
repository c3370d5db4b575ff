package acpv2_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/goacp/acp/acpv2"
)

func TestTerminalBytes(t *testing.T) {
	for data, want := range map[string]string{"aGk=": "hi", "": ""} {
		if got, err := (&acpv2.TerminalOutputChunk{Data: data}).Bytes(); string(got) != want || err != nil {
			t.Errorf("chunk %q: %q, %v", data, got, err)
		}
		if got, err := (&acpv2.TerminalOutput{Data: data}).Bytes(); string(got) != want || err != nil {
			t.Errorf("output %q: %q, %v", data, got, err)
		}
	}
	if _, err := (&acpv2.TerminalOutputChunk{Data: "?"}).Bytes(); err == nil {
		t.Error("no error")
	}
}

// TestOptionValueString: the value of an option reads in a log as it does on the wire.
func TestOptionValueString(t *testing.T) {
	for want, v := range map[string]acpv2.SessionConfigOptionValue{
		"code": &acpv2.SessionConfigOptionValueID{Value: "code"},
		"true": &acpv2.SessionConfigOptionValueBoolean{Value: true},
		"7":    &acpv2.UnknownSessionConfigOptionValue{Type: "_n", Value: json.RawMessage("7")},
	} {
		if got := fmt.Sprint(v); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
