package gateway

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// TestOperateNodes: the owner sees all nodes through any of them, and has one drained through another one.
func TestOperateNodes(t *testing.T) {
	dir := t.TempDir()
	goOn := make(chan struct{})
	a := newMember(t, dir, "a", talking(goOn))
	b := newMember(t, dir, "b", talking(goOn))
	theirs := b.connect(2)
	s := theirs.new(t)
	reply := s.Prompt(t.Context(), acp.Text("wait"))
	theirs.seen.until(t, "agent: waiting")

	c := a.connect(2)
	status := func() (all []NodeStatus) {
		res, err := NodesMethod.Call(t.Context(), c.conn.Conn(), &NodesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range res.Nodes {
			if n.This { // the session comes here once the other node is drained
				n.Sessions, n.Agents = 0, 0
			}
			all = append(all, NodeStatus{NodeFigures: n.NodeFigures, Live: n.Live, This: n.This, Earlier: n.Earlier})
		}
		return all
	}
	want := []NodeStatus{
		{NodeFigures: NodeFigures{Name: "a"}, Live: true, This: true},
		{NodeFigures: NodeFigures{Name: "b", Sessions: 1, Agents: 1}, Live: true}, // which it has not stored yet
	}
	if diff := cmp.Diff(want, status()); diff != "" {
		t.Error(diff)
	}
	short, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() {
		_, err := DrainMethod.Call(short, c.conn.Conn(), &DrainRequest{Node: "b"})
		given <- err
	}()
	for !b.g.isDraining() { // the turn still runs
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("a drain that nobody waits for: %v", err)
	}
	close(goOn)
	if _, err := reply.Wait(); err != nil {
		t.Errorf("the turn: %v", err)
	}
	res, err := DrainMethod.Call(t.Context(), c.conn.Conn(), &DrainRequest{Node: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&DrainAnswer{Node: "b", Draining: true}, res); diff != "" {
		t.Error(diff)
	}
	want[1] = NodeStatus{NodeFigures: NodeFigures{Name: "b", Draining: true}, Live: true}
	if diff := cmp.Diff(want, status()); diff != "" {
		t.Error(diff)
	}
	if res, err = DrainMethod.Call(t.Context(), c.conn.Conn(), &DrainRequest{Node: "b", Undo: true}); err != nil || res.Draining {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := DrainMethod.Call(t.Context(), c.conn.Conn(), &DrainRequest{Node: "c"}); code(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("a node that does not exist: %v", err)
	}
	b.serving() // nobody reaches it once its connections have ended
	got := status()
	for ; !got[1].Earlier; got = status() {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	if got[0].Earlier || !got[1].Live {
		t.Errorf("%+v", got)
	}
}

// code returns the code of a peer's error.
func code(err error) int {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e.Code
	}
	return 0
}

// TestOperateRole: nobody but the owner learns of nodes, or drains one; a node that is alone is not drained.
func TestOperateRole(t *testing.T) {
	r := newRig(t, talking(nil))
	c := r.connect(1)
	if res, err := NodesMethod.Call(t.Context(), c.conn.Conn(), &NodesRequest{}); err != nil || len(res.Nodes) != 1 || !res.Nodes[0].This {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := ForgetMethod.Call(t.Context(), c.conn.Conn(), &ForgetRequest{Node: r.g.self().Name}); code(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("a node that is live: %v", err)
	}
	if _, err := DrainMethod.Call(t.Context(), c.conn.Conn(), &DrainRequest{}); code(err) != jsonrpc.CodeInvalidRequest || r.g.isDraining() {
		t.Errorf("drained alone: %v", err)
	}
	r.g.cfg.Who = func(context.Context) Who { return Who{User: "local", Rights: MayPrompt | MayApprove} }
	if _, err := NodesMethod.Call(t.Context(), c.conn.Conn(), &NodesRequest{}); err == nil {
		t.Error("an approver has learned of the nodes")
	}
	if _, err := DrainMethod.Call(t.Context(), c.conn.Conn(), &DrainRequest{}); err == nil || code(err) == jsonrpc.CodeInvalidRequest {
		t.Errorf("an approver has drained: %v", err)
	}
}
