package acp

import (
	"context"
	"fmt"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// clientChunk returns what the client does for each piece of text on top of the
// engine: counting it on the reader, and delivering it to a hook and a reply
// that somebody reads.
func clientChunk(tb testing.TB, version int) (deliver func(), end func()) {
	tb.Helper()
	ours, theirs := jsonrpc.Pipe()
	mux := new(jsonrpc.Mux)
	agent := jsonrpc.NewConn(ours, jsonrpc.Config{Mux: mux})
	told := 0
	client, err := (&Client{MaxVersion: version, Update: func(context.Context, *ClientSession, *Update) { told++ }}).ready()
	if err != nil {
		tb.Fatal(err)
	}
	c := newClientConn(tb.Context(), client, theirs, nil)
	p := c.newPeer(version)
	c.peer.Store(p)
	s := c.known("s", clientRoot)
	r := s.newReply(tb.Context())
	r.buffer.begun, r.call.cancel = true, func(error) {}
	s.line.Discard(&r.call.mark) // nobody waits for its answer
	s.replies = []*Reply{r}
	var params any
	var it clientItem
	if version == 1 {
		it.v1 = &acpv1.SessionNotification{SessionID: "s", Update: &acpv1.AgentMessageChunk{Content: acpv1.Text("hello")}}
		params = it.v1
	} else {
		it.v2 = &acpv2.UpdateSessionNotification{SessionID: "s", Update: &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("hello")}}
		params = it.v2
	}
	ctx := tb.Context()
	deliver = func() {
		c.lane(methodSessionUpdate, params)
		c.handleUpdate(ctx, "s", it)
		if _, _, ok := r.buffer.next(); !ok {
			tb.Fatal("nothing was delivered")
		}
	}
	return deliver, func() {
		_ = c.Close()
		_ = agent.Close()
		if told == 0 {
			tb.Error("the hook was not told")
		}
	}
}

// TestClientChunkAllocations holds what a piece of text may cost on top of the
// engine.
func TestClientChunkAllocations(t *testing.T) {
	for version, bound := range map[int]float64{1: 1, 2: 1} {
		deliver, end := clientChunk(t, version)
		if got := testing.AllocsPerRun(1000, deliver); got > bound {
			t.Errorf("version %d: %v allocations, more than %v", version, got, bound)
		}
		end()
	}
}

func BenchmarkClientChunk(b *testing.B) {
	for version := 1; version <= 2; version++ {
		b.Run(fmt.Sprintf("v%d", version), func(b *testing.B) {
			deliver, end := clientChunk(b, version)
			b.ReportAllocs()
			for b.Loop() {
				deliver()
			}
			end()
		})
	}
}
