// Package oidc authenticates members of a team by the tokens of an OpenID Connect issuer: it is an
// [identity.Team]. A token is a JSON Web token that the issuer has signed for this gateway: an ID token,
// or an access token in that form (RFC 9068). How a client gets it is the client's business; the code
// flow for browsers, with PKCE, is [Verifier.Begin]. Opaque access tokens are not accepted.
package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/goacp/acp/cmd/acp/internal/identity"
)

// Bounds of a verifier.
const (
	maxToken     = 16 << 10         // bytes
	maxDocument  = 1 << 20          // of the issuer's documents, in bytes
	refreshEvery = 10 * time.Second // at least, between two requests for the same document
	fetchTimeout = 10 * time.Second // of a request to the issuer
	maxGroups    = 1024             // groups of a token that are looked at
	maxUser      = 256              // bytes of the name of a user
)

// userPrefix begins the name of every user of a team. Names of users with devices have no colon, so
// nobody becomes one of those by choosing a name at the issuer.
const userPrefix = "oidc:"

// algorithms are the signatures that are accepted: never none, and none with a shared secret.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// A Config says whose tokens are accepted, and as what.
type Config struct {
	// Issuer is the URL of the issuer, exactly as it is in tokens. It must be https, or an address of
	// this machine.
	Issuer string
	// Audience is what tokens must be for: the client id of the gateway, or the name of its API.
	Audience string
	// Groups is the claim with the groups of a user, a string or a list of strings; "" means "groups".
	Groups string
	// Roles are the roles of groups. A user has the highest of them; without one the user is denied.
	Roles map[string]identity.Role
	// Rights are further groups that are kept of a user, next to those of Roles, of which there are at most
	// 64 that count.
	Rights []string
	// User is the claim with the name of a user; "" means "sub". For "email" the token must say that
	// the address was verified. The name of the principal is that with "oidc:" before it.
	User string
	// Secret is that of the gateway at the issuer, for logins of browsers; "" means that it is a public client there.
	Secret string
	// Client makes the requests to the issuer; nil means [http.DefaultClient]. Redirects are followed
	// as it says.
	Client *http.Client
}

// A Verifier verifies tokens. It reads the issuer's documents with the first token, so the issuer need
// not run when the gateway starts; it keeps its keys and asks for new ones when a token was signed by
// another key. The issuer is asked for each document at most once in ten seconds, whatever tokens are
// sent, and documents have at most 1 MiB. It is safe for concurrent use. There is nothing to close.
type Verifier struct {
	cfg    Config
	client *http.Client // for documents
	direct *http.Client // for the rest

	mu       sync.Mutex
	endpoint oauth2.Endpoint       // of the issuer, with verifier
	scopes   []string              // that it supports
	verifier *oidc.IDTokenVerifier // nil until the issuer has answered
	failed   error                 // of the latest discovery
	again    time.Time             // when there may be another one
	asking   chan struct{}         // closed at the end of the discovery that runs; nil if none does
}

// New returns a verifier. It does not reach the issuer yet.
func New(cfg Config) (*Verifier, error) {
	u, err := url.Parse(cfg.Issuer)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, errors.New("the issuer is not a URL such as https://id.example")
	case u.Scheme != "https" && !(u.Scheme == "http" && isLocal(u.Hostname())):
		return nil, fmt.Errorf("the issuer %s must be reached by https: whoever can change its keys is everybody", u.Redacted())
	case cfg.Audience == "":
		return nil, errors.New("the audience is missing: without it the issuer's tokens for other programs would be accepted")
	case len(cfg.Roles) == 0:
		return nil, errors.New("no group has a role, so everybody would be denied")
	}
	for group, role := range cfg.Roles {
		if role <= identity.None || role > identity.Owner {
			return nil, fmt.Errorf("group %q has no role", group)
		}
	}
	if cfg.Groups == "" {
		cfg.Groups = "groups"
	}
	if cfg.User == "" {
		cfg.User = "sub"
	}
	v := &Verifier{cfg: cfg}
	base := cfg.Client
	if base == nil {
		base = http.DefaultClient
	}
	own, direct := *base, *base
	own.Transport = &bounded{next: own.Transport, last: make(map[string]time.Time)}
	if own.Timeout == 0 || own.Timeout > fetchTimeout {
		own.Timeout = fetchTimeout
	}
	direct.Timeout = own.Timeout
	v.client, v.direct = &own, &direct
	return v, nil
}

