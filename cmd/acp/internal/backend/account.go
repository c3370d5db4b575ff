package backend

import (
	"context"
	"encoding/json"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// maxAccount bounds what is kept of each text about an account, in bytes.
const maxAccount = 200

// listen has a client take what the agent says unasked about who is logged in: auth/status_update, and
// _auth/status_update as Claude and codex push it. It is kept in memory only, and never logged.
func (h *Host) listen(c *acp.Client) {
	c.AuthStatus = func(_ context.Context, s *acp.AuthStatus) { h.statusChanged(s) }
	others := c.Extensions
	c.Extensions = func(mux *jsonrpc.Mux) {
		if others != nil {
			others(mux)
		}
		jsonrpc.Notification[json.RawMessage]{Name: "_auth/status_update"}.Handle(mux, func(_ context.Context, p *json.RawMessage) error {
			if s := pushedStatus(*p); s != nil {
				h.statusChanged(s)
			}
			return nil
		})
	}
}

// AuthStatus returns what the agent has said unasked about who is logged in, or nil if it has said nothing.
func (h *Host) AuthStatus() *acp.AuthStatus { return h.auth.Load() }

// statusChanged keeps a status, and says so if the agent needs a login from now on.
func (h *Host) statusChanged(s *acp.AuthStatus) {
	before := h.auth.Swap(s)
	if before != nil && before.State != acp.AuthStateUnauthenticated && s.State == acp.AuthStateUnauthenticated {
		h.note(Note{Kind: NoteLogin, Text: h.name() + " is no longer logged in"})
	}
}

// pushedStatus reads the params of _auth/status_update; nil if they are not understood.
func pushedStatus(params json.RawMessage) *acp.AuthStatus {
	var p struct {
		AuthStatus struct {
			Kind, Label, Detail string
			Account             json.RawMessage
		}
	}
	if json.Unmarshal(params, &p) != nil {
		return nil
	}
	s, of := new(acp.AuthStatus), p.AuthStatus
	switch of.Kind {
	case "account", "api_key", "gateway", "external":
		s.State = acp.AuthStateAuthenticated
	case "none":
		s.State = acp.AuthStateUnauthenticated
		return s
	default:
		return nil
	}
	var account struct{ Email, Organization string }
	_ = json.Unmarshal(of.Account, &account)
	label := safetext.Line(of.Label, maxAccount)
	if d := safetext.Line(of.Detail, maxAccount); d != "" {
		label += " (" + d + ")"
	}
	s.Accounts = []acp.AuthAccount{{
		Label: label, Email: safetext.Line(account.Email, maxAccount), Organization: safetext.Line(account.Organization, maxAccount),
	}}
	return s
}
