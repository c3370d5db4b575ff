package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// proxyPeer is one end of a connection that sends and expects single frames.
type proxyPeer struct {
	t      testing.TB
	name   string
	stream jsonrpc.Stream
	in     chan proxyFrame
	closed chan struct{}
	next   int
}

// proxyFrame is a message as it was received.
type proxyFrame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (f *proxyFrame) String() string {
	return fmt.Sprintf("id %s method %s params %s result %s error %s", f.ID, f.Method, f.Params, f.Result, f.Error)
}

func newProxyPeer(t testing.TB, name string, stream jsonrpc.Stream) *proxyPeer {
	p := &proxyPeer{t: t, name: name, stream: stream, in: make(chan proxyFrame, 4096), closed: make(chan struct{})}
	go func() {
		defer close(p.closed)
		for {
			f, err := stream.ReadFrame()
			if err != nil {
				return
			}
			var m proxyFrame
			if err := json.Unmarshal(f.Data, &m); err != nil {
				t.Errorf("%s received %q: %v", name, f.Data, err)
			}
			p.in <- m
		}
	}()
	t.Cleanup(func() { _ = stream.Close(); <-p.closed })
	return p
}

func (p *proxyPeer) write(text string) {
	p.t.Helper()
	if err := p.stream.WriteFrame([]byte(text)); err != nil {
		p.t.Errorf("%s cannot write: %v", p.name, err)
	}
}

// call sends a request and returns its id.
func (p *proxyPeer) call(method, params string) string {
	p.t.Helper()
	p.next++
	id := strconv.Itoa(p.next)
	p.write(`{"jsonrpc":"2.0","id":` + id + `,"method":` + strconv.Quote(method) + params2(params) + `}`)
	return id
}

func params2(params string) string {
	if params == "" {
		return ""
	}
	return `,"params":` + params
}

func (p *proxyPeer) notify(method, params string) {
	p.t.Helper()
	p.write(`{"jsonrpc":"2.0","method":` + strconv.Quote(method) + params2(params) + `}`)
}

func (p *proxyPeer) answer(f proxyFrame, result string) {
	p.t.Helper()
	p.write(`{"jsonrpc":"2.0","id":` + string(f.ID) + `,"result":` + result + `}`)
}

func (p *proxyPeer) fail(f proxyFrame, err string) {
	p.t.Helper()
	p.write(`{"jsonrpc":"2.0","id":` + string(f.ID) + `,"error":` + err + `}`)
}

// read returns the next frame.
func (p *proxyPeer) read() proxyFrame {
	p.t.Helper()
	select {
	case f := <-p.in:
		return f
	case <-p.closed:
		select {
		case f := <-p.in:
			return f
		default:
		}
		p.t.Fatalf("%s: the connection is closed", p.name)
	case <-time.After(time.Minute):
		p.t.Fatalf("%s: nothing arrives", p.name)
	}
	return proxyFrame{}
}

// expect reads a request or a notification of a method with params, "" meaning any.
func (p *proxyPeer) expect(method, params string) proxyFrame {
	p.t.Helper()
	f := p.read()
	if f.Method != method || params != "" && string(f.Params) != params {
		p.t.Fatalf("%s received %s\nwant %s %s", p.name, &f, method, params)
	}
	return f
}

// response reads the answer to a call.
func (p *proxyPeer) response(id, result string) {
	p.t.Helper()
	f := p.read()
	if f.Method != "" || string(f.ID) != id || result != "" && string(f.Result) != result {
		p.t.Fatalf("%s received %s\nwant id %s result %s", p.name, &f, id, result)
	}
}

// failure reads an error that answers a call, and returns it.
func (p *proxyPeer) failure(id string) *jsonrpc.Error {
	p.t.Helper()
	f := p.read()
	var e jsonrpc.Error
	if f.Method != "" || string(f.ID) != id || json.Unmarshal(f.Error, &e) != nil {
		p.t.Fatalf("%s received %s\nwant an error for id %s", p.name, &f, id)
	}
	return &e
}

// errorText reads an error that answers a call.
func (p *proxyPeer) errorText(id, text string) {
	p.t.Helper()
	if f := p.read(); string(f.ID) != id || string(f.Error) != text {
		p.t.Fatalf("%s received %s\nwant id %s error %s", p.name, &f, id, text)
	}
}

// proxyRig is a chain between two scripted peers.
type proxyRig struct {
	t             *testing.T
	client, agent *proxyPeer
	done          chan struct{}
	err           error // of Serve, once done is closed
}

// playedComponent returns a component that is played by the test, and what returns its peer once it
// was opened.
func playedComponent(t *testing.T, name string) (Component, func() *proxyPeer) {
	opened := make(chan *proxyPeer, 4)
	return Component{Name: name, Transport: openFunc(func(context.Context) (jsonrpc.Stream, error) {
			theirs, ours := jsonrpc.Pipe()
			opened <- newProxyPeer(t, name, theirs)
			return ours, nil
		})}, func() *proxyPeer {
			t.Helper()
			select {
			case p := <-opened:
				return p
			case <-time.After(time.Minute):
				t.Fatalf("%s is not started", name)
				return nil
			}
		}
}

