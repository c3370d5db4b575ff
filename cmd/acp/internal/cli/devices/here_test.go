package devices

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/identity"
)

// TestOnlyHere: for an address that only this machine reaches, there is no picture for a phone.
func TestOnlyHere(t *testing.T) {
	for at, here := range map[string]bool{
		"http://127.0.0.1:1/acp": true, "http://[::1]:1/acp": true, "http://localhost:1/acp": true,
		"https://example.com/acp": false, "https://192.0.2.1:1/acp": false,
	} {
		for _, page := range []bool{false, true} {
			checkShown(t, identity.Endpoint{URL: at, Page: page}, here)
		}
	}
}

// checkShown checks what a terminal shows of a gateway.
func checkShown(t *testing.T, at identity.Endpoint, here bool) {
	t.Helper()
	var out bytes.Buffer
	o := &Options{App: &app.App{Out: &out, OutTerminal: true}}
	if err := o.show(at, identity.Ticket{Ticket: "ticket", Code: "123456", Expires: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Contains(out.String(), "Only this machine can reach") && !strings.Contains(out.String(), "Scan this"); got != here {
		t.Errorf("%s: %v, want %v:\n%s", at.URL, got, here, out.String())
	}
	page := strings.TrimSuffix(at.URL, "acp")
	if strings.Contains(strings.ToLower(out.String()), "open "+page+" ") != at.Page {
		t.Errorf("the page %s: %s", page, out.String())
	}
}
