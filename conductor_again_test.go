package acp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
)

// fallingBack is what a client of both versions meets.
type fallingBack struct {
	name  string
	first int           // the version that the client asks for
	agent func() *Agent // nil for one that is played
	play  func(*proxyPeer)
	proxy func() []Component
}

// refusing plays an agent that refuses version 2 and answers version 1, on one connection.
func refusing(p *proxyPeer) {
	f := p.expect("initialize", "")
	if versionOf(f.Params) == 2 {
		p.fail(f, `{"code":-32602,"message":"Invalid params","data":"clientCapabilities"}`)
		f = p.expect("initialize", "")
	}
	p.answer(f, proxyWelcomeV1)
}

func fallbacks() []fallingBack {
	one := func(c Component) func() []Component { return func() []Component { return []Component{c} } }
	old := func() *Agent { a := echoing(); a.MaxVersion = 1; return a }
	return []fallingBack{
		{name: "the agent answers version 1", first: 2, agent: old, proxy: one(Component{Proxy: new(Proxy)})},
		{name: "the agent refuses version 2", first: 2, play: refusing, proxy: one(Component{Proxy: new(Proxy)})},
		{name: "the agent refuses version 2, behind a component", first: 2, play: refusing,
			proxy: one(Component{Transport: servedOnDemand(new(Proxy))})},
		{name: "a proxy refuses version 1", first: 1, agent: echoing, proxy: one(Component{Proxy: &Proxy{MinVersion: 2}})},
		{name: "a component of version 1", first: 2, agent: echoing, proxy: one(Component{Transport: servedOnDemand(&Proxy{MaxVersion: 1})})},
	}
}

// TestChainFallsBack: a client asks for its other version through a chain as it would ask the agent itself, also over a
// transport that can be opened only once.
func TestChainFallsBack(t *testing.T) {
	for _, tc := range fallbacks() {
		for _, way := range []string{"once", "in process", "served"} {
			if way == "in process" && tc.agent == nil {
				continue
			}
			t.Run(tc.name+"/"+way, func(t *testing.T) {
				c := &Conductor{Proxies: tc.proxy(), Logger: logtest.New(t)}
				opened := 0
				c.Agent.Transport = agentOf(t, tc, way, &opened)
				transport := WrapTransport(c.Agent.Transport, c.Wrap)
				if way == "served" {
					transport = openFuncOf(t, servedConductor(c))
				}
				conn, err := (&Client{FirstVersion: tc.first, Logger: logtest.New(t)}).Connect(t.Context(), transport)
				if err != nil {
					t.Fatal(err)
				}
				if want := 3 - tc.first; conn.Version() != want {
					t.Errorf("version %d", conn.Version())
				}
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
				if way == "once" && opened != 1 {
					t.Errorf("the agent was opened %d times", opened)
				}
			})
		}
	}
}

// agentOf returns a way to the agent of a case, and counts how often it is opened.
func agentOf(t *testing.T, tc fallingBack, way string, opened *int) Transport {
	open := func(ctx context.Context) (jsonrpc.Stream, error) {
		*opened++
		if tc.agent != nil {
			return InProcess(tc.agent()).Open(ctx)
		}
		theirs, ours := jsonrpc.Pipe()
		p := newProxyPeer(t, "agent", theirs)
		go tc.play(p)
		return ours, nil
	}
	if way != "once" {
		return openFunc(open)
	}
	stream, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return Over(stream)
}

