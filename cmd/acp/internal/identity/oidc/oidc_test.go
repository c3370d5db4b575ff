package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const issuerURL = "https://id.example"

// An issuer answers requests without a network.
type issuer struct {
	server oidctest.Server
	key    *ecdsa.PrivateKey
	asked  atomic.Int64 // requests
	fail   atomic.Bool
	large  atomic.Bool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	s := &issuer{}
	s.server.SetIssuer(issuerURL)
	s.server.Algorithms = []string{"ES256"}
	s.rotate(t, "one")
	return s
}

// rotate gives the issuer another key.
func (s *issuer) rotate(t *testing.T, id string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s.key = key
	s.server.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: id, Algorithm: "ES256"}}
}

func (s *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked.Add(1)
	if s.fail.Load() {
		return nil, errors.New("no route")
	}
	w := httptest.NewRecorder()
	if s.large.Load() {
		_, _ = w.WriteString(`{"keys":[` + strings.Repeat(" ", 2*maxDocument) + `]}`)
	} else {
		s.server.ServeHTTP(w, r)
	}
	return w.Result(), nil
}

// token returns a token that is good but for the claims that change it; nil removes one.
func (s *issuer) token(t *testing.T, key *ecdsa.PrivateKey, id string, change map[string]any) string {
	t.Helper()
	claims := map[string]any{
		"iss": issuerURL, "aud": "acp", "sub": "u1", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		"email": "jo@example.org", "groups": []string{"dev"},
	}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return oidctest.SignIDToken(key, id, "ES256", string(text))
}

func (s *issuer) verifier(t *testing.T, change func(*Config)) *Verifier {
	t.Helper()
	cfg := Config{
		Issuer: issuerURL, Audience: "acp", Client: &http.Client{Transport: s},
		Roles: map[string]identity.Role{"dev": identity.Prompter, "lead": identity.Approver, "guests": identity.Viewer},
	}
	if change != nil {
		change(&cfg)
	}
	v, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

type claims = map[string]any

// TestAuthenticate: whose token it is, and what is refused.
func TestAuthenticate(t *testing.T) {
	s := newIssuer(t)
	foreign := newIssuer(t)
	good := s.token(t, s.key, "one", nil)
	head, payload, _ := strings.Cut(good, ".")
	body, _, _ := strings.Cut(payload, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + body + "."
	shared := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"one"}`)) + "." + body + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 32))
	for _, tt := range []struct {
		name   string
		config func(*Config)
		token  string
		user   string
		role   identity.Role
		err    error
	}{
		{"good", nil, good, "oidc:u1", identity.Prompter, nil},
		{"several groups", nil, s.token(t, s.key, "one", claims{"groups": []string{"x", "guests", "lead", "dev"}}), "oidc:u1", identity.Approver, nil},
		{"one group", nil, s.token(t, s.key, "one", claims{"groups": "guests"}), "oidc:u1", identity.Viewer, nil},
		{"several audiences", nil, s.token(t, s.key, "one", claims{"aud": []string{"x", "acp"}}), "oidc:u1", identity.Prompter, nil},
		{"another claim", func(c *Config) { c.Groups = "roles" }, s.token(t, s.key, "one", claims{"roles": []string{"lead"}}), "oidc:u1", identity.Approver, nil},
		{"email", func(c *Config) { c.User = "email" }, s.token(t, s.key, "one", claims{"email_verified": true}), "oidc:jo@example.org", identity.Prompter, nil},
		{"email that was not verified", func(c *Config) { c.User = "email" }, good, "", 0, identity.ErrDenied},
		{"email that says so in words", func(c *Config) { c.User = "email" }, s.token(t, s.key, "one", claims{"email_verified": "true"}), "", 0, identity.ErrDenied},
		{"no name", func(c *Config) { c.User = "name" }, good, "", 0, identity.ErrDenied},
		{"a name for terminals", func(c *Config) { c.User = "name" }, s.token(t, s.key, "one", claims{"name": "\x1b[31m"}), "", 0, identity.ErrDenied},
		{"no group", nil, s.token(t, s.key, "one", claims{"groups": nil}), "", 0, identity.ErrDenied},
		{"group without a role", nil, s.token(t, s.key, "one", claims{"groups": []string{"x"}}), "", 0, identity.ErrDenied},
		{"groups of another kind", nil, s.token(t, s.key, "one", claims{"groups": claims{"dev": true}}), "", 0, identity.ErrDenied},
		{"another audience", nil, s.token(t, s.key, "one", claims{"aud": "x"}), "", 0, identity.ErrCredential},
		{"no audience", nil, s.token(t, s.key, "one", claims{"aud": nil}), "", 0, identity.ErrCredential},
		{"another issuer", nil, s.token(t, s.key, "one", claims{"iss": "https://evil.example"}), "", 0, identity.ErrCredential},
		{"expired", nil, s.token(t, s.key, "one", claims{"exp": time.Now().Add(-time.Minute).Unix()}), "", 0, identity.ErrCredential},
		{"no end", nil, s.token(t, s.key, "one", claims{"exp": nil}), "", 0, identity.ErrCredential},
		{"not yet", nil, s.token(t, s.key, "one", claims{"nbf": time.Now().Add(time.Hour).Unix()}), "", 0, identity.ErrCredential},
		{"another key", nil, s.token(t, foreign.key, "one", nil), "", 0, identity.ErrCredential},
		{"unknown key", nil, s.token(t, foreign.key, "two", nil), "", 0, identity.ErrCredential},
		{"another text", nil, head + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+issuerURL+`"}`)) + good[strings.LastIndex(good, "."):], "", 0, identity.ErrCredential},
		{"no signature", nil, none, "", 0, identity.ErrCredential},
		{"a shared secret", nil, shared, "", 0, identity.ErrCredential},
		{"opaque", nil, "opaque", "", 0, identity.ErrCredential},
		{"three dots", nil, good + ".x", "", 0, identity.ErrCredential},
		{"long", nil, strings.Repeat("x", maxToken) + "..", "", 0, identity.ErrCredential},
	} {
		p, err := s.verifier(t, tt.config).Authenticate(t.Context(), tt.token)
		if !errors.Is(err, tt.err) || p.User != tt.user || p.Role != tt.role {
			t.Errorf("%s: %+v, %v", tt.name, p, err)
		}
		if err == nil && (p.Kind != identity.KindTeam || p.Device != "u1" || p.Expires.IsZero() || p.Name != "") {
			t.Errorf("%s: %+v", tt.name, p)
		}
		if err != nil && strings.Contains(err.Error(), tt.token) {
			t.Errorf("%s: the error shows the token", tt.name)
		}
	}
}

