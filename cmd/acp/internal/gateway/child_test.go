package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// delegating is an agent that has a subagent say the words of a prompt, between two of its own.
func delegating() *acp.Agent {
	return &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		blocks := t.Blocks()
		if err := t.Subagent(&acp.SubagentUpdate{
			SessionID: "sub", Title: acp.Set("Helper"), State: acp.Set[acp.StateUpdate](&acp.RunningStateUpdate{}),
			Capabilities: acp.Set(acpv2.SubagentSessionCapabilities{}),
		}); err != nil {
			return "", err
		}
		_ = t.Say("before ")
		child := t.Session().Child("sub")
		_ = child.Send(&acp.UserMessageChunk{MessageID: "u", Content: acp.Text("please")})
		for word := range strings.FieldsSeq(blocks[len(blocks)-1].(*acp.TextContent).Text) {
			_ = child.Send(&acp.AgentMessageChunk{MessageID: "m", Content: acp.Text(word + " ")})
		}
		_ = child.Send(&acp.IdleStateUpdate{StopReason: acp.StopEndTurn})
		_ = t.Subagent(&acp.SubagentUpdate{SessionID: "sub", State: acp.Set[acp.StateUpdate](&acp.IdleStateUpdate{})})
		return acp.StopEndTurn, t.Say("after")
	}}
}

// families has clients say in which session something happens.
func families(lines *seen) func(*acp.Client) {
	return func(c *acp.Client) {
		c.Update = func(_ context.Context, s *acp.ClientSession, u *acp.Update) {
			text := describe(u)
			if v, ok := u.Update.(*acp.SubagentUpdate); ok {
				_, capable := v.Capabilities.Get()
				text = fmt.Sprintf("subagent: %s %v", v.SessionID, capable)
			}
			if text == "" {
				return
			}
			if s.Parent() != nil {
				text = fmt.Sprintf("%s of %s: %s", s.ID(), s.Parent().ID(), text)
			}
			lines.add(text)
		}
	}
}

// TestSubagent: what a subagent does is its own, for those who watch, those who load the session, and in a fork; it is
// not among what the agent has said, and its end is not that of the turn.
func TestSubagent(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("agent of version ", version), func(t *testing.T) {
			r := newRig(t, delegating())
			r.max = version
			lines := new(seen)
			c := r.connect(2, families(lines))
			s := c.new(t)
			say(t, s, "one two")
			check := func(what string, id acp.SessionID, lines []string) {
				t.Helper()
				sub := fmt.Sprintf("%s.sub of %s: ", id, id)
				own, its := apart(lines)
				if diff := cmp.Diff([]string{fmt.Sprintf("subagent: %s.sub false", id), "agent: before ", fmt.Sprintf("subagent: %s.sub false", id), "agent: after"}, own); diff != "" {
					t.Error(what, diff)
				}
				if diff := cmp.Diff([]string{sub + "user: please", sub + "agent: one ", sub + "agent: two "}, its); diff != "" {
					t.Error(what, diff)
				}
			}
			check("live", s.ID(), lines.untilBoth(t))
			loaded := new(seen)
			r.connect(2, families(loaded)).load(t, s.ID())
			check("loaded", s.ID(), loaded.untilBoth(t))
			f, err := r.connect(2).fork(t, s.ID(), "{}")
			if err != nil {
				t.Fatal(err)
			}
			forked := new(seen)
			r.connect(2, families(forked)).load(t, f.ID())
			check("forked", f.ID(), forked.untilBoth(t))

			id := string(s.ID()) + ".sub"
			for version, c := range map[int]*client{1: r.connect(1), 2: c} {
				res := c.past(t, HistoryRequest{SessionID: s.ID()})
				if got := childrenOf(res); !slices.Equal(got, []string{id, id, id}) {
					t.Errorf("history for version %d: %q", version, got)
				}
			}
			old := past{g: r.g, id: string(s.ID()), caps: new(acpv1.ClientCapabilities)} // which knows no subagents
			res, err := old.forwards(t.Context(), 0, maxHistory, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range res.Updates {
				if bytes.Contains(u.Update, []byte("sub")) || u.Child != "" {
					t.Errorf("history: %+v", u)
				}
			}
		})
	}
}

// childrenOf returns the subagents that the updates of a history are about.
func childrenOf(res *HistoryAnswer) (ids []string) {
	for _, u := range res.Updates {
		if u.Child != "" {
			ids = append(ids, string(u.Child))
		}
	}
	return ids
}