// TestConductorAsksAgain: a client that initializes again, as after a refusal, is passed to the same agent, and no other one is
// started; an agent that has left meanwhile is.
func TestConductorAsksAgain(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		t.Run(fmt.Sprintf("leaves=%v", leaves), func(t *testing.T) {
			again := make(chan *proxyPeer, 4)
			agent := Component{Transport: openFunc(func(context.Context) (jsonrpc.Stream, error) {
				theirs, ours := jsonrpc.Pipe()
				again <- newProxyPeer(t, "agent", theirs)
				return ours, nil
			})}
			r := newProxyRig(t, &Conductor{Agent: agent, Proxies: []Component{{Proxy: new(Proxy)}, {Transport: servedOnDemand(new(Proxy))}}})
			id := r.client.call("initialize", proxyHelloV2)
			a := <-again
			a.fail(a.expect("initialize", proxyHelloV2), `{"code":-32602,"message":"no"}`)
			if e := r.client.failure(id); e.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("answered with %v", e)
			}
			if leaves {
				_ = a.stream.Close()
				<-a.closed
			}
			id = r.client.call("initialize", proxyHelloV1)
			if leaves {
				select {
				case f := <-r.client.in: // the conductor had not noticed
					if !strings.Contains(string(f.Error), "component_exited") {
						t.Fatalf("received %s", &f)
					}
					id = r.client.call("initialize", proxyHelloV1)
					a = <-again
				case a = <-again:
				}
			}
			a.answer(a.expect("initialize", proxyHelloV1), proxyWelcomeV1)
			r.client.response(id, proxyWelcomeV1)
			id = r.client.call("session/new", `{}`)
			a.answer(a.expect("session/new", `{}`), `{"sessionId":"s"}`)
			r.client.response(id, "")
			if err := r.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestChainKeepsProcess: the process of an agent stays the one that its client can kill, also if a proxy has the chain begin again
// in version 1.
func TestChainKeepsProcess(t *testing.T) {
	command := Command("some-agent")
	c := &Conductor{
		Agent:   Component{Transport: command},
		Proxies: []Component{{Transport: servedOnDemand(&Proxy{MaxVersion: 1})}}, Logger: logtest.New(t),
	}
	conn, err := (&Client{MaxVersion: 2}).Connect(t.Context(), openFuncOf(t, WrapTransport(command, c.Wrap)))
	if err != nil {
		t.Fatal(err)
	}
	if conn.Version() != 1 || conn.proc == nil || isClosed(conn.proc.Done()) {
		t.Errorf("version %d, and the process that Kill would end has ended", conn.Version())
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// openFuncOf returns a transport whose streams stay those of another one, and which can be opened once.
func openFuncOf(t *testing.T, transport Transport) Transport {
	t.Helper()
	stream, err := transport.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return Over(stream)
}

// TestConductorNotAProxy: agents that do not know what proxies are asked are called what they are, whatever they answer.
func TestConductorNotAProxy(t *testing.T) {
	for name, wrong := range map[string]Transport{
		"an agent":    InProcess(echoing()),
		"a conductor": servedConductor(&Conductor{Agent: Component{Transport: InProcess(echoing())}}),
	} {
		t.Run(name, func(t *testing.T) {
			r := newProxyRig(t, &Conductor{
				Agent: Component{Transport: InProcess(echoing())}, Proxies: []Component{{Name: "wrong", Transport: wrong}}, Logger: logtest.New(t),
			})
			e := r.client.failure(r.client.call("initialize", proxyHelloV1))
			if reason, component := reasonOf(e); reason != "not_a_proxy" || component != "wrong" {
				t.Errorf("answered with %v", e)
			}
		})
	}
	t.Run("a proxy that refuses", func(t *testing.T) { // what it says is not replaced
		middle, started := playedComponent(t, "middle")
		r := newProxyRig(t, &Conductor{Agent: Component{Transport: InProcess(echoing())}, Proxies: []Component{middle}, Logger: logtest.New(t)})
		id := r.client.call("initialize", proxyHelloV1)
		m := started()
		m.fail(m.expect("proxy/initialize", ""), `{"code":-32600,"message":"no licence"}`)
		if e := r.client.failure(id); e.Message != "no licence" {
			t.Errorf("answered with %v", e)
		}
	})
}

// servedConductor is a transport that has a conductor serve each time.
func servedConductor(c *Conductor) Transport {
	return openFunc(func(context.Context) (jsonrpc.Stream, error) {
		theirs, ours := jsonrpc.Pipe()
		go func() { _ = c.Serve(context.Background(), Over(theirs)) }()
		return ours, nil
	})
}
