// Package pushtest is a push service for tests: it verifies who sends, and reads messages as the browsers would that have
// subscribed.
package pushtest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp/internal/logtest"
)

// patience ends tests that fail.
const patience = 60 * time.Second

// A Service is a push service with TLS, until the test ends. Its methods may be called from any goroutine.
type Service struct {
	Host string // HOST:PORT

	server *httptest.Server

	mu        sync.Mutex
	browsers  map[string]*Browser // by path
	answer    int
	header    http.Header
	elsewhere int
}

// New returns a service, which takes everything.
func New(t *testing.T) *Service {
	s := &Service{browsers: make(map[string]*Browser), answer: http.StatusCreated}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.server.Config.ErrorLog = slog.NewLogLogger(logtest.New(t).Handler(), slog.LevelInfo)
	s.server.StartTLS()
	s.Host = strings.TrimPrefix(s.server.URL, "https://")
	t.Cleanup(s.server.Close)
	return s
}

// Roots returns what clients have to trust.
func (s *Service) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.server.Certificate())
	return pool
}

// CertFile writes what clients have to trust into a file, for SSL_CERT_FILE.
func (s *Service) CertFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Answer has the service answer so from now on.
func (s *Service) Answer(status int, header http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.header = status, header
}

// Elsewhere returns how many requests were for nobody who has subscribed.
func (s *Service) Elsewhere() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.elsewhere
}

// A Browser has subscribed.
type Browser struct {
	Endpoint     string
	Public, Auth []byte

	private *ecdh.PrivateKey
	got     chan Got
}

// Got is a message that a browser has got, or why it cannot read it.
type Got struct {
	Body   []byte
	Size   int // of the request
	Header http.Header
	Key    []byte         // of who has sent it
	Claims map[string]any // what that says
	Status int            // what was answered
	Err    error
}

// Browser returns a browser that has subscribed.
func (s *Service) Browser() *Browser {
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	b := &Browser{Public: private.PublicKey().Bytes(), Auth: make([]byte, 16), private: private, got: make(chan Got, 1024)}
	_, _ = rand.Read(b.Auth)
	path := "/send/" + rand.Text()
	b.Endpoint = s.server.URL + path
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browsers[path] = b
	return b
}

// Next returns the next message, and waits for it.
func (b *Browser) Next(t *testing.T) Got {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case got := <-b.got:
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		return got
	case <-timer.C:
		t.Fatal("no message has come")
	}
	return Got{}
}

// Count returns how many messages have come that Next has not returned.
func (b *Browser) Count() int { return len(b.got) }

func (s *Service) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 8192))
	s.mu.Lock()
	b, status := s.browsers[r.URL.Path], s.answer
	for name, values := range s.header {
		w.Header()[name] = values
	}
	if b == nil {
		s.elsewhere++
	}
	s.mu.Unlock()
	if b == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	got := Got{Size: len(body), Header: r.Header, Status: status}
	if err == nil {
		got.Key, got.Claims, err = verify(r.Header.Get("Authorization"))
	}
	if err == nil {
		got.Body, err = b.decrypt(body)
	}
	switch {
	case err != nil:
	case r.Method != http.MethodPost, r.Header.Get("Content-Encoding") != "aes128gcm", r.Header.Get("TTL") == "":
		err = fmt.Errorf("this is no message: %s %v", r.Method, r.Header)
	}
	got.Err = err
	select {
	case b.got <- got:
	default:
	}
	w.WriteHeader(status)
}

// verify returns who has signed a request, and what that says (RFC 8292).
func verify(said string) (key []byte, claims map[string]any, err error) {
	said, ok := strings.CutPrefix(said, "vapid t=")
	text, of, more := strings.Cut(said, ", k=")
	parts := strings.Split(text, ".")
	if !ok || !more || len(parts) != 3 {
		return nil, nil, fmt.Errorf("nobody has signed: %q", said)
	}
	var raw [3][]byte
	for i, p := range parts {
		if raw[i], err = base64.RawURLEncoding.DecodeString(p); err != nil {
			return nil, nil, err
		}
	}
	if key, err = base64.RawURLEncoding.DecodeString(of); err != nil {
		return nil, nil, err
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), key)
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if len(raw[2]) != 64 || !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(raw[2][:32]), new(big.Int).SetBytes(raw[2][32:])) {
		return nil, nil, errors.New("the signature is wrong")
	}
	var header struct{ Typ, Alg string }
	if err := errors.Join(json.Unmarshal(raw[0], &header), json.Unmarshal(raw[1], &claims)); err != nil || header.Typ != "JWT" || header.Alg != "ES256" {
		return nil, nil, fmt.Errorf("%+v: %w", header, err)
	}
	return key, claims, nil
}

// decrypt reads a message (RFC 8188 and 8291).
func (b *Browser) decrypt(data []byte) ([]byte, error) {
	if len(data) < 86 || binary.BigEndian.Uint32(data[16:]) < 18 || data[20] != 65 {
		return nil, errors.New("the header of the message is wrong")
	}
	salt, from, sealed := data[:16], data[21:86], data[86:]
	theirs, err := ecdh.P256().NewPublicKey(from)
	if err != nil {
		return nil, err
	}
	shared, err := b.private.ECDH(theirs)
	if err != nil {
		return nil, err
	}
	material, err := hkdf.Key(sha256.New, shared, b.Auth, "WebPush: info\x00"+string(b.Public)+string(from), 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, material, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, material, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nonce, sealed, nil)
	if err != nil {
		return nil, err
	}
	end := len(plain)
	for end > 0 && plain[end-1] == 0 {
		end--
	}
	if end == 0 || plain[end-1] != 2 {
		return nil, errors.New("the message has no end")
	}
	return plain[:end-1], nil
}
