// Package push sends messages to browsers through their push services: Web Push, as RFC 8030, 8291 and 8292 describe
// it. It knows nothing of devices and sessions.
//
// # Security
//
// Clients choose to what URLs messages are sent. So a [Sender] sends to push services that it knows and to those that
// the operator has named, over TLS only, follows no redirection, and connects to no address of a private network on
// behalf of a client. A push service sees when it gets a message and for which browser. It does not see what the message
// says, or how long that is.
package push

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bounds of a [Subscription], in bytes.
const (
	maxEndpoint = 2048
	publicBytes = 65
	authBytes   = 16
)

// A Subscription is where a browser gets messages, and with which keys, as its PushSubscription says.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	Public   []byte `json:"p256dh"` // an uncompressed point of P-256
	Auth     []byte `json:"auth"`
}

// A Message is what a browser gets.
type Message struct {
	Body []byte // of up to [MaxBody] bytes
	// Topic has the push service drop an earlier message of the same topic that was not delivered yet. It has up to 32
	// characters of base64url; "" means none.
	Topic string
	// Lasts is how long the push service keeps it for a browser that is not there.
	Lasts  time.Duration
	Urgent bool
}

// What the error of [Sender.Send] wraps.
var (
	// ErrGone is that the browser has no such subscription any more: forget it.
	ErrGone = errors.New("the browser has no such subscription any more")
	// ErrRefused is that the subscription, or its push service, is not one to which anything is sent.
	ErrRefused = errors.New("nothing is sent to this push service")
)

// A LaterError says that the push service cannot take the message now.
type LaterError struct {
	After time.Duration // as the service says; 0 means that it does not
	Err   error
}

func (e *LaterError) Error() string { return e.Err.Error() }
func (e *LaterError) Unwrap() error { return e.Err }

// Bounds of a request.
const (
	requestTime = 10 * time.Second
	maxHeader   = 16 << 10 // of an answer, in bytes
)

// A Sender sends messages. Its methods may be called from any goroutine. [Sender.Close] it.
type Sender struct {
	key    *Key
	also   []string
	client *http.Client
}

// NewSender returns a sender that signs with a key. also are push services that the operator names beside those that are
// known, as HOST or HOST:PORT; these may have addresses of a private network. roots are trusted to certify push services;
// nil means those of the system.
func NewSender(key *Key, also []string, roots *x509.CertPool) (*Sender, error) {
	s := &Sender{key: key}
	for _, name := range also {
		host, err := service(name)
		if err != nil {
			return nil, err
		}
		s.also = append(s.also, host)
	}
	s.client = &http.Client{
		Timeout:       requestTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: s.dial, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: requestTime, MaxResponseHeaderBytes: maxHeader, MaxIdleConns: 16, IdleConnTimeout: time.Minute,
		},
	}
	return s, nil
}

// Close closes the connections that nothing uses.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// Key returns the public key that browsers subscribe with.
func (s *Sender) Key() []byte { return s.key.public() }

// Check returns why nothing is sent to a subscription, or nil.
func (s *Sender) Check(sub *Subscription) error {
	if _, err := s.endpoint(sub.Endpoint); err != nil {
		return err
	}
	return sub.check()
}

// Send sends a message. The error wraps [ErrGone], [ErrRefused] or a [LaterError] where one of these is why.
func (s *Sender) Send(ctx context.Context, sub *Subscription, m Message) error {
	at, err := s.endpoint(sub.Endpoint)
	if err != nil {
		return err
	}
	body, err := encrypt(sub, m.Body)
	if err != nil {
		return err
	}
	said, err := s.key.authorization(at, time.Now())
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, sub.Endpoint, strings.NewReader(string(body)))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	req.Header.Set("Authorization", said)
	req.Header.Set("Content-Encoding", "aes128gcm")
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("TTL", strconv.FormatInt(int64(m.Lasts/time.Second), 10))
	req.Header.Set("User-Agent", "acp")
	if m.Topic != "" {
		req.Header.Set("Topic", m.Topic)
	}
	if m.Urgent {
		req.Header.Set("Urgency", "high")
	}
	res, err := s.client.Do(req)
	if err != nil {
		if _, ok := errors.AsType[*url.Error](err); ok {
			err = errors.Unwrap(err) // which has the endpoint, a secret
		}
		if errors.Is(err, ErrRefused) {
			return err
		}
		return &LaterError{Err: fmt.Errorf("%s: %w", at.Host, err)}
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10)
	return outcome(at.Host, res)
}

// outcome returns what the answer of a push service means.
func outcome(host string, res *http.Response) error {
	err := fmt.Errorf("%s answers %d", host, res.StatusCode)
	switch {
	case res.StatusCode/100 == 2:
		return nil
	case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusGone:
		return fmt.Errorf("%w: %w", ErrGone, err)
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode/100 == 5:
		later := &LaterError{Err: err}
		if n, e := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 31); e == nil {
			later.After = time.Duration(n) * time.Second
		}
		return later
	}
	return err
}