// apart returns what was said in a session, without prompts, notices and the ends of turns, and what its subagent has said.
func apart(lines []string) (own, sub []string) {
	for _, l := range lines {
		switch {
		case strings.HasPrefix(l, "end: "), strings.HasPrefix(l, "user: "), strings.HasPrefix(l, "notice: "):
		case strings.Contains(l, ".sub of "):
			sub = append(sub, l)
		default:
			own = append(own, l)
		}
	}
	return own, sub
}

// untilBoth waits until the agent and its subagent have said everything: what is said in one session comes beside what is
// said in the other.
func (s *seen) untilBoth(t *testing.T) []string {
	t.Helper()
	return s.untilAll(t, "agent: after", "agent: two ")
}

// untilAll waits until each of the words is in what was seen.
func (s *seen) untilAll(t *testing.T, words ...string) (lines []string) {
	t.Helper()
	for t.Context().Err() == nil {
		all := strings.Join(lines, "\n")
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(all, word) }) {
			return lines
		}
		lines = s.take()
		runtime.Gosched()
	}
	t.Fatal(lines)
	return nil
}

// TestSubagentPositions: what a subagent does has positions in the log of its parent, so that a client that resumes there
// misses nothing and gets nothing twice.
func TestSubagentPositions(t *testing.T) {
	r := newRig(t, delegating())
	c := r.connect(2)
	s := c.new(t)
	live, wire := r.wired(2)
	live.load(t, s.ID())
	from := wire.count()
	say(t, s, "one two three")
	if _, err := s.SetTitle(t.Context(), "the end"); err != nil {
		t.Fatal(err)
	}
	live.seen.untilAll(t, "title: the end", "agent: after", "agent: three ")
	all := wire.updates(t, from)
	for i, u := range all {
		if u.Position == "" {
			t.Fatalf("update %d has no position: %s", i, u.Update)
		}
		c, wire := r.wired(2)
		if _, err := c.conn.Resume(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project", Meta: json.RawMessage(`{"` + metaKey + `":` + u.Position + `}`)}); err != nil {
			t.Fatal(err)
		}
		var got []sentUpdate
		for len(got) < len(all)-1-i && t.Context().Err() == nil {
			got = slices.DeleteFunc(wire.updates(t, 0), func(u sentUpdate) bool { return u.Position == "" }) // what a client is sent as it comes
			runtime.Gosched()
		}
		if diff := cmp.Diff(all[i+1:], got, cmp.Transformer("none", func(s []sentUpdate) string { return fmt.Sprintln(s) })); diff != "" {
			t.Fatalf("after %d, %s:\n%s", i, u.Position, diff)
		}
		_ = c.conn.Close()
	}
	for left := 3; left > 2 && t.Context().Err() == nil; runtime.Gosched() { // those of the two clients that are there still
		left = 0
		r.g.positions.Range(func(key, _ any) bool {
			if strings.HasSuffix(string(key.(positionKey).session), ".sub") {
				left++
			}
			return true
		})
	}
}

// TestSubagentHeld: what a subagent does reaches the log, however much it is, while the agent itself says nothing; and
// another gateway that takes the agent over knows the subagent.
func TestSubagentHeld(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("agent of version ", version), func(t *testing.T) {
			goOn := make(chan struct{})
			agent := &acp.Agent{Prompt: func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
				_ = turn.Subagent(&acp.SubagentUpdate{SessionID: "sub"})
				child := turn.Session().Child("sub")
				for range 200 {
					_ = child.Say(strings.Repeat("x", 10_000))
				}
				_ = child.Say("one ")
				select {
				case <-goOn:
				case <-ctx.Done():
				}
				return acp.StopEndTurn, child.Say("two ")
			}}
			r, sims := heldRig(t, agent, version, nil)
			lines := new(seen)
			c := r.connect(2, families(lines))
			s := c.new(t)
			s.Prompt(t.Context(), acp.Text("go"))
			lines.until(t, string(s.ID())+".sub of "+string(s.ID())+": agent: one ")
			old := r.takeOver((*sims)[0])
			close(goOn)
			loaded := new(seen)
			r.connect(2, families(loaded)).load(t, s.ID())
			_, its := apart(loaded.until(t, string(s.ID())+".sub of "+string(s.ID())+": agent: two "))
			if len(its) != 202 || !strings.HasSuffix(its[200], "one ") {
				t.Errorf("%d updates", len(its))
			}
			_ = c.conn.Close()
			_ = old.Close()
		})
	}
}

