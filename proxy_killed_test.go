package acp

import (
	"context"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// TestConductorKilled holds that a proxy whose process is killed takes the chain with it, and
// that no process is left.
func TestConductorKilled(t *testing.T) {
	long.Test(t)
	var all []*process.Process
	command := openFunc(func(ctx context.Context) (jsonrpc.Stream, error) {
		stream, err := benchCommand("1").Open(ctx)
		if err == nil {
			all = append(all, processOf(stream))
		}
		return stream, err
	})
	agent, started := playedComponent(t, "agent")
	r := newProxyRig(t, &Conductor{
		Proxies: []Component{{Name: "one", Transport: command}, {Name: "two", Transport: command}},
		Agent:   agent, Logger: logtest.New(t),
	})
	id := r.client.call("initialize", proxyHelloV1)
	r.agent = started()
	r.agent.answer(r.agent.expect("initialize", proxyHelloV1), proxyWelcomeV1)
	r.client.response(id, proxyWelcomeV1)
	id = r.client.call("session/prompt", `{"sessionId":"s"}`)
	r.agent.expect("session/prompt", "")
	all[1].Kill()
	if reason, component := reasonOf(r.client.failure(id)); reason != "component_exited" || component != "two" {
		t.Errorf("reason %q, component %q", reason, component)
	}
	<-r.client.closed
	if err := r.end(); err == nil || !strings.Contains(err.Error(), "the component two") {
		t.Errorf("Serve returns %v", err)
	}
	for i, p := range all {
		<-p.Done()
		if left := p.Left(); left > 0 {
			t.Errorf("process %d has left %d behind", i, left)
		}
	}
}