// TestRefresh: the issuer is asked when its keys have changed, and not for each token that names a key
// that does not exist.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIssuer(t)
		v := s.verifier(t, nil)
		check := func(token string, want error, requests int64) {
			t.Helper()
			before := s.asked.Load()
			if _, err := v.Authenticate(t.Context(), token); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			if got := s.asked.Load() - before; got != requests {
				t.Errorf("%d requests, want %d", got, requests)
			}
		}
		check("opaque", identity.ErrCredential, 0)
		check(s.token(t, s.key, "one", nil), nil, 2) // the document and the keys
		for range 100 {
			check(s.token(t, s.key, "one", nil), nil, 0)
		}
		old := s.key
		s.rotate(t, "two")
		for range 100 { // the keys were read a moment ago
			check(s.token(t, s.key, "two", nil), identity.ErrCredential, 0)
		}
		time.Sleep(refreshEvery)
		check(s.token(t, s.key, "two", nil), nil, 1)
		time.Sleep(refreshEvery)
		check(s.token(t, old, "one", nil), identity.ErrCredential, 1) // a key that was withdrawn
		for range 100 {
			check(s.token(t, old, "three", nil), identity.ErrCredential, 0)
		}
		check(s.token(t, s.key, "two", nil), nil, 0)
	})
}

