package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// DefaultPath is the path of a URL that has none.
const DefaultPath = "/acp"

// socketPrefix begins the URL of a server on a Unix socket: unix:PATH. unix:///PATH is another thing,
// a socket on which an agent speaks in lines.
const socketPrefix = "unix:"

// Is reports whether a text is the URL of a server that this package reaches: http, https, ws, wss, or
// unix:PATH. The URL may still be one that [Check] refuses.
func Is(raw string) bool {
	if path, ok := strings.CutPrefix(raw, socketPrefix); ok {
		return path != "" && !strings.HasPrefix(path, "//")
	}
	scheme, _, ok := strings.Cut(raw, "://")
	switch strings.ToLower(scheme) {
	case "http", "https", "ws", "wss":
		return ok
	}
	return false
}

// Check returns why a server cannot be reached at a URL, or nil. The error does not show what may be
// secret.
func Check(raw string) error {
	if strings.HasPrefix(raw, socketPrefix) {
		return nil
	}
	_, err := parse(raw)
	return err
}

func parse(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		if bad, ok := errors.AsType[*url.Error](err); ok {
			err = bad.Err
		}
		return nil, fmt.Errorf("this is not a URL: %w", err)
	}
	shown := u.Scheme + "://" + u.Host + u.EscapedPath()
	switch {
	case u.Hostname() == "":
		return nil, fmt.Errorf("%s: the host is missing", shown)
	case u.User != nil:
		return nil, fmt.Errorf("%s: a URL must not have a name or a password in it; %s", shown, places)
	case u.Fragment != "":
		return nil, fmt.Errorf("%s: a URL of an agent has no part after #", shown)
	}
	for name := range u.Query() {
		if strings.Contains(strings.ToLower(name), "token") {
			return nil, fmt.Errorf("%s: a URL must not have a token in it, since URLs are logged and shown; %s", shown, places)
		}
	}
	if u.Path == "" {
		u.Path = DefaultPath
	}
	return u, nil
}

// places says where a token belongs.
const places = "set " + EnvToken + ", or name its file with --token-file or the agent's setting token_file"

// Options say how a server is reached. The zero value is ready for use.
type Options struct {
	Token Source
	// State is the state directory of the user. A server of this user at an address of this machine has
	// left its token there, and acp devices join the credential for a gateway; they are used, in this
	// order, if Token has none. "" means not to look.
	State string
	// Insecure sends a token even over an unencrypted connection to another machine.
	Insecure bool
	// Interrupted is that of an [acphttp.Transport]. It may be nil.
	Interrupted func(err error)
}

// Transport returns the way to the server at a URL for which [Is] is true. It finds the token now, and
// connects when it is opened, any number of times. The token that a server of this user leaves is looked for again with
// each request, since a server that starts again makes another one.
func Transport(raw string, o Options) (acp.Transport, error) {
	token, pin, err := Find(raw, o)
	if err != nil {
		return nil, err
	}
	if path, ok := strings.CutPrefix(raw, socketPrefix); ok {
		client, err := socketClient(path)
		if err != nil {
			return nil, err
		}
		return &acphttp.Transport{URL: "http://localhost" + DefaultPath, Token: constant(token), Client: client, Interrupted: o.Interrupted}, nil
	}
	u, err := parse(raw)
	if err != nil {
		return nil, err
	}
	u.Scheme = strings.ToLower(u.Scheme)
	if plain := u.Scheme == "http" || u.Scheme == "ws"; plain && token != "" && !isLoopback(u.Hostname()) && !o.Insecure {
		return nil, fmt.Errorf("%s://%s: the token would be sent unencrypted to another machine; use %ss://, or permit it: acp connect --insecure, or insecure = true in the agent's settings", u.Scheme, u.Host, u.Scheme)
	}
	send := constant(token)
	if own, err := o.Token.Token(); err == nil && own == "" && isLoopback(u.Hostname()) {
		send = left(token, func() (string, error) { return localToken(o.State, u) })
	}
	var client *http.Client // the default one, unless the server's certificate is one it made itself
	if pin != "" {
		if client, err = PinnedClient(pin); err != nil {
			return nil, err
		}
	}
	if u.Scheme == "ws" || u.Scheme == "wss" {
		return &acpws.Transport{URL: u.String(), Token: send, Client: client, Interrupted: o.Interrupted}, nil
	}
	return &acphttp.Transport{URL: u.String(), Token: send, Client: client, Interrupted: o.Interrupted}, nil
}

