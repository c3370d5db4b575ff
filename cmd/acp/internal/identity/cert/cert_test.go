package cert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestMayListen: an address that others can reach needs both.
func TestMayListen(t *testing.T) {
	for addr, local := range map[string]bool{
		"127.0.0.1:7842": true, "127.8.8.8:0": true, "[::1]:1": true, "localhost:1": true, "unix:/s": true, "unix:s": true, "[::ffff:127.0.0.1]:1": true,
		":7842": false, "0.0.0.0:1": false, "[::]:1": false, "192.0.2.1:443": false, "10.0.0.1:1": false, "[fe80::1%eth0]:1": false, "[2001:db8::1]:1": false,
	} {
		for _, has := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			err := MayListen(addr, has[0], has[1])
			if want := local || has[0] && has[1]; (err == nil) != want || err != nil && !errors.Is(err, ErrOpen) {
				t.Errorf("%s, TLS %v, authentication %v: %v", addr, has[0], has[1], err)
			}
			if err != nil && (strings.Contains(err.Error(), "TLS") == has[0] || strings.Contains(err.Error(), "authentication") == has[1]) {
				t.Errorf("%s: %v", addr, err)
			}
		}
	}
	for _, bad := range []string{"", "7842", "unix:", "127.0.0.1", "127.0.0.1:nonsense", "::1"} {
		if err := MayListen(bad, true, true); err == nil || errors.Is(err, ErrOpen) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestSelfMade: the certificate that was made is used for what it is for, and again the next time.
func TestSelfMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	f, err := SelfMade(dir, []string{"127.0.0.1", "gateway.example", "[::1]"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for file, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "key.pem"): 0o600, filepath.Join(dir, "cert.pem"): 0o600} {
		if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != mode {
			t.Errorf("%s: %v", file, err)
		}
	}
	c, err := x509.ParseCertificate(f.pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "gateway.example", "::1"} {
		if err := c.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	again, err := SelfMade(dir, nil, nil)
	if err != nil || again.Fingerprint() != f.Fingerprint() || len(f.Fingerprint()) != 64 {
		t.Error(again, err)
	}
	if _, err := SelfMade(t.TempDir(), nil, nil); err == nil {
		t.Error("a certificate for nobody")
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", f.TLSConfig())
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: http.NotFoundHandler()}
	served := make(chan error, 1)
	go func() { served <- web.Serve(l) }()
	seen := ""
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
		seen = Fingerprint(s.PeerCertificates[0].Raw)
		return nil
	}}}}
	resp, err := client.Get("https://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	_ = web.Close()
	<-served
	if seen != f.Fingerprint() {
		t.Error(seen)
	}
}

// TestReload: new files are used by handshakes of the next second; files that do not fit are not.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, other := t.TempDir(), t.TempDir()
		f, err := SelfMade(dir, []string{"a.example"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		first := f.Fingerprint()
		next, err := SelfMade(other, []string{"b.example"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		f.logger = slog.New(slog.NewTextHandler(&log, nil))
		current := func() string {
			t.Helper()
			c, err := f.GetCertificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			return Fingerprint(c.Certificate[0])
		}
		// Times of files are those of the machine, which virtual time is not: each copy has another.
		age := time.Now()
		replace := func(from, name string) {
			t.Helper()
			data, err := os.ReadFile(filepath.Join(from, name))
			if err == nil {
				err = writeFile(filepath.Join(dir, name), data)
			}
			age = age.Add(time.Minute)
			if err = errors.Join(err, os.Chtimes(filepath.Join(dir, name), age, age)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(checkEvery)
		if current() != first || log.Len() > 0 {
			t.Error(&log)
		}
		replace(other, "key.pem") // half of it
		time.Sleep(checkEvery)
		if current() != first || !strings.Contains(log.String(), "cannot be used") {
			t.Error(&log)
		}
		log.Reset()
		time.Sleep(checkEvery)
		if current() != first || log.Len() > 0 {
			t.Error("it is reported again", &log)
		}
		replace(other, "cert.pem")
		if current() != first {
			t.Error("the files were looked at twice in a second")
		}
		time.Sleep(checkEvery)
		if current() != next.Fingerprint() {
			t.Error(&log)
		}
		if err := os.Remove(filepath.Join(dir, "cert.pem")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(checkEvery)
		if current() != next.Fingerprint() {
			t.Error("without files there is no certificate")
		}
	})
	if _, err := OpenFiles(filepath.Join(t.TempDir(), "none"), "none", nil); err == nil {
		t.Error("no files")
	}
}

// TestACME: only names of the gateway's are asked for, and the authority's challenges are answered.
func TestACME(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "acme")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	asked := 0
	authority := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusTeapot)
	}))
	defer authority.Close()
	m, err := NewManager(ACME{Hosts: []string{"Gateway.example"}, Dir: dir, Directory: authority.URL})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
	c := m.TLSConfig()
	if !slices.Contains(c.NextProtos, "acme-tls/1") || !slices.Contains(c.NextProtos, "h2") || c.MinVersion < tls.VersionTLS12 {
		t.Error(c.NextProtos)
	}
	hello := func(name string) error {
		_, err := c.GetCertificate(&tls.ClientHelloInfo{ServerName: name, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}})
		return err
	}
	if err := hello("evil.example"); err == nil || asked > 0 {
		t.Errorf("the authority was asked for another name: %v", err)
	}
	if err := hello("gateway.example"); err == nil || asked == 0 {
		t.Errorf("the authority was not asked: %v", err)
	}
	// What it wants to see on port 80 is in the cache while it asks.
	const path = "/.well-known/acme-challenge/token"
	if err := os.WriteFile(filepath.Join(dir, "token+http-01"), []byte("proof"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host, path string
		status     int
		want       string
	}{
		{"gateway.example", path, 200, "proof"}, {"gateway.example", path + "x", 404, ""}, {"evil.example", path, 403, ""}, {"gateway.example", "/acp", 302, "https://gateway.example/acp"},
	} {
		w := httptest.NewRecorder()
		m.HTTPHandler().ServeHTTP(w, httptest.NewRequest("GET", "http://"+tt.host+tt.path, nil))
		body, _ := io.ReadAll(w.Body)
		if w.Code != tt.status || !strings.Contains(string(body), tt.want) {
			t.Errorf("%s%s: %d, %s", tt.host, tt.path, w.Code, body)
		}
	}
	for _, bad := range []ACME{
		{Dir: dir}, {Hosts: []string{"a.example"}}, {Hosts: []string{"localhost"}, Dir: dir}, {Hosts: []string{"*.a.example"}, Dir: dir},
		{Hosts: []string{"a.example:443"}, Dir: dir}, {Hosts: make([]string, maxHosts+1), Dir: dir}, {Hosts: []string{"a.example"}, Dir: filepath.Join(dir, "token+http-01")},
	} {
		if _, err := NewManager(bad); err == nil {
			t.Errorf("%+v", bad)
		}
	}
}
