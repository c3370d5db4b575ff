package conformance

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6455 asks for it
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp/internal/pattern"
)

// Opcodes of WebSocket frames.
const (
	opContinue = 0x0
	opText     = 0x1
	opBinary   = 0x2
	opClose    = 0x8
	opPing     = 0x9
	opPong     = 0xa
)

// A socket is an open WebSocket. The trial's mu guards what is received.
type socket struct {
	conn net.Conn

	texts  []event // messages
	pongs  []string
	bad    string // what was wrong with a frame, or ""
	code   int    // of the close frame, or 0
	over   bool
	parts  int // frames of our own message so far
	closed bool
}

func (s *socket) abort() { _ = s.conn.Close() }

// upgrade asks for a WebSocket, which must be had if needed. The response is $response.
func (t *netTrial) upgrade(headers []string, needed bool) error {
	if t.socket != nil {
		t.socket.abort()
		t.socket = nil
	}
	key := make([]byte, 16)
	_, _ = rand.Read(key) // it never fails
	encoded := base64.StdEncoding.EncodeToString(key)
	headers = append([]string{
		"Accept:", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " + encoded,
	}, headers...)
	ctx, cancel := context.WithTimeout(t.ctx, t.limit)
	defer cancel()
	req, err := t.newRequest(ctx, http.MethodGet, "", headers)
	if err != nil {
		return err
	}
	req.Header.Del(connectionHeader)
	req.Body = http.NoBody
	t.see(true, "GET; %s", headerText(req.Header))
	conn, err := t.site.dial(ctx)
	if err != nil {
		return failed("connecting failed: %s", clip(err.Error(), 200))
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	defer context.AfterFunc(t.ctx, func() { _ = conn.Close() })()
	r := bufio.NewReader(conn)
	err = req.Write(conn)
	var resp *http.Response
	if err == nil {
		resp, err = http.ReadResponse(r, req)
	}
	if err != nil {
		_ = conn.Close()
		if t.ctx.Err() != nil {
			return cause(t.ctx)
		}
		return failed("the request for a WebSocket was not answered: %s", clip(err.Error(), 200))
	}
	got := &response{status: resp.StatusCode, header: resp.Header, proto: resp.Proto, close: func() {}}
	if resp.StatusCode != http.StatusSwitchingProtocols && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
		got.body = string(data)
	}
	t.see(false, "%s", strings.TrimRight(fmt.Sprintf("%s; %s\n%s", got, headerText(got.header), got.body), "\n; "))
	if t.response != nil {
		t.response.close()
	}
	t.response = got
	t.known["response"] = got.value()
	sum := sha1.Sum([]byte(encoded + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // RFC 6455 asks for it
	t.known["accept"] = pattern.Text(base64.StdEncoding.EncodeToString(sum[:]))
	if resp.StatusCode != http.StatusSwitchingProtocols {
		_ = conn.Close()
		if needed {
			return broken("the request for a WebSocket was answered with %s", got)
		}
		return nil
	}
	_ = conn.SetDeadline(time.Time{})
	s := &socket{conn: conn}
	t.socket = s
	t.readers.Go(func() { t.receive(s, r) })
	return nil
}

// dial connects to the server for a WebSocket.
func (s *site) dial(ctx context.Context) (net.Conn, error) {
	port := s.url.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[s.url.Scheme]
	}
	dial := s.at.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(s.url.Hostname(), port))
	if err != nil || !s.has["tls"] {
		return conn, err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.at.TLS != nil {
		cfg = s.at.TLS.Clone()
	}
	if cfg.ServerName == "" {
		cfg.ServerName = s.url.Hostname()
	}
	cfg.NextProtos = []string{"http/1.1"}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// receive reads frames until the end.
func (t *netTrial) receive(s *socket, r *bufio.Reader) {
	var message []byte
	for {
		op, fin, data, err := readFrame(r)
		t.mu.Lock()
		var bad *frameError
		if errors.As(err, &bad) && s.bad == "" {
			s.bad = bad.Error()
		}
		s.over = err != nil
		t.mu.Unlock()
		if err != nil {
			_ = s.conn.Close()
			signal(t.ready)
			return
		}
		switch op {
		case opText, opContinue, opBinary:
			message = append(message, data...)
			if !fin || len(message) > maxWaitingBytes {
				continue
			}
			t.arrived(s, op, message)
			message = nil
		case opPing:
			t.see(false, "ping %s", data)
			_ = t.write(s, opPong, true, data)
		case opPong:
			t.see(false, "pong %s", data)
			t.mu.Lock()
			if len(s.pongs) < maxWaiting {
				s.pongs = append(s.pongs, string(data))
			}
			t.mu.Unlock()
		case opClose:
			code := 1005 // RFC 6455: none was given
			if len(data) >= 2 {
				code = int(binary.BigEndian.Uint16(data))
			}
			t.see(false, "close %d %s", code, data[min(2, len(data)):])
			t.mu.Lock()
			s.code = code
			answer := !s.closed
			t.mu.Unlock()
			if answer {
				_ = t.write(s, opClose, true, data)
			}
		}
		signal(t.ready)
	}
}

// arrived keeps a message.
func (t *netTrial) arrived(s *socket, op byte, message []byte) {
	t.see(false, "%s", message)
	ev := event{data: string(message)}
	if v, err := pattern.Parse(ev.data); err == nil {
		ev.val = v
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case op == opBinary && s.bad == "":
		s.bad = "it sent a binary message"
	case !utf8.Valid(message) && s.bad == "":
		s.bad = "it sent a message that is not UTF-8"
	case (ev.val == nil || ev.val.Kind != pattern.Object) && s.bad == "":
		s.bad = "it sent a message that is not one JSON object: " + clip(ev.data, 100)
	}
	if len(s.texts) < maxWaiting {
		s.texts = append(s.texts, ev)
	}
}

// A frameError is a frame that RFC 6455 forbids.
type frameError struct{ why string }

func (e *frameError) Error() string { return e.why }

// readFrame reads a frame.
func readFrame(r *bufio.Reader) (op byte, fin bool, data []byte, err error) {
	var head [10]byte
	if _, err = io.ReadFull(r, head[:2]); err != nil {
		return 0, false, nil, err
	}
	op, fin = head[0]&0x0f, head[0]&0x80 != 0
	reserved, masked := head[0]&0x70 != 0, head[1]&0x80 != 0
	size := uint64(head[1] & 0x7f)
	switch size {
	case 126:
		_, err = io.ReadFull(r, head[:2])
		size = uint64(binary.BigEndian.Uint16(head[:2]))
	case 127:
		_, err = io.ReadFull(r, head[:8])
		size = binary.BigEndian.Uint64(head[:8])
	}
	switch {
	case err != nil:
	case reserved:
		err = &frameError{"it sent a frame with reserved bits, although no extension was agreed on"}
	case masked:
		err = &frameError{"it sent a frame with a mask, which only clients do"}
	case size > maxWaitingBytes:
		err = &frameError{fmt.Sprintf("it sent a frame of %d bytes", size)}
	}
	if err != nil {
		return 0, false, nil, err
	}
	data = make([]byte, size)
	_, err = io.ReadFull(r, data)
	return op, fin, data, err
}

// write writes a frame.
func (t *netTrial) write(s *socket, op byte, fin bool, data []byte) error {
	head := []byte{op}
	if fin {
		head[0] |= 0x80
	}
	switch n := len(data); {
	case n < 126:
		head = append(head, 0x80|byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 0x80|126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 0x80|127), uint64(n))
	}
	var mask [4]byte
	_, _ = rand.Read(mask[:]) // it never fails
	head = append(head, mask[:]...)
	masked := slices.Clone(data)
	for i := range masked {
		masked[i] ^= mask[i%4]
	}
	return t.writeBytes(s, append(head, masked...))
}

func (t *netTrial) writeBytes(s *socket, data []byte) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(t.opt.timeout()))
	_, err := s.conn.Write(data)
	return err
}

