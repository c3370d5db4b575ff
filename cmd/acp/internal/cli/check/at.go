package check

import (
	"cmp"
	"context"
	"errors"
	"net"
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

// A site is the server that --at names.
type site struct {
	name, url, token string
	// pin is the fingerprint of the server's certificate, if no authority vouches for it; or "".
	pin string
	// dial connects to a Unix socket, whatever the URL; nil is for all other servers.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// site returns the server that --at names. The token is that of --token-file, of ACP_TOKEN, of the agent's settings, or of a
// server of this user on this machine, or of one that this machine has joined; or "".
func (o *Options) site() (*site, error) {
	agent, err := o.App.At(o.At)
	if err != nil {
		return nil, err
	}
	how := agent.Remote
	how.State = cmp.Or(how.State, config.DirsOf(os.Environ(), "").State)
	if o.TokenFile != "" {
		how.Token = remote.Source{File: o.file(o.TokenFile)}
	}
	s := &site{name: o.At, url: agent.URL}
	if s.token, s.pin, err = remote.Find(agent.URL, how); err != nil {
		return nil, exitcode.With(exitcode.Usage, err)
	}
	if path, ok := strings.CutPrefix(agent.URL, "unix:"); ok {
		s.url = "http://localhost" + remote.DefaultPath
		s.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	return s, nil
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
	if !strings.Contains(o.At, "://") { // own, unix:PATH, or the name of an agent
		return nil
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

// transport returns the way to the agent of a server over HTTP or over WebSocket, and what closes its idle connections.
func (s *site) transport(over string) (way acp.Transport, idle func(), err error) {
	bearer := func(context.Context) (string, error) { return s.token, nil }
	_, rest, _ := strings.Cut(s.url, "://")
	secure := strings.HasPrefix(s.url, "https:") || strings.HasPrefix(s.url, "wss:")
	var client *http.Client
	idle = func() {}
	switch {
	case s.dial != nil:
		client = &http.Client{Transport: &http.Transport{DialContext: s.dial}}
	case s.pin != "":
		if client, err = remote.PinnedClient(s.pin); err != nil {
			return nil, nil, err
		}
	}
	if client != nil {
		idle = client.CloseIdleConnections
	}
	if over == conformance.OverWebSocket {
		t := acpws.NewTransport("ws://" + rest)
		if secure {
			t.URL = "wss://" + rest
		}
		t.Token, t.Client = bearer, client
		return t, idle, nil
	}
	t := acphttp.NewTransport("http://" + rest)
	if secure {
		t.URL = "https://" + rest
	}
	t.Token, t.Client = bearer, client
	t.RetryFor = -1 // a connection that breaks is a finding
	return t, idle, nil
}

// checkAt checks the server of --at, and then its agent over each transport that the
// server serves. reached is why it could not be reached, or nil.
func (o *Options) checkAt(ctx context.Context, opt conformance.Options) (r *conformance.Report, reached, err error) {
	s, err := o.site()
	if err != nil {
		return nil, nil, err
	}
	at := &conformance.Endpoint{URL: s.url, Header: http.Header{}, Dial: s.dial}
	if s.token != "" {
		at.Header.Set("Authorization", "Bearer "+s.token)
	}
	if s.pin != "" {
		if at.TLS, err = remote.PinnedTLS(s.pin); err != nil {
			return nil, nil, err
		}
	}
	server, err := conformance.CheckServer(ctx, at, opt)
	if server != nil && strings.Contains(server.Broken, "401 Unauthorized") {
		said := &acphttp.StatusError{Status: http.StatusUnauthorized, Text: "the token is missing"}
		if s.token != "" {
			said.Text = "the token is wrong"
		}
		return nil, nil, remote.Explain(s.name, said)
	}
	none := errors.Is(err, conformance.ErrNoRule)
	if err != nil && !none || server.Broken != "" || server.Interrupted {
		return server, nil, err
	}
	r = &conformance.Report{Side: conformance.Agent, Transports: server.Transports}
	r.Join(server, "")
	for _, over := range server.Transports {
		way, idle, err := s.transport(over)
		if err != nil {
			return r, nil, err
		}
		agent, err := conformance.CheckAgent(ctx, func(ctx context.Context) (*conformance.Peer, error) {
			stream, err := way.Open(ctx)
			if err != nil {
				return nil, err
			}
			return &conformance.Peer{Stream: stream, Network: over}, nil
		}, opt)
		idle()
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
