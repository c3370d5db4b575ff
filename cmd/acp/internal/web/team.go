package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/identity"
)

// Paths of a login at the issuer of a team, which sends the browser back to the second one.
const (
	teamPath = "/login/team"
	backPath = "/login/team/back"
)

// A Team logs browsers in at an issuer, as identity/oidc does.
type Team interface {
	identity.Team
	// Name is what people call the issuer.
	Name() string
	// Begin returns where a browser is sent, and what it keeps until it is sent to redirect with a state. Finish returns its
	// token and at.
	Begin(ctx context.Context, redirect, at string) (to, state, kept string, err error)
	Finish(ctx context.Context, kept string, query url.Values) (token, at string, err error)
}

// maxTeamToken bounds the tokens of a team that a browser keeps: browsers drop larger cookies.
const maxTeamToken = 3800

const (
	teamSuffix = "-login-"        // in the name of the cookie with what a browser keeps meanwhile: of each tab that logs in
	teamTime   = 10 * time.Minute // that it may take
)

// route is what is shown after a login: the ID of a session.
var route = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.~%-]{0,200}$`) })

// toIssuer sends a browser to the issuer, from the page: no other site can have it logged in.
func (p *Page) toIssuer(w http.ResponseWriter, r *http.Request) {
	if !p.isTeamLogin(w, r) {
		return
	}
	if !p.isOwn(r) {
		p.failed(w, errForeign)
		return
	}
	origin, at := r.URL.Query().Get("from"), r.URL.Query().Get("at")
	if own := p.isOwnOrigin(r, origin); !own && !p.isOutside(r, origin, true) || !route().MatchString(at) {
		p.failed(w, &acphttp.StatusError{Status: http.StatusBadRequest, Text: "this is no request to log in"})
		return
	}
	to, state, kept, err := p.cfg.Team.Begin(r.Context(), origin+backPath, at)
	if err != nil {
		p.cfg.Logger.Error("web: a login cannot begin", "error", err)
		p.failed(w, &acphttp.StatusError{Status: http.StatusServiceUnavailable, Text: p.cfg.Team.Name() + " cannot be asked now"})
		return
	}
	name := plainPrefix + port(r, "80")
	if strings.HasPrefix(origin, "https://") {
		name = hostPrefix + port(r, "443")
	}
	name += teamSuffix + nameOf(state)
	// The cookie of a device does not come with the browser as the issuer sends it back.
	if c := p.cookie(r); c != nil && identity.IsCredential(c.Value) {
		kept += "." + c.Value
	}
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: kept, Path: "/", MaxAge: int(teamTime / time.Second), HttpOnly: true,
		SameSite: http.SameSiteLaxMode, // or else it is not sent as the issuer sends the browser back
		Secure:   strings.HasPrefix(name, hostPrefix),
	})
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// fromIssuer takes a browser that the issuer sends back. Its token is kept as the cookie, for as long as it is valid.
func (p *Page) fromIssuer(w http.ResponseWriter, r *http.Request) {
	if !p.isTeamLogin(w, r) {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	names := []string{hostPrefix + port(r, "443")}
	if !p.cfg.Gate.Encrypted(r) {
		names = append(names, plainPrefix+port(r, "80"))
	}
	q := r.URL.Query()
	login := teamSuffix + nameOf(q.Get("state"))
	var name, kept string
	for _, n := range names {
		if all := r.CookiesNamed(n + login); len(all) == 1 && kept == "" {
			name, kept = n, all[0].Value
		}
	}
	kept, former, _ := strings.Cut(kept, ".")
	if kept == "" {
		p.failed(w, &acphttp.StatusError{Status: http.StatusForbidden, Text: "this browser has not begun the login, or it has taken too long"})
		return
	}
	http.SetCookie(w, &http.Cookie{Name: name + login, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: strings.HasPrefix(name, hostPrefix)})
	var at string
	who, token, err := p.cfg.Gate.Vouch(r, func(ctx context.Context) (token string, err error) {
		token, at, err = p.cfg.Team.Finish(ctx, kept, q)
		if len(token) > maxTeamToken {
			err = &acphttp.StatusError{Status: http.StatusForbidden, Text: fmt.Sprintf("the token of %s is too large for a browser: %d bytes, and %d at most; have it name fewer groups", p.cfg.Team.Name(), len(token), maxTeamToken)}
		}
		return token, err
	})
	if err != nil {
		p.failed(w, err)
		return
	}
	p.leave(r, former, "the browser is "+who.User+" now")
	setCookie(w, name, token, max(1, int(time.Until(who.Expires)/time.Second)))
	if at != "" {
		at = "#/" + at
	}
	// Browsers do not send the cookie with this, since another site has led here, but with what the page then asks for.
	http.Redirect(w, r, "/"+at, http.StatusSeeOther)
}

// isTeamLogin refuses requests that cannot be part of a login of a team.
func (p *Page) isTeamLogin(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case p.cfg.Team == nil:
		http.NotFound(w, r)
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	default:
		return true
	}
	return false
}

// failed says why there was no login, to people.
func (p *Page) failed(w http.ResponseWriter, err error) {
	said, ok := err.(*acphttp.StatusError)
	if !ok {
		said = &acphttp.StatusError{Status: http.StatusInternalServerError, Text: "the login failed"}
	}
	http.Error(w, said.Text+"\n\nOpen the page again to try once more.", said.Status)
}

// isOwnOrigin reports whether an origin is that of a request, as far as this server knows.
func (p *Page) isOwnOrigin(r *http.Request, origin string) bool {
	scheme := "http://"
	if p.isEncrypted(r) {
		scheme = "https://"
	}
	return origin == scheme+r.Host
}

// nameOf returns what the cookie of a login is called: browsers may have several tabs that log in.
func nameOf(state string) string {
	sum := sha256.Sum256([]byte(state))
	return hex.EncodeToString(sum[:8])
}

// leave revokes the device that a browser was, if it was one.
func (p *Page) leave(r *http.Request, credential, why string) {
	if !identity.IsCredential(credential) {
		return
	}
	former, err := p.cfg.Gate.Store.Authenticate(r.Context(), credential)
	if errors.Is(err, identity.ErrCredential) {
		return // it was revoked
	}
	if err == nil {
		err = p.cfg.Gate.Leave(r.Context(), former, why)
	}
	if err != nil {
		p.cfg.Logger.Error("web: a device was not revoked", "device", former.Name, "error", err)
	}
}
