// Package cert has what a gateway needs for TLS: certificates of files that may change, of an ACME
// authority, or made by itself, and the rule about where a server may listen.
package cert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// ErrOpen says that other machines could reach a server that does not protect itself.
var ErrOpen = errors.New("other machines can reach this address")

// MayListen returns nil if a server may listen at an address, which is HOST:PORT or unix:PATH: on an
// address of this machine alone, and on a Unix socket, always; elsewhere only with TLS and with
// authentication of every client. Otherwise the error wraps [ErrOpen] and says what is missing. A name
// is looked up, and all its addresses must be of this machine; an error of the lookup is returned.
func MayListen(addr string, hasTLS, hasAuth bool) error {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		if path == "" {
			return errors.New("unix:PATH: the path is missing")
		}
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("an address to listen at is HOST:PORT or unix:PATH: %w", err)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%s: %w", addr, err)
	}
	local := host != "" // "" is every address of the machine
	if local {
		ips, err := lookup(host)
		if err != nil {
			return fmt.Errorf("%s: %w", addr, err)
		}
		for _, ip := range ips {
			local = local && ip.IsLoopback()
		}
	}
	missing := ""
	switch {
	case local || hasTLS && hasAuth:
		return nil
	case hasTLS:
		missing = "authentication is"
	case hasAuth:
		missing = "TLS is"
	default:
		missing = "TLS and authentication are"
	}
	return fmt.Errorf("%s: %w, so %s needed; listen on 127.0.0.1 behind a proxy, or on unix:PATH, to do without", addr, ErrOpen, missing)
}

// lookup returns the addresses of a host, of which there is at least one.
func lookup(host string) ([]net.IP, error) {
	bare, _, _ := strings.Cut(host, "%")
	if ip := net.ParseIP(bare); ip != nil {
		return []net.IP{ip}, nil
	}
	ips, err := net.LookupIP(host)
	if err == nil && len(ips) == 0 {
		err = errors.New("the host has no address")
	}
	return ips, err
}

// Fingerprint returns the SHA-256 of a certificate in DER, in hexadecimal digits, by which a client
// recognizes it that trusts no authority for it.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// checkEvery is how often [Files] looks whether the files have changed.
const checkEvery = time.Second

// Files is a certificate with its key in two PEM files. When the files have changed, new handshakes use
// the new ones; connections that are open stay. It has no goroutine: the files are looked at by the
// first handshake in each second. A pair that cannot be used, as while only one of the files is written,
// is logged, and the one before is used. It is safe for concurrent use.
type Files struct {
	cert, key string
	logger    *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	is      [2]stamp // of the files that pair or the last error is of
	checked time.Time
}

// A stamp changes with a file.
type stamp struct {
	time time.Time
	size int64
}

// OpenFiles reads a certificate and its key. Logger gets what is wrong with later ones; nil discards it.
func OpenFiles(cert, key string, logger *slog.Logger) (*Files, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	f := &Files{cert: cert, key: key, logger: logger}
	if err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// load reads the files. The stamps are read first: a change in between is seen the next time.
func (f *Files) load() (err error) {
	f.is, f.checked = [2]stamp{stampOf(f.cert), stampOf(f.key)}, time.Now()
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return fmt.Errorf("the certificate: %w", err)
	}
	f.pair = &pair
	return nil
}

func stampOf(file string) stamp {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size()}
}

// GetCertificate is for [tls.Config.GetCertificate]. It does not fail.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checked) < checkEvery {
		return f.pair, nil
	}
	f.checked = time.Now()
	if now := [2]stamp{stampOf(f.cert), stampOf(f.key)}; now != f.is {
		if err := f.load(); err != nil {
			f.logger.Error("identity: the certificate has changed and cannot be used, so the one before is", "error", err)
		} else {
			f.logger.Info("identity: the certificate was read again")
		}
	}
	return f.pair, nil
}

// TLSConfig returns what a server needs: this certificate, TLS 1.2 at least, HTTP/2 and HTTP/1.1.
func (f *Files) TLSConfig() *tls.Config {
	return &tls.Config{GetCertificate: f.GetCertificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
}

// Fingerprint returns that of the certificate that is in use.
func (f *Files) Fingerprint() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Fingerprint(f.pair.Certificate[0])
}

const (
	// selfYears is how long a certificate that the gateway has made is valid: devices pin it, so a new
	// one means that all have to be paired again.
	selfYears = 10
	maxHosts  = 64
)

// SelfMade returns a certificate that nobody vouches for. The first call makes it, for the names and
// addresses of hosts, and leaves it in cert.pem and key.pem (0600) in a directory (0700); later calls
// return that one, whatever hosts are, since devices know it by its [Fingerprint]. To have another one,
// remove the files.
func SelfMade(dir string, hosts []string, logger *slog.Logger) (*Files, error) {
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	_, e1 := os.Stat(certFile)
	_, e2 := os.Stat(keyFile)
	if e1 == nil && e2 == nil {
		return OpenFiles(certFile, keyFile, logger)
	}
	if len(hosts) == 0 || len(hosts) > maxHosts {
		return nil, fmt.Errorf("a certificate is for 1 to %d hosts", maxHosts)
	}
	der, keyDER, err := newSelfMade(hosts)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the certificate: %w", err)
	}
	// The key first: a certificate without its key would be taken for a whole pair.
	for _, f := range []struct {
		file, kind string
		der        []byte
	}{{keyFile, "PRIVATE KEY", keyDER}, {certFile, "CERTIFICATE", der}} {
		if err := writeFile(f.file, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der})); err != nil {
			return nil, fmt.Errorf("the certificate: %w", err)
		}
	}
	return OpenFiles(certFile, keyFile, logger)
}

func newSelfMade(hosts []string) (der, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "acp gateway"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(selfYears, 0, 0), // clocks differ
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(strings.Trim(h, "[]")); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	if der, err = x509.CreateCertificate(rand.Reader, template, template, private.Public(), private); err != nil {
		return nil, nil, err
	}
	key, err = x509.MarshalPKCS8PrivateKey(private)
	return der, key, err
}

// writeFile replaces a file by one of mode 0600.
func writeFile(file string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
