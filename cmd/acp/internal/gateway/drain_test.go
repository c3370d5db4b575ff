package gateway

import (
	"runtime"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// TestDrainBusy: a session in which there is always a prompt is given up after the turn that runs. What waits, of clients
// here and elsewhere, named or not, runs on another node.
func TestDrainBusy(t *testing.T) {
	dir := t.TempDir()
	goOn := make(chan struct{})
	a := newMember(t, dir, "a", talking(goOn))
	b := newMember(t, dir, "b", talking(nil))
	c := a.connect(1)
	s := c.new(t)
	plain, far, named := a.connect(2).load(t, s.ID()), b.connect(2).load(t, s.ID()), a.connect(1).load(t, s.ID())
	all := []*acp.Reply{s.Prompt(t.Context(), acp.Text("wait one"))}
	c.seen.until(t, "agent: waiting")
	here := a.g.session(string(s.ID()))
	for i, reply := range []func() *acp.Reply{
		func() *acp.Reply { return plain.Prompt(t.Context(), acp.Text("two")) },
		func() *acp.Reply { return far.Prompt(t.Context(), acp.Text("three")) },
		func() *acp.Reply {
			return named.PromptRequest(t.Context(), &acpv2.PromptRequest{
				Prompt: []acp.ContentBlock{acp.Text("four")}, Meta: []byte(`{"github.com/goacp/acp":{"operationId":"four"}}`),
			})
		},
	} {
		all = append(all, reply())
		for n := 0; n < i+2; runtime.Gosched() {
			if err := t.Context().Err(); err != nil {
				t.Fatal(err)
			}
			here.mu.Lock()
			n = len(here.queue)
			here.mu.Unlock()
		}
	}
	drained := make(chan error, 1)
	go func() { drained <- a.g.Drain(t.Context()) }()
	for !a.g.isDraining() {
		runtime.Gosched()
	}
	close(goOn)
	for i, reply := range all {
		if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
			t.Errorf("prompt %d: %v, %v", i, res, err)
		}
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if n, m := a.starts.Load(), b.starts.Load(); n != 1 || m != 1 {
		t.Errorf("%d starts on the node that was drained, %d on the other one", n, m)
	}
	if n := len(a.g.all()); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}
