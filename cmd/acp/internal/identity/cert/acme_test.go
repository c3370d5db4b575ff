package cert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp/internal/logtest"
)

// An authority is a small ACME server (RFC 8555) for one order. It does not check signatures of requests;
// it does look at the challenge of TLS-ALPN (RFC 8737).
type authority struct {
	t       *testing.T
	url     string
	gateway string // where the challenge is answered
	key     *ecdsa.PrivateKey
	root    *x509.Certificate

	mu    sync.Mutex
	valid bool
	chain []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(100 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.root, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(a)
	t.Cleanup(web.Close)
	a.url = web.URL
	return a
}

// ServeHTTP answers the requests of a client, in whatever order they come.
func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	type object = map[string]any
	w.Header().Set("Replay-Nonce", rand.Text())
	status := map[bool]string{true: "valid", false: "pending"}[a.valid]
	identifier := object{"type": "dns", "value": "gateway.example"}
	order := object{"status": map[bool]string{true: "ready", false: "pending"}[a.valid], "identifiers": []any{identifier}, "authorizations": []string{a.url + "/authz"}, "finalize": a.url + "/finalize"}
	challenge := object{"type": "tls-alpn-01", "url": a.url + "/challenge", "token": "token", "status": status}
	answer := func(code int, v object) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	switch r.URL.Path {
	case "/":
		answer(200, object{"newNonce": a.url + "/nonce", "newAccount": a.url + "/account", "newOrder": a.url + "/order", "revokeCert": a.url + "/revoke", "keyChange": a.url + "/change"})
	case "/nonce":
	case "/account":
		w.Header().Set("Location", a.url+"/account/1")
		answer(201, object{"status": "valid"})
	case "/order":
		w.Header().Set("Location", a.url+"/order/1")
		answer(201, order)
	case "/order/1":
		if a.chain != nil {
			order["status"], order["certificate"] = "valid", a.url+"/certificate"
		}
		answer(200, order)
	case "/authz":
		answer(200, object{"status": status, "identifier": identifier, "challenges": []any{challenge}})
	case "/challenge":
		a.valid = a.check()
		answer(200, challenge)
	case "/finalize":
		var outer struct{ Payload string }
		var inner struct{ CSR string }
		err := json.NewDecoder(r.Body).Decode(&outer)
		if payload, e := base64.RawURLEncoding.DecodeString(outer.Payload); err == nil && e == nil {
			err = json.Unmarshal(payload, &inner)
		}
		if err != nil || !a.valid || !a.issue(inner.CSR) {
			answer(400, object{"type": "urn:ietf:params:acme:error:malformed"})
			return
		}
		order["status"], order["certificate"] = "valid", a.url+"/certificate"
		w.Header().Set("Location", a.url+"/order/1")
		answer(200, order)
	case "/certificate":
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_, _ = w.Write(a.chain)
	default:
		answer(404, object{})
	}
}

// check connects to the gateway as an authority does.
func (a *authority) check() bool {
	c, err := tls.Dial("tcp", a.gateway, &tls.Config{InsecureSkipVerify: true, ServerName: "gateway.example", NextProtos: []string{"acme-tls/1"}})
	if err != nil {
		a.t.Errorf("the challenge: %v", err)
		return false
	}
	defer c.Close()
	s := c.ConnectionState()
	return s.NegotiatedProtocol == "acme-tls/1" && slices.Equal(s.PeerCertificates[0].DNSNames, []string{"gateway.example"})
}

func (a *authority) issue(text string) bool {
	der, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil || csr.CheckSignature() != nil {
		return false
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour), DNSNames: csr.DNSNames, KeyUsage: x509.KeyUsageDigitalSignature}
	leaf, err := x509.CreateCertificate(rand.Reader, template, a.root, csr.PublicKey, a.key)
	for _, der := range [][]byte{leaf, a.root.Raw} {
		a.chain = append(a.chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return err == nil
}

// TestIssue: a certificate is got from an authority with the first handshake, and kept.
func TestIssue(t *testing.T) {
	a := newAuthority(t)
	dir := filepath.Join(t.TempDir(), "acme")
	m, err := NewManager(ACME{Hosts: []string{"gateway.example"}, Dir: dir, Directory: a.url + "/"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.gateway = l.Addr().String()
	web := &http.Server{Handler: http.NotFoundHandler(), TLSConfig: m.TLSConfig(), ErrorLog: slog.NewLogLogger(logtest.New(t).Handler(), slog.LevelInfo)}
	served := make(chan error, 1)
	go func() { served <- web.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		_ = web.Close()
		<-served
	})
	roots := x509.NewCertPool()
	roots.AddCert(a.root)
	for range 2 {
		c, err := tls.Dial("tcp", a.gateway, &tls.Config{RootCAs: roots, ServerName: "gateway.example"})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "gateway.example*"))
	if err != nil || len(files) == 0 {
		t.Error(files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Error(info.Mode(), err)
		}
	}
}
