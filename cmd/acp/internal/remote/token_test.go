package remote

import (
	"context"
	"os"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
)

// TestTokenAgain: the token that a server of this user leaves is looked for with each request, since a server that starts
// again makes another one; a token that the user has set stays.
func TestTokenAgain(t *testing.T) {
	state := t.TempDir()
	leave := func() string {
		token, _, err := NewLocal(state, "127.0.0.1:7842")
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	sends := func(way acp.Transport) string {
		var send func(context.Context) (string, error)
		switch way := way.(type) {
		case *acphttp.Transport:
			send = way.Token
		case *acpws.Transport:
			send = way.Token
		}
		token, err := send(t.Context())
		if err != nil {
			t.Error(err)
		}
		return token
	}
	t.Setenv(EnvToken, "")
	t.Setenv("OWN_TOKEN", "mine")
	for _, url := range []string{"http://127.0.0.1:7842/acp", "ws://localhost:7842/acp"} {
		first := leave()
		way, err := Transport(url, Options{State: state})
		if err != nil {
			t.Fatal(err)
		}
		set, err := Transport(url, Options{State: state, Token: Source{Env: "OWN_TOKEN"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := sends(way); got != first {
			t.Errorf("%s: %q, want %q", url, got, first)
		}
		second := leave()
		if got := sends(way); got != second || second == first {
			t.Errorf("%s after a restart: %q, want %q", url, got, second)
		}
		if err := os.Remove(LocalFile(state, "127.0.0.1:7842")); err != nil {
			t.Fatal(err)
		}
		if got := sends(way); got != second {
			t.Errorf("%s without a server: %q, want %q", url, got, second)
		}
		if got := sends(set); got != "mine" {
			t.Errorf("%s with a token of the user: %q", url, got)
		}
	}
}
