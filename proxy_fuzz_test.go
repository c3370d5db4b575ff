package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// FuzzProxyEnvelope holds that params which are in an envelope come out of it as they are, and
// that a proxy reads its lane from them as encoding/json does.
func FuzzProxyEnvelope(f *testing.F) {
	f.Add("session/update", []byte(`{"sessionId":"s","update":{}}`))
	f.Add("mcp/message", []byte(` {"a":[{"sessionId":"x"}],"session\u0049d":"\ud83d\ude00\n","requestId":1}`))
	f.Add("", []byte(`null`))
	f.Fuzz(func(t *testing.T, method string, params []byte) {
		if !json.Valid(params) || !utf8.Valid(params) || !utf8.ValidString(method) || bytes.ContainsAny(params, "\r\n") {
			t.Skip()
		}
		raw := json.RawMessage(bytes.TrimSpace(params))
		text, err := (&proxyEnvelope{proxied{method: method, params: &raw, checked: true}}).AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		var p acpv2.ProxySuccessorRequest
		if err := p.UnmarshalJSON(text); err != nil {
			t.Skip() // nested too deeply
		}
		if p.Method != method || !bytes.Equal(p.Params, raw) {
			t.Errorf("%q %s came out as %q %s", method, raw, p.Method, p.Params)
		}
		var members []struct{ name, value string }
		d := json.NewDecoder(bytes.NewReader(raw))
		if tok, _ := d.Token(); tok == json.Delim('{') {
			for d.More() {
				key, _ := d.Token()
				var v any
				if d.Decode(&v) != nil {
					t.Skip()
				}
				text, _ := v.(string)
				members = append(members, struct{ name, value string }{key.(string), text})
			}
		}
		want := ""
		for _, m := range members {
			if m.name == "sessionId" { // the first one counts
				want = m.value
				break
			}
		}
		if got := string(memberOf(raw, "sessionId")); got != want {
			t.Errorf("the session of %s is %q, not %q", raw, got, want)
		}
		out, err := withMember(raw, "sessionId", json.RawMessage(`"new"`))
		switch {
		case len(raw) == 0 || raw[0] != '{':
			if err == nil {
				t.Errorf("%s became %s", raw, out)
			}
		case err != nil || string(memberOf(out, "sessionId")) != "new" || !json.Valid(out):
			t.Errorf("%s became %s, error %v", raw, out, err)
		}
	})
}

// FuzzProxyServe holds that a proxy survives any params of an envelope, and serves on.
func FuzzProxyServe(f *testing.F) {
	f.Add([]byte(`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[]}}}`))
	f.Add([]byte(`{"method":"mcp/message","params":{"serverId":"x"},"_meta":1}`))
	f.Add([]byte(`{"method":"session/request_permission","params":{"sessionId":"s","options":[]}}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		if !json.Valid(params) || bytes.ContainsAny(params, "\r\n") {
			t.Skip()
		}
		theirs, ours := jsonrpc.Pipe()
		p := &Proxy{
			Update: func(_ context.Context, _ *ProxySession, u Update) ([]Update, error) { return []Update{u}, nil },
			Permission: func(_ context.Context, q *ProxyPermission, _ func(context.Context) error) error {
				q.Decision = q.Request.Reject()
				return nil
			},
			Request: func(_ context.Context, m *ProxyMessage, _ func(context.Context) error) error { return nil },
		}
		done := make(chan error, 1)
		go func() { done <- p.Serve(context.Background(), Over(theirs)) }()
		peer := newProxyPeer(t, "conductor", ours)
		id := peer.call("proxy/initialize", proxyHelloV1)
		peer.answer(peer.expect("proxy/successor", ""), proxyWelcomeV1)
		peer.response(id, "")
		peer.notify("proxy/successor", string(params))
		asked := peer.call("proxy/successor", string(params))
		barrier := peer.call("_vendor/barrier", `{}`)
		for left := 2; left > 0; {
			if m := peer.read(); string(m.ID) == asked && m.Method == "" || string(m.ID) == barrier && m.Method == "" {
				left--
			}
		}
		_ = ours.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
