package notify

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/cmd/acp/internal/push"
	"github.com/goacp/acp/jsonrpc"
)

// FuzzMethods: whatever a device says in the parameters, it gets an answer or an error that is its own, and only hosts that
// are push services are ever sent to.
func FuzzMethods(f *testing.F) {
	methods := []string{StateMethod.Name, SubscribeMethod.Name, UnsubscribeMethod.Name}
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"subscription":null}`, `{"subscription":{"endpoint":3}}`,
		`{"subscription":{"endpoint":"https://push.example/a","keys":{"p256dh":"BAAA","auth":"AAAA"}},"title":true}`,
		`{"subscription":{"endpoint":"https://push.example/a","keys":{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg=="}},"title":true}`,
		`{"subscription":{"endpoint":"https://push.example@evil.example/a","keys":{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"}}}`,
	} {
		for i := range methods {
			f.Add(uint8(i), []byte(seed))
		}
	}
	dir := f.TempDir()
	store, err := identity.Open(context.Background(), dir, nil)
	if err != nil {
		f.Fatal(err)
	}
	d, _, err := store.Add(context.Background(), "phone", identity.Grant{User: "ann", Role: identity.Viewer})
	if err != nil {
		f.Fatal(err)
	}
	key, err := push.NewKey()
	if err != nil {
		f.Fatal(err)
	}
	sender, err := push.NewSender(key, []string{"push.example"}, nil)
	if err != nil {
		f.Fatal(err)
	}
	n := New(Config{
		Store: store, Audit: audit.Open(dir), Sender: sender, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Who: func(context.Context) identity.Principal { return d.Principal() },
	})
	mux := new(jsonrpc.Mux)
	n.Register(mux)
	a, b := jsonrpc.Pipe()
	server, client := jsonrpc.NewConn(a, jsonrpc.Config{Mux: mux}), jsonrpc.NewConn(b, jsonrpc.Config{})
	f.Cleanup(func() {
		_ = errors.Join(client.Close(), server.Close())
		n.Close()
		if err := store.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, method uint8, params []byte) {
		if !json.Valid(params) {
			return
		}
		name := methods[int(method)%len(methods)]
		var state State
		err := client.Call(t.Context(), name, json.RawMessage(params), &state)
		if e, ok := errors.AsType[*jsonrpc.Error](err); err != nil && (!ok || e.Code == jsonrpc.CodeInternalError) {
			t.Errorf("%s %s: %v", name, params, err)
		}
		sub, lost := store.Subscription(t.Context(), d.ID)
		if u, wrong := url.Parse(sub.Endpoint); lost == nil && (wrong != nil || u.Scheme != "https" || u.Host != "push.example") {
			t.Errorf("%s %s: messages go to %s", name, params, sub.Endpoint)
		}
		if err == nil && state.On != (lost == nil) {
			t.Errorf("%s %s: %+v, %v", name, params, state, lost)
		}
	})
}
