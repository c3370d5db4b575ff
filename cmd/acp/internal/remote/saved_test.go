package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// TestSaved: what a gateway gave is used for its host, port and scheme, and for nothing else.
func TestSaved(t *testing.T) {
	state := t.TempDir()
	o := Options{Token: Source{Lookup: variables()}, State: state}
	for raw, token := range map[string]string{"https://Gateway.example/acp": "tls", "http://127.0.0.1:7842": "local", "wss://[2001:db8::1]:8443": "six"} {
		if err := Save(state, raw, Saved{Token: token}); err != nil {
			t.Fatal(err)
		}
	}
	for raw, want := range map[string]string{
		"https://gateway.example/acp": "tls", "wss://gateway.example:443/other": "tls", "https://GATEWAY.example": "tls",
		"http://gateway.example/acp": "", "ws://gateway.example:443": "", "https://gateway.example:8443": "", "https://other.example": "",
		"http://127.0.0.1:7842/acp": "local", "ws://127.0.0.1:7842/acp": "local", "https://127.0.0.1:7842": "", "https://[2001:db8::1]:8443/acp": "six", "unix:/s": "",
	} {
		if got, _, err := Find(raw, o); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", raw, got, err, want)
		}
	}
	// What is set counts more, and so does what a server of the user's own has left.
	set := Options{Token: Source{Lookup: variables(EnvToken, "set")}, State: state}
	if got, _, err := Find("https://gateway.example", set); got != "set" || err != nil {
		t.Error(got, err)
	}
	left, _, err := NewLocal(state, "127.0.0.1:7842")
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := Find("http://127.0.0.1:7842", o); got != left || err != nil {
		t.Error(got, err)
	}
	files, err := filepath.Glob(filepath.Join(state, "joined", "*"))
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Error(info.Mode(), err)
		}
	}
	// It can be replaced and forgotten.
	if err := Save(state, "wss://gateway.example", Saved{Token: "new"}); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := Find("https://gateway.example", o); got != "new" {
		t.Error(got)
	}
	for _, want := range []bool{true, false} {
		if ok, err := Forget(state, "https://gateway.example/x"); ok != want || err != nil {
			t.Error(ok, err)
		}
	}
	if got, _, _ := Find("https://gateway.example", o); got != "" {
		t.Error(got)
	}
	// A file that is damaged is an error that does not show it.
	for _, text := range []string{"secret", `{}`, `{"token":"secret\u001b"}`, `{"token":"a","fingerprint":"secret"}`, strings.Repeat(" ", maxSaved) + `{"token":"secret"}`} {
		for _, file := range files {
			if _, err := os.Stat(file); err == nil {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got, _, err := Find("wss://[2001:db8::1]:8443", o); got != "" || err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "join it again") {
			t.Errorf("%.20q: %q, %v", text, got, err)
		}
	}
	for _, bad := range []func() error{
		func() error { return Save("", "https://a", Saved{Token: "x"}) },
		func() error { return Save(state, "https://a", Saved{}) },
		func() error { return Save(state, "https://a", Saved{Token: "x", Fingerprint: "ff"}) },
		func() error { return Save(state, "https://me:secret@a", Saved{Token: "x"}) },
	} {
		if err := bad(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	}
}

// TestPinned: a gateway whose certificate is its own is used over HTTP and WebSocket, and another one in
// its place is not.
func TestPinned(t *testing.T) {
	agent := &acp.Agent{Prompt: func(context.Context, *acp.Turn) (acp.StopReason, error) { return "", nil }}
	agents := &acphttp.Server{Serve: agent.Serve, Upgrade: acpws.Upgrader{}, Logger: slog.New(slog.DiscardHandler)}
	web := httptest.NewUnstartedServer(agents)
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.EnableHTTP2 = true
	web.StartTLS()
	defer web.Close()
	defer func() { _ = agents.Close(context.Background()) }()
	sum := sha256.Sum256(web.Certificate().Raw)
	pin := hex.EncodeToString(sum[:])
	for _, tt := range []struct {
		name, pin string
		want      error
	}{
		{"right", pin, nil}, {"with colons", pin[:2] + ":" + strings.ToUpper(pin[2:]), nil}, {"another", strings.Repeat("0", 64), ErrFingerprint},
	} {
		for _, scheme := range []string{"https", "wss"} {
			state := t.TempDir()
			raw := scheme + strings.TrimPrefix(web.URL, "https")
			if err := Save(state, raw, Saved{Token: "x", Fingerprint: tt.pin}); err != nil {
				t.Fatal(err)
			}
			way, err := Transport(raw, Options{Token: Source{Lookup: variables()}, State: state})
			if err != nil {
				t.Fatal(err)
			}
			conn, err := new(acp.Client).Connect(t.Context(), way)
			if !errors.Is(err, tt.want) {
				t.Errorf("%s, %s: %v", tt.name, scheme, err)
			}
			if err == nil {
				_ = conn.Close()
			} else if said := Explain("far", err); exitcode.Of(said) != exitcode.Agent || !strings.Contains(said.Error(), "another certificate") {
				t.Errorf("%v", said)
			}
		}
	}
	if _, err := PinnedClient("x"); err == nil {
		t.Error("a fingerprint")
	}
	client, err := PinnedClient("")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(web.URL)
	if err == nil {
		_ = resp.Body.Close()
		t.Error("a certificate for which nobody vouches")
	}
	client.CloseIdleConnections()
}