// Find returns the token for the server at a URL for which [Is] is true, or "", and the fingerprint of its certificate, if
// this machine has joined it and no authority vouches for it: see [PinnedClient].
func Find(raw string, o Options) (token, pin string, err error) {
	token, err = o.Token.Token()
	if err != nil || strings.HasPrefix(raw, socketPrefix) {
		return token, "", err
	}
	u, err := parse(raw)
	if err != nil {
		return "", "", err
	}
	u.Scheme = strings.ToLower(u.Scheme)
	if token == "" && isLoopback(u.Hostname()) {
		// A server that runs leaves a new token each time: it is no older than what was saved.
		if token, err = localToken(o.State, u); err != nil {
			return "", "", err
		}
	}
	joined, err := saved(o.State, u)
	if token != "" { // which does not depend on what was saved
		return token, joined.Fingerprint, nil
	}
	return joined.Token, joined.Fingerprint, err
}

func constant(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// left returns the token that find finds, and while there is none the last one there was: a server removes its token when it
// ends.
func left(token string, find func() (string, error)) func(context.Context) (string, error) {
	var last atomic.Pointer[string]
	last.Store(&token)
	return func(context.Context) (string, error) {
		if now, err := find(); err == nil && now != "" && now != *last.Load() {
			last.Store(&now)
		}
		return *last.Load(), nil
	}
}

// socketClient returns a client that connects to a Unix socket, whatever the URL.
func socketClient(path string) (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	return &http.Client{Jar: jar, Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) },
		MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
	}}, nil
}

// maxSaid bounds what is shown of a server's answer, in cells.
const maxSaid = 300

// Explain returns what the error of a connection to a server means, with the exit status of the
// program: [exitcode.Auth] if the server wants another token, [exitcode.Protocol] if it refuses with
// another status, [exitcode.Agent] if it cannot be reached or the connection broke. It returns nil for
// any other error. name is what the user calls the agent.
func Explain(name string, err error) error {
	name = safetext.Line(name, maxSaid)
	said, refused := errors.AsType[*acphttp.StatusError](err)
	broken, broke := errors.AsType[*acphttp.BrokenError](err)
	switch {
	case refused && said.Status == http.StatusUnauthorized:
		return exitcode.With(exitcode.Auth, &plainError{fmt.Sprintf("%s requires a token: %s. Set %s", name, text(said), EnvToken), err})
	case broke:
		return exitcode.With(exitcode.Agent, &plainError{fmt.Sprintf("the connection to %s broke: %s", name, safetext.Line(broken.Err.Error(), maxSaid)), err})
	case refused && said.Status == http.StatusMisdirectedRequest:
		return exitcode.With(exitcode.Protocol, &plainError{fmt.Sprintf("%s does not serve this name of its host; start it with --host", name), err})
	case refused:
		hint := ""
		switch said.Status {
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUpgradeRequired, http.StatusUnsupportedMediaType, http.StatusNotAcceptable:
			hint = "; is an agent served at this address? acp serve serves one at " + DefaultPath
		}
		return exitcode.With(exitcode.Protocol, &plainError{fmt.Sprintf("%s refuses the connection: HTTP status %d, %s%s", name, said.Status, text(said), hint), err})
	}
	if errors.Is(err, http.ErrSchemeMismatch) || isPlainHTTP(err) {
		text := fmt.Sprintf("%s does not use TLS", name)
		if scheme, rest, ok := strings.Cut(name, "s://"); ok {
			text += fmt.Sprintf(": try %s://%s", scheme, rest)
		} else {
			text += ": its URL begins with http:// or ws://"
		}
		return exitcode.With(exitcode.Agent, &plainError{text, err})
	}
	if why := unreachable(err); why != nil {
		return exitcode.With(exitcode.Agent, &plainError{fmt.Sprintf("cannot connect to %s: %s", name, safetext.Line(why.Error(), maxSaid)), err})
	}
	return nil
}

// isPlainHTTP reports whether a server has answered the beginning of TLS as one without it does.
func isPlainHTTP(err error) bool {
	e, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok && string(e.RecordHeader[:]) == "HTTP/"
}

// unreachable returns the error of the network in the chain of an error, or nil.
func unreachable(err error) error {
	if errors.Is(err, ErrFingerprint) {
		return ErrFingerprint
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return e
	}
	if e, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return e
	}
	return nil
}

// text returns what a server said with a status.
func text(e *acphttp.StatusError) string {
	if line, _, _ := strings.Cut(strings.TrimSpace(e.Text), "\n"); line != "" && !strings.HasPrefix(line, "<") {
		return safetext.Line(line, maxSaid)
	}
	return strings.ToLower(http.StatusText(e.Status))
}

// A plainError says in the words of the user what err says in those of the layers below.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }

func (e *plainError) Unwrap() error { return e.err }
