package web

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/identity"
)

// Paths of the requests about who a browser is.
const (
	loginPath  = "/login"
	logoutPath = "/logout"
	whoPath    = "/whoami"
)

// Lifetime is how long the credential of a browser is valid that has come with the token of the server, or by the link
// that the server has printed.
const Lifetime = 30 * 24 * time.Hour

const (
	maxBody  = 4 << 10          // of a request, in bytes
	bodyTime = 10 * time.Second // for it to arrive
)

// A loginRequest is the body of POST /login: a ticket, a code, both, or the token of the server. Secret is chosen by
// the page, and is the same each time it asks about a ticket: see [identity.Claim].
type loginRequest struct {
	Ticket string `json:"ticket,omitempty"`
	Code   string `json:"code,omitempty"`
	Secret string `json:"secret,omitempty"`
	Token  string `json:"token,omitempty"`
	Name   string `json:"name,omitempty"` // of the device; "" is that of the browser
}

// An answer is the body of all answers: who a browser is, "waiting", or what went wrong.
type answer struct {
	User    string        `json:"user,omitempty"`
	Device  string        `json:"device,omitempty"` // its id; "" if the client is none
	Name    string        `json:"name,omitempty"`   // of the device
	Role    identity.Role `json:"role,omitempty"`
	Expires time.Time     `json:"expires,omitzero"` // zero means never
	State   string        `json:"state,omitempty"`
	Error   string        `json:"error,omitempty"`
	Team    string        `json:"team,omitempty"` // the issuer that has let a browser in, or where one that is nobody can log in
}

// say sends an answer, or why there is none.
func (p *Page) say(w http.ResponseWriter, a answer, err error) {
	status := http.StatusOK
	if err != nil {
		said, ok := errors.AsType[*acphttp.StatusError](err)
		if !ok {
			said = &acphttp.StatusError{Status: http.StatusUnauthorized, Text: "not logged in"}
		}
		if said.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(int64((said.RetryAfter+time.Second-1)/time.Second), 10))
		}
		status, a = said.Status, answer{Error: said.Text}
		if p.cfg.Team != nil && status == http.StatusUnauthorized {
			a.Team = p.cfg.Team.Name()
		}
		if status == http.StatusAccepted {
			a = answer{State: "waiting"}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a)
}

// post refuses what is not a POST of the page.
func (p *Page) post(w http.ResponseWriter, r *http.Request) error {
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return &acphttp.StatusError{Status: http.StatusMethodNotAllowed, Text: "method not allowed"}
	case !p.isOwn(r):
		return errForeign
	}
	return nil
}

// login makes a browser a device. It takes the place of the device that the browser was.
func (p *Page) login(w http.ResponseWriter, r *http.Request) {
	a, err := p.enter(w, r)
	p.say(w, a, err)
}

func (p *Page) enter(w http.ResponseWriter, r *http.Request) (answer, error) {
	if err := p.post(w, r); err != nil {
		return answer{}, err
	}
	req, err := readLogin(w, r)
	if err != nil {
		return answer{}, err
	}
	if req.Name == "" {
		req.Name = browser(r.UserAgent())
	}
	gate := p.cfg.Gate
	var d identity.Device
	var credential string
	if req.Token != "" {
		grant := identity.Grant{User: p.cfg.User, Role: identity.Owner, Lifetime: Lifetime}
		d, credential, err = gate.Enrol(r, req.Token, func(token string) bool { return p.isOwner(r, token) }, req.Name, grant)
	} else {
		d, credential, err = gate.Redeem(r, identity.Claim{Ticket: req.Ticket, Code: req.Code, Secret: req.Secret, Name: req.Name})
	}
	if err != nil {
		return answer{}, err
	}
	if c := p.cookie(r); c != nil {
		p.leave(r, c.Value, "the browser is "+d.Name+" now")
	}
	p.keep(w, r, credential, d.Expires)
	return answer{User: d.User, Device: d.ID, Name: d.Name, Role: d.Role, Expires: d.Expires}, nil
}

// readLogin returns what a browser has sent.
func readLogin(w http.ResponseWriter, r *http.Request) (req loginRequest, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return req, &acphttp.StatusError{Status: http.StatusUnsupportedMediaType, Text: "the content type must be application/json"}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // not everything has one
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return req, &acphttp.StatusError{Status: http.StatusRequestEntityTooLarge, Text: "the request is too large"}
	}
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if proofs := req.Ticket != "" || req.Code != ""; err != nil || proofs == (req.Token != "") {
		return loginRequest{}, &acphttp.StatusError{Status: http.StatusBadRequest, Text: "a request to log in has a ticket, a code, or the token of the server"}
	}
	return req, nil
}