// greet initializes the WebSocket.
func (t *netTrial) greet() error {
	if err := t.sendText(t.socket, opText, true, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+t.known["hello"].Text+`}`); err != nil {
		return broken("initialize could not be sent: %s", clip(err.Error(), 200))
	}
	want, err := pattern.ParseAs(`{"id":1,"result":{...},...}`, pattern.Pattern)
	if err != nil {
		return err
	}
	m, err := t.message(want)
	if err != nil {
		return asBroken(t.missing(err, "the answer to initialize"))
	}
	t.known["init"] = m.Get("result")
	return nil
}

// message waits for a message that fits a pattern, among those that no step was about.
func (t *netTrial) message(want *pattern.Value) (found *pattern.Value, err error) {
	s := t.socket
	err = t.until(func() bool {
		for i := range s.texts {
			if ev := &s.texts[i]; !ev.used && ev.val != nil && t.matches(want, ev.val) {
				ev.used, found = true, ev.val
				return true
			}
		}
		return s.over
	})
	if err == nil && found == nil {
		return nil, failed("the WebSocket was closed%s where a message was due", codeText(s.code))
	}
	return found, err
}

func codeText(code int) string {
	if code == 0 {
		return ""
	}
	return " with code " + strconv.Itoa(code)
}

// onSocket plays a step about the WebSocket.
func (t *netTrial) onSocket(s *step) error {
	w := t.socket
	var err error
	switch s.verb {
	case "greet":
		return t.greet()
	case "send":
		v := s.val
		text := v.Fill(t.known)
		if v.Kind == pattern.Object {
			text = v.Message(t.known)
		}
		err = t.sendText(w, opText, true, text)
	case "text":
		err = t.sendText(w, opText, true, t.expand(s.val.Str))
	case "binary":
		t.see(true, "a binary message: %s", s.val.Str)
		err = t.write(w, opBinary, true, []byte(s.val.Str))
	case "part", "last":
		op := byte(opText)
		if w.parts > 0 {
			op = opContinue
		}
		w.parts++
		if s.verb == "last" {
			w.parts = 0
		}
		err = t.sendText(w, op, s.verb == "last", t.expand(s.val.Str))
	case "ping":
		t.see(true, "ping %s", s.val.Str)
		err = t.write(w, opPing, true, []byte(s.val.Str))
	case "bytes":
		t.see(true, "the bytes %q", s.val.Str)
		err = t.writeBytes(w, []byte(s.val.Str))
	case "close":
		t.see(true, "close %d", s.n)
		t.mu.Lock()
		w.closed = true
		t.mu.Unlock()
		err = t.write(w, opClose, true, binary.BigEndian.AppendUint16(nil, uint16(s.n)))
	default:
		return t.hear(w, s)
	}
	if err != nil && t.ctx.Err() != nil {
		return cause(t.ctx)
	}
	return nil // if it failed, the server has closed the WebSocket, and the next step says so
}

