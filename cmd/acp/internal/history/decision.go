package history

import (
	"encoding/json"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// A Decision is what a gateway says of the answer to a question of the agent, in _meta of the tool call that it was about.
type Decision struct {
	Ask     string                     `json:"ask,omitempty"`   // the name of the question
	Title   string                     `json:"title,omitempty"` // its text
	By      string                     `json:"by,omitempty"`    // who has answered; "" if nobody has
	Rule    bool                       `json:"rule,omitempty"`  // a rule has
	Name    string                     `json:"name,omitempty"`  // of the option that was chosen
	Kind    acpv2.PermissionOptionKind `json:"kind,omitempty"`  // of that
	Outcome string                     `json:"outcome"`         // its ID, "accepted", "declined" or "cancelled"
	Time    time.Time                  `json:"time,omitzero"`
}

type decided struct {
	Decided *Decision `json:"decided"`
}

// Meta returns _meta with the decision.
func (d *Decision) Meta() json.RawMessage { return ownmeta.Of(decided{d}) }

// DecisionOf returns the decision about a tool call that its metadata has, or nil.
func DecisionOf(meta json.RawMessage) *Decision {
	var said decided
	if len(meta) == 0 || !ownmeta.Read(meta, &said) {
		return nil
	}
	return said.Decided
}

// Rejects reports whether the agent may not do what it asked for.
func (d *Decision) Rejects() bool {
	switch d.Kind {
	case acpv2.PermissionOptionKindRejectOnce, acpv2.PermissionOptionKindRejectAlways:
		return true
	}
	return d.Outcome == "declined"
}

// String returns what was decided, by whom and when, in one line that is safe for a terminal. The time is local.
func (d *Decision) String() string {
	if d.Time.IsZero() {
		return d.Words()
	}
	return d.Words() + ", " + d.Time.Local().Format("2006-01-02 15:04")
}

// Words is String without the time.
func (d *Decision) Words() string {
	what := ""
	switch d.Kind {
	case acpv2.PermissionOptionKindAllowOnce:
		what = "allowed once"
	case acpv2.PermissionOptionKindAllowAlways:
		what = "always allowed"
	case acpv2.PermissionOptionKindRejectOnce:
		what = "rejected"
	case acpv2.PermissionOptionKindRejectAlways:
		what = "always rejected"
	default:
		if d.Outcome == "cancelled" || d.Outcome == "" {
			what = "not answered"
		} else {
			what = "answered: " + safetext.Line(first(d.Name, d.Outcome), 100)
		}
	}
	switch by := safetext.Line(d.By, maxAuthor); {
	case d.Rule:
		what += " by a rule"
	case by != "" && what == "not answered":
		what = "dismissed by " + by
	case by != "":
		what += " by " + by
	}
	return what
}
