package translate

import (
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// PlanID is the id of the one plan that a session of version 1 has without
// plans with ids.
const PlanID acpv2.PlanID = "plan"

// PlanFromV1 converts the plan of a session, which has no id in version 1 and
// gets [PlanID].
func PlanFromV1(p acpv1.Plan) acpv2.PlanUpdate {
	return acpv2.PlanUpdate{Plan: &acpv2.PlanItems{PlanID: PlanID, Entries: each(p.Entries, entryFromV1)},
		Meta: p.Meta, Unknown: without(p.Unknown, "plan")}
}

// PlanUpdateFromV1 converts an update of a plan with an id. A plan of an
// unknown kind without an id, which version 2 requires, has no form there.
func PlanUpdateFromV1(u acpv1.PlanUpdate) (acpv2.PlanUpdate, bool) {
	v := acpv2.PlanUpdate{Meta: u.Meta, Unknown: u.Unknown}
	switch p := u.Plan.(type) {
	case *acpv1.PlanItems:
		v.Plan = &acpv2.PlanItems{PlanID: acpv2.PlanID(p.PlanID), Entries: each(p.Entries, entryFromV1), Meta: p.Meta, Unknown: p.Unknown}
	case *acpv1.PlanFile:
		v.Plan = &acpv2.PlanFile{PlanID: acpv2.PlanID(p.PlanID), URI: p.URI, Meta: p.Meta, Unknown: p.Unknown}
	case *acpv1.PlanMarkdown:
		v.Plan = &acpv2.PlanMarkdown{PlanID: acpv2.PlanID(p.PlanID), Content: p.Content, Meta: p.Meta, Unknown: p.Unknown}
	case *acpv1.UnknownPlanUpdateContent:
		plan, err := acpv2.UnmarshalPlanUpdateContent(p.Raw)
		if err != nil {
			return v, false
		}
		v.Plan = plan
	default:
		return v, false
	}
	return v, true
}

// PlanUpdateToV1 converts an update of a plan with an id, for clients that
// advertise them. An entry that was cancelled is left out, and unknown
// priorities and states become medium and pending: version 1 has no others.
func PlanUpdateToV1(u acpv2.PlanUpdate) (acpv1.PlanUpdate, bool) {
	v := acpv1.PlanUpdate{Meta: u.Meta, Unknown: u.Unknown}
	switch p := u.Plan.(type) {
	case *acpv2.PlanItems:
		v.Plan = &acpv1.PlanItems{PlanID: acpv1.PlanID(p.PlanID), Entries: entriesToV1(p.Entries), Meta: p.Meta, Unknown: p.Unknown}
	case *acpv2.PlanFile:
		v.Plan = &acpv1.PlanFile{PlanID: acpv1.PlanID(p.PlanID), URI: p.URI, Meta: p.Meta, Unknown: p.Unknown}
	case *acpv2.PlanMarkdown:
		v.Plan = &acpv1.PlanMarkdown{PlanID: acpv1.PlanID(p.PlanID), Content: p.Content, Meta: p.Meta, Unknown: p.Unknown}
	case *acpv2.UnknownPlanUpdateContent:
		v.Plan = &acpv1.UnknownPlanUpdateContent{Type: p.Type, Raw: p.Raw}
	default:
		return v, false
	}
	return v, true
}

// PlanToV1 converts any plan to the plan without id that every client of
// version 1 shows: one that is no list of entries becomes a single entry with
// the text or the address; one of an unknown kind has no form at all. For
// entries see [PlanUpdateToV1].
func PlanToV1(u acpv2.PlanUpdate) (acpv1.Plan, bool) {
	v := acpv1.Plan{Meta: u.Meta, Unknown: without(u.Unknown, "entries")}
	single := func(content string) []acpv1.PlanEntry {
		return []acpv1.PlanEntry{{Content: content, Priority: acpv1.PlanEntryPriorityMedium, Status: acpv1.PlanEntryStatusInProgress}}
	}
	switch p := u.Plan.(type) {
	case *acpv2.PlanItems:
		v.Entries = entriesToV1(p.Entries)
	case *acpv2.PlanFile:
		v.Entries = single(p.URI)
	case *acpv2.PlanMarkdown:
		v.Entries = single(p.Content)
	default:
		return v, false
	}
	return v, true
}

// PlanIDOf returns the id of a plan, or "" if its kind is not known and it shows none.
func PlanIDOf(p acpv2.PlanUpdateContent) acpv2.PlanID {
	switch p := p.(type) {
	case *acpv2.PlanItems:
		return p.PlanID
	case *acpv2.PlanFile:
		return p.PlanID
	case *acpv2.PlanMarkdown:
		return p.PlanID
	case *acpv2.UnknownPlanUpdateContent:
		return p.PlanID
	}
	return ""
}

func entryFromV1(e acpv1.PlanEntry) acpv2.PlanEntry {
	return acpv2.PlanEntry{Content: e.Content, Priority: acpv2.PlanEntryPriority(e.Priority), Status: acpv2.PlanEntryStatus(e.Status),
		Meta: e.Meta, Unknown: e.Unknown}
}

func entriesToV1(list []acpv2.PlanEntry) []acpv1.PlanEntry {
	return some(list, func(e acpv2.PlanEntry) (acpv1.PlanEntry, bool) {
		v := acpv1.PlanEntry{Content: e.Content, Priority: acpv1.PlanEntryPriority(e.Priority), Status: acpv1.PlanEntryStatus(e.Status),
			Meta: e.Meta, Unknown: e.Unknown}
		if !v.Priority.Known() {
			v.Priority = acpv1.PlanEntryPriorityMedium
		}
		if !v.Status.Known() {
			v.Status = acpv1.PlanEntryStatusPending
		}
		return v, e.Status != acpv2.PlanEntryStatusCancelled
	})
}
