package backend

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

func TestPushedStatus(t *testing.T) {
	for _, tt := range []struct{ params, want string }{
		{`{"authStatus":{"kind":"account","label":"Claude Max","account":{"plan":"max","email":"a@example.com","organization":"Org"}}}`, "authenticated: Claude Max, a@example.com, Org"},
		{`{"authStatus":{"kind":"api_key","label":"Anthropic API key","detail":"env"}}`, "authenticated: Anthropic API key (env), , "},
		{`{"authStatus":{"kind":"gateway","label":"x\u001b[31m\ny","account":"z"}}`, "authenticated: x y, , "},
		{`{"authStatus":{"kind":"external"}}`, "authenticated: , , "},
		{`{"authStatus":{"kind":"none","label":"Not logged in"}}`, "unauthenticated"},
		{`{"authStatus":{"kind":"new"}}`, ""}, {`{"authStatus":7}`, ""}, {`{}`, ""}, {`[]`, ""}, {`null`, ""},
	} {
		got := ""
		if s := pushedStatus(json.RawMessage(tt.params)); s != nil {
			got = string(s.State)
			for _, a := range s.Accounts {
				got += ": " + a.Label + ", " + a.Email + ", " + a.Organization
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.params, diff)
		}
	}
	if s := pushedStatus(json.RawMessage(`{"authStatus":{"kind":"account","label":"` + strings.Repeat("x", 1<<20) + `"}}`)); len(s.Accounts[0].Label) > maxAccount+3 {
		t.Errorf("%d bytes are kept", len(s.Accounts[0].Label))
	}
}

// TestStatusChanged: the user hears that the agent has been logged out, and nobody of the account.
func TestStatusChanged(t *testing.T) {
	var log bytes.Buffer
	var said notes
	h := &Host{cfg: Config{Agent: roster.Agent{Name: "a"}, Front: Frontend{Note: said.add}, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug - 4}))}}
	for _, kind := range []string{"none", "account", "account", "none", "none"} {
		h.statusChanged(pushedStatus(json.RawMessage(`{"authStatus":{"kind":"` + kind + `","label":"L","account":{"email":"a@example.com"}}}`)))
	}
	if diff := cmp.Diff([]string{"a is no longer logged in"}, said.text(NoteLogin)); diff != "" || log.Len() > 0 {
		t.Errorf("%s, logged: %s", diff, log.String())
	}
	if s := h.AuthStatus(); s == nil || s.State != acp.AuthStateUnauthenticated {
		t.Errorf("%+v", s)
	}
}

// notes collects what is noted.
type notes struct {
	mu   sync.Mutex
	list []Note
}

func (n *notes) add(x Note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, x)
}

func (n *notes) text(kind NoteKind) (lines []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, x := range n.list {
		if x.Kind == kind {
			lines = append(lines, x.Text)
		}
	}
	return lines
}
