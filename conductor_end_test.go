package acp

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/internal/logtest"
)

// TestConductorStderr: the components share a writer, which is written to by one of them at a time, and the last line of
// each is there although nothing ends it.
func TestConductorStderr(t *testing.T) {
	var out bytes.Buffer
	var mu sync.Mutex
	var writing sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		p := newPrefixed(&out, &mu, name)
		writing.Go(func() {
			for _, text := range []string{"one\ntw", "o\n", "last"} {
				if n, err := p.Write([]byte(text)); n != len(text) || err != nil {
					t.Errorf("%s: %d, %v", name, n, err)
				}
			}
			p.flush()
			p.flush()
		})
	}
	writing.Wait()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	slices.Sort(lines)
	if want := []string{"[a] last", "[a] one", "[a] two", "[b] last", "[b] one", "[b] two"}; !slices.Equal(lines, want) {
		t.Errorf("lines %q", lines)
	}
}

// TestConductorExits holds that a component which ends takes the chain with it, whenever that
// is, and that the client gets to know which one.
func TestConductorExits(t *testing.T) {
	for _, who := range []string{"agent", "middle"} {
		for _, phase := range []string{"handshake", "idle", "prompt", "question"} {
			t.Run(who+" in "+phase, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					agent, startedAgent := playedComponent(t, "agent")
					middle, startedMiddle := playedComponent(t, "middle")
					r := newProxyRig(t, &Conductor{Agent: agent, Proxies: []Component{middle}, Logger: logtest.New(t)})
					id := r.client.call("initialize", proxyHelloV1)
					m, a := startedMiddle(), startedAgent()
					die := func() {
						if who == "agent" {
							_ = a.stream.Close()
						} else {
							_ = m.stream.Close()
						}
					}
					f := m.expect("proxy/initialize", "")
					inner := m.call("proxy/successor", wrappedParams("initialize", proxyHelloV1))
					g := a.expect("initialize", "")
					if phase == "handshake" {
						die()
						if who == "agent" {
							m.fail(f, string(m.read().Error))
						}
						if reason, component := reasonOf(r.client.failure(id)); reason != "component_exited" || component != who {
							t.Errorf("reason %q, component %q", reason, component)
						}
						_ = r.end()
						return
					}
					a.answer(g, proxyWelcomeV1)
					m.response(inner, proxyWelcomeV1)
					m.answer(f, proxyWelcomeV1)
					r.client.response(id, proxyWelcomeV1)
					switch phase {
					case "prompt", "question":
						id = r.client.call("session/prompt", `{"sessionId":"s"}`)
						m.expect("session/prompt", "")
						m.call("proxy/successor", wrappedParams("session/prompt", `{"sessionId":"s"}`))
						a.expect("session/prompt", "")
						if phase == "question" {
							a.call("session/request_permission", `{"sessionId":"s"}`)
							m.expect("proxy/successor", "")
						}
						die() // and the proxy says nothing
						if reason, component := reasonOf(r.client.failure(id)); reason != "component_exited" || component != who {
							t.Errorf("reason %q, component %q", reason, component)
						}
					default:
						die()
					}
					<-r.client.closed
					if err := r.end(); err == nil || !strings.Contains(err.Error(), "the component "+who) {
						t.Errorf("Serve returns %v", err)
					}
					<-a.closed
					<-m.closed
					if d := time.Since(began); d > 5*time.Second {
						t.Errorf("it took %v", d)
					}
				})
			})
		}
	}
	t.Run("not started", func(t *testing.T) {
		r := newProxyRig(t, &Conductor{Agent: Component{Name: "missing", Transport: Command("/no/such/program")}, Logger: logtest.New(t)})
		if reason, component := reasonOf(r.client.failure(r.client.call("initialize", proxyHelloV1))); reason != "not_started" || component != "missing" {
			t.Errorf("reason %q, component %q", reason, component)
		}
		if err := r.end(); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("Serve returns %v", err)
		}
	})
}
