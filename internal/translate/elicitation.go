package translate

import (
	"encoding/json"
	"maps"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/wire"
)

// ElicitationFromV1 converts a request for input. A form with a list of no
// choices, which nobody could answer, and one that belongs to the request null
// are errors that wrap [errors.ErrUnsupported]: version 2 does not allow them.
func ElicitationFromV1(r acpv1.CreateElicitationRequest) (acpv2.CreateElicitationRequest, error) {
	if nullScope(r.Mode) {
		return acpv2.CreateElicitationRequest{}, unsupported("an elicitation for the request null")
	}
	v := acpv2.CreateElicitationRequest{Message: r.Message, Meta: r.Meta, Unknown: r.Unknown}
	switch m := r.Mode.(type) {
	case *acpv1.ElicitationFormMode:
		schema, err := FormFromV1(m.RequestedSchema)
		if err != nil {
			return acpv2.CreateElicitationRequest{}, err
		}
		v.Mode = &acpv2.ElicitationFormMode{RequestedSchema: schema, Scope: scopeFromV1(m.Scope)}
	case *acpv1.ElicitationURLMode:
		v.Mode = &acpv2.ElicitationURLMode{ElicitationID: acpv2.ElicitationID(m.ElicitationID), URL: m.URL, Scope: scopeFromV1(m.Scope)}
	case *acpv1.UnknownElicitationMode:
		// Version 2 allows one scope only; the session is the one that counts (S77).
		raw := m.Raw
		if _, ok := m.Scope.(*acpv1.ElicitationSessionScope); ok {
			raw = without(raw, "requestId")
		}
		v.Mode = &acpv2.UnknownElicitationMode{Type: m.Type, Scope: scopeFromV1(m.Scope), Raw: raw}
	}
	// The scope that does not count is an unknown member in version 1.
	v.Unknown = without(v.Unknown, "sessionId", "requestId")
	return v, nil
}

// ElicitationToV1 converts a request for input.
func ElicitationToV1(r acpv2.CreateElicitationRequest) acpv1.CreateElicitationRequest {
	v := acpv1.CreateElicitationRequest{Message: r.Message, Meta: r.Meta, Unknown: r.Unknown}
	switch m := r.Mode.(type) {
	case *acpv2.ElicitationFormMode:
		v.Mode = &acpv1.ElicitationFormMode{RequestedSchema: FormToV1(m.RequestedSchema), Scope: scopeToV1(m.Scope)}
	case *acpv2.ElicitationURLMode:
		v.Mode = &acpv1.ElicitationURLMode{ElicitationID: acpv1.ElicitationID(m.ElicitationID), URL: m.URL, Scope: scopeToV1(m.Scope)}
	case *acpv2.UnknownElicitationMode:
		v.Mode = &acpv1.UnknownElicitationMode{Type: m.Type, Scope: scopeToV1(m.Scope), Raw: m.Raw}
	}
	return v
}

func nullScope(m acpv1.ElicitationMode) bool {
	var s acpv1.ElicitationScope
	switch m := m.(type) {
	case *acpv1.ElicitationFormMode:
		s = m.Scope
	case *acpv1.ElicitationURLMode:
		s = m.Scope
	case *acpv1.UnknownElicitationMode:
		s = m.Scope
	}
	r, ok := s.(*acpv1.ElicitationRequestScope)
	return ok && r.RequestID.IsNull()
}

func scopeFromV1(s acpv1.ElicitationScope) acpv2.ElicitationScope {
	switch s := s.(type) {
	case *acpv1.ElicitationSessionScope:
		return &acpv2.ElicitationSessionScope{SessionID: acpv2.SessionID(s.SessionID), ToolCallID: acpv2.ToolCallID(s.ToolCallID)}
	case *acpv1.ElicitationRequestScope:
		return &acpv2.ElicitationRequestScope{RequestID: s.RequestID}
	}
	return nil
}

func scopeToV1(s acpv2.ElicitationScope) acpv1.ElicitationScope {
	switch s := s.(type) {
	case *acpv2.ElicitationSessionScope:
		return &acpv1.ElicitationSessionScope{SessionID: acpv1.SessionID(s.SessionID), ToolCallID: acpv1.ToolCallID(s.ToolCallID)}
	case *acpv2.ElicitationRequestScope:
		return &acpv1.ElicitationRequestScope{RequestID: s.RequestID}
	}
	return nil
}

// ElicitationResponseFromV1 converts the answer to a request for input.
func ElicitationResponseFromV1(r acpv1.CreateElicitationResponse) acpv2.CreateElicitationResponse {
	v := acpv2.CreateElicitationResponse{Meta: r.Meta, Unknown: r.Unknown}
	switch a := r.Action.(type) {
	case *acpv1.ElicitationAcceptAction:
		v.Action = &acpv2.ElicitationAcceptAction{Content: a.Content}
	case *acpv1.ElicitationDeclineAction:
		v.Action = &acpv2.ElicitationDeclineAction{}
	case *acpv1.ElicitationCancelAction:
		v.Action = &acpv2.ElicitationCancelAction{}
	case *acpv1.UnknownElicitationAction:
		v.Action = &acpv2.UnknownElicitationAction{Type: a.Type, Raw: a.Raw}
	}
	return v
}

// ElicitationResponseToV1 converts the answer to a request for input.
// Version 1 has strings, numbers, booleans and lists of strings as the values of
// a form; all others are left out.
func ElicitationResponseToV1(r acpv2.CreateElicitationResponse) acpv1.CreateElicitationResponse {
	v := acpv1.CreateElicitationResponse{Meta: r.Meta, Unknown: r.Unknown}
	switch a := r.Action.(type) {
	case *acpv2.ElicitationAcceptAction:
		v.Action = &acpv1.ElicitationAcceptAction{Content: answers(a.Content)}
	case *acpv2.ElicitationDeclineAction:
		v.Action = &acpv1.ElicitationDeclineAction{}
	case *acpv2.ElicitationCancelAction:
		v.Action = &acpv1.ElicitationCancelAction{}
	case *acpv2.UnknownElicitationAction:
		v.Action = &acpv1.UnknownElicitationAction{Type: a.Type, Raw: a.Raw}
	}
	return v
}

// ElicitationCompleteFromV1 converts the notification elicitation/complete.
func ElicitationCompleteFromV1(n acpv1.CompleteElicitationNotification) acpv2.CompleteElicitationNotification {
	return acpv2.CompleteElicitationNotification{ElicitationID: acpv2.ElicitationID(n.ElicitationID), Meta: n.Meta, Unknown: n.Unknown}
}

// ElicitationCompleteToV1 converts the notification elicitation/complete.
func ElicitationCompleteToV1(n acpv2.CompleteElicitationNotification) acpv1.CompleteElicitationNotification {
	return acpv1.CompleteElicitationNotification{ElicitationID: acpv1.ElicitationID(n.ElicitationID), Meta: n.Meta, Unknown: n.Unknown}
}

func answers(content map[string]json.RawMessage) map[string]json.RawMessage {
	content = maps.Clone(content)
	maps.DeleteFunc(content, func(_ string, value json.RawMessage) bool {
		_, err := wire.UnmarshalUnion(value, wire.FormItem)
		return err != nil
	})
	return content
}
