package remote

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Saved is what this machine has got by joining a gateway (acp devices join).
type Saved struct {
	Token string `json:"token"`
	// Fingerprint is the SHA-256 of the gateway's certificate, in hexadecimal digits, if no authority
	// vouches for that; or "".
	Fingerprint string `json:"fingerprint,omitempty"`
	User        string `json:"user,omitempty"`
	Device      string `json:"device,omitempty"` // what the gateway calls this machine
}

// maxSaved bounds the file of a Saved, in bytes.
const maxSaved = 16 << 10

// savedFile returns the file for the server of a URL. The scheme is part of its name, so what was saved
// for a server with TLS is never sent to one without.
func savedFile(state string, u *url.URL) string {
	scheme := map[string]string{"ws": "http", "wss": "https"}[u.Scheme]
	if scheme == "" {
		scheme = u.Scheme
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	name := scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
	sum := sha256.Sum256([]byte(name)) // any host makes the name of a file
	return filepath.Join(state, "joined", hex.EncodeToString(sum[:16])+".json")
}

// Save keeps what a gateway has given to this machine, for all URLs of that host and port, in a file that
// only its owner can read. It replaces what was kept before.
func Save(state, raw string, s Saved) error {
	u, err := parse(raw)
	if err != nil {
		return err
	}
	if state == "" {
		return errors.New("there is no home directory to keep the credential in")
	}
	if _, err := checked(s.Token, "the credential"); err != nil {
		return err
	}
	if s.Fingerprint != "" {
		if _, err := fingerprint(s.Fingerprint); err != nil {
			return err
		}
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	u.Scheme = strings.ToLower(u.Scheme)
	file := savedFile(state, u)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".saved-") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Forget removes what was kept for a gateway, and reports whether there was something.
func Forget(state, raw string) (bool, error) {
	u, err := parse(raw)
	if err != nil || state == "" {
		return false, err
	}
	u.Scheme = strings.ToLower(u.Scheme)
	err = os.Remove(savedFile(state, u))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// saved returns what was kept for the server of a URL; the zero value if there is nothing.
func saved(state string, u *url.URL) (s Saved, err error) {
	if state == "" {
		return Saved{}, nil
	}
	f, err := os.Open(savedFile(state, u))
	if errors.Is(err, fs.ErrNotExist) {
		return Saved{}, nil
	}
	if err != nil {
		return Saved{}, fmt.Errorf("the credential for this server: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSaved))
	if err == nil {
		err = json.Unmarshal(bytes.TrimSpace(data), &s)
	}
	if err == nil && s.Fingerprint != "" {
		_, err = fingerprint(s.Fingerprint)
	}
	if err == nil {
		_, err = checked(s.Token, f.Name())
	}
	if err != nil { // not the text of the file
		return Saved{}, fmt.Errorf("the credential for this server, %s, is damaged: join it again", f.Name())
	}
	return s, nil
}

// fingerprint returns the bytes of a fingerprint. Colons and spaces between the digits are ignored.
func fingerprint(text string) ([]byte, error) {
	sum, err := hex.DecodeString(strings.NewReplacer(":", "", " ", "").Replace(text))
	if err != nil || len(sum) != sha256.Size {
		return nil, errors.New("the fingerprint of a certificate is its SHA-256: 64 hexadecimal digits")
	}
	return sum, nil
}

// ErrFingerprint says that a server has another certificate than the one it was joined with.
var ErrFingerprint = errors.New("the server has another certificate than the one it was joined with: it was made anew, or somebody is in between; if you know why, join it again")

// PinnedClient returns a client for a server whose certificate has a fingerprint. It is accepted whatever
// its names and dates are, and no other one is: connections then fail with [ErrFingerprint]. With "" the
// client trusts the authorities that the system trusts. The client has a jar for cookies; its idle
// connections are closed after four seconds, or by CloseIdleConnections.
func PinnedClient(pin string) (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 4 * time.Second, TLSHandshakeTimeout: 10 * time.Second}
	if pin != "" {
		if transport.TLSClientConfig, err = PinnedTLS(pin); err != nil {
			return nil, err
		}
	}
	return &http.Client{Jar: jar, Transport: transport}, nil
}

// PinnedTLS returns what [PinnedClient] does with certificates, for a server whose certificate has a fingerprint.
func PinnedTLS(pin string) (*tls.Config, error) {
	want, err := fingerprint(pin)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // instead of authorities, the fingerprint vouches for the server
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return ErrFingerprint
			}
			got := sha256.Sum256(s.PeerCertificates[0].Raw)
			if subtle.ConstantTimeCompare(got[:], want) != 1 {
				return ErrFingerprint
			}
			return nil
		},
	}, nil
}
