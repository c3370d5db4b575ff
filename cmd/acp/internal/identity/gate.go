package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
)

// A Team authenticates tokens that are not credentials of devices, as identity/oidc does. An error that
// wraps [ErrCredential] says that the token is wrong, and one that wraps [ErrDenied] that it is right
// but gives no role; after any other error the client may try again. The principal has Kind [KindTeam]
// and Expires. It is called from any goroutine.
type Team interface {
	Authenticate(ctx context.Context, token string) (Principal, error)
}

// ErrRevoked is the cause of the end of a connection whose client has lost its rights.
var ErrRevoked = errors.New("the client's credential was revoked or has expired")

// Bounds of a gate.
const (
	maxKnown  = 1024 // tokens that were right
	maxLeases = 4096 // principals of a team with live connections or recent requests
)

// A Gate decides who the clients of a gateway are. Its methods are for the fields of the same names of
// [acphttp.Server], and for [http.ServeMux]:
//
//	gate := &identity.Gate{Store: store, Local: true}
//	agents := &acphttp.Server{Serve: gate.Serve(agent.Serve), Authenticate: gate.Authenticate}
//	mux.Handle("/acp", agents)
//	mux.Handle("/pair", gate.Handler())
//	web := &http.Server{Handler: mux, ConnContext: identity.ConnContext}
//
// Fields must not be changed once it is in use; its methods may be called from any goroutine. It has no
// goroutines of its own, apart from one for each call of what Serve returns. The zero value accepts
// nobody.
type Gate struct {
	Store *Store // the devices; nil means none
	Team  Team   // nil means none
	// Local accepts the user of this process on Unix sockets as [Owner] LocalUser, without a token; ""
	// means [CurrentUser]. Other users of the machine, root too, need a token.
	Local     bool
	LocalUser string
	// Peer says who another user of this machine is who connects on a Unix socket, without a token. The
	// error wraps [ErrDenied] if the user is nobody here. The principal has Kind [KindLocal]. Nil accepts
	// none.
	Peer func(Peer) (Principal, error)
	// Hosts and Origins are those of the [acphttp.Server]. They are for pairing.
	Hosts, Origins []string
	// Proxies are the networks of proxies whose X-Forwarded-For is believed. Without them all clients
	// of a proxy are throttled together.
	Proxies []netip.Prefix
	// Audit gets who was paired and whose connection was cut; nil means nobody.
	Audit *audit.Log
	// Logger gets trouble, without secrets; nil discards it.
	Logger *slog.Logger

	throttle throttle

	mu     sync.Mutex
	known  map[[32]byte]bool    // hashes of tokens that were right
	leases map[string]time.Time // until when, by the key of a team's principal
}

func (g *Gate) log() *slog.Logger {
	if g.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return g.Logger
}

// Authenticate is for [acphttp.Server.Authenticate]. It returns the [Principal.Key] of the client. A
// request is refused with 401 if its token is missing or wrong, with 403 if it gives no role, with 429 and
// Retry-After if its address has sent too many wrong ones, and with 503 if that cannot be found out now.
//
// Each address may send ten wrong tokens at once and then one every six seconds; an IPv6 network of 64
// bits counts as one address. Repeating a wrong token counts once. A token that was right before is looked at
// nevertheless, so that nobody can lock out others behind the same address.
func (g *Gate) Authenticate(r *http.Request) (string, error) {
	p, err := g.principal(r)
	if err != nil {
		return "", err
	}
	return p.Key(), nil
}

func (g *Gate) principal(r *http.Request) (Principal, error) {
	token, sent := bearer(r)
	if !sent {
		if peer, ok := PeerOf(r.Context()); ok {
			return g.peer(peer)
		}
		return Principal{}, refusal(http.StatusUnauthorized, "the token is missing")
	}
	source, sum := g.source(r), [32]byte(hashOf(token))
	if wait := g.throttle.wait(source); wait > 0 && !g.isKnown(sum) {
		return Principal{}, throttled(wait)
	}
	p, err := g.lookUp(r.Context(), token)
	switch {
	case err == nil:
		g.accepted(sum, p)
		return p, nil
	case errors.Is(err, ErrCredential):
		g.forget(sum)
		g.throttle.failed(source, sum)
		return Principal{}, refusal(http.StatusUnauthorized, "the token is wrong, was revoked or has expired")
	case errors.Is(err, ErrDenied):
		return Principal{}, refusal(http.StatusForbidden, "this user has no role here")
	}
	g.log().Error("identity: a token cannot be checked", "error", err)
	return Principal{}, &acphttp.StatusError{Status: http.StatusServiceUnavailable, Text: "the token cannot be checked now", RetryAfter: 5 * time.Second}
}

// Guess counts a token of a request that is nobody's, as [Gate.Authenticate] does, and returns why the request is refused: for
// refused, or because its address has sent too many. It is for tokens that the gate does not know, such as that of the server
// itself. A request without a token, or on a Unix socket, is refused for refused.
func (g *Gate) Guess(r *http.Request, refused error) error {
	token, sent := bearer(r)
	if _, err := remoteAddr(r); err != nil || !sent {
		return refused
	}
	source := g.source(r)
	if wait := g.throttle.wait(source); wait > 0 {
		return throttled(wait)
	}
	g.throttle.failed(source, [32]byte(hashOf(token)))
	return refused
}

