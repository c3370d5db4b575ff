package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/goacp/acp/cmd/acp/internal/identity"
)

// maxAttempt bounds what a browser keeps of a login, in bytes, and attemptTime how long it counts.
const (
	maxAttempt  = 2 << 10
	attemptTime = 10 * time.Minute
)

// An attempt is a login of a browser that has begun.
type attempt struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"` // of PKCE: RFC 7636
	Redirect string `json:"r"` // where the issuer sends the browser
	Until    int64  `json:"u"` // in seconds since 1970
	At       string `json:"a,omitempty"`
}

// Name returns what people call the issuer: its host.
func (v *Verifier) Name() string {
	u, err := url.Parse(v.cfg.Issuer)
	if err != nil {
		return v.cfg.Issuer
	}
	return u.Host
}

// Begin returns where a browser is sent to log in by the code flow (OpenID Connect Core 1.0, section 3.1) with PKCE, and
// what it keeps until it is sent to redirect, which nobody else may have, with the parameter state. At is returned by
// Finish. An error says that the issuer cannot be asked now.
func (v *Verifier) Begin(ctx context.Context, redirect, at string) (to, state, kept string, err error) {
	if _, err := v.discover(ctx); err != nil {
		return "", "", "", err
	}
	a := attempt{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Redirect: redirect, Until: time.Now().Add(attemptTime).Unix(), At: at,
	}
	data, err := json.Marshal(a)
	if err != nil {
		return "", "", "", err
	}
	kept = base64.RawURLEncoding.EncodeToString(data)
	if len(kept) > maxAttempt {
		return "", "", "", errors.New("the address of this server is too long")
	}
	return v.registered(redirect).AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), a.State, kept, nil
}

// Finish returns the token of a user whom the issuer has sent back with a query, and what Begin got. The token is not
// verified but for its nonce: see [Verifier.Authenticate]. The error wraps [identity.ErrCredential] if the browser has not
// begun this login, or the issuer does not know the code, and [identity.ErrDenied] if the issuer says that there was no
// login. Any other error says that the issuer cannot be asked now.
func (v *Verifier) Finish(ctx context.Context, kept string, query url.Values) (token, at string, err error) {
	var a attempt
	data, err := base64.RawURLEncoding.DecodeString(kept[:min(len(kept), maxAttempt)])
	if err != nil || json.Unmarshal(data, &a) != nil || a.State == "" || subtle.ConstantTimeCompare([]byte(a.State), []byte(query.Get("state"))) == 0 {
		return "", "", fmt.Errorf("%w: this browser has not begun the login", identity.ErrCredential)
	}
	if time.Now().Unix() > a.Until {
		return "", "", fmt.Errorf("%w: the login has taken too long", identity.ErrCredential)
	}
	if said := query.Get("error"); said != "" {
		if !errorCode().MatchString(said) {
			said = "an error"
		}
		return "", "", fmt.Errorf("%w: %s says %s", identity.ErrDenied, v.Name(), said)
	}
	verifier, err := v.discover(ctx)
	if err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, v.direct), fetchTimeout)
	defer cancel()
	got, err := v.registered(a.Redirect).Exchange(ctx, query.Get("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		refused := (*oauth2.RetrieveError)(nil)
		switch {
		case !errors.As(err, &refused):
			return "", "", fmt.Errorf("asking the issuer: %w", err)
		case refused.ErrorCode == "invalid_grant" && refused.Response.StatusCode < 500:
			return "", "", fmt.Errorf("%w: %s does not know the code", identity.ErrCredential, v.Name())
		}
		// Without what it says otherwise, of which there may be a lot.
		return "", "", fmt.Errorf("asking the issuer: it answers with status %d, %q", refused.Response.StatusCode, errorCode().FindString(refused.ErrorCode))
	}
	token, _ = got.Extra("id_token").(string)
	t, err := verify(ctx, verifier, token)
	if err != nil {
		return "", "", err
	}
	if subtle.ConstantTimeCompare([]byte(t.Nonce), []byte(a.Nonce)) == 0 {
		return "", "", fmt.Errorf("%w: the token is one of another login", identity.ErrCredential)
	}
	return token, a.At, nil
}

// errorCode is what codes of errors look like: RFC 6749, section 4.1.2.1.
var errorCode = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_]{1,64}$`) })

// registered returns this gateway as a client of the issuer, which has been asked what it supports.
func (v *Verifier) registered(redirect string) *oauth2.Config {
	v.mu.Lock()
	defer v.mu.Unlock()
	scopes := []string{oidc.ScopeOpenID}
	for _, s := range []string{"profile", "email", "groups"} {
		if slices.Contains(v.scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return &oauth2.Config{ClientID: v.cfg.Audience, ClientSecret: v.cfg.Secret, Endpoint: v.endpoint, RedirectURL: redirect, Scopes: scopes}
}