// isOwner reports whether a token is that of the server.
func (p *Page) isOwner(r *http.Request, token string) bool {
	if identity.IsCredential(token) {
		return false
	}
	principal, err := p.cfg.Authenticate(asBearer(r, token))
	return err == nil && principal == p.cfg.Owner
}

// whoami says who a browser is, and lets it be so for longer if its credential lasts.
func (p *Page) whoami(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		p.say(w, answer{}, &acphttp.StatusError{Status: http.StatusMethodNotAllowed, Text: "method not allowed"})
		return
	}
	known, c, refused := p.withToken(r)
	if refused != nil {
		p.say(w, answer{}, refused)
		return
	}
	a, err := p.account(known)
	if c != nil && err == nil && a.Device != "" {
		p.keep(w, r, c.Value, a.Expires)
	}
	if c != nil && isGone(err) {
		setCookie(w, c.Name, "", -1)
	}
	p.say(w, a, err)
}

// isGone reports whether an error says that a credential is worth nothing any more.
func isGone(err error) bool {
	said, ok := errors.AsType[*acphttp.StatusError](err)
	return ok && said.Status == http.StatusUnauthorized
}

// account returns whose request it is.
func (p *Page) account(r *http.Request) (answer, error) {
	principal, err := p.cfg.Authenticate(r)
	if err != nil {
		return answer{}, err
	}
	if principal == "" || principal == p.cfg.Owner {
		return answer{User: p.cfg.User, Role: identity.Owner}, nil
	}
	who, err := identity.ParseKey(principal)
	if err != nil || who.Kind != identity.KindDevice {
		a := answer{User: who.User, Name: who.Name, Role: who.Role}
		if who.Kind == identity.KindTeam && p.cfg.Team != nil {
			a.Team = p.cfg.Team.Name()
		}
		return a, err
	}
	d, err := p.cfg.Gate.Store.Device(r.Context(), who.Device)
	if errors.Is(err, identity.ErrNotFound) { // it was revoked just now
		err = &acphttp.StatusError{Status: http.StatusUnauthorized, Text: identity.ErrCredential.Error()}
	}
	return answer{User: d.User, Device: d.ID, Name: d.Name, Role: d.Role, Expires: d.Expires}, err
}

// logout revokes the device that a browser is, and has the browser forget everything that it has of this server. Cookies
// are not among that: Clear-Site-Data removes those of all ports and of all hosts of the domain.
func (p *Page) logout(w http.ResponseWriter, r *http.Request) {
	if err := p.post(w, r); err != nil {
		p.say(w, answer{}, err)
		return
	}
	w.Header().Set("Clear-Site-Data", `"cache", "storage"`)
	c := p.cookie(r)
	if c == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	setCookie(w, c.Name, "", -1)
	who, err := p.whose(r, c)
	if err == nil {
		err = p.cfg.Gate.Leave(r.Context(), who, "logged out")
	}
	if err != nil && !errors.Is(err, identity.ErrCredential) {
		p.cfg.Logger.Error("web: a browser that has left was not revoked", "error", err)
		p.say(w, answer{}, &acphttp.StatusError{Status: http.StatusServiceUnavailable, Text: "this browser has forgotten everything, but its device could not be revoked: do that elsewhere"})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// whose returns whose credential a cookie has.
func (p *Page) whose(r *http.Request, c *http.Cookie) (identity.Principal, error) {
	if identity.IsCredential(c.Value) {
		return p.cfg.Gate.Store.Authenticate(r.Context(), c.Value)
	}
	key, err := p.cfg.Authenticate(asBearer(r, c.Value))
	if err != nil {
		return identity.Principal{}, identity.ErrCredential // it ends by itself
	}
	return identity.ParseKey(key)
}

// browser returns a name for a browser, of what it says of itself.
func browser(agent string) string {
	name, system := "browser", ""
	for _, known := range [][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}} {
		if strings.Contains(agent, known[0]) {
			name = known[1]
			break
		}
	}
	for _, known := range [][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"Macintosh", "Mac"}, {"CrOS", "Chromebook"}, {"Linux", "Linux"}} {
		if strings.Contains(agent, known[0]) {
			system = " on " + known[1]
			break
		}
	}
	return name + system
}
