package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/cert"
	"github.com/goacp/acp/cmd/acp/internal/identity/oidc"
	"github.com/goacp/acp/cmd/acp/internal/serve"
)

// Doors are the flags about certificates and proxies.
type Doors struct {
	SelfMade  bool     // a certificate that the server makes itself
	ACME      []string // names of hosts for which an authority gives certificates
	Email     string   // where that authority writes to
	Directory string   // its URL
	Proxies   []string // networks whose X-Forwarded-For is believed
}

func (d *Doors) flags(f *pflag.FlagSet) {
	f.BoolVar(&d.SelfMade, "tls-self", false, "serve TLS with a certificate that the server makes itself; devices that are paired know it")
	f.StringArrayVar(&d.ACME, "acme-host", nil, "get certificates for the host `NAME` from an authority, whose terms you accept; it connects to port 443 (repeatable)")
	f.StringVar(&d.Email, "acme-email", "", "with --acme-host: the authority writes to `ADDRESS`")
	f.StringVar(&d.Directory, "acme-directory", "", "with --acme-host: the authority is at `URL` (default: Let's Encrypt)")
	f.StringArrayVar(&d.Proxies, "trusted-proxy", nil, "believe a proxy in the network `CIDR` about the addresses of clients (repeatable)")
}

// apply says in cfg where certificates come from. It returns the fingerprint of one that no authority vouches for.
func (d *Doors) apply(cfg *serve.Config, state string) (fingerprint string, err error) {
	if len(d.ACME) == 0 && (d.Email != "" || d.Directory != "") {
		return "", exitcode.Errorf(exitcode.Usage, "--acme-email and --acme-directory are for --acme-host")
	}
	switch {
	case d.SelfMade && len(d.ACME) > 0:
		return "", exitcode.Errorf(exitcode.Usage, "there can be one certificate only: --tls-cert, --tls-self or --acme-host")
	case d.SelfMade:
		names := append([]string{"localhost", "127.0.0.1", "::1"}, cfg.Hosts...)
		files, err := cert.SelfMade(filepath.Join(state, "certificate"), names, cfg.Logger)
		if err != nil {
			return "", err
		}
		cfg.TLS = files.TLSConfig()
		return files.Fingerprint(), nil
	case len(d.ACME) > 0:
		m, err := cert.NewManager(cert.ACME{Hosts: d.ACME, Dir: filepath.Join(state, "acme"), Email: d.Email, Directory: d.Directory})
		if err != nil {
			return "", exitcode.Errorf(exitcode.Usage, "--acme-host: %w", err)
		}
		cfg.TLS, cfg.Name, cfg.Hosts = m.TLSConfig(), d.ACME[0], append(cfg.Hosts, d.ACME...)
	}
	return "", nil
}

// proxies returns the networks of --trusted-proxy.
func (d *Doors) proxies() (all []netip.Prefix, err error) {
	for _, text := range d.Proxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			var addr netip.Addr
			if addr, err = netip.ParseAddr(text); err == nil {
				p, err = addr.Prefix(addr.BitLen())
			}
		}
		if err != nil {
			return nil, exitcode.Errorf(exitcode.Usage, "--trusted-proxy %s is no network such as 10.0.0.0/8", text)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// team returns what verifies the tokens of an issuer, or nil if there is none.
func team(c config.Serve) (identity.Team, error) {
	switch {
	case c.OIDC.Issuer == "" && c.OIDC.Client != "":
		return nil, exitcode.Errorf(exitcode.Usage, "--oidc-client is for --oidc-issuer")
	case c.OIDC.Issuer == "":
		return nil, nil
	}
	o := oidc.Config{Issuer: c.OIDC.Issuer, Audience: c.OIDC.Client, Groups: c.OIDC.Groups, User: c.OIDC.User, Roles: make(map[string]identity.Role)}
	var err error
	if o.Secret, err = expand(c.OIDC.Secret); err != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "serve.oidc.secret: %w", err)
	}
	for name, r := range c.Groups {
		if r.Role == "" {
			o.Rights = append(o.Rights, name)
			continue
		}
		role, err := identity.ParseRole(r.Role)
		if err != nil {
			return nil, exitcode.Errorf(exitcode.Usage, "serve.groups.%s: %w", name, err)
		}
		o.Roles[name] = role
	}
	if len(o.Roles) == 0 {
		return nil, exitcode.Errorf(exitcode.Usage, "no group has a role, so nobody with a token of %s may do anything: set serve.groups.NAME.role", o.Issuer)
	}
	v, err := oidc.New(o)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "--oidc-issuer, --oidc-client: %w", err)
	}
	return v, nil
}