func (t *netTrial) sendText(w *socket, op byte, fin bool, text string) error {
	what := ""
	if op == opContinue || !fin {
		what = "a part: "
	}
	t.see(true, "%s%s", what, shorten([]byte(text)))
	return t.write(w, op, fin, []byte(text))
}

// hear plays a step about what the WebSocket receives.
func (t *netTrial) hear(w *socket, s *step) error {
	switch s.verb {
	case "receive":
		_, err := t.message(s.val)
		return t.missing(err, "the message %s", clip(s.val.Text, 200))
	case "pong":
		found := false
		err := t.until(func() bool {
			found = slices.Contains(w.pongs, s.val.Str)
			return found || w.over
		})
		if err == nil && !found {
			return failed("the WebSocket was closed%s where a pong was due", codeText(w.code))
		}
		return t.missing(err, "the pong with %q", s.val.Str)
	case "refused":
		return t.refused(w)
	case "closed":
		err := t.until(func() bool { return w.code != 0 || w.over })
		if err != nil {
			return t.missing(err, "the end of the WebSocket")
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		switch {
		case len(s.codes) == 0 || slices.Contains(s.codes, w.code):
			return nil
		case w.code == 0:
			return failed("the connection ended without a close frame, expected one with code %s", codeList(s.codes))
		}
		return failed("the WebSocket was closed with code %d, expected %s", w.code, codeList(s.codes))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch s.verb {
	case "plain":
		if w.bad != "" {
			return failed("%s", w.bad)
		}
	case "silent":
		for _, ev := range w.texts {
			if ev.val != nil && t.matches(s.val, ev.val) {
				return failed("%s came where it must not: %s", clip(ev.data, 200), s.text)
			}
		}
	}
	return nil
}

// refused sees what becomes of what is not text: it must not be taken as a request.
func (t *netTrial) refused(w *socket) error {
	var got *pattern.Value
	err := t.until(func() bool {
		for _, ev := range w.texts {
			if !ev.used {
				got = ev.val
			}
		}
		return got != nil || w.code != 0 || w.over
	})
	switch id := got.Get("id"); {
	case err != nil && !errors.Is(err, errTimeout):
		return err
	case id != nil && id.Text != "null":
		return failed("it was answered as if it were text: %s", clip(got.Text, 200))
	}
	return nil // the WebSocket was closed, or the text refused or dropped
}

func codeList(codes []int) string { return strings.TrimPrefix(codesText(codes), "the error ") }