// TestSubagentUnreadable: an update that cannot be decoded, so that there is no record of it, does not hold up what the
// others say, however much it is, in the same turn.
func TestSubagentUnreadable(t *testing.T) {
	for name, ofChild := range map[string]bool{"of a subagent": true, "of the agent": false} {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprint(name, ", version ", version), func(t *testing.T) {
				agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
					_ = turn.Subagent(&acp.SubagentUpdate{SessionID: "sub"})
					child := turn.Session().Child("sub")
					bad, good := turn.Say, child.Say
					if ofChild {
						bad, good = good, bad
					}
					_ = bad("unreadable")
					for range 200 {
						if err := good(strings.Repeat("x", 10_000)); err != nil {
							return "", err
						}
					}
					return acp.StopEndTurn, nil
				}}
				r, _ := heldRig(t, agent, version, func(d []byte) []byte {
					if bytes.Contains(d, []byte("unreadable")) {
						return bytes.Replace(d, []byte(`"agent_message_chunk"`), []byte(`5`), 1)
					}
					return d
				})
				s := r.connect(2).new(t)
				for range 2 {
					if _, err := s.Prompt(t.Context(), acp.Text("go")).Wait(); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// TestSubagentAsks: what a subagent asks stays open until it is answered, however much comes after it and in whatever turn.
func TestSubagentAsks(t *testing.T) {
	hs := &heldStream{asks: make(map[string]*heldAsk), marked: 1 << 60} // it does not hasten
	add := func(text string) {
		t.Helper()
		if _, err := hs.event(heldEvent{seq: hs.last + 1, text: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	update := func(session, words string) {
		add(`{"method":"session/update","params":{"sessionId":"` + session + `","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + words + `"}}}}`)
	}
	open := func(want ...uint64) {
		t.Helper()
		if diff := cmp.Diff(want, slices.Clone(hs.open)); diff != "" {
			t.Error(diff)
		}
	}
	add(`{"method":"session/update","params":{"sessionId":"main","update":{"sessionUpdate":"subagent_update","sessionId":"sub"}}}`)
	add(`{"id":1,"method":"session/request_permission","params":{"sessionId":"sub"}}`)
	add(`{"id":2,"method":"session/request_permission","params":{"sessionId":"main"}}`)
	update("sub", "this is never recorded")
	hs.settled(1, true)
	open(2, 3, 4)
	update("main", "little")
	hs.settled(5, true)
	open(2, 3, 4)
	update("main", strings.Repeat("x", maxOvertaken))
	hs.settled(6, true)
	open(2, 3)
	update("sub", "nor this")
	hs.family.before = 7
	hs.turnEnd()
	open(2, 3)
}

// TestReplayedBefore: what an agent has replayed to an earlier gateway is history for the one that adopts it, and what came
// after that is not.
func TestReplayedBefore(t *testing.T) {
	hs := &heldStream{adopted: &adoption{state: heldState{Loaded: 3}}, marked: 1 << 60} // it does not hasten
	for seq, isHistory := range map[uint64]bool{1: true, 2: true, 4: false} {
		text := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sub","update":{"n":%d}}}`, seq)
		if got, err := hs.event(heldEvent{seq: seq, text: text}); err != nil || (got == nil) != isHistory {
			t.Errorf("event %d: %s, %v", seq, got, err)
		}
	}
}

// TestSubagentReplayed: an agent that is started again, and replays its session with what its subagent has done, has done
// that once; and another gateway that takes the agent over then knows the subagent.
func TestSubagentReplayed(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("agent of version ", version), func(t *testing.T) {
			agent := delegating()
			tell := agent.Prompt
			goOn := make(chan struct{})
			agent.Prompt = func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
				if !strings.HasSuffix(turn.Text(), "wait") {
					return tell(ctx, turn)
				}
				_ = turn.Say("waiting")
				select {
				case <-goOn:
				case <-ctx.Done():
				}
				return acp.StopEndTurn, turn.Session().Child("sub").Say("again")
			}
			agent.ResumeSession = func(_ context.Context, s *acp.AgentSession, replay bool) error {
				if !replay {
					return nil
				}
				_ = s.Subagent(&acp.SubagentUpdate{SessionID: "sub", Title: acp.Set("Helper")})
				_ = s.Child("sub").Send(&acp.UserMessageChunk{MessageID: "u", Content: acp.Text("please")})
				return s.Child("sub").Send(&acp.AgentMessageChunk{MessageID: "m", Content: acp.Text("one two ")})
			}
			r, sims := heldRig(t, agent, version, func(d []byte) []byte { // it can only load
				return bytes.Replace(d, []byte(`"resume":{}`), []byte(`"_resume":{}`), 1)
			})
			lines := new(seen)
			c := r.connect(2, families(lines))
			s := c.new(t)
			say(t, s, "one two")
			lines.untilBoth(t)
			_ = (*sims)[0].inner.Close()
			ended(r, s.ID())
			s.Prompt(t.Context(), acp.Text("wait"))
			lines.until(t, "agent: waiting")
			old := r.takeOver((*sims)[1])
			close(goOn)
			loaded := new(seen)
			r.connect(2, families(loaded)).load(t, s.ID())
			sub := fmt.Sprintf("%s.sub of %s: ", s.ID(), s.ID())
			_, its := apart(loaded.until(t, sub+"agent: again"))
			if diff := cmp.Diff([]string{sub + "user: please", sub + "agent: one ", sub + "agent: two ", sub + "agent: again"}, its); diff != "" {
				t.Error(diff)
			}
			_ = c.conn.Close()
			_ = old.Close()
		})
	}
}

// TestSubagentBounds: of a subagent whose name is too long nothing is kept, and of how many an agent has is bounded.
func TestSubagentBounds(t *testing.T) {
	longest := acp.SessionID(strings.Repeat("n", maxChildName))
	agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		for _, id := range []acp.SessionID{longest + "x", longest} {
			_ = turn.Subagent(&acp.SubagentUpdate{SessionID: id})
			_ = turn.Session().Child(id).Say("hello")
		}
		return acp.StopEndTurn, nil
	}}
	r, _ := heldRig(t, agent, 2, nil)
	lines := new(seen)
	s := r.connect(2, families(lines)).new(t)
	if _, err := s.Prompt(t.Context(), acp.Text("go")).Wait(); err != nil {
		t.Fatal(err)
	}
	sub := childOf(string(s.ID()), longest)
	for _, l := range lines.until(t, fmt.Sprintf("%s of %s: agent: hello", sub, s.ID())) {
		if strings.Contains(l, string(longest)+"x") {
			t.Error(l)
		}
	}
	b := new(backend)
	for i := range maxChildren + 1 {
		if _, ok := b.introduced(acp.SessionID(fmt.Sprint("sub", i))); ok != (i < maxChildren) {
			t.Errorf("subagent %d: %v", i, ok)
		}
	}
	if _, ok := b.introduced("sub0"); !ok {
		t.Error("one that is known is none too many")
	}
}

// TestSubagentMomentary: how much context a subagent has used is for those who watch, and no history.
func TestSubagentMomentary(t *testing.T) {
	r := newRig(t, &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		_ = turn.Subagent(&acp.SubagentUpdate{SessionID: "sub"})
		child := turn.Session().Child("sub")
		_ = child.Send(&acp.UsageUpdate{Used: 1, Size: 2})
		return acp.StopEndTurn, child.Say("hello")
	}})
	watches := func(lines *seen) func(*acp.Client) {
		return func(c *acp.Client) {
			c.Update = func(_ context.Context, s *acp.ClientSession, u *acp.Update) {
				if s.Parent() != nil {
					lines.add(u.Kind())
				}
			}
		}
	}
	live, loaded := new(seen), new(seen)
	s := r.connect(2, watches(live)).new(t)
	say(t, s, "go")
	if got := live.until(t, "agent_message_chunk"); !slices.Equal(got, []string{"usage_update", "agent_message_chunk"}) {
		t.Errorf("live: %q", got)
	}
	r.connect(2, watches(loaded)).load(t, s.ID())
	if got := loaded.until(t, "agent_message_chunk"); !slices.Equal(got, []string{"agent_message_chunk"}) {
		t.Errorf("loaded: %q", got)
	}
}

