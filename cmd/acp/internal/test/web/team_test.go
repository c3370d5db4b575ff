//go:build unix

package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
)

// An issuer logs everybody in whom a browser sends, as one that knows them already.
type issuer struct {
	*httptest.Server
	tokens oidctest.Server
	key    *ecdsa.PrivateKey

	mu     sync.Mutex
	logins int
	asked  map[string]url.Values // by the codes
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &issuer{key: key, asked: make(map[string]url.Values)}
	s.tokens.Algorithms, s.tokens.PublicKeys = []string{"ES256"}, []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "one", Algorithm: "ES256"}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.tokens.SetIssuer(s.URL)
	t.Cleanup(s.Close)
	return s
}

func (s *issuer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/auth":
		s.logins++
		code := fmt.Sprint("code-", s.logins)
		s.asked[code] = r.URL.Query()
		http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+url.Values{"code": {code}, "state": {r.FormValue("state")}}.Encode(), http.StatusSeeOther)
	case "/token":
		asked := s.asked[r.FormValue("code")]
		delete(s.asked, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		w.Header().Set("Content-Type", "application/json")
		if asked == nil || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || r.FormValue("client_id") != "acp" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
			return
		}
		now := time.Now()
		token := oidctest.SignIDToken(s.key, "one", "ES256", fmt.Sprintf(`{"iss":%q,"aud":"acp","sub":"ann","nonce":%q,"exp":%d,"iat":%d,"groups":["dev"]}`, s.URL, asked.Get("nonce"), now.Add(time.Hour).Unix(), now.Unix()))
		_ = json.NewEncoder(w).Encode(map[string]string{"access_token": "x", "token_type": "Bearer", "id_token": token})
	default:
		s.tokens.ServeHTTP(w, r)
	}
}

func (s *issuer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// TestTeam: a member of a team logs in at the issuer, works, is logged in again without being asked when the token has
// ended, and is nobody after having logged out.
func TestTeam(t *testing.T) {
	long.Test(t)
	chromium.Need(t)
	s := newIssuer(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `[serve.isolation]
mode = "container"
container = ["env", "WORKSPACE={workspace}", "{command}"]
[serve.oidc]
issuer = %q
client = "acp"
[serve.groups.dev]
role = "approver"
directories = [%q]
`, s.URL, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newServer(t, "--config", config)
	w := newWire(t, r.address)
	tb := chromium.Open(t, "http://"+w.Addr().String()+"/")
	name := s.URL[len("http://"):]
	tb.Until(fmt.Sprintf(`document.querySelector(".login a.primary")?.textContent === "Log in with %s"`, name))
	tb.Click(".login a.primary")
	tb.Until(`document.body.innerText.includes("No sessions yet")`)
	tb.Press("n")
	tb.Until(`document.querySelector("dialog[open]")`)
	tb.Type("dialog input", dir)
	tb.Click("dialog button.primary")
	prompt(tb, "say hello")
	tb.Until(answers("hello"))
	var before string
	tb.Eval(`location.hash`, &before)

	tb.Do("Network.clearBrowserCookies", chromium.Object{}, nil) // it is valid for an hour
	w.cut(false)
	tb.Until(answers("hello") + fmt.Sprintf(` && location.hash === %q`, before))
	for s.count() < 2 {
		tb.Until(`document.querySelector(".talk")`)
	}
	prompt(tb, "say once more")
	tb.Until(answers("once more"))
	if n := s.count(); n != 2 {
		t.Errorf("%d logins", n)
	}

	tb.Eval(`void [...document.querySelectorAll("button")].find((b) => b.title.startsWith("Settings") || b.textContent === "⚙").click()`, nil)
	tb.Until(`[...document.querySelectorAll("dialog[open] button")].some((b) => b.textContent === "Log out")`)
	tb.Eval(`void [...document.querySelectorAll("dialog[open] button")].find((b) => b.textContent === "Log out").click()`, nil)
	tb.Until(`document.querySelector(".login a.primary")`)
	tb.Do("Page.reload", chromium.Object{}, nil)
	tb.Until(`document.querySelector(".login a.primary")`)
	if n := s.count(); n != 2 {
		t.Errorf("%d logins after the end", n)
	}
}
