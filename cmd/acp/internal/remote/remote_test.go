package remote

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

func variables(kv ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(kv); i += 2 {
			if kv[i] == name {
				return kv[i+1], true
			}
		}
		return "", false
	}
}

func TestToken(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, tt := range []struct {
		name   string
		source Source
		want   string
		err    string
	}{
		{"none", Source{}, "", ""},
		{"variable", Source{Lookup: variables(EnvToken, " a ")}, "a", ""},
		{"empty variable", Source{Lookup: variables(EnvToken, "")}, "", ""},
		{"own variable", Source{Env: "MINE", Lookup: variables(EnvToken, "a", "MINE", "b")}, "b", ""},
		{"own variable that is not set", Source{Env: "MINE", Lookup: variables(EnvToken, "a")}, "", "the variable MINE, which has the token, is not set"},
		{"file", Source{File: file("f", "c\n"), Lookup: variables(EnvToken, "a")}, "c", ""},
		{"empty file", Source{File: file("e", "\n")}, "", "is empty"},
		{"lines", Source{File: file("l", "secret\nmore\n")}, "", "white space"},
		{"long file", Source{File: file("b", strings.Repeat("x", maxToken+1))}, "", "more than 4096 bytes"},
		{"longest file", Source{File: file("m", strings.Repeat("x", maxToken))}, strings.Repeat("x", maxToken), ""},
		{"not ASCII", Source{Lookup: variables(EnvToken, "secrét")}, "", "not ASCII"},
		{"directory", Source{File: dir}, "", "is a directory"},
		{"no file", Source{File: filepath.Join(dir, "none")}, "", "the token: "},
		{"two places", Source{File: "f", Env: "MINE"}, "", "one place only"},
		{"keyring", Source{Keyring: "service"}, "", "SERVICE/USER"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.source.Lookup == nil {
				tt.source.Lookup = variables()
			}
			got, err := tt.source.Token()
			switch {
			case tt.err == "" && (err != nil || got != tt.want):
				t.Errorf("%.20q, %v", got, err)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secr")):
				t.Errorf("%.20q, %v, want %s", got, err, tt.err)
			}
		})
	}
}

// TestLocal: the token of a server of the user's own is found by its address, and by localhost.
func TestLocal(t *testing.T) {
	state := t.TempDir()
	token, file, err := NewLocal(state, "127.0.0.1:7842")
	if err != nil || len(token) < 20 {
		t.Fatal(token, err)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	six, _, err := NewLocal(state, "[::1]:80")
	if err != nil || six == token {
		t.Fatal(six, err)
	}
	for raw, want := range map[string]string{
		"http://127.0.0.1:7842/acp": token, "ws://localhost:7842": token, "https://LOCALHOST:7842/x": token,
		"http://[::1]/acp": six, "http://localhost": six,
		"http://127.0.0.1:7843/acp": "", "http://agents.example:7842/acp": "", "unix:/s": "",
	} {
		way, err := Transport(raw, Options{Token: Source{Lookup: variables()}, State: state})
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		got := ""
		switch way := way.(type) {
		case *acphttp.Transport:
			got, err = way.Token(t.Context())
		case *acpws.Transport:
			got, err = way.Token(t.Context())
		}
		if got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", raw, got, err, want)
		}
	}
	if _, _, err := NewLocal("", "127.0.0.1:1"); err == nil {
		t.Error("without a directory there is a token")
	}
}

// TestInsecure: a token goes over an unencrypted connection to this machine only, unless the user insists.
func TestInsecure(t *testing.T) {
	source := Source{Lookup: variables(EnvToken, "a")}
	for raw, refused := range map[string]bool{
		"http://agents.example/acp": true, "ws://192.0.2.1/acp": true, "HTTP://agents.example": true, "http://localhost.example": true,
		"https://agents.example/acp": false, "wss://agents.example/acp": false,
		"http://localhost:1": false, "ws://127.0.0.2:1": false, "http://[::1]:1": false, "unix:/s": false,
	} {
		if _, err := Transport(raw, Options{Token: source}); (err != nil) != refused {
			t.Errorf("%s: %v", raw, err)
		}
		if _, err := Transport(raw, Options{Token: source, Insecure: true}); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		if _, err := Transport(raw, Options{Token: Source{Lookup: variables()}}); err != nil {
			t.Errorf("%s without a token: %v", raw, err)
		}
	}
}

func TestExplain(t *testing.T) {
	status := func(code int, text string) error {
		return fmt.Errorf("initialize: %w", &acphttp.StatusError{Status: code, Text: text})
	}
	for _, tt := range []struct {
		err  error
		code exitcode.Code
		want string
	}{
		{status(401, "the token is wrong\n"), exitcode.Auth, "far requires a token: the token is wrong. Set ACP_TOKEN"},
		{status(401, "<html>no"), exitcode.Auth, "far requires a token: unauthorized. "},
		{status(421, ""), exitcode.Protocol, "start it with --host"},
		{status(404, ""), exitcode.Protocol, "far refuses the connection: HTTP status 404, not found; is an agent served at this address?"},
		{status(503, "too many\x1b[31m\nx"), exitcode.Protocol, "far refuses the connection: HTTP status 503, too many"},
		{fmt.Errorf("a: %w", http.ErrSchemeMismatch), exitcode.Agent, "far does not use TLS: its URL begins with http:// or ws://"},
		{fmt.Errorf("a: %w", tls.RecordHeaderError{RecordHeader: [5]byte([]byte("HTTP/"))}), exitcode.Agent, "far does not use TLS: its URL begins with http:// or ws://"},
		{&acphttp.BrokenError{Err: io.ErrUnexpectedEOF}, exitcode.Agent, "the connection to far broke: unexpected EOF"},
		{fmt.Errorf("a: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), exitcode.Agent, "cannot connect to far: dial: refused"},
	} {
		err := Explain("far", tt.err)
		if exitcode.Of(err) != tt.code || !strings.HasPrefix(err.Error(), tt.want) && !strings.HasSuffix(err.Error(), tt.want) || !errors.Is(err, errors.Unwrap(err)) || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%v: %v, want %s", tt.err, err, tt.want)
		}
	}
	if err := Explain("far", io.EOF); err != nil {
		t.Errorf("%v", err)
	}
}
