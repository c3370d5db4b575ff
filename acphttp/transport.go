package acphttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// A Transport is a way to an agent over Streamable HTTP. It is an [acp.Transport] for
// clients, and may be opened any number of times. Fields must not be changed once it
// is in use.
//
// A connection makes one request at a time for each session, so messages of a session
// arrive in the order in which they were sent; sessions do not wait for each other.
// The agent's messages arrive on one stream for each session and one for the
// connection. Between streams there is no order: what an agent sends in one session
// is in order, with the answers to that session's requests. Where a server sends the
// answer to session/load on the stream of the connection, as the TypeScript SDK does,
// it is held back until the history has arrived, for up to 5 s: the client sends a
// request that no agent knows, and waits for its answer, which follows the history.
//
// What is to be posted waits in memory, up to 1 MiB for a session and 64 MiB in all.
// Then what is sent in that session waits, or everything.
//
// When the network fails, streams are resumed if the server can do that, for up to
// RetryFor; the connection does not notice. Otherwise it ends with a [*BrokenError].
// A request that the server refuses fails alone, with a [*StatusError]. Requests that
// certainly did not arrive are repeated, among them those answered with 429, or with 503
// and a time; so are others, if the server recognizes repetitions, as a [Server] does.
// The error of one that may have arrived wraps [jsonrpc.ErrOutcomeUnknown].
type Transport struct {
	URL string
	// Header is sent with every request.
	Header http.Header
	// Token returns what is sent as Authorization: Bearer, if it is not "". It is
	// called before each request and must be safe for concurrent use.
	Token func(ctx context.Context) (string, error)
	// Client makes the requests. It should have no Timeout, and a Jar if the
	// server sets cookies. Redirects are not followed, whatever it says. Nil
	// means one with a jar of its own, whose connections are closed with the
	// stream.
	Client *http.Client
	// RetryFor is how long a connection that broke is tried again; 0 means 30 s,
	// negative never.
	RetryFor time.Duration
	// Interrupted, if it is not nil, is called with why the network fails once a
	// request or a stream is tried again for that, and with nil once the server has
	// answered one again. What is sent in between is kept, and posted afterwards. A
	// request that was tried for RetryFor fails, and that alone is no change. The hook
	// is called once for each change, one call after the other, and not for the end of
	// the connection. Only that end waits for it, for the grace of the connection at
	// most, so it must not close the connection.
	Interrupted func(err error)
	// MaxMessage bounds incoming messages, in bytes; 0 means 32 MiB. A larger one
	// ends the connection.
	MaxMessage int
	// Logger gets what was refused and has no answer that could say so:
	// notifications; and that Interrupted panicked. It never gets payload; nil means
	// [slog.Default].
	Logger *slog.Logger
}

// NewTransport returns the way to the agent at a URL such as
// https://agents.example/acp.
func NewTransport(url string) *Transport { return &Transport{URL: url} }

// Open implements [acp.Transport]. It makes no request yet: the connection begins
// with initialize.
func (t *Transport) Open(context.Context) (jsonrpc.Stream, error) {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("acphttp: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("acphttp: %s is not the URL of a server", u.Redacted())
	case u.User != nil:
		return nil, errors.New("acphttp: a URL must not hold a password: set Token or Header")
	}
	client, own := t.Client, false
	if client == nil {
		jar, err := cookiejar.New(nil)
		if err != nil {
			return nil, err
		}
		transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
		if base, ok := http.DefaultTransport.(*http.Transport); ok { // not one that was put in its place
			transport = base.Clone()
		}
		transport.MaxIdleConnsPerHost = 16
		// Node closes connections that were idle for 5 s. A message that is
		// posted at that moment would have an unknown outcome.
		transport.IdleConnTimeout = 4 * time.Second
		client, own = &http.Client{Transport: transport, Jar: jar}, true
	}
	copied := *client
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s := &clientStream{
		t: t, client: &copied, own: own, retryFor: t.RetryFor, maxMessage: t.MaxMessage,
		outage:   outage{hook: t.Interrupted, log: t.Logger},
		in:       inbox{soft: clientUnread, hard: clientUnread},
		lanes:    make(map[string]*postLane),
		sessions: make(map[string]*events),
		sent:     make(map[string]asked),
		asked:    make(map[string]string),
	}
	setDefault(&s.maxMessage, 32<<20)
	s.maxMessage = min(s.maxMessage, maxBound)
	if s.retryFor == 0 {
		s.retryFor = 30 * time.Second
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s, nil
}
