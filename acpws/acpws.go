package acpws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/jsonrpc"
)

// maxMessage is the limit for incoming messages, in bytes, unless
// [Transport.MaxMessage] sets another.
const maxMessage = 32 << 20

// An Upgrader makes WebSockets for an [acphttp.Server], which checks origins itself.
// The zero value is ready to use, and safe for concurrent use.
type Upgrader struct{}

// Upgrade implements [acphttp.Upgrader].
func (Upgrader) Upgrade(w http.ResponseWriter, r *http.Request, header http.Header, most int) (acphttp.Messages, error) {
	for k, v := range header {
		w.Header()[k] = v
	}
	corking := &corkingWriter{ResponseWriter: w}
	conn, err := websocket.Accept(corking, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	return newMessages(conn, corking.conn, most), nil
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
	// RetryFor is how long a WebSocket that broke is tried again, if the server
	// can resume; 0 means 30 s, negative never.
	RetryFor time.Duration
	// Interrupted, if it is not nil, is called with why a WebSocket that broke is
	// tried again, and with nil once there is another one: see [acphttp.Transport].
	Interrupted func(err error)
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
	client := http.Client{}
	if t.Client != nil {
		client = *t.Client
	} else if client.Jar, err = cookiejar.New(nil); err != nil {
		return nil, err
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	m, header, err := t.dial(ctx, client)
	if err != nil {
		return nil, err
	}
	options := acphttp.MessageOptions{Header: header, RetryFor: t.RetryFor, Interrupted: t.Interrupted}
	if t.RetryFor >= 0 {
		options.Redial = func(ctx context.Context) (acphttp.Messages, error) {
			m, _, err := t.dial(ctx, client)
			return m, err
		}
	}
	return acphttp.NewMessageStream(m, options), nil
}

// dial opens a WebSocket.
func (t *Transport) dial(ctx context.Context, client http.Client) (acphttp.Messages, http.Header, error) {
	header := t.Header.Clone()
	if t.Token != nil {
		token, err := t.Token(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("acpws: token: %w", err)
		}
		if token != "" {
			if header == nil {
				header = make(http.Header)
			}
			header.Set("Authorization", "Bearer "+token)
		}
	}
	dialled := corkDial(&client)
	conn, resp, err := websocket.Dial(ctx, t.URL, &websocket.DialOptions{HTTPClient: &client, HTTPHeader: header})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return nil, nil, fmt.Errorf("acpws: %w", acphttp.ResponseError(resp))
		}
		return nil, nil, fmt.Errorf("acpws: %w", err)
	}
	most := t.MaxMessage
	if most <= 0 {
		most = maxMessage
	}
	return newMessages(conn, dialled(), most), resp.Header, nil
}

// messages is an open WebSocket.
type messages struct {
	conn *websocket.Conn
	cork *corked // the connection below; nil if that is not known
	once sync.Once
	left bool // the peer has answered the first Close
	// of whoever reads:
	buf    []byte  // the last message
	pooled *[]byte // buf belongs there
}

func newMessages(conn *websocket.Conn, cork *corked, most int) *messages {
	conn.SetReadLimit(int64(most))
	return &messages{conn: conn, cork: cork}
}

// keepBuffer bounds the buffers for messages that are used again.
const keepBuffer = 64 << 10

// readBuffers has those of connections for which no message is being read, so that
// connections that wait hold none.
var readBuffers = sync.Pool{New: func() any {
	buf := make([]byte, 0, 4<<10)
	return &buf
}}

// Read reads without a context, which would cost as much as the rest: Close ends it.
func (m *messages) Read() ([]byte, error) {
	for {
		m.release()
		kind, r, err := m.conn.Reader(context.Background())
		if err == nil {
			err = m.readAll(r)
		}
		switch code := websocket.CloseStatus(err); {
		case err == nil && (m.cork != nil && m.cork.failed.Load() || m.cork == nil && len(m.buf) == 0):
			// The library takes the end of the network between the parts of a
			// message for the end of the message.
			return nil, io.ErrUnexpectedEOF
		case err == nil && kind == websocket.MessageText && !utf8.Valid(m.buf):
			m.Close(int(websocket.StatusInvalidFramePayloadData), "the text is not UTF-8")
			return nil, errors.New("acpws: a text message is not UTF-8")
		case err == nil && kind == websocket.MessageText:
			return m.buf, nil
		case err == nil: // binary
		case code == websocket.StatusNormalClosure, code == websocket.StatusGoingAway:
			return nil, io.EOF
		case errors.Is(err, io.EOF): // nobody has said goodbye
			return nil, fmt.Errorf("%w: %v", io.ErrUnexpectedEOF, err)
		default:
			return nil, err
		}
	}
}

// readAll reads a message into the buffer.
func (m *messages) readAll(r io.Reader) error {
	m.pooled = readBuffers.Get().(*[]byte)
	m.buf = (*m.pooled)[:0]
	for {
		n, err := r.Read(m.buf[len(m.buf):cap(m.buf)])
		m.buf = m.buf[:len(m.buf)+n]
		switch {
		case err == io.EOF: // of the message; that of the network is wrapped
			return nil
		case err != nil:
			return err
		}
		if len(m.buf) == cap(m.buf) {
			m.buf = slices.Grow(m.buf, len(m.buf))
		}
	}
}

// release gives the buffer back: the last message has been used.
func (m *messages) release() {
	if m.pooled != nil && cap(m.buf) <= keepBuffer {
		*m.pooled = m.buf
		readBuffers.Put(m.pooled)
	}
	m.buf, m.pooled = nil, nil
}

func (m *messages) Write(texts ...[]byte) error {
	if m.cork == nil || len(texts) == 1 && len(texts[0]) < writerSize-16 { // one write anyway
		return m.write(texts)
	}
	m.cork.begin()
	err := m.write(texts)
	if ended := m.cork.end(); err == nil {
		err = ended
	}
	return err
}

func (m *messages) write(texts [][]byte) error {
	for _, text := range texts {
		if err := m.conn.Write(context.Background(), websocket.MessageText, text); err != nil {
			return err
		}
	}
	return nil
}

func (m *messages) Ping(ctx context.Context) error { return m.conn.Ping(ctx) }

func (m *messages) Close(code int, reason string) (answered bool) {
	m.once.Do(func() {
		if code == 1006 { // nothing is said to a peer that may be gone
			_ = m.conn.CloseNow()
			return
		}
		if m.left = m.conn.Close(websocket.StatusCode(code), reason) == nil; !m.left {
			_ = m.conn.CloseNow() // the peer had gone before
		}
	})
	return m.left
}
