package history

import (
	"encoding/json"
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
)

// TestDecision: a decision is said in a few words, by whom it was.
func TestDecision(t *testing.T) {
	for want, d := range map[string]Decision{
		"allowed once by laptop":    {By: "laptop", Kind: acpv2.PermissionOptionKindAllowOnce, Outcome: "a"},
		"always allowed by a rule":  {By: "rules", Rule: true, Kind: acpv2.PermissionOptionKindAllowAlways, Outcome: "a"},
		"rejected by laptop":        {By: "laptop", Kind: acpv2.PermissionOptionKindRejectOnce, Outcome: "a"},
		"always rejected":           {Kind: acpv2.PermissionOptionKindRejectAlways, Outcome: "a"},
		"not answered":              {Outcome: "cancelled"},
		"dismissed by laptop":       {By: "laptop", Outcome: "cancelled"},
		"answered: Maybe by laptop": {By: "laptop", Name: "Maybe", Kind: "_maybe", Outcome: "m"},
	} {
		got := DecisionOf(d.Meta())
		if got == nil || got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, meta := range []string{"", "{}", `{"` + ownmeta.Key + `":{"decided":3}}`, `{"` + ownmeta.Key + `":{"decided":null}}`} {
		if got := DecisionOf(json.RawMessage(meta)); got != nil {
			t.Errorf("%s: %v", meta, got)
		}
	}
}

// TestEndOf: an idle state says how a turn ended, and who has stopped it.
func TestEndOf(t *testing.T) {
	for _, tt := range []struct {
		idle acpv2.IdleStateUpdate
		want string // "-" for no end
	}{
		{acpv2.IdleStateUpdate{}, "-"},
		{acpv2.IdleStateUpdate{StopReason: acpv2.StopReasonEndTurn}, ""},
		{acpv2.IdleStateUpdate{StopReason: "error", Error: &acpv2.Error{Message: "too busy"}}, "The turn failed: too busy"},
		{acpv2.IdleStateUpdate{StopReason: acpv2.StopReasonCancelled, Meta: ownmeta.Of(End{By: "laptop"})}, "Cancelled by laptop"},
		{acpv2.IdleStateUpdate{StopReason: acpv2.StopReasonCancelled, Meta: ownmeta.Of(End{Turn: "m", Lost: true})}, "The turn has not ended: the server ended in the middle"},
	} {
		end, got := EndOf(&tt.idle), "-"
		if end != nil {
			got = EndingLine(end)
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.idle, got, tt.want)
		}
	}
}
