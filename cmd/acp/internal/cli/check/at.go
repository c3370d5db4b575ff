package check

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/conformance"
)

// token returns the token for the server: that of --token-file, of ACP_TOKEN, or of a server of this
// user on this machine; or "".
func (o *Options) token() (string, error) {
	source := remote.Source{}
	if o.TokenFile != "" {
		source.File = o.file(o.TokenFile)
	}
	token, err := remote.FindToken(o.At, remote.Options{Token: source, State: config.DirsOf(os.Environ(), "").State})
	if err != nil {
		return "", exitcode.With(exitcode.Usage, err)
	}
	return token, nil
}

// validateAt checks --at and the flags that go with it.
func (o *Options) validateAt() error {
	bad := func(format string, args ...any) error { return exitcode.Errorf(exitcode.Usage, format, args...) }
	switch {
	case o.At == "" && o.TokenFile != "":
		return bad("--token-file is for --at")
	case o.At == "":
		return nil
	case o.Agent != "" || len(o.Argv) > 0:
		return bad("--at checks a server that is running: name no agent and no command")
	}
	u, err := url.Parse(o.At)
	switch {
	case err != nil:
		return bad("--at: the URL is malformed") // the reason would repeat it, with a password it may have
	case !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme):
		return bad("--at %s: the URL must begin with http://, https://, ws:// or wss://", u.Redacted())
	}
	if err := remote.Check(o.At); err != nil {
		return bad("--at: %w", err)
	}
	return nil
}

// transport returns the way to the agent at a URL over HTTP or over WebSocket.
func transport(at, over, token string) acp.Transport {
	bearer := func(context.Context) (string, error) { return token, nil }
	_, rest, _ := strings.Cut(at, "://")
	secure := strings.HasPrefix(at, "https:") || strings.HasPrefix(at, "wss:")
	if over == conformance.OverWebSocket {
		t := acpws.NewTransport("ws://" + rest)
		if secure {
			t.URL = "wss://" + rest
		}
		t.Token = bearer
		return t
	}
	t := acphttp.NewTransport("http://" + rest)
	if secure {
		t.URL = "https://" + rest
	}
	t.Token = bearer
	t.RetryFor = -1 // a connection that breaks is a finding
	return t
}

// checkAt checks the server at a URL, and then its agent over each transport that the
// server serves. reached is why it could not be reached, or nil.
func (o *Options) checkAt(ctx context.Context, opt conformance.Options) (r *conformance.Report, reached, err error) {
	token, err := o.token()
	if err != nil {
		return nil, nil, err
	}
	at := &conformance.Endpoint{URL: o.At, Header: http.Header{}}
	if token != "" {
		at.Header.Set("Authorization", "Bearer "+token)
	}
	server, err := conformance.CheckServer(ctx, at, opt)
	if server != nil && strings.Contains(server.Broken, "401 Unauthorized") {
		said := &acphttp.StatusError{Status: http.StatusUnauthorized, Text: "the token is missing"}
		if token != "" {
			said.Text = "the token is wrong"
		}
		return nil, nil, remote.Explain(o.At, said)
	}
	none := errors.Is(err, conformance.ErrNoRule)
	if err != nil && !none || server.Broken != "" || server.Interrupted {
		return server, nil, err
	}
	r = &conformance.Report{Side: conformance.Agent, Transports: server.Transports}
	r.Join(server, "")
	for _, over := range server.Transports {
		way := transport(o.At, over, token)
		agent, err := conformance.CheckAgent(ctx, func(ctx context.Context) (*conformance.Peer, error) {
			stream, err := way.Open(ctx)
			if err != nil {
				return nil, err
			}
			return &conformance.Peer{Stream: stream, Network: over}, nil
		}, opt)
		switch {
		case errors.Is(err, conformance.ErrNoRule) && none:
			return r, nil, err
		case errors.Is(err, conformance.ErrNoRule):
			return r, nil, nil
		}
		r.Join(agent, over)
		if err != nil {
			return r, nil, err
		}
	}
	return r, nil, nil
}