func isLocal(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// Authenticate implements [identity.Team]. The error wraps [identity.ErrCredential] if the token is not
// one of the issuer's for this gateway, or has expired, and [identity.ErrDenied] if its user has no
// role. Any other error says that the issuer cannot be asked now.
func (v *Verifier) Authenticate(ctx context.Context, token string) (identity.Principal, error) {
	// What is not a token of this form must not make the gateway ask the issuer.
	if len(token) > maxToken || strings.Count(token, ".") != 2 {
		return identity.Principal{}, fmt.Errorf("%w: it is not a JSON Web token", identity.ErrCredential)
	}
	verifier, err := v.discover(ctx)
	if err != nil {
		return identity.Principal{}, err
	}
	t, err := verify(ctx, verifier, token)
	if err != nil {
		return identity.Principal{}, err
	}
	var claims map[string]json.RawMessage
	if err := t.Claims(&claims); err != nil {
		return identity.Principal{}, fmt.Errorf("%w: %w", identity.ErrCredential, err)
	}
	name, err := v.user(claims)
	if err != nil {
		return identity.Principal{}, err
	}
	groups := groupsOf(claims[v.cfg.Groups])
	role := v.role(groups)
	if role == identity.None {
		return identity.Principal{}, fmt.Errorf("%w: %s is in no group with a role", identity.ErrDenied, name)
	}
	return identity.Principal{
		Kind: identity.KindTeam, User: userPrefix + name, Device: t.Subject, Role: role, Groups: v.relevant(groups), Expires: t.Expiry,
	}, nil
}

// verify returns a token that is one of the issuer's for this gateway, with errors as of [Verifier.Authenticate].
func verify(ctx context.Context, verifier *oidc.IDTokenVerifier, token string) (*oidc.IDToken, error) {
	var asking error // which the library's error does not wrap
	t, err := verifier.Verify(context.WithValue(ctx, askingKey{}, &asking), token)
	switch {
	case err == nil:
		return t, nil
	case ctx.Err() != nil || asking != nil:
		return nil, fmt.Errorf("asking the issuer: %w", errors.Join(asking, ctx.Err()))
	}
	return nil, fmt.Errorf("%w: %w", identity.ErrCredential, err)
}

// isUnseen reports whether a character of a name is not seen, or changes how others are: names are shown to those who decide.
func isUnseen(c rune) bool {
	return c != ' ' && !unicode.IsGraphic(c) || unicode.In(c, unicode.Zl, unicode.Zp, unicode.Cf)
}

// user returns the name of the user in a token.
func (v *Verifier) user(claims map[string]json.RawMessage) (string, error) {
	var name string
	if err := json.Unmarshal(claims[v.cfg.User], &name); err != nil || name == "" || len(name) > maxUser || strings.ContainsFunc(name, isUnseen) {
		return "", fmt.Errorf("%w: the token has no claim %q that names the user", identity.ErrDenied, v.cfg.User)
	}
	if v.cfg.User == "email" {
		var verified bool
		if err := json.Unmarshal(claims["email_verified"], &verified); err != nil || !verified {
			return "", fmt.Errorf("%w: the issuer has not verified the address of %s", identity.ErrDenied, name)
		}
	}
	return name, nil
}

// groupsOf returns the groups in a claim.
func groupsOf(claim json.RawMessage) (groups []string) {
	var one string
	if json.Unmarshal(claim, &one) == nil {
		return []string{one}
	}
	if json.Unmarshal(claim, &groups) != nil {
		return nil
	}
	return groups[:min(len(groups), maxGroups)]
}

// maxRelevant bounds the groups that are kept of a user.
const maxRelevant = 64

// relevant returns the groups that anything depends on.
func (v *Verifier) relevant(groups []string) (all []string) {
	for _, g := range groups {
		if _, ok := v.cfg.Roles[g]; ok || slices.Contains(v.cfg.Rights, g) {
			all = append(all, g)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), maxRelevant)]
}

// role returns the highest role of groups.
func (v *Verifier) role(groups []string) (best identity.Role) {
	for _, g := range groups {
		best = max(best, v.cfg.Roles[g])
	}
	return best
}

