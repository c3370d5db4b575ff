package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// TestSteerGooseKept: what goose has taken into the turn that runs is in the log, once, also if the gateway dies before
// goose answers, and if goose wants to be asked again.
func TestSteerGooseKept(t *testing.T) {
	for _, again := range []bool{false, true} {
		arrived, answer, taken := make(chan struct{}), make(chan struct{}), make(chan struct{})
		run := func(id string) *acp.SessionInfoUpdate {
			return &acp.SessionInfoUpdate{Meta: json.RawMessage(`{"goose":{"activeRunId":` + id + `}}`)}
		}
		agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			id := `"2"`
			if again {
				id = `"1"` // which has ended
			}
			_ = t.Session().Send(run(id))
			_ = t.Say("began")
			<-taken
			_ = t.Session().Send(run("null"))
			return acp.StopEndTurn, nil
		}, Extensions: func(mux *jsonrpc.Mux) {
			steer := jsonrpc.Method[json.RawMessage, json.RawMessage]{Name: methodGoose}
			steer.Handle(mux, func(_ context.Context, r *json.RawMessage) (*json.RawMessage, error) {
				var p struct{ ExpectedRunID string }
				_ = json.Unmarshal(*r, &p)
				if p.ExpectedRunID != "2" {
					return nil, &jsonrpc.Error{
						Code: jsonrpc.CodeInvalidParams, Message: "Invalid params",
						Data: json.RawMessage(`{"expectedRunId":"1","actualRunId":"2"}`),
					}
				}
				close(arrived)
				<-answer
				res := json.RawMessage(`{"runId":"2","messageId":"m"}`)
				return &res, nil
			})
		}}
		r, sims := heldRig(t, agent, 1, nil)
		c := r.connect(2)
		s := c.new(t)
		s.Prompt(t.Context(), acp.Text("go"))
		c.seen.until(t, "agent: began")
		gs := r.g.session(string(s.ID()))
		gs.mu.Lock()
		b := gs.agent
		gs.mu.Unlock()
		content := []acp.ContentBlock{acp.Text("x")}
		one, two := &steering{content: content}, &steering{content: content}
		if !b.expects(one) || b.expects(two) || !b.forgets(one) || !b.expects(two) || !b.forgets(two) {
			t.Error("of two equal messages that are not answered one is sent")
		}
		go func() { _, _ = s.Steer(context.Background(), acp.Text("more")) }()
		<-arrived
		old := r.takeOver((*sims)[len(*sims)-1])
		d := r.connect(2)
		d.load(t, s.ID())
		close(answer)
		d.seen.until(t, "user: more")
		close(taken)
		d.seen.until(t, "end: end_turn")
		said := slices.DeleteFunc(d.seen.take(), func(s string) bool { return s != "user: more" })
		if diff := cmp.Diff([]string{"user: more"}, said); diff != "" {
			t.Error(diff)
		}
		_ = c.conn.Close()
		_ = old.Close()
	}
}
