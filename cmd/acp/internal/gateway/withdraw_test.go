package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/goacp/acp"
)

// TestWithdrawMany: prompts that a client takes back while another one runs keep no places in the queue, and their receipts
// say that they were cancelled.
func TestWithdrawMany(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, talking(goOn))
	c, other := r.connect(1), r.connect(1)
	s := c.new(t)
	theirs := other.load(t, s.ID())
	running := s.Prompt(t.Context(), acp.Text("wait one"))
	c.seen.until(t, "agent: waiting")
	gs := r.g.session(string(s.ID()))
	const rounds = maxTurns + 2
	for i := range rounds {
		op := fmt.Sprint("op-", i)
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan error, 1)
		go func() {
			params := fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"two"}],"_meta":{%q:{"operationId":%q}}}`, s.ID(), metaKey, op)
			answered <- other.conn.Conn().Call(ctx, "session/prompt", json.RawMessage(params), nil)
		}()
		for gs.turnOf(local, op) == nil {
			runtime.Gosched()
		}
		cancel()
		if err := <-answered; err == nil {
			t.Error("it has an answer")
		}
		for gs.turnOf(local, op) != nil { // although the other one runs
			runtime.Gosched()
		}
	}
	for _, i := range []int{0, rounds - 1} {
		if res, err := sendOperation(t, theirs, "two", fmt.Sprint("op-", i)).Wait(); err != nil || res.StopReason != acp.StopCancelled {
			t.Error(i, res, err)
		}
	}
	last := theirs.Prompt(t.Context(), acp.Text("three"))
	queued(gs, 2)
	close(goOn)
	for _, reply := range []*acp.Reply{running, last} {
		if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
			t.Error(res, err)
		}
	}
}
