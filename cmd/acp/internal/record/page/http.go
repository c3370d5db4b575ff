package page

import (
	"crypto/subtle"
	"io"
	"log"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/web/assets"
	"github.com/goacp/acp/internal/webguard"
)

// types are the media types of the assets; other files are not served.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// policy lets the page run, load and reach what this server has, and nothing else. Pictures and sounds of the conversation
// are in the page itself.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

func silent() *log.Logger { return log.New(io.Discard, "", 0) }

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /frame", s.frame)
	mux.HandleFunc("GET /session", s.session)
	mux.HandleFunc("GET /", s.asset)
	return s.guard(mux)
}

// guard refuses requests that do not come from the page, and visitors without the address.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.begin() {
			return
		}
		defer s.running.Done()
		h := w.Header()
		webguard.Protect(h, policy)
		switch {
		case !s.ours(r.Host):
			// Another name was made to point here.
			http.Error(w, "this server has no such name", http.StatusMisdirectedRequest)
			return
		case r.Header.Get("Origin") != "" && r.Header.Get("Origin") != "http://"+r.Host:
			http.Error(w, "requests from other sites are refused", http.StatusForbidden)
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "there is nothing to change here", http.StatusMethodNotAllowed)
			return
		}
		if token := r.URL.Query().Get("token"); token != "" && r.URL.Path == "/" {
			if !same(token, s.token) {
				s.refuse(w)
				return
			}
			// The page removes the token from its address; what it loads has the cookie. A redirect
			// would lose the cookie if the address was opened from another site.
			http.SetCookie(w, &s.cookie)
			next.ServeHTTP(w, r)
			return
		}
		if c, err := r.Cookie(s.cookie.Name); err != nil || !same(c.Value, s.cookie.Value) {
			s.refuse(w)
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
			http.Error(w, "requests from other sites are refused", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) refuse(w http.ResponseWriter) {
	http.Error(w, "acp: open the address that was printed, with its token", http.StatusForbidden)
}

// ours reports whether a host is this server under the address it listens on, or localhost.
func (s *Server) ours(host string) bool {
	if host == s.host {
		return true
	}
	_, port, _ := net.SplitHostPort(s.host)
	return host == net.JoinHostPort("localhost", port)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// asset serves a file of the page.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if name == "" {
		name = "tap.html"
	}
	data, err := assets.Read(name)
	kind, ok := types[path.Ext(name)]
	// What only the page of the gateway has is not served.
	isOurs := strings.HasPrefix(name, "tap.") || strings.HasPrefix(name, "chunk-") || name == "icon.svg"
	if err != nil || !ok || !isOurs {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Write(data)
}

// frame serves a whole record, of which the page has only the beginning.
func (s *Server) frame(w http.ResponseWriter, r *http.Request) {
	seq, err := strconv.ParseInt(r.URL.Query().Get("seq"), 10, 64)
	if err != nil {
		http.Error(w, "seq is the number of a row", http.StatusBadRequest)
		return
	}
	row := s.log.row(seq)
	if row == nil || row.full == nil {
		http.NotFound(w, r)
		return
	}
	// Nothing that a browser would show as more than text.
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(row.full)
}

// session serves the conversation of a session: a transcript, and the number of its changes.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	snapshot, changes := s.fold.transcript(r.URL.Query().Get("id"))
	if snapshot == nil {
		http.NotFound(w, r)
		return
	}
	data, err := snapshot.AppendJSON([]byte(`{"changes":` + strconv.FormatInt(changes, 10) + `,"transcript":`))
	if err != nil {
		http.Error(w, "the conversation cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(data, '}'))
}