// TestDown: an issuer that is down is not a wrong token, is asked again later, and need not run first.
func TestDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIssuer(t)
		s.fail.Store(true)
		v := s.verifier(t, nil)
		token := s.token(t, s.key, "one", nil)
		var work sync.WaitGroup
		for range 20 {
			work.Go(func() {
				if _, err := v.Authenticate(t.Context(), token); err == nil || errors.Is(err, identity.ErrCredential) || errors.Is(err, identity.ErrDenied) {
					t.Error(err)
				}
			})
		}
		work.Wait()
		if n := s.asked.Load(); n != 1 {
			t.Errorf("%d requests", n)
		}
		s.fail.Store(false)
		if _, err := v.Authenticate(t.Context(), token); err == nil {
			t.Error("it was asked again at once")
		}
		time.Sleep(refreshEvery)
		if _, err := v.Authenticate(t.Context(), token); err != nil {
			t.Error(err)
		}
		// Known keys are enough while it is down; unknown ones are not known to be wrong.
		s.fail.Store(true)
		time.Sleep(refreshEvery)
		if _, err := v.Authenticate(t.Context(), token); err != nil {
			t.Error(err)
		}
		s.rotate(t, "two")
		if _, err := v.Authenticate(t.Context(), s.token(t, s.key, "two", nil)); err == nil || errors.Is(err, identity.ErrCredential) {
			t.Error(err)
		}
		// A client that gives up does not keep the others from their answer.
		s.fail.Store(false)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		late := s.verifier(t, nil)
		_, _ = late.Authenticate(gone, token)
		time.Sleep(refreshEvery)
		if _, err := late.Authenticate(t.Context(), s.token(t, s.key, "two", nil)); err != nil {
			t.Error(err)
		}
	})
}

// TestLarge: documents have a bound.
func TestLarge(t *testing.T) {
	s := newIssuer(t)
	s.large.Store(true)
	if _, err := s.verifier(t, nil).Authenticate(t.Context(), s.token(t, s.key, "one", nil)); err == nil {
		t.Error("a document of any size")
	}
	b := &bounded{next: s, last: map[string]time.Time{}}
	for i := range 2 * maxURLs {
		r := httptest.NewRequest("GET", issuerURL+"/"+strings.Repeat("x", i), nil)
		resp, err := b.RoundTrip(r)
		if (err != nil) != (i >= maxURLs) {
			t.Error(i, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
	}
}

func TestNew(t *testing.T) {
	good := Config{Issuer: issuerURL, Audience: "acp", Roles: map[string]identity.Role{"dev": identity.Viewer}}
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"good", func(*Config) {}, ""},
		{"local", func(c *Config) { c.Issuer = "http://127.0.0.1:1/realm" }, ""},
		{"plain", func(c *Config) { c.Issuer = "http://id.example" }, "https"},
		{"no issuer", func(c *Config) { c.Issuer = "" }, "not a URL"},
		{"secret", func(c *Config) { c.Issuer = "https://me:secret@id.example" }, "not a URL"},
		{"no audience", func(c *Config) { c.Audience = "" }, "audience"},
		{"no roles", func(c *Config) { c.Roles = nil }, "no group"},
		{"a role that does not exist", func(c *Config) { c.Roles = map[string]identity.Role{"x": 9} }, "no role"},
	} {
		cfg := good
		tt.change(&cfg)
		_, err := New(cfg)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestUnseen: a name with characters that are not seen, or that change how others are shown, is none.
func TestUnseen(t *testing.T) {
	v := &Verifier{cfg: Config{User: "sub"}}
	for name, ok := range map[string]bool{
		"ann": true, "Ann Öz": true, "李": true, "ann\u202e": false, "a\u200bnn": false, "a\u2066n": false, "a\u2028b": false, "\ufeffann": false, "a\tb": false, "a\u007f": false,
	} {
		raw, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.user(map[string]json.RawMessage{"sub": raw}); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

type answers struct{}

func (answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
}

// TestBoundedForgets: URLs that differ in a signature are one, and those that were asked long ago are forgotten.
func TestBoundedForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bounded{next: answers{}, last: make(map[string]time.Time)}
		get := func(url string) error {
			r, err := http.NewRequest(http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.RoundTrip(r)
			return err
		}
		for i := range 40 {
			if err := get(fmt.Sprintf("https://issuer.example/keys?sig=%d", i)); err != nil {
				t.Errorf("%d: %v", i, err)
			}
			time.Sleep(refreshEvery)
			if err := get(fmt.Sprintf("https://issuer.example/keys/%d", i)); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
		if len(b.last) > maxURLs {
			t.Errorf("%d", len(b.last))
		}
	})
}