// discover returns what verifies the issuer's tokens. One caller asks the issuer, and the others wait.
func (v *Verifier) discover(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	for {
		v.mu.Lock()
		switch {
		case v.verifier != nil:
			defer v.mu.Unlock()
			return v.verifier, nil
		case v.asking == nil && v.failed != nil && time.Now().Before(v.again):
			defer v.mu.Unlock()
			return nil, v.failed
		case v.asking == nil:
			v.asking = make(chan struct{})
			v.mu.Unlock()
			v.ask(ctx)
			continue
		}
		asking := v.asking
		v.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ask reads the issuer's document. It does not depend on the client whose token was the first.
func (v *Verifier) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.WithoutCancel(ctx), v.client), fetchTimeout)
	defer cancel()
	var document struct {
		Keys   string   `json:"jwks_uri"`
		Scopes []string `json:"scopes_supported"`
		Auth   []string `json:"token_endpoint_auth_methods_supported"`
	}
	provider, err := oidc.NewProvider(ctx, v.cfg.Issuer)
	if err == nil {
		err = provider.Claims(&document)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		v.failed, v.again = fmt.Errorf("asking the issuer: %w", err), time.Now().Add(refreshEvery)
	} else {
		v.endpoint, v.scopes = provider.Endpoint(), document.Scopes
		// Or else each is tried, and a code counts once.
		v.endpoint.AuthStyle = oauth2.AuthStyleInHeader
		if v.cfg.Secret == "" || len(document.Auth) > 0 && !slices.Contains(document.Auth, "client_secret_basic") {
			v.endpoint.AuthStyle = oauth2.AuthStyleInParams
		}
		set := &keys{oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), v.client), document.Keys)}
		v.verifier = oidc.NewVerifier(v.cfg.Issuer, set, &oidc.Config{ClientID: v.cfg.Audience, SupportedSigningAlgs: algorithms})
	}
	close(v.asking)
	v.asking = nil
}

type askingKey struct{}

// keys are those of the issuer. It keeps the error of asking for them.
type keys struct{ set oidc.KeySet }

// VerifySignature implements [oidc.KeySet].
func (k *keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.set.VerifySignature(ctx, token)
	if asking, ok := ctx.Value(askingKey{}).(*error); ok && isUnreachable(err) {
		*asking = err
	}
	return payload, err
}

// unreachable is an error of the way to the issuer.
type unreachable struct{ err error }

func (e *unreachable) Error() string { return e.err.Error() }
func (e *unreachable) Unwrap() error { return e.err }

// isUnreachable reports whether an error says that the issuer has not answered. Having asked too often
// is not one: then the keys are fresh, and the token's is not among them.
func isUnreachable(err error) bool {
	_, ok := errors.AsType[*unreachable](err)
	return ok && !errors.Is(err, errOften)
}

// errOften is the answer instead of a document that was read a moment ago.
var errOften = errors.New("the issuer's keys were read a moment ago")

// A bounded transport asks for each URL at most once in ten seconds, and bounds answers. A token that
// names a key that does not exist, which everybody can make, would have the library ask each time.
type bounded struct {
	next http.RoundTripper

	mu   sync.Mutex
	last map[string]time.Time // two URLs, unless the issuer redirects
}

// maxURLs bounds the URLs that are remembered.
const maxURLs = 16

// RoundTrip implements [http.RoundTripper].
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	key := r.URL.Scheme + "://" + r.URL.Host + r.URL.EscapedPath() // a query may be a signature, which is another one each time
	b.mu.Lock()
	last, asked := b.last[key]
	now := time.Now()
	if len(b.last) >= maxURLs {
		maps.DeleteFunc(b.last, func(_ string, at time.Time) bool { return now.Sub(at) >= refreshEvery })
	}
	often := asked && now.Sub(last) < refreshEvery || !asked && len(b.last) >= maxURLs
	if !often {
		b.last[key] = now
	}
	b.mu.Unlock()
	if often {
		return nil, &unreachable{errOften}
	}
	next := b.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(r)
	if err != nil {
		return nil, &unreachable{err}
	}
	resp.Body = &boundedBody{io.LimitReader(resp.Body, maxDocument), resp.Body}
	if resp.StatusCode >= 500 {
		_ = resp.Body.Close()
		return nil, &unreachable{fmt.Errorf("the issuer answers with %s", resp.Status)}
	}
	return resp, nil
}

// A boundedBody reads a body up to a bound.
type boundedBody struct {
	io.Reader
	io.Closer
}
