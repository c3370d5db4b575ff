// Package node carries connections between the nodes of a gateway. Each node has a key of its own, made when it
// starts, and says in the database, which all of them trust, where it listens and which key it has. Both ends of a
// connection check the key of the other one, so nothing needs to be set up, and whoever cannot write to the
// database cannot connect.
package node

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

const (
	// handshake bounds how long a connection may take to be made.
	handshake = 5 * time.Second
	// beat is how often each end says that it is there, and silence how long it is believed without that.
	beat    = time.Second
	silence = 5 * time.Second
	// maxConns bounds the connections that others have made.
	maxConns = 1024
)

// Info says how a node can be reached.
type Info struct {
	// Address is HOST:PORT.
	Address string `json:"address"`
	// Key is the SHA-256 of its certificate, in hex.
	Key string `json:"key"`
}

// A Listener accepts connections of other nodes and makes those of this one. Its methods may be called from
// any goroutine. It must be closed.
type Listener struct {
	cert  tls.Certificate
	info  Info
	inner net.Listener
}

// Listen listens at an address of this machine. Other nodes reach it at advertise, or there if that is "".
func Listen(ctx context.Context, address, advertise string) (*Listener, error) {
	cert, err := newCertificate()
	if err != nil {
		return nil, err
	}
	inner, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	l := &Listener{cert: cert, inner: inner, info: Info{Address: advertise, Key: keyOf(cert.Certificate[0])}}
	if advertise == "" {
		l.info.Address = inner.Addr().String()
		if host, _, err := net.SplitHostPort(l.info.Address); err != nil || net.ParseIP(host).IsUnspecified() {
			return nil, errors.Join(fmt.Errorf("other nodes cannot reach %s: say where they can", l.info.Address), inner.Close())
		}
	}
	return l, nil
}

// newCertificate makes a key, and a certificate that only carries it.
func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

func keyOf(cert []byte) string {
	sum := sha256.Sum256(cert)
	return hex.EncodeToString(sum[:])
}

// Info returns an [Info], as JSON.
func (l *Listener) Info() json.RawMessage {
	data, err := json.Marshal(l.info)
	if err != nil {
		panic(err) // two strings
	}
	return data
}

// Close ends Serve.
func (l *Listener) Close() error { return l.inner.Close() }

// Dial connects to the node that has said info of itself.
func (l *Listener) Dial(ctx context.Context, info json.RawMessage) (jsonrpc.Stream, error) {
	var to Info
	if err := json.Unmarshal(info, &to); err != nil {
		return nil, fmt.Errorf("where the node is: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", to.Address)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, l.config(func(key string) error {
		if key != to.Key {
			return errors.New("the node has another key")
		}
		return nil
	}))
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return newStream(secure), nil
}

// config returns the configuration for a connection whose other end must have a key.
func (l *Listener) config(check func(key string) error) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{l.cert}, ClientAuth: tls.RequireAnyClientCert,
		InsecureSkipVerify: true, // there is no authority: the database says which key it must be
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("no certificate")
			}
			return check(keyOf(s.PeerCertificates[0].Raw))
		},
	}
}

// Serve accepts connections until the listener is closed, and calls serve with each, on a goroutine of its own.
// known reports whether a node has a key. It returns when all calls of serve have returned.
func (l *Listener) Serve(ctx context.Context, known func(ctx context.Context, key string) (bool, error), serve func(context.Context, jsonrpc.Stream) error, log *slog.Logger) error {
	var work sync.WaitGroup
	defer work.Wait()
	room := make(chan struct{}, maxConns)
	for {
		conn, err := l.inner.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			log.Warn("node: a connection cannot be accepted", "error", err)
			timer := time.NewTimer(100 * time.Millisecond)
			select {
			case <-timer.C:
				continue
			case <-ctx.Done():
				timer.Stop()
				return nil
			}
		}
		select {
		case room <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		work.Go(func() {
			defer func() { <-room }()
			if err := l.accept(ctx, conn, known, serve); err != nil && ctx.Err() == nil {
				log.Info("node: a connection has ended", "from", conn.RemoteAddr().String(), "error", err)
			}
		})
	}
}

func (l *Listener) accept(ctx context.Context, conn net.Conn, known func(context.Context, string) (bool, error), serve func(context.Context, jsonrpc.Stream) error) error {
	bound, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	secure := tls.Server(conn, l.config(func(key string) error {
		switch ok, err := known(bound, key); {
		case err != nil:
			return err
		case !ok:
			return errors.New("no node has this key")
		}
		return nil
	}))
	if err := secure.HandshakeContext(bound); err != nil {
		return errors.Join(err, conn.Close())
	}
	return serve(ctx, newStream(secure))
}

// A stream is a connection whose ends notice when the other one is silent.
type stream struct {
	jsonrpc.Stream
	conn net.Conn
	stop chan struct{}
	once sync.Once
	work sync.WaitGroup

	door chan struct{} // holds a value while something is written
	mid  bool          // in the middle of a line; belongs to whoever writes
}

func newStream(conn net.Conn) *stream {
	s := &stream{conn: conn, stop: make(chan struct{}), door: make(chan struct{}, 1)}
	s.Stream = jsonrpc.NewLineStream(&reader{conn, bufio.NewReader(conn)}, writer{s})
	s.work.Go(s.beat)
	return s
}

// beat writes an empty line now and then, which says nothing.
func (s *stream) beat() {
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-s.stop:
			return
		}
		if err := s.blank(); err != nil {
			_ = s.conn.Close() // whoever reads is to know
			return
		}
	}
}

// blank writes an empty line, unless what is being written says as much.
func (s *stream) blank() error {
	select {
	case s.door <- struct{}{}:
		defer func() { <-s.door }()
	default:
		return nil
	}
	if s.mid {
		return nil
	}
	return s.write([]byte{'\n'})
}

// Close closes the connection.
func (s *stream) Close() error {
	var err error
	s.once.Do(func() {
		close(s.stop)
		err = s.conn.Close()
	})
	s.work.Wait()
	return errors.Join(err, ignoreClosed(s.Stream.Close()))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// reader fails when nothing comes.
type reader struct {
	conn net.Conn
	in   *bufio.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if r.in.Buffered() == 0 {
		if err := r.conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return 0, err
		}
	}
	return r.in.Read(p)
}

func (r *reader) Close() error { return r.conn.Close() }

// writer fails when nothing is taken.
type writer struct{ s *stream }

func (w writer) Write(p []byte) (int, error) {
	w.s.door <- struct{}{}
	defer func() { <-w.s.door }()
	n := 0
	for n < len(p) { // in parts, so that one that is large has time
		part := p[n:min(len(p), n+64<<10)]
		if err := w.s.write(part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// write writes a part. The caller is at the door.
func (s *stream) write(part []byte) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	s.mid = part[len(part)-1] != '\n'
	_, err := s.conn.Write(part)
	return err
}

func (w writer) Close() error { return w.s.conn.Close() }
