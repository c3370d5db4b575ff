package acpv2_test

import (
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
