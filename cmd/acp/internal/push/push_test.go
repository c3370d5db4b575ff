package push

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/push/pushtest"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/internal/logtest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func unpack(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestExample: the message of appendix A of RFC 8291.
func TestExample(t *testing.T) {
	own, err := ecdh.P256().NewPrivateKey(unpack(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	sub := &Subscription{
		Public: unpack(t, "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
		Auth:   unpack(t, "BTBZMqHH6r4Tts7J_aSIgg"),
	}
	got, err := seal(sub, own, unpack(t, "DGv6ra1nlYgDCS1FRnbzlw"), []byte("When I grow up, I want to be a watermelon"), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if diff := cmp.Diff(want, base64.RawURLEncoding.EncodeToString(got)); diff != "" {
		t.Error(diff)
	}
}

// newSender returns a sender that trusts a service, and knows it.
func newSender(t *testing.T, service *pushtest.Service, also ...string) *Sender {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSender(key, append(also, service.Host), service.Roots())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func subscription(b *pushtest.Browser) *Subscription {
	return &Subscription{Endpoint: b.Endpoint, Public: b.Public, Auth: b.Auth}
}

// TestSend: a push service gets a message that it can attribute and not read, and the browser can read it.
func TestSend(t *testing.T) {
	service := pushtest.New(t)
	s, b := newSender(t, service), service.Browser()
	var sizes []int
	for _, body := range []string{"", "a session waits", strings.Repeat("x", MaxBody)} {
		if err := s.Send(t.Context(), subscription(b), Message{Body: []byte(body), Topic: "t", Lasts: time.Hour, Urgent: true}); err != nil {
			t.Fatal(err)
		}
		got := b.Next(t)
		if string(got.Body) != body || got.Header.Get("TTL") != "3600" || got.Header.Get("Urgency") != "high" || got.Header.Get("Topic") != "t" {
			t.Errorf("%q: %q %v", body, got.Body, got.Header)
		}
		if !bytes.Equal(got.Key, s.Key()) {
			t.Error("it is signed with another key")
		}
		if got.Claims["aud"] != "https://"+service.Host || got.Claims["sub"] != contact {
			t.Errorf("%v", got.Claims)
		}
		if exp, _ := got.Claims["exp"].(float64); time.Until(time.Unix(int64(exp), 0)) > 24*time.Hour {
			t.Errorf("the signature is valid until %v", exp)
		}
		sizes = append(sizes, got.Size)
	}
	if sizes[0] != sizes[1] || sizes[1] != sizes[2] || sizes[0] > 4096 {
		t.Errorf("the sizes of messages say something about them: %d", sizes)
	}
	if err := s.Send(t.Context(), subscription(b), Message{Body: make([]byte, MaxBody+1)}); err == nil {
		t.Error("there is no bound")
	}
}

// TestOutcome: what the answers of a push service mean.
func TestOutcome(t *testing.T) {
	service := pushtest.New(t)
	s, b := newSender(t, service), service.Browser()
	for status, want := range map[int]string{
		200: "", 201: "", 202: "", 404: "gone", 410: "gone", 429: "later", 500: "later", 503: "later",
		301: "refused", 302: "refused", 307: "refused", 308: "refused", 400: "refused", 401: "refused", 403: "refused", 413: "refused",
	} {
		service.Answer(status, http.Header{"Retry-After": {"7"}, "Location": {"https://" + service.Host + "/elsewhere"}})
		err := s.Send(t.Context(), subscription(b), Message{Lasts: time.Minute})
		got := ""
		later, isLater := errors.AsType[*LaterError](err)
		switch {
		case errors.Is(err, ErrGone):
			got = "gone"
		case isLater:
			got = "later"
			if later.After != 7*time.Second {
				t.Errorf("%d: after %v", status, later.After)
			}
		case err != nil:
			got = "refused"
		}
		if got != want {
			t.Errorf("%d: %v", status, err)
		}
		if err != nil && strings.Contains(err.Error(), b.Endpoint) {
			t.Errorf("%d: the error has the endpoint: %v", status, err)
		}
		if n := service.Elsewhere(); n > 0 {
			t.Fatalf("%d: a redirection was followed", status)
		}
	}
}

// TestEndpoints: to which URLs messages are sent.
func TestEndpoints(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSender(key, []string{"push.example", "push.example:8443", "[fd00::1]:444"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, at := range []string{
		"https://fcm.googleapis.com/fcm/send/x:y", "https://jmt17.google.com/fcm/send/x", "https://updates.push.services.mozilla.com/wpush/v2/x",
		"https://web.push.apple.com/x", "https://api.push.apple.com/x", "https://wns2-am3p.notify.windows.com/w/?token=x",
		"https://push.example/x", "https://push.example:443/x", "https://push.example:8443/x", "https://[fd00::1]:444/x",
	} {
		if _, err := s.endpoint(at); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	for _, at := range []string{
		"", "x", "http://fcm.googleapis.com/x", "ftp://fcm.googleapis.com/x", "file:///etc/passwd", "https:fcm.googleapis.com", "https:///x", "//fcm.googleapis.com/x",
		"https://fcm.googleapis.com:8443/x", "https://fcm.googleapis.com:22/x", "https://u@fcm.googleapis.com/x", "https://fcm.googleapis.com@evil.example/x",
		"https://fcm.googleapis.com.evil.example/x", "https://evil.example/fcm.googleapis.com", "https://evilfcm.googleapis.com/x", "https://evil.example#fcm.googleapis.com",
		"https://fcm.googleapis.com/x#y", "https://notify.windows.com/x", "https://.notify.windows.com/x", "https://evilnotify.windows.com/x", "https://push.apple.com/x",
		"https://127.0.0.1/x", "https://localhost/x", "https://[::1]/x", "https://169.254.169.254/latest/meta-data", "https://10.0.0.1/x", "https://0x7f000001/x", "https://2130706433/x",
		"https://metadata.google.internal/x", "https://push.example:22/x", "https://a.push.example/x", "https://[fd00::1]/x", "https://fcm.googleapis.com%2eevil.example/x",
		"https://fcm.googleapis.com\\@evil.example/x", "https://fcm.googleapis.com/\r\nX: y", "https://fcm.googleapis.com/" + strings.Repeat("x", maxEndpoint),
	} {
		if _, err := s.endpoint(at); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", at, err)
		}
	}
	for _, name := range []string{"", "https://push.example", "push.example/x", "u@push.example", "*.example", "Push.Example", "push.example:x", ":443"} {
		if s, err := NewSender(key, []string{name}, nil); err == nil {
			s.Close()
			t.Errorf("%q is taken for a push service", name)
		}
	}
}

// TestDial: a name that is known is connected to no private address, whatever it resolves to.
func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSender(key, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
		conn, err := s.dial(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			_ = conn.Close()
		}
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestNoTLS: a service whose certificate is of nobody who is trusted gets nothing.
func TestNoTLS(t *testing.T) {
	service := pushtest.New(t)
	s, b := newSender(t, service), service.Browser()
	s.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
	if _, ok := errors.AsType[*LaterError](s.Send(t.Context(), subscription(b), Message{})); !ok {
		t.Error("it was sent")
	}
}

// TestEnds: a service that does not answer holds up nobody for longer than the caller says.
func TestEnds(t *testing.T) {
	asked, end := make(chan struct{}), make(chan struct{})
	silent := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-end
	}))
	silent.Config.ErrorLog = slog.NewLogLogger(logtest.New(t).Handler(), slog.LevelInfo)
	silent.StartTLS()
	defer silent.Close()
	defer close(end)
	service := pushtest.New(t)
	host := strings.TrimPrefix(silent.URL, "https://")
	s, b := newSender(t, service, host), service.Browser()
	s.client.Transport.(*http.Transport).TLSClientConfig.RootCAs.AddCert(silent.Certificate())
	b.Endpoint = silent.URL + "/x"
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if err := s.Send(ctx, subscription(b), Message{}); err == nil {
		t.Error("it was sent")
	}
	if s.client.Timeout != requestTime {
		t.Errorf("a request may take %v", s.client.Timeout)
	}
}

// TestSubscriptions: keys with which nothing can be encrypted are refused.
func TestSubscriptions(t *testing.T) {
	service := pushtest.New(t)
	s, b := newSender(t, service), service.Browser()
	good := subscription(b)
	if err := s.Check(good); err != nil {
		t.Error(err)
	}
	compressed := append([]byte{2}, good.Public[1:33]...)
	off := bytes.Clone(good.Public)
	off[64] ^= 1
	for name, bad := range map[string]*Subscription{
		"no keys": {Endpoint: b.Endpoint}, "a short secret": {b.Endpoint, good.Public, good.Auth[1:]}, "a long secret": {b.Endpoint, good.Public, make([]byte, 4096)},
		"a compressed key": {b.Endpoint, compressed, good.Auth}, "no point of the curve": {b.Endpoint, off, good.Auth}, "infinity": {b.Endpoint, make([]byte, 65), good.Auth},
	} {
		if err := s.Check(bad); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Send(t.Context(), bad, Message{}); !errors.Is(err, ErrRefused) {
			t.Errorf("%s is sent to: %v", name, err)
		}
	}
}

// TestKey: a key that was kept is the same one, and what is none is refused.
func TestKey(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.Text()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseKey(text)
	if err != nil || !bytes.Equal(again.public(), key.public()) {
		t.Error(err)
	}
	long := make([]byte, 33)
	_, _ = rand.Read(long)
	for _, bad := range []string{"", "?", text + "AA", base64.RawURLEncoding.EncodeToString(make([]byte, 32)), base64.RawURLEncoding.EncodeToString(long)} {
		if _, err := ParseKey(bad); err == nil {
			t.Errorf("%q is taken for a key", bad)
		}
	}
}

// FuzzEndpoint: no URL leads to another host than one of those that are allowed.
func FuzzEndpoint(f *testing.F) {
	for _, at := range []string{"https://fcm.googleapis.com/x", "https://web.push.apple.com@127.0.0.1/", "https://127.0.0.1/.push.apple.com", "https://a.push.apple.com:443/", "https://a.push.apple.com:", "https://[::1]"} {
		f.Add(at)
	}
	key, err := NewKey()
	if err != nil {
		f.Fatal(err)
	}
	s, err := NewSender(key, nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, at string) {
		u, err := s.endpoint(at)
		if err != nil {
			return
		}
		req, err := http.NewRequest(http.MethodPost, at, nil)
		if err != nil {
			return
		}
		if req.URL.Host != u.Host || req.URL.Scheme != "https" || !isKnown(req.URL.Hostname()) {
			t.Errorf("%q leads to %s", at, req.URL.Host)
		}
	})
}
