package backend

import (
	"encoding/json"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
)

// FuzzReadMeta: whatever a gateway, or somebody who says that it is one, has in _meta and in its notifications, is taken within
// bounds or refused, without a panic.
func FuzzReadMeta(f *testing.F) {
	for _, seed := range []string{
		`{"gateway":true,"begun":true}`, `{"ask":"ask_1","cursor":3}`, `null`, `[]`, `{"ask":3}`, `{"gateway":"x"}`,
		`{"terminal-auth":{"command":"a","args":["b c"],"env":{"X":"\u001b"}}}`,
		`{"sessionId":"s","here":[{"name":"ann","role":"owner"}],"more":3}`, `{"ask":"a","by":"x","option":"o","you":false}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, meta := range []json.RawMessage{data, []byte(`{"` + ownmeta.Key + `":` + string(data) + `}`)} {
			_ = introducedBy(meta)
			if d := Describe(&acp.AuthMethodAgent{Meta: meta}); len(d.Command()) > maxLogin {
				t.Errorf("a command line of %d bytes", len(d.Command()))
			}
			if name := askName(meta); len(name) > maxAskName {
				t.Errorf("a name of %d bytes", len(name))
			}
		}
		var p presence
		if json.Unmarshal(data, &p) == nil {
			_, _ = p.String(), p.role()
		}
		var d decided
		if json.Unmarshal(data, &d) == nil && d.outcome() == nil {
			t.Error("no outcome")
		}
	})
}
