package translate

import (
	"maps"
	"slices"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// AuthMethodsFromV1 converts the ways to sign in. One of an unknown kind that
// has no id or no name is left out, because version 2 requires both.
func AuthMethodsFromV1(list []acpv1.AuthMethod) []acpv2.AuthMethod {
	return some(list, func(m acpv1.AuthMethod) (acpv2.AuthMethod, bool) {
		switch m := m.(type) {
		case *acpv1.AuthMethodAgent:
			return &acpv2.AuthMethodAgent{MethodID: acpv2.AuthMethodID(m.ID), Name: m.Name, Description: m.Description,
				Meta: m.Meta, Unknown: without(m.Unknown, "methodId", "type")}, true
		case *acpv1.AuthMethodTerminal:
			return &acpv2.AuthMethodTerminal{MethodID: acpv2.AuthMethodID(m.ID), Name: m.Name, Description: m.Description, Args: m.Args,
				Env: variables(m.Env), Meta: m.Meta, Unknown: without(m.Unknown, "methodId")}, true
		case *acpv1.UnknownAuthMethod:
			raw, ok := rename(m.Raw, "id", "methodId")
			if !ok {
				return nil, false
			}
			v, err := acpv2.UnmarshalAuthMethod(raw)
			return v, err == nil
		}
		return nil, false
	})
}

// AuthMethodsToV1 converts the ways to sign in. Of a variable that is set twice
// the last value counts, and the metadata of variables is lost: version 1 has a
// map.
func AuthMethodsToV1(list []acpv2.AuthMethod) []acpv1.AuthMethod {
	return some(list, func(m acpv2.AuthMethod) (acpv1.AuthMethod, bool) {
		switch m := m.(type) {
		case *acpv2.AuthMethodAgent:
			return &acpv1.AuthMethodAgent{ID: acpv1.AuthMethodID(m.MethodID), Name: m.Name, Description: m.Description,
				Meta: m.Meta, Unknown: without(m.Unknown, "id")}, true
		case *acpv2.AuthMethodTerminal:
			v := &acpv1.AuthMethodTerminal{ID: acpv1.AuthMethodID(m.MethodID), Name: m.Name, Description: m.Description, Args: m.Args,
				Meta: m.Meta, Unknown: without(m.Unknown, "id")}
			if m.Env != nil {
				v.Env = make(map[string]string, len(m.Env))
				for _, e := range m.Env {
					v.Env[e.Name] = e.Value
				}
			}
			return v, true
		case *acpv2.UnknownAuthMethod:
			raw, ok := rename(m.Raw, "methodId", "id")
			return &acpv1.UnknownAuthMethod{Type: m.Type, Raw: raw}, ok // clients skip what they do not know, and agents offer others, such as env_var
		}
		return nil, false
	})
}

// variables lists the variables of a map, sorted so that the result does not
// depend on the map's order.
func variables(env map[string]string) []acpv2.EnvVariable {
	if env == nil {
		return nil
	}
	list := make([]acpv2.EnvVariable, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, acpv2.EnvVariable{Name: name, Value: env[name]})
	}
	return list
}

// AuthStatusFromV1 converts the answer to auth/status.
func AuthStatusFromV1(r acpv1.AuthStatusResponse) acpv2.AuthStatusResponse {
	return acpv2.AuthStatusResponse{State: acpv2.AuthState(r.State), Accounts: each(r.Accounts, accountFromV1), Meta: r.Meta, Unknown: r.Unknown}
}

// AuthStatusToV1 converts the answer to auth/status.
func AuthStatusToV1(r acpv2.AuthStatusResponse) acpv1.AuthStatusResponse {
	return acpv1.AuthStatusResponse{State: acpv1.AuthState(r.State), Accounts: each(r.Accounts, accountToV1), Meta: r.Meta, Unknown: r.Unknown}
}

// AuthStatusUpdateFromV1 converts the notification auth/status_update.
func AuthStatusUpdateFromV1(n acpv1.AuthStatusUpdateNotification) acpv2.AuthStatusUpdateNotification {
	return acpv2.AuthStatusUpdateNotification{State: acpv2.AuthState(n.State), Accounts: each(n.Accounts, accountFromV1), Meta: n.Meta, Unknown: n.Unknown}
}

// AuthStatusUpdateToV1 converts the notification auth/status_update.
func AuthStatusUpdateToV1(n acpv2.AuthStatusUpdateNotification) acpv1.AuthStatusUpdateNotification {
	return acpv1.AuthStatusUpdateNotification{State: acpv1.AuthState(n.State), Accounts: each(n.Accounts, accountToV1), Meta: n.Meta, Unknown: n.Unknown}
}

func accountFromV1(a acpv1.AuthAccount) acpv2.AuthAccount { return acpv2.AuthAccount(a) }

func accountToV1(a acpv2.AuthAccount) acpv1.AuthAccount { return acpv1.AuthAccount(a) }
