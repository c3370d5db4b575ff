package cert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// An ACME configures certificates of an authority such as Let's Encrypt. The authority connects to the
// gateway on port 443 (TLS-ALPN) or on port 80 (http-01).
type ACME struct {
	// Hosts are the names that certificates are for, at least one and at most 64, exactly as clients
	// write them. There is no certificate for any other name, so nobody can have the gateway ask for
	// one.
	Hosts []string
	// Dir keeps the account and the certificates, with their keys. It is made with mode 0700, and must
	// not be readable by others.
	Dir string
	// Email is where the authority writes to; "" means nowhere.
	Email string
	// Directory is the URL of the authority; "" means Let's Encrypt. Using it accepts its terms.
	Directory string
	// Client reaches the authority; nil means [http.DefaultClient].
	Client *http.Client
}

// A Manager gets certificates when they are needed for the first time, and renews them 30 days before
// they end. The timers of renewals last as long as the process. It is safe for concurrent use.
type Manager struct{ m *autocert.Manager }

// NewManager returns a manager. It does not reach the authority yet.
func NewManager(a ACME) (*Manager, error) {
	if len(a.Hosts) == 0 || len(a.Hosts) > maxHosts {
		return nil, fmt.Errorf("certificates of an authority are for 1 to %d hosts", maxHosts)
	}
	known := make(map[string]bool)
	for _, h := range a.Hosts {
		if h == "" || strings.ContainsAny(h, ":/*[] ") || !strings.Contains(strings.Trim(h, "."), ".") {
			return nil, fmt.Errorf("%q is not the name of a host for which an authority gives certificates", h)
		}
		known[strings.ToLower(h)] = true
	}
	if a.Dir == "" {
		return nil, errors.New("the directory for certificates is missing")
	}
	if err := os.MkdirAll(a.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("the directory for certificates: %w", err)
	}
	if err := os.Chmod(a.Dir, 0o700); err != nil { // it may have been there
		return nil, fmt.Errorf("the directory for certificates: %w", err)
	}
	return &Manager{&autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(a.Dir), Email: a.Email,
		Client: &acme.Client{DirectoryURL: a.Directory, HTTPClient: a.Client, UserAgent: "acp"},
		HostPolicy: func(_ context.Context, host string) error {
			if !known[strings.ToLower(host)] {
				return errors.New("the gateway has no certificate for this host")
			}
			return nil
		},
	}}, nil
}

// TLSConfig returns what a server needs, also for the authority's TLS-ALPN challenge.
func (m *Manager) TLSConfig() *tls.Config {
	c := m.m.TLSConfig() // h2, http/1.1 and acme-tls/1
	c.MinVersion = tls.VersionTLS12
	return c
}

// HTTPHandler is for port 80: it answers the authority's http-01 challenge and redirects everything else
// to HTTPS.
func (m *Manager) HTTPHandler() http.Handler { return m.m.HTTPHandler(nil) }
