package gateway

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/transcript"
)

// nameless takes the ids of messages from what an agent sends.
func nameless(frame []byte) []byte { return messageIDs.ReplaceAll(frame, nil) }

var messageIDs = regexp.MustCompile(`,"messageId":"[^"]*"`)

// asked is what the user says in a turn, without what comes before it in a transcript.
func asked(t *acp.Turn) string {
	blocks := t.Blocks()
	return blocks[len(blocks)-1].(*acp.TextContent).Text
}

// acting is an agent that does what the words of a prompt say, and says all others. Its ids are those that the words have.
// "wait" says on reached that it waits for goOn.
func acting(reached chan<- struct{}, goOn <-chan struct{}) *acp.Agent {
	return &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		text := asked(t)
		turn, _, _ := strings.Cut(text, " ")
		for word := range strings.FieldsSeq(text) {
			kind, id, _ := strings.Cut(word, ":")
			call := &acp.ToolCallUpdate{ToolCallID: acp.ToolCallID(id)}
			title, status := acp.Set(id+" of "+turn), acp.Set(acp.ToolCallStatusCompleted)
			var err error
			switch kind {
			case "wait":
				reached <- struct{}{}
				<-goOn
			case "tool":
				call.Title, call.Status = title, status
				err = t.Send(call)
			case "begin":
				call.Title, call.Status = title, acp.Set(acp.ToolCallStatusInProgress)
				err = t.Send(call)
			case "end":
				call.Status = status
				err = t.Send(call)
			case "plan":
				err = t.Send(&acp.PlanUpdate{Plan: &acp.PlanItems{PlanID: acp.PlanID(id), Entries: []acp.PlanEntry{{Content: id + " of " + turn}}}})
			case "run": // in a terminal
				err = t.Send(&acp.TerminalUpdate{TerminalID: acp.TerminalID(id), Command: acp.Set(id + " of " + turn)})
			case "ask":
				_, err = t.Ask(acp.Permission{Title: "Really?", Subject: &acp.ToolCallPermissionSubject{ToolCall: acp.ToolCallUpdate{ToolCallID: acp.ToolCallID(id), Title: title}}})
			case "think":
				err = t.Think(id + " ")
			default:
				err = t.Say(word + " ")
			}
			if err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, nil
	}}
}

// A folded is a client that keeps the conversation that it sees.
type folded struct {
	mu   sync.Mutex
	conv *transcript.Conversation
}

// read has a client keep the conversation, and allow everything.
func (x *folded) read(c *acp.Client) {
	x.conv = transcript.New(transcript.Config{})
	c.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
		x.mu.Lock()
		defer x.mu.Unlock()
		if !u.Synthetic {
			x.conv.Apply(u.Update)
		}
	}
	c.RequestPermission = func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		if r.ToolCall != nil {
			x.conv.Apply(&acp.ToolCallUpdate{ToolCallID: r.ToolCall.ToolCallID, Title: acp.Set("asked: " + r.ToolCall.Title.Or(""))})
		}
		return r.Allow(), nil
	}
}

// entries returns the conversation, an entry a line. Prompts are as the agent's names have them.
func (x *folded) entries() (all []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for e := range x.conv.Snapshot().Entries() {
		switch e := e.(type) {
		case *transcript.Message:
			all = append(all, fmt.Sprintf("%s: %s", e.Role, strings.TrimSpace(e.Text())))
		case *transcript.ToolCall:
			all = append(all, fmt.Sprintf("call: %s %s", e.Title, e.Status))
		case *transcript.Plan:
			all = append(all, "plan: "+e.Content.(*acp.PlanItems).Entries[0].Content)
		case *transcript.Terminal:
			all = append(all, "terminal: "+e.Command)
		}
	}
	return all
}

// sentBefore returns the conversation of a session as a client of a version loads it.
func sentBefore(t *testing.T, r *rig, version int, id acp.SessionID) []string {
	t.Helper()
	x := new(folded)
	r.connect(version, x.read).load(t, id)
	return x.entries()
}

