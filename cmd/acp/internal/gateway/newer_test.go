package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/jsonrpc"
)

// watching has a client note what is said of its updates.
func watching(describe func(u *acp.Update) string) (notes *seen, change func(*acp.Client)) {
	notes = new(seen)
	return notes, func(c *acp.Client) {
		c.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			if text := describe(u); text != "" {
				notes.add(text)
			}
		}
	}
}

// TestReplayComplete: where a history ends the gateway says itself, once to each client of version 2 that is sent one. What the
// agent says of that is not kept, whether it replays its history to the gateway or says it in a turn.
func TestReplayComplete(t *testing.T) {
	agent := &acp.Agent{
		ResumeSession: func(_ context.Context, s *acp.AgentSession, _ bool) error {
			return s.Send(new(acpv2.ReplayComplete))
		},
		Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
			if err := turn.Send(new(acpv2.ReplayComplete)); err != nil {
				return "", err
			}
			blocks := turn.Blocks() // what a transcript says comes before
			return acp.StopEndTurn, turn.Say(blocks[len(blocks)-1].(*acp.TextContent).Text)
		},
	}
	note := func(u *acp.Update) string {
		if _, ok := u.Update.(*acpv2.ReplayComplete); ok {
			return "the history ends"
		}
		return describe(u)
	}
	r := newRig(t, agent)
	s := r.connect(2).new(t)
	there, watch := watching(note)
	r.connect(2, watch).load(t, s.ID())
	say(t, s, "one")
	there.until(t, "agent: one")
	r.stopAgent(s.ID())
	say(t, s, "two")
	if n := r.starts.Load(); n != 2 {
		t.Errorf("the agent was started %d times", n)
	}
	later, watch := watching(note)
	r.connect(2, watch).load(t, s.ID())
	old, watch := watching(note)
	r.connect(1, watch).load(t, s.ID())
	say(t, s, "three")
	for name, notes := range map[string]*seen{"there": there, "later": later, "of version 1": old} {
		got := notes.until(t, "agent: three")
		n, want := 0, 1
		if notes == old {
			want = 0
		}
		for _, text := range got {
			if text == "the history ends" {
				n++
			}
		}
		if n != want {
			t.Errorf("the client %s was told %d times where the history ends: %q", name, n, got)
		}
	}
	err := r.log.Read(t.Context(), string(s.ID()), 0, func(rec engine.Record) error {
		if bytes.Contains(rec.Data, []byte("replay_complete")) {
			t.Errorf("record %d has it", rec.Seq)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCursors: the cursors of an agent reach clients of version 2, also who comes later, and those of version 1 that ask for
// them. They have the name of the agent, and what they are beside that of the gateway.
func TestCursors(t *testing.T) {
	agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		word := acp.Set([]acp.ContentBlock{acp.Text("word")})
		for _, u := range []acp.SessionUpdate{
			&acp.AgentMessage{MessageID: "m", Content: word},
			&acpv2.CursorUpdate{CursorID: "c", Anchor: &acpv2.CursorAgentMessageAnchor{MessageID: "m", Position: acpv2.CursorAnchorPositionAfter}},
			&acp.AgentMessage{MessageID: "n", Content: word},
		} {
			if err := turn.Send(u); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, nil
	}}
	note := func(u *acp.Update) string {
		switch u := u.Update.(type) {
		case *acp.AgentMessage:
			return fmt.Sprint("message ", u.MessageID)
		case *acp.AgentMessageChunk:
			return fmt.Sprint("message ", u.MessageID)
		case *acpv2.CursorUpdate:
			return fmt.Sprint("cursor ", u.CursorID, " at ", u.Anchor.(*acpv2.CursorAgentMessageAnchor).MessageID)
		}
		return ""
	}
	clients := map[string]struct {
		version int
		asks    bool
		want    []string
	}{
		"version 2":           {2, false, []string{"message 1.m", "cursor c at 1.m", "message 1.n"}},
		"version 1":           {1, false, []string{"message 1.m", "message 1.n"}},
		"version 1 that asks": {1, true, []string{"message 1.m", "cursor c at 1.m", "message 1.n"}},
	}
	r := newRig(t, agent)
	r.max = 2
	s := r.connect(2).new(t)
	notes := make(map[string][]*seen)
	come := func() {
		for name, c := range clients {
			n, watch := watching(note)
			r.connect(c.version, watch, func(client *acp.Client) { client.Cursors = c.asks }).load(t, s.ID())
			notes[name] = append(notes[name], n)
		}
	}
	come()
	say(t, s, "one")
	come()
	for name, c := range clients {
		for i, n := range notes[name] {
			if diff := cmp.Diff(c.want, n.until(t, "message 1.n")); diff != "" {
				t.Errorf("%s, %d: %s", name, i, diff)
			}
		}
	}
}

// TestForkAtCursor: a fork at a cursor of the agent is refused: it would be one of the whole session.
func TestForkAtCursor(t *testing.T) {
	for version := 1; version <= 2; version++ {
		r := newRig(t, talking(nil))
		c := r.connect(version)
		s := c.new(t)
		say(t, s, "one")
		params := json.RawMessage(fmt.Sprintf(`{"sessionId":%q,"cwd":"/project","mcpServers":[],"cursorId":"c"}`, s.ID()))
		err := c.conn.Conn().Call(t.Context(), "session/fork", params, nil)
		if refused, ok := errors.AsType[*jsonrpc.Error](err); !ok || refused.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("version %d: %v", version, err)
		}
	}
}
