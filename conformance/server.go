package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp/internal/pattern"
)

// An Endpoint is where a server is reached.
type Endpoint struct {
	// URL has the scheme http, https, ws or wss. The rules are about both HTTP and
	// WebSockets at it, whichever it names.
	URL string
	// Header is sent with every request, such as Authorization, and never shown.
	Header http.Header
	// Dial opens connections; nil means those of package net.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLS is used for https and wss; nil means the defaults.
	TLS *tls.Config
}

// CheckServer checks the server at an endpoint with the rules for servers, which are
// about requests and responses and not about what the agent says in them. The agent's
// own rules are those of [CheckAgent], over a stream through the same server.
//
// Rules are tried in one version of the protocol, the first of opt that the server's
// agent speaks, and their results have none. Each is tried on connections of its own,
// which are deleted afterwards. Options about agents alone are ignored, and so is
// Record. For errors see [CheckAgent]; what the server serves is in the report even if
// the error is [ErrNoRule].
func CheckServer(ctx context.Context, at *Endpoint, opt Options) (*Report, error) {
	c := newChecker(ctx, Server, nil, opt)
	s, err := newSite(at)
	if err != nil {
		return c.report, err
	}
	why, late := s.explore(c)
	for _, over := range []string{OverHTTP, OverWebSocket} {
		if s.has[over] {
			c.report.Transports = append(c.report.Transports, over)
		}
	}
	if len(c.rules) == 0 {
		return c.report, ErrNoRule
	}
	if why == "" {
		if c.opt.Cwd, err = c.opt.newCwd(); err != nil {
			why = err.Error()
			s.why = why
		}
	}
	if why != "" && ctx.Err() == nil {
		c.report.Broken, c.report.Cause = why, CauseOther
		if late {
			c.report.Cause = CauseLate
		}
	}
	for _, r := range c.rules {
		if ctx.Err() != nil {
			break
		}
		res := s.try(c, r)
		if ctx.Err() != nil && res.Status != Pass {
			break // the interruption may be to blame
		}
		c.add(res)
	}
	if ctx.Err() != nil {
		c.report.Interrupted = true
		c.report.Left = len(c.rules) - len(c.report.Results)
	}
	c.report.sort()
	c.report.Took = time.Since(c.start)
	return c.report, cause(ctx)
}

// A site is the server under test and what is known of it.
type site struct {
	at       *Endpoint
	url      *url.URL // with the scheme http or https
	secrets  []string // that are not shown
	version  int      // of the protocol in which rules are tried; 0 if none works
	init     *pattern.Value
	has      map[string]bool // of serverNeeds
	scripted bool
	why      string // why nothing can be tried, or ""
}

func newSite(at *Endpoint) (*site, error) {
	u, err := url.Parse(at.URL)
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	switch u.Scheme {
	case "ws":
		u.Scheme = "http"
	case "wss":
		u.Scheme = "https"
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("conformance: %s is not the URL of a server", u.Redacted())
	}
	s := &site{at: at, url: u, has: map[string]bool{}}
	for _, values := range at.Header {
		for _, v := range values {
			s.secrets = append(s.secrets, v)
			if _, token, ok := strings.Cut(v, " "); ok {
				s.secrets = append(s.secrets, token)
			}
		}
	}
	s.has["token"] = at.Header.Get("Authorization") != ""
	s.has["tls"] = u.Scheme == "https"
	ip := net.ParseIP(u.Hostname())
	s.has["loopback"] = u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return s, nil
}

// explore finds out what the server serves and which version its agent speaks. It
// returns why nothing can be checked, or "".
func (s *site) explore(c *checker) (why string, late bool) {
	var last error
	for _, version := range c.opt.versions() {
		for _, over := range []string{OverHTTP, OverWebSocket} {
			if s.has[over] {
				continue
			}
			t := newNetTrial(c.ctx, s, version, &c.opt)
			err := t.begin(over)
			t.close()
			switch {
			case err == nil:
				s.has[over] = true
				s.version, s.init = t.version, t.known["init"]
			case last == nil:
				last = err
			}
		}
		if s.version != 0 {
			break
		}
	}
	if s.version == 0 {
		s.why = "the server does not answer initialize, neither over HTTP nor over WebSocket"
		if last != nil {
			s.why += ": " + clip(last.Error(), 300)
		}
		return s.why, causeOf(last) == CauseLate
	}
	c.report.Versions = []int{s.version}
	c.report.introduce(s.init)
	s.scripted = s.init.Get("_meta").Get("tspeer").Get("script") != nil
	return "", false
}

// begin opens a connection and initializes it in the trial's version.
func (t *netTrial) begin(over string) error {
	var err error
	if over == OverHTTP {
		err = t.connect(nil)
	} else if err = t.upgrade(nil, true); err == nil {
		err = t.greet()
	}
	if err != nil {
		return err
	}
	if v := t.known["init"].Get("protocolVersion"); v == nil || v.Text != fmt.Sprint(t.version) {
		return broken("the agent does not speak version %d", t.version)
	}
	return nil
}

// try tries a rule.
func (s *site) try(c *checker, r *Rule) *Result {
	start := time.Now()
	res := &Result{Rule: r, Status: Pass}
	if s.why != "" {
		res.Status, res.Why = Broken, s.why
		return res
	}
	for _, need := range r.Needs {
		if !s.has[need] {
			res.Status, res.Why = Skip, serverNeeds[need]
			return res
		}
	}
	sc := c.all.tests[r].scenarios[s.version]
	if sc == nil || !slices.Contains(r.Versions, s.version) {
		res.Status, res.Why = Skip, fmt.Sprintf("it does not apply to version %d", s.version)
		return res
	}
	t := newNetTrial(c.ctx, s, s.version, &c.opt)
	err := t.play(sc.steps)
	t.close()
	if err != nil {
		res.Status, res.Why = Broken, s.conceal(clip(err.Error(), 600))
		if v, ok := errors.AsType[*verdict](err); ok {
			res.Status = v.status
		}
		if words, ok := strings.CutPrefix(res.Why, noWords); ok {
			res.Purpose, _, _ = strings.Cut(words, " ")
		}
	}
	res.Saw = append(slices.Clone(t.saw.first), t.saw.last...)
	res.Took = time.Since(start)
	return res
}

// conceal takes out of a text what must not be shown.
func (s *site) conceal(text string) string {
	for _, secret := range s.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}