// TestSessionMessageNames: a message between sessions names them, and the messages in them, as clients know them, also in a
// fork.
func TestSessionMessageNames(t *testing.T) {
	said := &acp.SessionMessage{
		MessageID: "m", SenderSessionID: acpv2.Set[acp.SessionID]("own"), RecipientSessionID: acpv2.Set[acp.SessionID]("sub"),
		SenderMessageID: acpv2.Set[acp.MessageID]("a"), RecipientMessageID: acpv2.Clear[acp.MessageID](),
	}
	want := *said
	want.SenderSessionID, want.RecipientSessionID = acpv2.Set[acp.SessionID]("s"), acpv2.Set[acp.SessionID]("s.sub")
	want.SenderMessageID = acpv2.Set[acp.MessageID]("1.a")
	got := withChild("s", "own", newNaming(1, new(atomic.Uint64)), said)
	text := func(u acp.SessionUpdate) string { return string(encode(u)) }
	if diff := cmp.Diff(text(&want), text(got)); diff != "" {
		t.Error(diff)
	}
	forked, err := adopted(records.Update{Update: encode(got)}, "s", "f")
	if err != nil {
		t.Fatal(err)
	}
	want.SenderSessionID, want.RecipientSessionID = acpv2.Set[acp.SessionID]("f"), acpv2.Set[acp.SessionID]("f.sub")
	if diff := cmp.Diff(text(&want), string(forked.Update)); diff != "" {
		t.Error(diff)
	}
}
