package acptest

import (
	"context"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

const (
	// pairConnect bounds initialize.
	pairConnect = 10 * time.Second
	// pairClose bounds the end of both connections.
	pairClose = 30 * time.Second
)

// Pair connects an agent and a client in memory. They are initialized when it returns,
// and speak the highest version that both allow: for version 1, set MaxVersion of either.
// Each function of wrap wraps the client's stream; the first is outermost, next to the
// connection:
//
//	var rec *acptest.Recording
//	conn, _ := acptest.Pair(t, agent, client, func(s jsonrpc.Stream) jsonrpc.Stream {
//		s, rec = acptest.Record(s)
//		return s
//	})
//
// Both connections are closed when the test ends. The test fails if one does not end, or
// if goroutines of packages acp or jsonrpc that belong to them are left, including hooks
// that do not return. To distinguish these goroutines Pair sets a label of
// [runtime/pprof] on the goroutine that calls it, which must be the test's. Pair works in
// testing/synctest bubbles; there tb must be that of the bubble.
func Pair(tb testing.TB, agent *acp.Agent, client *acp.Client, wrap ...func(jsonrpc.Stream) jsonrpc.Stream) (*acp.ClientConn, *acp.AgentConn) {
	tb.Helper()
	watch(tb)
	a, c := jsonrpc.Pipe()
	for i := len(wrap) - 1; i >= 0; i-- {
		c = wrap[i](c)
	}
	agentConn, err := agent.Connect(tb.Context(), acp.Over(a))
	if err != nil {
		_ = c.Close()
		tb.Fatalf("acptest: connect the agent: %v", err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), pairConnect)
	defer cancel()
	clientConn, err := client.Connect(ctx, acp.Over(c))
	if err != nil {
		_ = c.Close()
		_ = agentConn.Close()
		tb.Fatalf("acptest: connect the client: %v", err)
	}
	tb.Cleanup(func() {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = clientConn.Close()
			_ = agentConn.Close()
			_ = clientConn.Wait()
			_ = agentConn.Wait()
		}()
		timer := time.NewTimer(pairClose)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C:
			tb.Errorf("acptest: a connection has not ended %v after it was closed", pairClose)
		}
	})
	return clientConn, agentConn
}

// AcceptAll is a hook for [acp.Client.RequestPermission] that allows everything
// once.
func AcceptAll(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
	return req.Allow(), nil
}

// RejectAll is a hook for [acp.Client.RequestPermission] that rejects everything
// once.
func RejectAll(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
	return req.Reject(), nil
}