// openFunc is a transport.
type openFunc func(ctx context.Context) (jsonrpc.Stream, error)

func (f openFunc) Open(ctx context.Context) (jsonrpc.Stream, error) { return f(ctx) }

// newProxyRig serves a client with a conductor whose agent the test plays.
func newProxyRig(t *testing.T, c *Conductor) *proxyRig {
	t.Helper()
	theirs, ours := jsonrpc.Pipe()
	r := &proxyRig{t: t, client: newProxyPeer(t, "client", ours), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = c.Serve(context.Background(), Over(theirs))
	}()
	t.Cleanup(func() {
		_ = ours.Close()
		<-r.done
	})
	return r
}

// end has the client leave, and returns the error of Serve.
func (r *proxyRig) end() error {
	_ = r.client.stream.Close()
	<-r.done
	return r.err
}

const (
	proxyHelloV1   = `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true}},"clientInfo":{"name":"c","version":"1"},"_x":1e2}`
	proxyHelloV2   = `{"protocolVersion":2,"info":{"name":"c","version":"1"},"capabilities":{},"_x":1e2}`
	proxyWelcomeV1 = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"agentInfo":{"name":"a","version":"1"},"authMethods":[],"_y":0.10}`
	proxyWelcomeV2 = `{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}},"_y":0.10}`
)

func helloOf(version int) (hello, welcome string) {
	if version == 1 {
		return proxyHelloV1, proxyWelcomeV1
	}
	return proxyHelloV2, proxyWelcomeV2
}

// relayedRig is a rig of proxies that pass everything, initialized in a version. way says how
// the proxies run.
func relayedRig(t *testing.T, version, n int, way string) *proxyRig {
	t.Helper()
	agent, started := playedComponent(t, "agent")
	c := &Conductor{Agent: agent}
	for range n {
		switch way {
		case "in process":
			c.Proxies = append(c.Proxies, Component{Proxy: new(Proxy)})
		case "served":
			c.Proxies = append(c.Proxies, Component{Transport: openFunc(func(context.Context) (jsonrpc.Stream, error) {
				theirs, ours := jsonrpc.Pipe()
				go func() { _ = new(Proxy).Serve(context.Background(), Over(theirs)) }()
				return ours, nil
			})})
		case "commands":
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			command := Command(program)
			command.Env = append(os.Environ(), "ACP_TEST_PROXY=1")
			c.Proxies = append(c.Proxies, Component{Transport: command})
		}
	}
	r := newProxyRig(t, c)
	hello, welcome := helloOf(version)
	id := r.client.call("initialize", hello)
	r.agent = started()
	r.agent.answer(r.agent.expect("initialize", hello), welcome)
	r.client.response(id, welcome)
	return r
}

// saidLine is one line of a transcript.
type saidLine struct {
	toAgent bool
	id      string
	method  string
	params  string // or the result
	kind    ChainMessageKind
}

// readTranscript reads the lines of a golden transcript.
func readTranscript(t *testing.T, data []byte) (list []saidLine) {
	t.Helper()
	for line := range bytes.Lines(data) {
		text := strings.TrimSpace(strings.TrimPrefix(string(line), "{"))
		var s saidLine
		switch {
		case strings.HasPrefix(text, "-> "):
			s.toAgent = true
		case !strings.HasPrefix(text, "<- "):
			continue
		}
		text = text[3:]
		if strings.HasPrefix(text, "id") {
			s.id, text, _ = strings.Cut(text[2:], " ")
		}
		s.method, text, _ = strings.Cut(text, " ")
		s.kind = ChainNotification
		if s.id != "" {
			s.kind = ChainRequest
		}
		if result, ok := strings.CutPrefix(text, "= "); ok {
			s.kind, text = ChainResponse, result
		}
		s.params = text
		if text != "" && !json.Valid([]byte(text)) {
			continue // an error, or a mark
		}
		list = append(list, s)
	}
	return list
}

// play plays a transcript through a chain, and compares every message.
func (r *proxyRig) play(list []saidLine) {
	r.t.Helper()
	calls, asked := map[string]string{}, map[string]proxyFrame{}
	for _, s := range list {
		from, to := r.agent, r.client
		if s.toAgent {
			from, to = to, from
		}
		switch s.kind {
		case ChainNotification:
			if s.method == "$/cancel_request" {
				continue
			}
			from.notify(s.method, s.params)
			to.expect(s.method, s.params)
		case ChainRequest:
			calls[s.id] = from.call(s.method, s.params)
			asked[s.id] = to.expect(s.method, s.params)
		case ChainResponse:
			f, ok := asked[s.id]
			if !ok {
				continue
			}
			from.answer(f, s.params)
			to.response(calls[s.id], s.params)
			delete(asked, s.id)
		}
	}
}
