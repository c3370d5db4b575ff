package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/cmd/acp/internal/cli/version"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/cmd/acp/internal/identity/cert"
)

// fakeGateway is a gateway as package identity makes one: it serves an agent that says who its client is.
// It prints its URL. With the argument tls it has made its certificate itself.
func fakeGateway() {
	if err := runGateway(slices.Contains(os.Args[1:], "tls")); err != nil {
		fmt.Fprintln(os.Stderr, "fake-gateway:", err)
		os.Exit(1)
	}
}

func runGateway(secure bool) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir := identity.Dir(filepath.Join(os.Getenv("XDG_STATE_HOME"), "acp"))
	store, err := identity.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	gate := &identity.Gate{Store: store, Audit: audit.Open(dir)}
	agent := &acp.Agent{
		Info: acp.Implementation{Name: "gateway", Version: version.String()},
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			p, _ := identity.FromContext(ctx)
			if t.Text() == "wait" {
				_ = t.Say("waiting")
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "", t.Say(fmt.Sprintf("You are %s on %s, %s.", p.User, p.Name, p.Role))
		},
	}
	agents := &acphttp.Server{Serve: gate.Serve(agent.Serve), Authenticate: gate.Authenticate, Upgrade: acpws.Upgrader{}, Keep: acphttp.Retention{Bytes: 1 << 20}}
	mux := http.NewServeMux()
	mux.Handle("/acp", agents)
	mux.Handle(identity.PairPath, gate.Handler())
	web := &http.Server{Handler: mux, ConnContext: identity.ConnContext}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	at := identity.Endpoint{URL: "http://" + l.Addr().String() + "/acp"}
	if secure {
		files, err := cert.SelfMade(filepath.Join(dir, "tls"), []string{"127.0.0.1"}, nil)
		if err != nil {
			return err
		}
		l = tls.NewListener(l, files.TLSConfig())
		at = identity.Endpoint{URL: "https://" + l.Addr().String() + "/acp", Fingerprint: files.Fingerprint()}
	}
	if err := store.Announce(ctx, at); err != nil {
		return err
	}
	fmt.Println(at.URL)
	served := make(chan error, 1)
	go func() { served <- web.Serve(l) }()
	<-ctx.Done()
	err = errors.Join(agents.Close(context.Background()), web.Close())
	<-served
	return err
}
