package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/remote"
)

// TestGuess: who guesses the token of the server is slowed down, also where nobody else is known; who has it is not.
func TestGuess(t *testing.T) {
	for _, others := range []bool{false, true} {
		cfg := Config{
			Listen: "127.0.0.1:0", Token: remote.Source{Env: "T", Lookup: func(string) (string, bool) { return "the-right-token-of-it", true }},
			Serve: func(context.Context, acp.Transport) error { return nil },
		}
		if others {
			cfg.Others = func(*http.Request) (string, bool, error) { return "", false, nil }
		}
		s, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		try := func(token string) int {
			r := httptest.NewRequest(http.MethodPost, remote.DefaultPath, nil)
			r.RemoteAddr, r.Host = "192.0.2.7:1234", strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), remote.DefaultPath)
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			w := httptest.NewRecorder()
			s.handle(w, r)
			return w.Code
		}
		refused := map[int]int{}
		for i := range 50 {
			refused[try(fmt.Sprintf("wrong-token-%d", i))]++
		}
		if refused[http.StatusUnauthorized] > 11 || refused[http.StatusTooManyRequests] < 39 {
			t.Errorf("others %t: %v", others, refused)
		}
		if got := try("the-right-token-of-it"); got == http.StatusTooManyRequests || got == http.StatusUnauthorized {
			t.Errorf("others %t: the right token gets %d", others, got)
		}
		if got := try(""); got != http.StatusUnauthorized {
			t.Errorf("others %t: no token gets %d", others, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWeakToken: a short token is refused where others can send it, and the user is warned otherwise; and of a file that others can
// read.
func TestWeakToken(t *testing.T) {
	open := func(listen, token string, mode os.FileMode) (notes string, err error) {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		cfg := Config{Listen: listen, Token: remote.Source{File: file}, Note: func(text string) { notes += text + "\n" }}
		if !strings.HasPrefix(listen, "127.") {
			cfg.TLS = new(tls.Config)
		}
		s, err := Open(cfg)
		if err == nil {
			_ = s.Close()
		}
		return notes, err
	}
	if notes, err := open("127.0.0.1:0", "a-token-of-many-characters", 0o600); err != nil || notes != "" {
		t.Errorf("%q, %v", notes, err)
	}
	if notes, err := open("127.0.0.1:0", "7gk", 0o600); err != nil || !strings.Contains(notes, "warning: the token has 3 characters") {
		t.Errorf("%q, %v", notes, err)
	}
	if _, err := open("0.0.0.0:0", "7gk", 0o600); err == nil || !strings.Contains(err.Error(), "the token has 3 characters") {
		t.Error(err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if notes, err := open("127.0.0.1:0", "a-token-of-many-characters", 0o644); err != nil || !strings.Contains(notes, "can be read by other users of this machine (mode 0644)") {
		t.Errorf("%q, %v", notes, err)
	}
}

// TestConnectionsOf: an address has a bounded number of connections; others, this machine and proxies are not affected.
func TestConnectionsOf(t *testing.T) {
	b := &bounded{gate: &identity.Gate{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, from: map[netip.Prefix]int{}}
	var open []func()
	for range maxFrom {
		done, ok := b.admit(netip.MustParseAddr("2001:db8::1"))
		if !ok {
			t.Fatal("too early")
		}
		open = append(open, done)
	}
	for addr, want := range map[string]bool{"2001:db8::2": false, "2001:db8:1::1": true, "192.0.2.1": true, "127.0.0.1": true, "10.1.2.3": true} {
		done, ok := b.admit(netip.MustParseAddr(addr))
		if ok != want {
			t.Errorf("%s: %t", addr, ok)
		}
		if ok {
			done()
		}
	}
	for _, done := range open {
		done()
		done()
	}
	if len(b.from) > 0 {
		t.Errorf("%v is left", b.from)
	}
}
