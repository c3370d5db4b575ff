package acphttp

import (
	"net/http"
	"slices"

	"github.com/goacp/acp/internal/webguard"
)

// guard refuses what a web page of somebody else may have sent: requests to a name
// that is not the server's, and those of other origins. It runs before anything else
// looks at a request.
func (s *Server) guard(w http.ResponseWriter, r *http.Request) error {
	switch {
	case !webguard.KnowsHost(r, s.Hosts):
		return status(http.StatusMisdirectedRequest, "unknown host")
	case webguard.IsForeign(r, s.Origins):
		return status(http.StatusForbidden, "foreign origin")
	}
	origin := r.Header.Get("Origin")
	if !slices.Contains(s.Origins, origin) || len(r.Header.Values("Origin")) == 0 {
		return nil
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", HeaderConnectionID+", "+HeaderMessage+", "+headerCursor+", Retry-After")
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
		h.Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type, Last-Event-ID, "+
			HeaderConnectionID+", "+HeaderSessionID+", "+HeaderMessage)
		return status(http.StatusNoContent, "")
	}
	return nil
}
