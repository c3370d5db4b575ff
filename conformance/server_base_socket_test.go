package conformance

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp/internal/pattern"
)

// A baseSocket is the WebSocket of a connection of a base server.
type baseSocket struct {
	s           *baseServer
	c           *baseConn
	conn        net.Conn
	message     []byte
	binary      bool
	initialized bool
	lock        chan struct{} // held by who writes
}

// upgrade makes a WebSocket of a request.
func (s *baseServer) upgrade(w http.ResponseWriter, r *http.Request) {
	version := r.Header.Get("Sec-WebSocket-Version")
	switch {
	case s.off("method/upgrade", version == "13"):
		w.WriteHeader(http.StatusNotFound)
		return
	case s.due("websocket/version", version != "13"):
		w.WriteHeader(http.StatusUpgradeRequired)
		return
	}
	c := s.open("websocket")
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	defer s.forget(c)
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	proof := base64.StdEncoding.EncodeToString(sum[:])
	if s.off("websocket/upgrade", true) {
		proof = "x"
	}
	head := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " + proof + "\r\n"
	if s.broken != "websocket/connection-id" {
		head += connectionHeader + ": " + c.id + "\r\n"
	}
	if s.off("websocket/subprotocol", true) {
		head += "Sec-WebSocket-Protocol: acp\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
		return
	}
	b := &baseSocket{s: s, c: c, conn: conn, lock: make(chan struct{}, 1)}
	c.socket = func(text string) { b.write(opText, []byte(text)) }
	b.serve(rw.Reader)
}

// write writes a frame.
func (b *baseSocket) write(op byte, data []byte) {
	b.lock <- struct{}{}
	defer func() { <-b.lock }()
	if b.s.off("websocket/plain", op == opText && b.initialized) {
		op = opBinary
	}
	head := []byte{0x80 | op}
	switch n := len(data); {
	case n < 126:
		head = append(head, byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 127), uint64(n))
	}
	_, _ = b.conn.Write(append(head, data...))
}

// fail closes the WebSocket with a code.
func (b *baseSocket) fail(code int) bool {
	b.write(opClose, binary.BigEndian.AppendUint16(nil, uint16(code)))
	return false
}

// serve reads frames until the end.
func (b *baseSocket) serve(r *bufio.Reader) {
	for {
		var head [2]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		size := int(head[1] & 0x7f)
		var long [8]byte
		switch size {
		case 126:
			_, _ = io.ReadFull(r, long[6:])
			size = int(binary.BigEndian.Uint64(long[:]))
		case 127:
			_, _ = io.ReadFull(r, long[:])
			size = int(binary.BigEndian.Uint64(long[:]))
		}
		var mask [4]byte
		if head[1]&0x80 != 0 {
			_, _ = io.ReadFull(r, mask[:])
		} else if b.s.due("websocket/unmasked", true) {
			b.fail(1002)
			return
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(r, data); err != nil {
			return
		}
		for i := range data {
			data[i] ^= mask[i%4]
		}
		if !b.frame(head[0]&0x0f, head[0]&0x80 != 0, data) {
			return
		}
	}
}

// frame handles a frame.
func (b *baseSocket) frame(op byte, fin bool, data []byte) bool {
	s := b.s
	switch op {
	case opText, opBinary, opContinue:
		switch {
		case s.off("websocket/fragments", op == opContinue && strings.HasSuffix(string(data), "_check/un")), s.off("websocket/fragment-empty", len(data) == 0),
			s.off("websocket/split-character", !fin && !utf8.Valid(data)), s.off("websocket/large", len(data) > 1<<20):
			return b.fail(1009)
		}
		if op != opContinue {
			b.message, b.binary = nil, op == opBinary
		}
		b.message = append(b.message, data...)
		if !fin || b.binary && (s.broken != "websocket/binary" || !b.initialized) {
			return true
		}
		return b.text(string(b.message))
	case opPing:
		switch {
		case s.off("websocket/ping", b.initialized && len(b.message) > 0 && string(data) == "acp check"),
			s.off("websocket/ping-first", !b.initialized):
		case s.off("websocket/fragments-ping", string(data) == "between"):
			b.message = nil
			b.write(opPong, data)
		default:
			b.write(opPong, data)
		}
	case opPong:
		if s.off("websocket/pong", true) {
			return b.fail(1002)
		}
	case opClose:
		if s.off("websocket/close", b.initialized) || s.off("websocket/close-first", !b.initialized) {
			return false
		}
		b.write(opClose, data)
		return false
	default:
		return s.off("websocket/reserved", true) || b.fail(1002)
	}
	return true
}

func (b *baseSocket) refuse(code, id string) bool {
	b.write(opText, []byte(`{"jsonrpc":"2.0","id":`+id+`,"error":{"code":`+code+`,"message":"refused"}}`))
	return true
}

// text handles a message.
func (b *baseSocket) text(text string) bool {
	s := b.s
	switch {
	case s.due("websocket/invalid-utf8", !utf8.ValidString(text)):
		return b.fail(1007)
	case s.off("websocket/unicode", strings.Contains(text, "ключ")):
		text = strings.ReplaceAll(text, "ключ", "????")
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	v, err := pattern.Parse(text)
	early := !b.initialized
	switch {
	case s.off("websocket/first-malformed", err != nil && early):
		return b.fail(1002)
	case s.off("websocket/malformed-initialize", err != nil && strings.Contains(text, "initialize")):
		return b.refuse("-32600", "9")
	case s.off("websocket/malformed", err != nil && !early):
		return true
	case err != nil:
		return b.refuse("-32700", "null")
	case s.off("websocket/first-batch", early && v.Kind == pattern.Array), s.off("websocket/first-primitive", early && v.Kind == pattern.Scalar):
		return b.fail(1002)
	case s.off("websocket/batch", !early && v.Kind == pattern.Array):
		for _, m := range v.Elems {
			b.c.handle(m)
		}
		return true
	case v.Kind != pattern.Object:
		return b.refuse("-32600", "null")
	}
	id, method := v.Get("id"), v.StringAt("method")
	switch {
	case s.due("websocket/long-id", id != nil && len(id.Text) > 1024):
		return b.fail(1008)
	case s.off("websocket/first-response", early && method == ""):
		return b.refuse("-32600", id.Text)
	case method == "" && early:
		return true
	case s.off("websocket/first-other", early && method != "initialize"):
		b.c.handle(v)
		return true
	case early && method != "initialize":
		return b.fail(1002)
	case early:
		if s.off("websocket/initialize", id.Text == `"first"`) {
			return true
		}
		answer, _ := b.c.initialize(v)
		b.write(opText, []byte(answer))
		b.initialized = true
		return true
	case s.off("websocket/again", method == "initialize"):
		answer, _ := b.c.initialize(v)
		b.write(opText, []byte(answer))
		return true
	case method == "initialize":
		return b.refuse("-32600", id.Text)
	case s.off("websocket/together", id != nil && id.Text == "13"):
		return true
	}
	b.c.handle(v)
	return true
}
