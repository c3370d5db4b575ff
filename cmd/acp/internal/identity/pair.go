package identity

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/acphttp"
)

// PairPath is where [Gate.Handler] is served by convention.
const PairPath = "/pair"

// bodyTime bounds how long a client may take to send the body of a request, which it does without having shown anything.
const bodyTime = 10 * time.Second

// maxPair bounds the body of a request and of an answer, in bytes.
const maxPair = 4 << 10

// pairRequest is the body of POST /pair: see [Claim].
type pairRequest struct {
	Ticket string `json:"ticket,omitempty"`
	Code   string `json:"code,omitempty"`
	Secret string `json:"secret,omitempty"`
	Name   string `json:"name,omitempty"`
}

// pairAnswer is the body of the answer: with status 200 everything but Error, with 202 State "waiting",
// otherwise Error.
type pairAnswer struct {
	State   string    `json:"state,omitempty"`
	Token   string    `json:"token,omitempty"`
	User    string    `json:"user,omitempty"`
	Name    string    `json:"name,omitempty"`
	Role    Role      `json:"role,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	Error   string    `json:"error,omitempty"`
}

// Handler returns what serves POST /pair: a device sends a code or a ticket as JSON, and gets its
// credential. It has the rules about Host and Origin of [acphttp.Server]. Statuses:
//
//	200  the credential
//	202  the ticket waits for approval: ask again after Retry-After
//	400  this is not JSON, 413 it has more than 4 KiB, 415 another type than application/json
//	403  the ticket or the code is wrong, used or expired; or the claim was denied; or a foreign origin
//	405  another method
//	409  the name is taken, or there are too many devices
//	421  another host
//	429  too many wrong attempts of this address, as for tokens
//	503  the store cannot be used
func (g *Gate) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := g.pair(w, r)
		status := http.StatusOK
		h := w.Header()
		if said, ok := errors.AsType[*acphttp.StatusError](err); ok {
			status = said.Status
			if said.RetryAfter > 0 {
				h.Set("Retry-After", strconv.FormatInt(int64((said.RetryAfter+time.Second-1)/time.Second), 10))
			}
			if status == http.StatusAccepted {
				answer = pairAnswer{State: "waiting"}
			} else {
				answer = pairAnswer{Error: said.Text}
			}
		}
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer)
	})
}

// pair serves one request. An error is a [*acphttp.StatusError].
func (g *Gate) pair(w http.ResponseWriter, r *http.Request) (pairAnswer, error) {
	if err := g.guard(r); err != nil {
		return pairAnswer{}, err
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return pairAnswer{}, refusal(http.StatusMethodNotAllowed, "method not allowed")
	case err != nil || kind != "application/json":
		return pairAnswer{}, refusal(http.StatusUnsupportedMediaType, "the content type must be application/json")
	}
	if _, err := g.attempt(r); err != nil {
		return pairAnswer{}, err
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // not everything has one
	var req pairRequest
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPair))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return pairAnswer{}, refusal(http.StatusRequestEntityTooLarge, "the request is too large")
	}
	if err != nil || json.Unmarshal(body, &req) != nil {
		return pairAnswer{}, refusal(http.StatusBadRequest, "this is not a request for pairing")
	}
	d, token, err := g.Redeem(r, Claim{Ticket: req.Ticket, Code: req.Code, Secret: req.Secret, Name: req.Name})
	if err != nil {
		return pairAnswer{}, err
	}
	return pairAnswer{Token: token, User: d.User, Name: d.Name, Role: d.Role, Expires: d.Expires}, nil
}

// attempt returns where a request comes from that tries to pair a device, or why it may not now.
func (g *Gate) attempt(r *http.Request) (netip.Addr, error) {
	if g.Store == nil {
		return netip.Addr{}, refusal(http.StatusServiceUnavailable, "devices are not paired here")
	}
	source := g.source(r)
	if wait := g.throttle.wait(source); wait > 0 {
		return netip.Addr{}, throttled(wait)
	}
	return source, nil
}

// unpaired says why a device was not paired, if nothing was wrong with what it has sent.
func (g *Gate) unpaired(err error) error {
	if errors.Is(err, ErrName) || errors.Is(err, ErrTooMany) {
		return refusal(http.StatusConflict, err.Error())
	}
	g.log().Error("identity: a device cannot be paired", "error", err)
	return &acphttp.StatusError{Status: http.StatusServiceUnavailable, Text: "devices cannot be paired now", RetryAfter: 5 * time.Second}
}

// digits removes what people put between the digits of a code.
func digits(code string) string { return strings.NewReplacer(" ", "", "-", "").Replace(code) }

// Link returns what a QR code for a device holds: the URL for pairing and, after #, which is not sent,
// the ticket and the fingerprint. The error says that the endpoint has no such URL.
func Link(e Endpoint, ticket string) (string, error) {
	u, err := pairURL(e.URL)
	if err != nil {
		return "", err
	}
	v := url.Values{"t": {ticket}}
	if e.Fingerprint != "" {
		v.Set("f", e.Fingerprint)
	}
	return u.String() + "#" + v.Encode(), nil
}

// ParseLink returns what is in a link of [Link], or the URL alone for the URL of a gateway.
func ParseLink(link string) (e Endpoint, ticket string, err error) {
	bare, after, _ := strings.Cut(link, "#")
	u, err := pairURL(bare)
	if err != nil {
		return Endpoint{}, "", err
	}
	v, err := url.ParseQuery(after)
	if err != nil {
		return Endpoint{}, "", errors.New("the part of the link after # is damaged")
	}
	return Endpoint{URL: u.String(), Fingerprint: v.Get("f")}, v.Get("t"), nil
}

// pairURL returns the URL for pairing of the gateway at a URL.
func pairURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("this is not a URL")
	}
	scheme, ok := map[string]string{"http": "http", "https": "https", "ws": "http", "wss": "https"}[strings.ToLower(u.Scheme)]
	if !ok || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("the URL of a gateway is https://HOST or http://HOST, not %q", u.Redacted())
	}
	return &url.URL{Scheme: scheme, Host: u.Host, Path: PairPath}, nil
}

// Joined is what a device gets.
type Joined struct {
	Token   string // its credential
	User    string
	Name    string // of the device
	Role    Role
	Expires time.Time // zero means never
}

// Join redeems a code or a ticket at the gateway of a URL, on behalf of the device that runs it. While
// the ticket waits for approval it asks again every second, for at most [TicketLifetime]; waiting, if
// not nil, is called once before that. Redirects are not followed. An error of the gateway is an
// [*acphttp.StatusError].
func Join(ctx context.Context, client *http.Client, gateway string, c Claim, waiting func()) (Joined, error) {
	u, err := pairURL(gateway)
	if err != nil {
		return Joined{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, TicketLifetime)
	defer cancel()
	if c.Secret == "" {
		c.Secret = rand.Text()
	}
	body, err := json.Marshal(pairRequest{Ticket: c.Ticket, Code: c.Code, Secret: c.Secret, Name: c.Name})
	if err != nil {
		return Joined{}, err
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	lost := 0
	for first := true; ; first = false {
		answer, err := post(ctx, &own, u.String(), body)
		said := (*acphttp.StatusError)(nil)
		if err != nil && !errors.As(err, &said) && !first && lost < maxLost && ctx.Err() == nil {
			lost++ // the gateway knows the claim, and gives what it has given
			err = nil
		}
		if err != nil || answer.Token != "" {
			return Joined{Token: answer.Token, User: answer.User, Name: answer.Name, Role: answer.Role, Expires: answer.Expires}, err
		}
		if first && waiting != nil {
			waiting()
		}
		again := time.NewTimer(time.Second)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return Joined{}, fmt.Errorf("%w: %w", ErrWaiting, context.Cause(ctx))
		}
	}
}

// maxLost is how often a claim that has reached the gateway is sent again after its answer was lost.
const maxLost = 5

// post asks once. The answer has no token if the ticket waits.
func post(ctx context.Context, client *http.Client, u string, body []byte) (answer pairAnswer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u, bytes.NewReader(body))
	if err != nil {
		return pairAnswer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return pairAnswer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxPair))
	if err != nil {
		return pairAnswer{}, err
	}
	bad := json.Unmarshal(text, &answer)
	switch {
	case resp.StatusCode == http.StatusAccepted && bad == nil:
		return pairAnswer{}, nil
	case resp.StatusCode == http.StatusOK && bad == nil && IsCredential(answer.Token):
		return answer, nil
	case bad != nil || answer.Error == "":
		answer.Error = "this is not a gateway that pairs devices"
	}
	return pairAnswer{}, refusal(resp.StatusCode, answer.Error)
}
