package devices

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/jsonrpc"
)

// FuzzMethods: whatever a device says in the parameters, it gets an answer or an error that is its own, and changes nothing
// about the devices of somebody else. "S" stands for a device of another user.
func FuzzMethods(f *testing.F) {
	methods := []string{ListMethod.Name, PairMethod.Name, RevokeMethod.Name}
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"id":"S"}`, `{"id":""}`, `{"id":3}`, `{"id":"\u0000"}`, `{"id":"S","decide":"approve"}`, `{"id":"S","decide":"x"}`,
		`{"role":"owner","name":"a"}`, `{"role":"king"}`, `{"name":"\u001b[2J"}`, `{"expiresIn":-1}`, `{"expiresIn":9223372036854775807}`,
		`{"agents":["a","a"],"sessions":["s"]}`, `{"agents":[""]}`, `{"sessions":null}`, `{"user":"me","role":"owner"}`,
	} {
		for i := range methods {
			f.Add(uint8(i), false, []byte(seed))
			f.Add(uint8(i), true, []byte(seed))
		}
	}
	dir := f.TempDir()
	store, err := identity.Open(context.Background(), dir, nil)
	if err != nil {
		f.Fatal(err)
	}
	add := func(name, user string, role identity.Role) identity.Device {
		d, _, err := store.Add(context.Background(), name, identity.Grant{User: user, Role: role})
		if err != nil {
			f.Fatal(err)
		}
		return d
	}
	theirs := add("theirs", "me", identity.Owner)
	var as identity.Principal
	m := &Methods{Store: store, Audit: audit.Open(dir), User: "me", Who: func(context.Context) identity.Principal { return as }}
	mux := new(jsonrpc.Mux)
	m.Register(mux)
	a, b := jsonrpc.Pipe()
	server, client := jsonrpc.NewConn(a, jsonrpc.Config{Mux: mux}), jsonrpc.NewConn(b, jsonrpc.Config{})
	f.Cleanup(func() {
		_ = errors.Join(client.Close(), server.Close())
		if err := store.Close(); err != nil {
			f.Error(err)
		}
	})
	mine := []identity.Device{add("jo-browser", "jo", identity.Owner), add("jo-phone", "jo", identity.Viewer)}
	f.Fuzz(func(t *testing.T, method uint8, viewer bool, data []byte) {
		if !json.Valid(data) {
			return
		}
		as = mine[0].Principal()
		if viewer {
			as = mine[1].Principal()
		}
		name := methods[int(method)%len(methods)]
		params := bytes.ReplaceAll(data, []byte(`"S"`), []byte(`"`+theirs.ID+`"`))
		var answer json.RawMessage
		err := client.Call(t.Context(), name, json.RawMessage(params), &answer)
		if e, ok := errors.AsType[*jsonrpc.Error](err); err != nil && (!ok || e.Code == jsonrpc.CodeInternalError) {
			t.Errorf("%s %s: %v", name, params, err)
		}
		if _, err := store.Device(t.Context(), theirs.ID); err != nil {
			t.Fatalf("%s %s has revoked a device of somebody else", name, params)
		}
		if bytes.Contains(answer, []byte(theirs.ID)) {
			t.Errorf("%s %s shows a device of somebody else", name, params)
		}
		if viewer && name == PairMethod.Name && err == nil {
			t.Errorf("%s: a viewer may pair devices", params)
		}
	})
}
