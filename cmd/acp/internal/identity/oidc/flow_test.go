package oidc

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/identity"
)

const backURL = "https://agents.example/login/team/back"

// A desk is an issuer at which people log in.
type desk struct {
	*issuer
	t         *testing.T
	challenge string // of the login
	nonce     string // of the token
	status    int    // of its answer
	asked     int    // for a token
	refuses   string // the code of its error; "" is invalid_grant
}

func (d *desk) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/token" {
		return d.issuer.RoundTrip(r)
	}
	d.asked++
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	q, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	id, secret, _ := r.BasicAuth()
	sum := sha256.Sum256([]byte(q.Get("code_verifier")))
	switch {
	case d.refuses != "":
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.WriteString(`{"error":"` + d.refuses + `","error_description":"` + strings.Repeat("x", 1000) + `"}`)
	case d.status != 0:
		w.WriteHeader(d.status)
		_, _ = w.WriteString(`{"error":"invalid_grant"}`)
	case q.Get("code") != "right" || q.Get("redirect_uri") != backURL || base64.RawURLEncoding.EncodeToString(sum[:]) != d.challenge || id != "acp" || secret != "hush":
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.WriteString(`{"error":"invalid_grant"}`)
	default:
		token := d.token(d.t, d.key, "one", claims{"nonce": d.nonce})
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": token})
	}
	return w.Result(), nil
}

// TestLogin: a browser that has begun a login gets the token of its user, once the issuer has sent it back; any other one
// does not, and nothing is asked of the issuer then.
func TestLogin(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(d *desk, kept *string, q url.Values)
		err    error
		asked  int
	}{
		{"good", nil, nil, 1},
		{"another browser", func(_ *desk, kept *string, _ url.Values) { *kept = "" }, identity.ErrCredential, 0},
		{"not what was kept", func(_ *desk, kept *string, _ url.Values) { *kept = "e30" }, identity.ErrCredential, 0},
		{"too much", func(_ *desk, kept *string, _ url.Values) { *kept += strings.Repeat("A", maxAttempt) }, identity.ErrCredential, 0},
		{"another login", func(_ *desk, _ *string, q url.Values) { q.Set("state", "x") }, identity.ErrCredential, 0},
		{"no state", func(_ *desk, _ *string, q url.Values) { q.Del("state") }, identity.ErrCredential, 0},
		{"refused", func(_ *desk, _ *string, q url.Values) { q.Set("error", "access_denied") }, identity.ErrDenied, 0},
		{"an error of another kind", func(_ *desk, _ *string, q url.Values) { q.Set("error", "\x1b[31m") }, identity.ErrDenied, 0},
		{"another code", func(_ *desk, _ *string, q url.Values) { q.Set("code", "wrong") }, identity.ErrCredential, 1},
		{"a code of somebody else", func(d *desk, _ *string, _ url.Values) { d.challenge = "x" }, identity.ErrCredential, 1},
		{"a token of another login", func(d *desk, _ *string, _ url.Values) { d.nonce = "x" }, identity.ErrCredential, 1},
		{"a gateway that the issuer does not know", func(d *desk, _ *string, _ url.Values) { d.refuses = "invalid_client" }, nil, 1},
		{"an issuer with trouble", func(d *desk, _ *string, _ url.Values) { d.status = 502 }, nil, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &desk{issuer: newIssuer(t), t: t}
			v := d.verifier(t, func(c *Config) { c.Client, c.Secret = &http.Client{Transport: d}, "hush" })
			to, _, kept, err := v.Begin(t.Context(), backURL, "s_1")
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(to)
			if err != nil {
				t.Fatal(err)
			}
			asked := u.Query()
			if u.Host != "id.example" || asked.Get("client_id") != "acp" || asked.Get("redirect_uri") != backURL || asked.Get("code_challenge_method") != "S256" || asked.Get("response_type") != "code" || asked.Get("scope") != "openid" {
				t.Errorf("%s", to)
			}
			if strings.Contains(to, "hush") {
				t.Error("the browser is sent the secret")
			}
			d.challenge, d.nonce = asked.Get("code_challenge"), asked.Get("nonce")
			q := url.Values{"code": {"right"}, "state": {asked.Get("state")}}
			if tt.change != nil {
				tt.change(d, &kept, q)
			}
			token, at, err := v.Finish(t.Context(), kept, q)
			if d.asked != tt.asked {
				t.Errorf("the issuer was asked %d times", d.asked)
			}
			if tt.name == "good" {
				if err != nil || at != "s_1" {
					t.Fatal(at, err)
				}
				if p, err := v.Authenticate(t.Context(), token); err != nil || p.User != "oidc:u1" {
					t.Error(p, err)
				}
				return
			}
			if err == nil || token != "" || tt.err != nil && !errors.Is(err, tt.err) || tt.err == nil && (errors.Is(err, identity.ErrCredential) || errors.Is(err, identity.ErrDenied)) {
				t.Errorf("%q, %v", token, err)
			}
			if err != nil && (strings.ContainsRune(err.Error(), '\x1b') || len(err.Error()) > 300 || strings.Contains(err.Error(), "%!")) {
				t.Errorf("%q", err)
			}
		})
	}
}

// TestLateLogin: a login has its time.
func TestLateLogin(t *testing.T) {
	d := &desk{issuer: newIssuer(t), t: t}
	synctest.Test(t, func(t *testing.T) {
		v := d.verifier(t, func(c *Config) { c.Client = &http.Client{Transport: d} })
		to, _, kept, err := v.Begin(t.Context(), backURL, "")
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(attemptTime + time.Second)
		if _, _, err := v.Finish(t.Context(), kept, url.Values{"code": {"right"}, "state": {u.Query().Get("state")}}); !errors.Is(err, identity.ErrCredential) {
			t.Error(err)
		}
	})
}

// FuzzFinish: whatever a browser has kept, and whatever it is sent back with, does not make this package panic, and is not
// a login.
func FuzzFinish(f *testing.F) {
	f.Add("e30", "state=&code=x")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"s":"a","n":"b","v":"c","r":"https://x","u":99999999999}`)), "state=a&code=x")
	f.Fuzz(func(t *testing.T, kept, query string) {
		d := &desk{issuer: newIssuer(t), t: t, status: 502}
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		if token, _, err := d.verifier(t, func(c *Config) { c.Client = &http.Client{Transport: d} }).Finish(t.Context(), kept, q); err == nil || token != "" {
			t.Error(token, err)
		}
	})
}
