package jsonrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/internal/wire"
)

func TestMain(m *testing.M) {
	if role := os.Getenv("JSONRPC_BENCH"); role != "" {
		benchRole(role)
		return
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // errors of handlers, which tests provoke
	leaktest.Main(m)
}

func noLeaks(t *testing.T) {
	t.Helper()
	if left := leaktest.Left(); left != "" {
		t.Fatal("goroutines left behind:\n" + left)
	}
}

// note is a small notification in the style of the generated types.
type note struct {
	Session string
	N       int64
	Text    string
}

func (n *note) AppendJSON(dst []byte) ([]byte, error) {
	dst = wire.AppendString(append(dst, `{"sessionId":`...), n.Session)
	dst = wire.AppendInt(append(dst, `,"n":`...), n.N)
	dst = wire.AppendString(append(dst, `,"text":`...), n.Text)
	return append(dst, '}'), nil
}

func (n *note) decodeJSON(d *wire.Decoder) {
	at := d.Pos()
	session := false
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		switch string(k) {
		case "sessionId":
			n.Session, session = d.ID(), true
		case "n":
			n.N = d.Int64()
		case "text":
			n.Text = d.Str()
		default:
			d.Skip()
		}
	}
	if !d.Bad() && !session {
		d.Missing(at, "sessionId")
	}
}

// reply is an empty result that may carry a text.
type reply struct{ Text string }

func (r *reply) AppendJSON(dst []byte) ([]byte, error) {
	if r.Text == "" {
		return append(dst, "{}"...), nil
	}
	return append(wire.AppendString(append(dst, `{"text":`...), r.Text), '}'), nil
}

func (r *reply) decodeJSON(d *wire.Decoder) {
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		if string(k) == "text" {
			r.Text = d.Str()
		} else {
			d.Skip()
		}
	}
}

var (
	update = Notification[note]{Name: "session/update"}
	cancel = Notification[note]{Name: "session/cancel"}
	prompt = Method[note, reply]{Name: "session/prompt"}
)

func laneOf(_ string, params any) string {
	if n, ok := params.(*note); ok {
		return n.Session
	}
	return ""
}

// events collects what a connection reports.
type events struct {
	mu  sync.Mutex
	all []Event
}

func (e *events) add(ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ev.Data = append([]byte(nil), ev.Data...)
	e.all = append(e.all, ev)
}

func (e *events) kinds() (kinds []EventKind) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.all {
		kinds = append(kinds, ev.Kind)
	}
	return kinds
}

func (e *events) count(k EventKind) (n int) {
	for _, have := range e.kinds() {
		if have == k {
			n++
		}
	}
	return n
}

// rawPeer is the other end of a connection as bytes. It works in synctest
// bubbles.
type rawPeer struct {
	conn *Conn
	in   *io.PipeWriter // what the connection reads
	out  *io.PipeReader // what it writes
	mu   sync.Mutex
	got  []string
	eof  bool
}

func newRawPeer(cfg Config) *rawPeer {
	p := rawPeerStream(cfg, NewLineStream)
	go p.readLines()
	return p
}

func rawPeerStream(cfg Config, stream func(io.ReadCloser, io.WriteCloser) Stream) *rawPeer {
	r, in := io.Pipe()
	out, w := io.Pipe()
	p := &rawPeer{in: in, out: out}
	p.conn = NewConn(stream(r, w), cfg)
	return p
}

func (p *rawPeer) readLines() {
	br := bufio.NewReader(p.out)
	for {
		s, err := br.ReadString('\n')
		p.mu.Lock()
		if s != "" {
			p.got = append(p.got, strings.TrimSuffix(s, "\n"))
		}
		p.eof = err != nil
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *rawPeer) write(s string) { _, _ = io.WriteString(p.in, s) }

// take returns the lines that were received, once nothing moves any more. Only
// in a bubble.
func (p *rawPeer) take() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.got
	p.got = nil
	return got
}

func (p *rawPeer) close() {
	_ = p.in.Close()
	<-p.conn.Done()
	_ = p.out.Close()
}

var correlation = regexp.MustCompile(`"correlationId":"[0-9a-f]{16}"`)

// pair connects two ends in memory.
func pair(a, b Config) (*Conn, *Conn) {
	sa, sb := Pipe()
	return NewConn(sa, a), NewConn(sb, b)
}

// filePair connects two ends by OS pipes.
func filePair(t testing.TB, a, b Config) (*Conn, *Conn) {
	t.Helper()
	r1, w1, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return NewConn(NewLineStream(r1, w2), a), NewConn(NewLineStream(r2, w1), b)
}

func closeBoth(a, b *Conn) {
	_ = a.Close()
	_ = b.Close()
	<-a.Done()
	<-b.Done()
}

// times returns the number of runs, fewer with -short.
func times(n, short int) int {
	if testing.Short() {
		return short
	}
	return n
}

var bg = context.Background()

func raw(s string) *json.RawMessage {
	m := json.RawMessage(s)
	return &m
}

func exit() { runtime.Goexit() }

// countFrom sets the id of the connection's next call.
func countFrom(c *Conn, id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.next = id
}

// panics is a type whose decoder does.
type panics struct{}

func (*panics) decodeJSON(*wire.Decoder) { panic("decoder") }
