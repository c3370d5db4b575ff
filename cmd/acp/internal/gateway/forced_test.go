package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// hangs is an agent of version 1 that never answers a prompt "hang", and ignores that it is cancelled. At "ask" it puts a form that
// belongs to the request, not to the session, and says what it hears.
func hangs(stream jsonrpc.Stream) {
	defer stream.Close()
	say := func(text string) {
		_ = stream.WriteFrame(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`, text))
	}
	var asks json.RawMessage // the prompt
	for {
		f, err := stream.ReadFrame()
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result struct{ Action string }
			Params struct {
				SessionID string
				Prompt    []struct{ Text string }
			}
		}
		if json.Unmarshal(f.Data, &m) != nil || len(m.ID) == 0 {
			continue
		}
		if m.Method == "" {
			say(m.Result.Action)
			m.ID = asks
		}
		result := `{"stopReason":"end_turn"}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":1,"agentCapabilities":{}}`
		case "session/new":
			result = `{"sessionId":"s"}`
		case "session/prompt":
			text := m.Params.Prompt[len(m.Params.Prompt)-1].Text
			if text == "ask" {
				asks = m.ID
				_ = stream.WriteFrame(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"requestId":%s,"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{}}}}`, m.ID))
				continue
			}
			say(text + "ing")
			if text == "hang" {
				continue
			}
		}
		_ = stream.WriteFrame(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
	}
}

// TestForcedCancel: the answer to a prompt whose agent ignores the cancel has its position as every other, and the next prompt
// runs then.
func TestForcedCancel(t *testing.T) {
	r := newRig(t, nil)
	if err := r.g.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := r.g.cfg
	cfg.CancelGrace = 50 * time.Millisecond
	cfg.Start = func(context.Context, string, string) (acp.Transport, error) {
		theirs, ours := jsonrpc.Pipe()
		go hangs(theirs)
		return acp.Over(ours), nil
	}
	var err error
	if cfg.Lease, err = r.log.Lease(t.Context(), cfg.Lease.Node()); err != nil {
		t.Fatal(err)
	}
	r.lease, r.g = cfg.Lease, New(cfg)
	c := r.connect(1)
	s := c.new(t)
	first := s.Prompt(t.Context(), acp.Text("hang"))
	c.seen.until(t, "agent: hanging")
	if err := s.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := s.Prompt(t.Context(), acp.Text("go on"))
	res, err := first.Wait()
	if err != nil || res.StopReason != acp.StopCancelled || !strings.Contains(string(res.Meta), `"cursor"`) {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err = next.Wait(); err != nil || res.StopReason != acp.StopEndTurn || !strings.Contains(string(res.Meta), `"cursor"`) {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestRequestScoped: a question about a prompt is put to the clients, as one about the session is.
func TestRequestScoped(t *testing.T) {
	r := newRig(t, nil)
	r.g.cfg.Start = func(context.Context, string, string) (acp.Transport, error) {
		theirs, ours := jsonrpc.Pipe()
		go hangs(theirs)
		return acp.Over(ours), nil
	}
	c := r.connect(2, func(cl *acp.Client) {
		cl.Elicit = func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			return acp.AcceptElicitation(nil), nil
		}
	})
	s := c.new(t)
	say(t, s, "ask")
	if got := strings.Join(c.seen.until(t, "end: end_turn"), "|"); !strings.Contains(got, "agent: accept|") {
		t.Error(got)
	}
}
