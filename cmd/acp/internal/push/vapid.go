package push

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

const (
	// contact is what push services get to know about who sends: the program, not its user.
	contact = "https://github.com/goacp/acp"
	// signed is how long a signature is valid; RFC 8292 permits a day.
	signed = 12 * time.Hour
)

// A Key is what push services know a server by (VAPID). Browsers subscribe with its public part, so a new key ends all
// subscriptions.
type Key struct{ private *ecdsa.PrivateKey }

// NewKey makes a key.
func NewKey() (*Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return &Key{private}, nil
}

// ParseKey returns the key that [Key.Text] has written.
func ParseKey(text string) (*Key, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("the key for push services: %w", err)
	}
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), data)
	if err != nil {
		return nil, fmt.Errorf("the key for push services: %w", err)
	}
	return &Key{private}, nil
}

// Text returns the key to be kept. It is a secret.
func (k *Key) Text() (string, error) {
	data, err := k.private.Bytes()
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(data), nil
}

func (k *Key) public() []byte {
	data, err := k.private.PublicKey.Bytes()
	if err != nil {
		panic(err) // it was made for P-256
	}
	return data
}

// authorization returns the header by which a push service knows the server (RFC 8292).
func (k *Key) authorization(at *url.URL, now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{"aud": at.Scheme + "://" + at.Host, "exp": now.Add(signed).Unix(), "sub": contact})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, k.private, sum[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return "vapid t=" + text + "." + base64.RawURLEncoding.EncodeToString(signature) + ", k=" + base64.RawURLEncoding.EncodeToString(k.public()), nil
}