// TestNames: what the agent says is kept as it has said it, in its turn, whatever ids it has for it or has not: also if
// another gateway takes the agent over in the middle of a message, if the agent is started again, and if it counts its
// tool calls anew in each turn. A prompt "over" has another gateway take over where the turn waits, "again" kills the agent
// after the turn.
func TestNames(t *testing.T) {
	for _, tt := range []struct {
		name string
		// The first word of a prompt is said, and is what the others have as the turn.
		prompts []string
		want    string
		second  bool // for version 2 alone: in the other one the same is said in other ways
	}{
		{"taken over in a message", []string{"one", "over two wait three", "four"},
			"user: one|agent: one|user: over two wait three|agent: over two three|user: four|agent: four", false},
		{"taken over twice", []string{"one", "over two wait three wait four", "over five wait six", "seven"},
			"user: one|agent: one|user: over two wait three wait four|agent: over two three four|user: over five wait six|agent: over five six|user: seven|agent: seven", false},
		{"another role", []string{"over think:a wait think:b c", "over a wait think:b c"},
			"user: over think:a wait think:b c|agent: over|thought: a b|agent: c|user: over a wait think:b c|agent: over a|thought: b|agent: c", false},
		{"a call after it", []string{"over a wait tool:c b", "b"},
			"user: over a wait tool:c b|agent: over a|call: c of over completed|agent: b|user: b|agent: b", false},
		{"a call before it", []string{"over a begin:c wait b end:c d"},
			"user: over a begin:c wait b end:c d|agent: over a|call: c of over completed|agent: b d", false},
		{"taken over between turns", []string{"one tool:c", "over wait", "two tool:c"},
			"user: one tool:c|agent: one|call: c of one completed|user: over wait|agent: over|user: two tool:c|agent: two|call: c of two completed", false},
		{"calls begin anew in each turn", []string{"one tool:c tool:d", "two tool:c", "three tool:c end:c a"},
			"user: one tool:c tool:d|agent: one|call: c of one completed|call: d of one completed|user: two tool:c|agent: two|call: c of two completed|user: three tool:c end:c a|agent: three|call: c of three completed|agent: a", false},
		{"a question begins a call anew", []string{"one tool:c", "two ask:c tool:c"},
			"user: one tool:c|agent: one|call: c of one completed|user: two ask:c tool:c|agent: two|call: c of two completed", false},
		{"a call that goes on in the next turn", []string{"one begin:c", "two end:c a"},
			"user: one begin:c|agent: one|call: c of one completed|user: two end:c a|agent: two a", false},
		{"calls begin anew where it is taken over", []string{"one tool:c", "over begin:c wait end:c", "three tool:c", "over wait end:c tool:c"},
			"user: one tool:c|agent: one|call: c of one completed|user: over begin:c wait end:c|agent: over|call: c of over completed|user: three tool:c|agent: three|call: c of three completed|user: over wait end:c tool:c|agent: over|call: c of over completed", false},
		{"the agent is started again", []string{"again one tool:c begin:d", "two tool:c", "again three", "four tool:c tool:d"},
			"user: again one tool:c begin:d|agent: again one|call: c of again completed|call: d of again in_progress|user: two tool:c|agent: two|call: c of two completed|user: again three|agent: again three|user: four tool:c tool:d|agent: four|call: c of four completed|call: d of four completed", false},
		{"the agent remembers", []string{"again remembers begin:d tool:c", "two end:d tool:c", "three begin:d"},
			"user: again remembers begin:d tool:c|agent: again remembers|call: d of again completed|call: c of again completed|user: two end:d tool:c|agent: two|call: c of two completed|user: three begin:d|agent: three|call: d of three in_progress", true},
		{"plans and terminals", []string{"again one plan:p run:t", "two plan:p run:t"},
			"user: again one plan:p run:t|agent: again one|plan: p of again|terminal: t of again|user: two plan:p run:t|agent: two|plan: p of two|terminal: t of two", true},
	} {
		for version := 1; version <= 2; version++ {
			if tt.second && version == 1 || !tt.second && version == 2 && !long.All() {
				continue
			}
			t.Run(fmt.Sprint(tt.name, " ", version), func(t *testing.T) {
				change := nameless
				if version == 2 { // which has ids always
					change = nil
				}
				reached, goOn := make(chan struct{}), make(chan struct{})
				agent := acting(reached, goOn)
				if strings.HasPrefix(tt.prompts[0], "again remembers") {
					agent.ResumeSession = func(context.Context, *acp.AgentSession, bool) error { return nil }
				}
				r, sims := heldRig(t, agent, version, change)
				id := r.connect(2).new(t).ID()
				for _, prompt := range tt.prompts {
					turnOf(t, r, sims, id, prompt, reached, goOn)
				}
				want := strings.Split(tt.want, "|")
				if version == 2 {
					want = asOne(want)
				}
				for client := 1; client <= 2 && !(tt.second && client == 1); client++ {
					got := slices.DeleteFunc(sentBefore(t, r, client, id), func(s string) bool {
						return strings.HasPrefix(s, "notice: ") || strings.Contains(s, "agent: The agent does not remember")
					})
					if version == 2 {
						got = asOne(got)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("a client of version %d sees (-want +got):\n%s", client, diff)
					}
				}
			})
		}
	}
}

