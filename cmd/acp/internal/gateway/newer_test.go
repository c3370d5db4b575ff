package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
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

// TestForkAtCursor: a fork at a cursor is passed to the agent that has reported it, and has what was said up to there, also in
// the middle of a turn. Cursors that there are not, that offer no fork, that are of the source or of an agent that has forgotten
// the session, and those of another user's session are refused.
func TestForkAtCursor(t *testing.T) {
	versions(t, func(t *testing.T, version, agentVersion int) {
		asked := new(seen)
		can := acpv2.Set(acpv2.CursorCapabilities{Fork: new(acpv2.CursorForkCapabilities)})
		refuses := false
		a := &acp.Agent{
			Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				text := turn.Blocks()[len(turn.Blocks())-1].(*acp.TextContent).Text
				user := acp.MessageID("u-" + text)
				if agentVersion == 1 { // in version 2 it has confirmed the prompt
					_ = turn.Send(&acp.UserMessageChunk{MessageID: user, Content: acp.Text(text)})
				} else {
					user = turn.PromptID()
				}
				answer := func(n string) acp.SessionUpdate {
					return &acp.AgentMessage{MessageID: acp.MessageID(n + "-" + text), Content: acp.Set([]acp.ContentBlock{acp.Text(n + " " + text)})}
				}
				for _, u := range []acp.SessionUpdate{
					&acpv2.CursorUpdate{CursorID: acpv2.CursorID("before-" + text), Capabilities: can, Anchor: &acpv2.CursorUserMessageAnchor{MessageID: user, Position: acpv2.CursorAnchorPositionBefore}},
					answer("1"),
					&acpv2.CursorUpdate{CursorID: acpv2.CursorID("in-" + text), Capabilities: can, Anchor: &acpv2.CursorAgentMessageAnchor{MessageID: acp.MessageID("1-" + text), Position: acpv2.CursorAnchorPositionAfter}},
					&acpv2.CursorUpdate{CursorID: acpv2.CursorID("no-" + text), Anchor: &acpv2.CursorAgentMessageAnchor{MessageID: acp.MessageID("1-" + text), Position: acpv2.CursorAnchorPositionBefore}},
					answer("2"),
				} {
					if err := turn.Send(u); err != nil {
						return "", err
					}
				}
				return acp.StopEndTurn, nil
			},
			ForkSession: func(context.Context, *acp.AgentSession, acp.SessionID) error { asked.add("all"); return nil },
			ForkSessionAt: func(_ context.Context, _ *acp.AgentSession, _ acp.SessionID, at acpv2.CursorID) error {
				asked.add(string(at))
				if at == "in-two" && refuses {
					return acp.SessionNotFound("x")
				}
				return nil
			},
		}
		r := newRig(t, a)
		r.max = agentVersion
		c := r.connect(version, func(c *acp.Client) { c.Cursors = true })
		apart := r.connect(version, func(c *acp.Client) { c.Cursors = true }) // which has no session open, so it does not refuse itself
		s := c.new(t)
		say(t, s, "one")
		say(t, s, "two")
		said := func(id acp.SessionID) (all []string) {
			err := r.log.Read(t.Context(), string(id), 0, func(rec engine.Record) error {
				switch rec.Kind {
				case kindPrompt:
					p, err := records.DecodePrompt(rec.Data)
					all = append(all, "prompt "+textOf(p.Content))
					return err
				case kindEnd:
					all = append(all, "end")
				case kindUpdate:
					u, err := records.DecodeUpdate(rec.Data)
					switch u := u.(type) {
					case *acp.AgentMessage:
						all = append(all, textOf(u.Content.Or(nil)))
					case *acp.AgentMessageChunk:
						all = append(all, textOf([]acp.ContentBlock{u.Content}))
					case *acpv2.CursorUpdate:
						all = append(all, "cursor")
					}
					return err
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range all {
				all[i] = strings.TrimSpace(all[i])
			}
			return all
		}
		one := []string{"prompt one", "1 one", "2 one", "end"}
		for at, want := range map[string][]string{
			"before-one": nil, "before-two": one, "in-one": {"prompt one", "1 one", "end"}, "in-two": append(slices.Clone(one), "prompt two", "1 two", "end"),
		} {
			f, err := c.conn.ForkAt(t.Context(), s.ID(), acpv2.CursorID(at), acp.SessionConfig{Cwd: "/project"})
			if err != nil {
				t.Errorf("%s: %v", at, err)
				continue
			}
			if diff := cmp.Diff(want, said(f.ID())); diff != "" {
				t.Errorf("%s: %s", at, diff)
			}
			if got := asked.take(); got[len(got)-1] != at {
				t.Errorf("%s: the agent was asked %q", at, got)
			}
			if _, err := apart.conn.ForkAt(t.Context(), f.ID(), acpv2.CursorID(at), acp.SessionConfig{Cwd: "/project"}); !errors.Is(err, jsonrpc.ErrInvalidParams) {
				t.Errorf("%s, of the copy: %v", at, err)
			}
		}
		refused := func(what string, at acpv2.CursorID) {
			t.Helper()
			before := len(asked.take())
			if _, err := apart.conn.ForkAt(t.Context(), s.ID(), at, acp.SessionConfig{Cwd: "/project"}); !errors.Is(err, jsonrpc.ErrInvalidParams) {
				t.Errorf("%s: %v", what, err)
			}
			if len(asked.take()) != before {
				t.Errorf("%s: the agent was asked", what)
			}
		}
		refused("unknown", "nothing")
		refused("one without fork", "no-one")
		refuses = true
		_, err := c.conn.ForkAt(t.Context(), s.ID(), "in-two", acp.SessionConfig{Cwd: "/project"})
		if !errors.Is(err, jsonrpc.ErrInvalidParams) || !strings.Contains(err.Error(), "the agent has not forked its session there") {
			t.Errorf("refused by the agent: %v", err)
		}
		other, err := r.log.List(t.Context(), engine.Query{})
		if err != nil {
			t.Fatal(err)
		}
		sessions := len(other.Sessions)
		r.stopAgent(s.ID()) // which cannot bring it back
		say(t, s, "three")
		refused("of a session that the agent has forgotten", "in-one")
		if other, err = r.log.List(t.Context(), engine.Query{}); err != nil || len(other.Sessions) != sessions {
			t.Errorf("%d sessions, and %d before: %v", len(other.Sessions), sessions, err)
		}
	})
}
