package acpws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"sync"

	"github.com/coder/websocket"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/jsonrpc"
)

// maxMessage is the limit for incoming messages, in bytes, unless
// [Transport.MaxMessage] sets another.
const maxMessage = 32 << 20

// Upgrader makes WebSockets for an [acphttp.Server], which checks origins itself. It
// is safe for concurrent use.
var Upgrader acphttp.Upgrader = upgrader{}

type upgrader struct{}

func (upgrader) Upgrade(w http.ResponseWriter, r *http.Request, header http.Header, most int) (acphttp.Messages, error) {
	for k, v := range header {
		w.Header()[k] = v
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	return newMessages(conn, most), nil
}

// A Transport is a way to an agent over WebSocket. It is an acp.Transport for
// clients, and may be opened any number of times. Fields must not be changed once it
// is in use.
type Transport struct {
	URL string // such as wss://agents.example/acp
	// Header is sent with the request for the WebSocket.
	Header http.Header
	// Token returns what is sent as Authorization: Bearer, if it is not "".
	Token func(ctx context.Context) (string, error)
	// Client makes the request. It must have no Timeout. Nil means one with a
	// jar for cookies of its own.
	Client *http.Client
	// MaxMessage bounds incoming messages, in bytes; 0 means 32 MiB. A larger one
	// ends the connection.
	MaxMessage int
}

// NewTransport returns the way to the agent at a URL such as wss://agents.example/acp.
func NewTransport(url string) *Transport { return &Transport{URL: url} }

// Open implements acp.Transport. A server that answers without a WebSocket is an
// [*acphttp.StatusError].
func (t *Transport) Open(ctx context.Context) (jsonrpc.Stream, error) {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("acpws: %w", err)
	case u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "":
		return nil, fmt.Errorf("acpws: %s is not the URL of a WebSocket", u.Redacted())
	case u.User != nil:
		return nil, errors.New("acpws: a URL must not hold a password: set Token or Header")
	}
	client := t.Client
	if client == nil {
		jar, err := cookiejar.New(nil)
		if err != nil {
			return nil, err
		}
		client = &http.Client{Jar: jar}
	}
	copied := *client
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	header := t.Header.Clone()
	if t.Token != nil {
		token, err := t.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("acpws: token: %w", err)
		}
		if token != "" {
			if header == nil {
				header = make(http.Header)
			}
			header.Set("Authorization", "Bearer "+token)
		}
	}
	conn, resp, err := websocket.Dial(ctx, t.URL, &websocket.DialOptions{HTTPClient: &copied, HTTPHeader: header})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return nil, fmt.Errorf("acpws: %w", acphttp.ResponseError(resp))
		}
		return nil, fmt.Errorf("acpws: %w", err)
	}
	most := t.MaxMessage
	if most <= 0 {
		most = maxMessage
	}
	return acphttp.NewMessageStream(newMessages(conn, most)), nil
}

// messages is an open WebSocket.
type messages struct {
	conn *websocket.Conn
	once sync.Once
}

func newMessages(conn *websocket.Conn, most int) *messages {
	conn.SetReadLimit(int64(most))
	return &messages{conn: conn}
}

func (m *messages) Read(ctx context.Context) ([]byte, error) {
	for {
		kind, text, err := m.conn.Read(ctx)
		switch code := websocket.CloseStatus(err); {
		case err == nil && kind == websocket.MessageText:
			return text, nil
		case err == nil: // binary
		case code == websocket.StatusNormalClosure, code == websocket.StatusGoingAway:
			return nil, io.EOF
		default:
			return nil, err
		}
	}
}

func (m *messages) Write(ctx context.Context, text []byte) error {
	return m.conn.Write(ctx, websocket.MessageText, text)
}

func (m *messages) Ping(ctx context.Context) error { return m.conn.Ping(ctx) }

func (m *messages) Close(code int, reason string) error {
	m.once.Do(func() {
		if err := m.conn.Close(websocket.StatusCode(code), reason); err != nil {
			_ = m.conn.CloseNow() // the peer had gone before
		}
	})
	return nil
}