// lookUp returns whose token it is.
func (g *Gate) lookUp(ctx context.Context, token string) (Principal, error) {
	switch {
	case IsCredential(token) && g.Store != nil:
		return g.Store.Authenticate(ctx, token)
	case !IsCredential(token) && g.Team != nil:
		p, err := g.Team.Authenticate(ctx, token)
		if err == nil && (p.Kind != KindTeam || p.Role == None || p.Expires.IsZero()) {
			err = fmt.Errorf("%w: %s has no role", ErrDenied, p.User)
		}
		return p, err
	}
	return Principal{}, ErrCredential
}

// peer returns who the process at the other end of a Unix socket is.
func (g *Gate) peer(peer Peer) (Principal, error) {
	if g.Local && peer.UID == os.Getuid() {
		return g.local(), nil
	}
	if g.Peer == nil {
		return Principal{}, refusal(http.StatusUnauthorized, "the token is missing")
	}
	p, err := g.Peer(peer)
	switch {
	case errors.Is(err, ErrDenied), err == nil && (p.Kind != KindLocal || p.Role == None):
		return Principal{}, refusal(http.StatusForbidden, "this user has no role here")
	case err != nil:
		g.log().Error("identity: who connects is not known", "uid", peer.UID, "error", err)
		return Principal{}, refusal(http.StatusServiceUnavailable, "who you are cannot be found out now")
	}
	return p, nil
}

func (g *Gate) local() Principal {
	name := g.LocalUser
	if name == "" {
		name = CurrentUser()
	}
	return Principal{Kind: KindLocal, User: name, Role: Owner}
}

// bearer returns the token of a request.
func bearer(r *http.Request) (token string, sent bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

func refusal(status int, text string) *acphttp.StatusError {
	return &acphttp.StatusError{Status: status, Text: text}
}

func throttled(wait time.Duration) *acphttp.StatusError {
	return &acphttp.StatusError{Status: http.StatusTooManyRequests, Text: ErrThrottled.Error(), RetryAfter: wait}
}

func (g *Gate) isKnown(sum [32]byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known[sum]
}

func (g *Gate) forget(sum [32]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, sum)
}

// accepted notes that a token was right.
func (g *Gate) accepted(sum [32]byte, p Principal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		g.known, g.leases = make(map[[32]byte]bool), make(map[string]time.Time)
	}
	if !g.known[sum] {
		for old := range g.known { // any one
			if len(g.known) < maxKnown {
				break
			}
			delete(g.known, old)
		}
		g.known[sum] = true
	}
	if p.Kind != KindTeam {
		return
	}
	key := p.Key()
	if _, ok := g.leases[key]; !ok && len(g.leases) >= maxLeases {
		now := time.Now()
		for k, until := range g.leases {
			if !until.After(now) {
				delete(g.leases, k)
			}
		}
		if len(g.leases) >= maxLeases {
			return // it cannot open a connection now
		}
	}
	if p.Expires.After(g.leases[key]) {
		g.leases[key] = p.Expires
	}
}

// lease returns until when a principal of a team has shown a token.
func (g *Gate) lease(key string) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leases[key]
}

// FromContext returns the principal of a connection that is served behind [Gate.Authenticate]. ctx is
// that of the connection, or one derived from it, as hooks of an agent have it.
func FromContext(ctx context.Context) (Principal, bool) {
	p, err := ParseKey(acphttp.Principal(ctx))
	return p, err == nil && p.Kind != ""
}

// Serve makes a function for [acphttp.Server.Serve] of another one: it ends a connection within a second
// after its client has lost its rights. The context of next is then done with the cause [ErrRevoked], and
// next must return, as the method Serve of [acp.Agent] does. A device loses its rights when it is revoked
// in any process, when its credential expires, or when its rights change; a member of a team when the
// last token that it has sent expires.
func (g *Gate) Serve(next func(context.Context, acp.Transport) error) func(context.Context, acp.Transport) error {
	return func(ctx context.Context, t acp.Transport) error {
		p, ok := FromContext(ctx)
		if !ok {
			return errors.New("identity: the connection has no principal: set acphttp.Server.Authenticate")
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		var watching sync.WaitGroup
		defer watching.Wait()
		defer cancel(nil)
		switch p.Kind {
		case KindDevice:
			if g.Store == nil {
				return ErrCredential
			}
			ended, err := g.Store.Watch(ctx, p)
			if err != nil {
				return err
			}
			watching.Go(func() {
				tick := time.NewTicker(usedEvery + time.Second) // or else half of them come a moment too early
				defer tick.Stop()
				for {
					select {
					case <-tick.C: // one that is connected is used
						g.Store.mark(ctx, Device{ID: p.Device, Name: p.Name}, time.Now())
					case <-ended:
						g.cut(cancel, p)
						return
					case <-ctx.Done():
						return
					}
				}
			})
		case KindTeam:
			watching.Go(func() {
				if g.outlive(ctx, p.Key()) {
					g.cut(cancel, p)
				}
			})
		}
		return next(ctx, t)
	}
}

// outlive returns true when the lease of a principal has ended, and false when ctx is done.
func (g *Gate) outlive(ctx context.Context, key string) bool {
	for {
		left := time.Until(g.lease(key))
		if left <= 0 {
			return true
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// cut ends a connection.
func (g *Gate) cut(cancel context.CancelCauseFunc, p Principal) {
	cancel(ErrRevoked) // before anything that may take its time
	g.Audit.Note(g.Logger, audit.Entry{User: p.User, Device: p.Name, Action: "connection.cut", Outcome: "revoked"})
}