// expand replaces ${NAME}.
func expand(text string) (_ string, err error) {
	text = variable().ReplaceAllStringFunc(text, func(v string) string {
		value := os.Getenv(v[2 : len(v)-1])
		if value == "" {
			err = fmt.Errorf("%s is not set", v)
		}
		return value
	})
	return text, err
}

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`) })

// peer says who another user of this machine is, by the settings: the user's own, or those of everybody.
func peer(c config.Serve, lookup func(uid string) (*user.User, error)) func(identity.Peer) (identity.Principal, error) {
	return func(p identity.Peer) (identity.Principal, error) {
		u, err := lookup(strconv.Itoa(p.UID))
		if unknown := user.UnknownUserIdError(0); errors.As(err, &unknown) {
			return identity.Principal{}, fmt.Errorf("%w: the user %d has no name", identity.ErrDenied, p.UID)
		}
		if err != nil {
			return identity.Principal{}, err
		}
		r, ok := c.Users[u.Username]
		if !ok {
			r = c.Users["*"]
		}
		role, err := identity.ParseRole(r.Role)
		if err != nil {
			return identity.Principal{}, fmt.Errorf("%w: %s has no role", identity.ErrDenied, u.Username)
		}
		return identity.Principal{Kind: identity.KindLocal, User: u.Username, Role: role}, nil
	}
}

// open makes the gate one for the users of the settings.
func (d *durable) open(o *Options, c config.Serve) (err error) {
	d.gate.Local = true
	if d.gate.Proxies, err = o.Doors.proxies(); err != nil {
		return err
	}
	if d.tenants.many {
		d.gate.Peer = peer(c, user.LookupId)
	}
	t, err := team(c)
	if t != nil {
		d.gate.Team = t
	}
	return err
}

// openServer opens the server for clients; d is nil where nothing is kept.
func (o *Options) openServer(ctx context.Context, cfg serve.Config, d *durable) (*serve.Server, error) {
	fingerprint, err := o.Doors.apply(&cfg, cfg.State)
	if err != nil {
		return nil, err
	}
	if d != nil {
		d.admit(&cfg)
	}
	server, err := serve.Open(cfg)
	if err != nil || d == nil {
		return server, err
	}
	d.gate.Hosts = server.Hosts()
	o.Web.open(o, server, d)
	if err := d.announce(ctx, server.URL(), fingerprint, o.Web.page != ""); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return server, nil
}

// admit lets in whom the gate knows: devices that were paired, users of this machine on a socket, and members of a team.
func (d *durable) admit(cfg *serve.Config) {
	d.gate.Origins, cfg.Gate = cfg.Origins, d.gate
	cfg.Paths = map[string]http.Handler{identity.PairPath: d.gate.Handler()}
	cfg.Certain = d.gate.Team != nil
	cfg.ConnContext, cfg.Everybody = identity.ConnContext, d.tenants.many
	if d.tenants.many || runtime.GOOS == "linux" || runtime.GOOS == "darwin" { // elsewhere nobody knows who connects
		cfg.Peers = d.gate.Authenticate
	}
	cfg.Others = func(r *http.Request) (string, bool, error) {
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		token = strings.TrimSpace(token)
		if !identity.IsCredential(token) && (d.gate.Team == nil || token == "") {
			return "", false, nil
		}
		principal, err := d.gate.Authenticate(r)
		return principal, true, err
	}
	all := cfg.Serve
	devices := d.gate.Serve(all)
	cfg.Serve = func(ctx context.Context, t acp.Transport) error {
		if isOwner(ctx) {
			return all(ctx, t)
		}
		return devices(ctx, t) // which refuses whom it does not know
	}
}
