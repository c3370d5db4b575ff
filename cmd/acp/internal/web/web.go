// Package web serves the page of a gateway: its files, which are in the program, and what a browser needs to be one
// of the gateway's devices.
//
// The page is an ordinary client. It has nothing that is not sent through the same connection as of any other client,
// but for its credential: scripts must not see that, so the browser keeps it as a cookie, and [Page.Clients] makes a
// credential of the cookie again. docs/web.md describes the requests.
//
// # Security
//
// Web pages of others can send requests to this server, with the cookie. So the cookie counts for requests only of
// which the browser says that they are the page's own. The policy of the page lets it run no script, load no style and
// reach no address but its own. Its files are public: they are the same in each copy of the program.
package web

import (
	"log/slog"
	"net/http"

	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/web/assets"
	"github.com/goacp/acp/internal/webguard"
)

// PairPath is where a link leads that pairs a browser: to the page, which finds the ticket after #.
const PairPath = identity.PairPath

// A Config says for whom a page is.
type Config struct {
	// Gate knows the devices. It must not be nil, and must have a store.
	Gate *identity.Gate
	// Authenticate says whose request it is: see [acphttp.Server.Authenticate].
	Authenticate func(r *http.Request) (principal string, err error)
	// Owner is the principal of a client that has the token of the server, and User who that is.
	Owner, User string
	// Team is where browsers of a team log in; nil means that there is none. It is that of Gate.
	Team Team
	// Hosts and Origins are those of the [acphttp.Server].
	Hosts, Origins []string
	// Logger gets what goes wrong, without secrets; nil discards it.
	Logger *slog.Logger
}

// A Page is what browsers get of a gateway. Its methods may be called from any goroutine. It has no goroutines, and need
// not be closed.
type Page struct {
	cfg    Config
	assets map[string]*asset // by path, such as /app.js
}

// New returns the page of a gateway.
func New(cfg Config) *Page {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Page{cfg: cfg, assets: load(assets.Files)}
}

// policy lets the page run, load and reach what this server has, and nothing else. The policy acp of Trusted Types is
// for the URL of the service worker.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data:; connect-src 'self'; " +
	"manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types acp"

// permissions denies what the page does not use.
const permissions = "accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), geolocation=(), " +
	"gyroscope=(), hid=(), magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), screen-wake-lock=(), " +
	"serial=(), usb=(), xr-spatial-tracking=()"

// protect sets the headers that all answers have.
func protect(h http.Header) {
	webguard.Protect(h, policy)
	h.Set("Permissions-Policy", permissions)
}

// Others returns what serves the paths of the page. The rest, and pairing by programs, is for next.
func (p *Page) Others(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == PairPath && r.Method == http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		protect(w.Header())
		if !webguard.KnowsHost(r, p.cfg.Hosts) {
			// Another name was made to point here.
			http.Error(w, "this server has no such name", http.StatusMisdirectedRequest)
			return
		}
		switch r.URL.Path {
		case PairPath:
			p.file(w, r, p.assets["/"], "GET, HEAD, POST")
		case loginPath:
			p.login(w, r)
		case logoutPath:
			p.logout(w, r)
		case whoPath:
			p.whoami(w, r)
		case teamPath:
			p.toIssuer(w, r)
		case backPath:
			p.fromIssuer(w, r)
		default:
			p.file(w, r, p.assets[r.URL.Path], "GET, HEAD")
		}
	})
}

// file serves a file of the page; nil is one that there is not.
func (p *Page) file(w http.ResponseWriter, r *http.Request, a *asset, allow string) {
	switch {
	case !isVisit(r, a) && webguard.IsForeign(r, p.cfg.Origins):
		http.Error(w, "requests from other sites are refused", http.StatusForbidden)
	case a == nil:
		http.NotFound(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", allow)
		http.Error(w, "there is nothing to change here", http.StatusMethodNotAllowed)
	default:
		a.serve(w, r)
	}
}

// isVisit reports whether somebody has followed a link elsewhere to the page. The service worker of the page asks with no
// destination; no script can ask with this mode.
func isVisit(r *http.Request, a *asset) bool {
	h := r.Header
	dest := h.Get("Sec-Fetch-Dest")
	return a != nil && a.isDocument && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		h.Get("Origin") == "" && h.Get("Sec-Fetch-Mode") == "navigate" && (dest == "document" || dest == "empty")
}
