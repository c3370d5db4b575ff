package backend

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
)

// A stage is a session of which the test says each update that the agent sends.
type stage struct {
	session *Session
	agent   *acp.AgentSession
	turns   chan *acp.Turn
	turn    *acp.Turn // that runs
	end     chan struct{}
	n       int // of messages
}

// onStage restores a session in which the prompts were answered, each with its answer.
func onStage(t *testing.T, version int, turns ...[2]string) *stage {
	t.Helper()
	answers := turns
	cfg := configKept(t, version, &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		answer := answers[0][1]
		answers = answers[1:]
		return acp.StopEndTurn, turn.Say(answer)
	}})
	var prompts []string
	for _, x := range turns {
		prompts = append(prompts, x[0])
	}
	id, _ := talkOnce(t, cfg, prompts...)
	st := &stage{turns: make(chan *acp.Turn, 1), end: make(chan struct{})}
	cfg.Front.Ask = allow
	cfg.BuiltIn = &acp.Agent{
		ResumeSession: func(_ context.Context, s *acp.AgentSession, _ bool) error { st.agent = s; return nil },
		Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
			st.turns <- turn
			<-st.end
			return acp.StopEndTurn, nil
		},
	}
	_, st.session, _ = restored(t, cfg, id)
	synctest.Wait()
	return st
}

// send has the agent send an update: "u" for words of the user, "a" for its own, "t" for a thought; one
// with ">" goes on with the message before.
func (st *stage) send(t *testing.T, line string) {
	t.Helper()
	kind, text, _ := strings.Cut(line, " ")
	if !strings.HasPrefix(kind, ">") {
		st.n++
	}
	kind = strings.TrimPrefix(kind, ">")
	id := acp.MessageID("m" + string(rune('a'+st.n)))
	var u acp.SessionUpdate
	switch kind {
	case "u":
		u = &acp.UserMessageChunk{MessageID: id, Content: acp.Text(text)}
	case "a":
		u = &acp.AgentMessageChunk{MessageID: id, Content: acp.Text(text)}
	case "t":
		u = &acp.AgentThoughtChunk{MessageID: id, Content: acp.Text(text)}
	}
	if err := st.agent.Send(u); err != nil {
		t.Fatal(err)
	}
}

// TestLate goes through turns that follow a load update by update, and says after each what is shown:
// nothing live waits for the agent, or is lost, and nothing is shown before something that came
// earlier.
func TestLate(t *testing.T) {
	const tests, pass = "run the tests please", "All tests pass."
	twice := [][2]string{{tests, pass}, {tests, pass}}
	three := [][2]string{{"one", "re: one"}, {"two", "re: two"}, {"three", "re: three"}}
	for _, tt := range []struct {
		name  string
		kept  [][2]string
		steps string // separated by |; "prompt" sends one, "wait" is 50 ms, "end" the end of the turn
		want  string // what is new after each step, separated by |
	}{
		{"an answer as of before", twice, "prompt go|u " + tests + "|a " + pass + "|wait|end", "user: go||| agent: " + pass + "|"},
		{"an answer as of before, told before the prompt", twice, "u " + tests + "|prompt " + tests + "|a " + pass + "|wait|end",
			"|user: " + tests + "|| agent: " + pass + "|"},
		{"an answer as of before, and the end", twice, "prompt go|u " + tests + "|a " + pass + "|end", "user: go||| agent: " + pass},
		{"the last answer again", twice, "prompt go|u " + tests + "|a " + pass + "|u " + tests + "|a " + pass + "|wait|a " + pass + "|end",
			"user: go||||| agent: " + pass + "| agent: " + pass + "|"},
		{"nothing told", twice, "prompt " + tests + "|a " + pass + "|end", "user: " + tests + "| agent: " + pass + "|"},
		{"history, then the answer", three, "prompt go|u one|a re: one|u two|a re: two|u three|t hm|a new|end", "user: go||||||thought: hm| agent: new|"},
		{"cut off by the prompt", three, "u one|a re: one|prompt go|u two|a re: two|u three|a live|end", "||user: go||||agent: live|"},
		{"cut off in a message", three, "u one|a re: |prompt go|>a one|u two|a live|end", "||user: go|||agent: live|"},
		{"in pieces", three, "prompt go|u o|>u ne|a re:|>a  one|u two|a live|end", "user: go||||||agent: live|"},
		{"pieces that go on otherwise", three, "prompt go|u one|a re:|>a  one|>a , or two|>a  more|end", "user: go||||agent: re: one, or two| more|"},
		{"pieces, shown in time", three, "prompt go|u one|a re:|wait|>a  on|>a e|end", "user: go|||agent: re:| on|e|"},
		{"goes on after a pause", three, "prompt go|u one|a re: one|wait|u two|a re: two|u three|a live|end", "user: go|||agent: re: one||||agent: live|"},
		{"live in the middle", three, "prompt go|u one|a live|u two|a re: two|end", "user: go||agent: live|user: two|agent: re: two|"},
		{"held in its order", three, "prompt go|u one|a re: one|t hm|a re: one|end", "user: go|||agent: re: onethought: hm|agent: re: one|"},
		{"a question", three, "prompt go|u one|a re: one|ask|end", "user: go|||agent: re: one|"},
		{"the prompt said again", three, "prompt two|u one|a re: one|u two|a re: two|u three|a live|end", "user: two||||||agent: live|"},
		{"an echo", three, "prompt two|u two|wait|a live|end", "user: two||user: two|agent: live|"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			versions(t, func(t *testing.T, version int) {
				synctest.Test(t, func(t *testing.T) { st := onStage(t, version, tt.kept...); st.play(t, tt.steps, tt.want) })
			})
		})
	}
}

// play sends what the steps say and compares what is shown after each.
func (st *stage) play(t *testing.T, steps, want string) {
	t.Helper()
	s := st.session
	was := strings.Join(messages(s.Snapshot()), "")
	wants := strings.Split(want, "|")
	var ended chan error
	for i, step := range strings.Split(steps, "|") {
		kind, text, _ := strings.Cut(step, " ")
		switch kind {
		case "prompt":
			ended = make(chan error, 1)
			go func() {
				_, err := s.Prompt(t.Context(), acp.Text(text))
				ended <- err
			}()
			st.turn = <-st.turns
		case "wait":
			time.Sleep(holdFor)
		case "ask":
			if !st.turn.Permit(acp.Permission{Title: "Go on"}) {
				t.Error("it is not allowed")
			}
		case "end":
			close(st.end)
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		default:
			st.send(t, step)
		}
		synctest.Wait()
		now := strings.Join(messages(s.Snapshot()), "")
		more, ok := strings.CutPrefix(now, was)
		if i < len(wants) && strings.TrimSpace(wants[i]) != strings.TrimSpace(more) || !ok || i >= len(wants) && more != "" {
			t.Errorf("after %q there is %q, want %q", step, more, wants[min(i, len(wants)-1)])
		}
		was = now
	}
	if got := strings.Join(messages(stored(t, s.host.cfg.Store, s.journal.conversationID())), ""); got != was {
		t.Errorf("kept %q, shown %q", got, was)
	}
}