// asOne joins messages of the agent that follow each other: an agent of version 2 says itself where they begin.
func asOne(entries []string) (all []string) {
	for _, e := range entries {
		if text, ok := strings.CutPrefix(e, "agent: "); ok && len(all) > 0 && strings.HasPrefix(all[len(all)-1], "agent: ") {
			all[len(all)-1] += " " + text
			continue
		}
		all = append(all, e)
	}
	return all
}

// turnOf has the agent of a session handle a prompt; see TestNames.
func turnOf(t *testing.T, r *rig, sims *[]*holderSim, id acp.SessionID, prompt string, reached <-chan struct{}, goOn chan<- struct{}) {
	t.Helper()
	allow := asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
		return req.Allow(), nil
	})
	c := r.connect(2, allow)
	reply := c.load(t, id).Prompt(t.Context(), acp.Text(prompt))
	waits := strings.Count(prompt, "wait")
	for range waits {
		<-reached
		old := r.takeOver((*sims)[len(*sims)-1])
		t.Cleanup(func() { _ = old.Close() })
		c = r.connect(2, allow)
		c.load(t, id)
		c.seen.drop("end: end_turn") // those of the turns before
		goOn <- struct{}{}
	}
	if waits > 0 {
		c.seen.until(t, "end: end_turn")
	} else if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
		t.Fatal(res, err)
	}
	if strings.HasPrefix(prompt, "again") {
		_ = (*sims)[len(*sims)-1].inner.Close()
		ended(r, id)
	}
}

// TestLeftOpen: what earlier lives have left open is of the agent's own session: a subagent that counts its calls alike has
// others. An id of the agent's own may have the sign of later turns.
func TestLeftOpen(t *testing.T) {
	n := newNaming(2, new(atomic.Uint64))
	n.names("").left = map[string]string{"1": "1.1", "a~b": "1.a~b"}
	said := func(child acp.SessionID, u acp.ToolCallUpdate) string {
		return string(n.update(child, &acp.Update{Update: &u}, 0).(*acp.ToolCallUpdate).ToolCallID)
	}
	done := acp.Set(acp.ToolCallStatusCompleted)
	for _, tt := range []struct {
		child acp.SessionID
		u     acp.ToolCallUpdate
		want  string
	}{
		{"child", acp.ToolCallUpdate{ToolCallID: "1", Title: acp.Set("Other")}, "2.1"},
		{"child", acp.ToolCallUpdate{ToolCallID: "1", Status: done}, "2.1"},
		{"", acp.ToolCallUpdate{ToolCallID: "1", Status: done}, "1.1"},
		{"", acp.ToolCallUpdate{ToolCallID: "a~b", Status: done}, "1.a~b"},
		{"", acp.ToolCallUpdate{ToolCallID: "1", Title: acp.Set("Anew")}, "2.1"},
	} {
		if got := said(tt.child, tt.u); got != tt.want {
			t.Errorf("%q, %v: the name is %q, want %q", tt.child, tt.u, got, tt.want)
		}
	}
}
