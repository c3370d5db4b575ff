package acp

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestResumeOpen: a session that is open is resumed without the hook where no
// history is asked for, and what the hook sets when it is replays nothing but
// history: the live session keeps its Value, its options and its turn.
func TestResumeOpen(t *testing.T) {
	type state struct{ name string }
	versions(t, func(t *testing.T, v int) {
		var asked []bool // replay or not
		saved := true
		hold, held := make(chan struct{}), make(chan struct{})
		a := &Agent{
			NewSession: func(_ context.Context, s *AgentSession) error {
				s.Value = &state{"live"}
				_ = s.SetCommands(SlashCommand{Name: "c", Description: "d"})
				return s.SetOptions(ChoiceOption("mode", "Mode", SessionConfigOptionCategoryMode, "ask", "ask", "code"))
			},
			ResumeSession: func(_ context.Context, s *AgentSession, replay bool) error {
				asked = append(asked, replay)
				if !saved {
					return SessionNotFound(s.ID())
				}
				s.Value = &state{"loaded"}
				_ = s.SetTitle("saved title")
				_ = s.SetOptions(ChoiceOption("mode", "Mode", SessionConfigOptionCategoryMode, "code", "ask", "code"))
				return s.Say("history")
			},
			Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
				if t.Text() == "hold" {
					close(held)
					<-hold
				}
				return StopEndTurn, t.Say(t.Session().Value.(*state).name)
			},
		}
		r := dialVersion(t, a, v)
		id := r.session()
		params := `{"sessionId":"` + id + `","cwd":"/tmp","mcpServers":[]}`
		load := func() string {
			if v == 1 {
				return string(r.must("session/load", params))
			}
			return string(r.must("session/resume", strings.TrimSuffix(params, "}")+`,"replayFrom":{"type":"start"}}`))
		}
		// Before anything was said or saved, and while a turn runs.
		saved = false
		if res := string(r.must("session/resume", params)); !strings.Contains(res, `"configOptions":[{`) {
			t.Errorf("resumed: %s", res)
		}
		if len(asked) != 0 {
			t.Errorf("the hook was asked %v", asked)
		}
		load()
		saved = true
		ended := make(chan string, 1)
		go func() {
			stop, _ := r.turn(id, "hold")
			ended <- stop
		}()
		<-held
		before := len(r.updates())
		res := load()
		if !slices.ContainsFunc(r.updates()[before:], func(u string) bool { return u == "agent_message_chunk history" }) {
			t.Errorf("replayed %q", r.updates()[before:])
		}
		if !strings.Contains(res, `"currentValue":"ask"`) {
			t.Errorf("options of the live session were replaced: %s", res)
		}
		if v == 2 && !slices.Contains(r.updates()[before:], "running") {
			t.Errorf("the state was not told: %q", r.updates()[before:])
		}
		close(hold)
		if stop := <-ended; stop != "end_turn" || !slices.Contains(r.updates(), "agent_message_chunk live") {
			t.Errorf("%q, %q", stop, r.updates())
		}
		s, _ := r.agent.Session(SessionID(id))
		if s.Value.(*state).name != "live" || s.Option("mode") != "ask" || s.Title() != "" {
			t.Errorf("the session has become %v %q %q", s.Value, s.Option("mode"), s.Title())
		}
		if diff := cmp.Diff([]bool{true, true}, asked); diff != "" {
			t.Errorf("the hook (-want +got):\n%s", diff)
		}
	})
}

// TestResumeHeld: a session can be resumed before what was sent while it was being
// opened has been flushed. All of it comes before the answer all the same.
func TestResumeHeld(t *testing.T) {
	r := dialVersion(t, echoAgent(), 2)
	id := r.session()
	s, _ := r.agent.Session(SessionID(id))
	if err := s.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.hold()
	s.releaseSending()
	r.must("session/resume", `{"sessionId":"`+id+`","cwd":"/tmp"}`)
	if diff := cmp.Diff([]string{"idle"}, r.updates()); diff != "" {
		t.Errorf("before the answer (-want +got):\n%s", diff)
	}
}

// TestModeToldAfterOption: a version 1 client that changes the mode as an option
// receives one update of the mode, and none when another option changes.
func TestModeToldAfterOption(t *testing.T) {
	r := dialVersion(t, optionAgent(), 1)
	id := r.session()
	count := func() (n int) {
		for _, u := range r.updates() {
			if strings.HasPrefix(u, "current_mode_update") {
				n++
			}
		}
		return n
	}
	for i, step := range []struct {
		option, value string
		told          int
	}{{"model", "smart", 0}, {"mode", "code", 1}, {"mode", "code", 1}, {"model", "fast", 1}, {"mode", "ask", 2}} {
		r.must("session/set_config_option", `{"sessionId":"`+id+`","configId":"`+step.option+`","value":"`+step.value+`"}`)
		if got := count(); got != step.told {
			t.Errorf("step %d: told %d times, want %d: %q", i, got, step.told, r.updates())
		}
	}
}

// TestLackShown: what the client does not offer is said in so many words where a
// hook returns it; an error of the application is not.
func TestLackShown(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		for _, tt := range []struct {
			name string
			hook func(t *Turn) error
			want string
		}{
			{"form", func(t *Turn) error { _, err := t.Elicit(FormRequest{Message: "Who?"}); return err }, "the client does not support elicitation forms"},
			{"link", func(t *Turn) error {
				_, _, err := t.ElicitURL(LinkRequest{Message: "Go", URL: "https://example.com"})
				return err
			}, "the client does not support elicitation of addresses"},
			{"own", func(*Turn) error { return errGaveUp }, "Internal error"},
		} {
			s, _ := linked(t, &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) { return "", tt.hook(t) }}, v)
			_, err := s.Prompt(t.Context(), Text("go")).Wait()
			if err == nil || code(err) != -32603 || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), errGaveUp.Error()) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			}
		}
	})
}

// TestReplayHoldsLive: what a turn says while the history of its session is replayed comes behind that, and neither the turn nor
// the replay waits for the other, until more is held than may be; a question waits for the end.
func TestReplayHoldsLive(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		const many = 2*maxHeldUpdates + 10
		started, speak, spoke := make(chan struct{}), make(chan struct{}), make(chan struct{})
		a := &Agent{
			ResumeSession: func(ctx context.Context, s *AgentSession, _ bool) error {
				for i := range 3 {
					if err := s.Send(&AgentMessageChunk{MessageID: "old", Content: Text("history")}); err != nil {
						return err
					}
					if i == 1 {
						close(speak)
						select {
						case <-spoke:
						case <-ctx.Done():
							return context.Cause(ctx)
						}
					}
				}
				return nil
			},
			Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
				close(started)
				<-speak
				for i := range many {
					if i == maxHeldUpdates-10 {
						close(spoke)
					}
					if err := t.Send(&AgentMessageChunk{MessageID: "new", Content: Text("live")}); err != nil {
						return "", err
					}
				}
				t.ToolCall(ToolCall{Title: "Ask"}).Permit(Permission{})
				return StopEndTurn, nil
			},
		}
		r := dialVersion(t, a, v)
		id := r.session()
		ended := make(chan string, 1)
		go func() {
			stop, _ := r.turn(id, "go")
			ended <- stop
		}()
		<-started
		before := len(r.updates())
		if v == 1 {
			r.must("session/load", `{"sessionId":"`+id+`","cwd":"/tmp","mcpServers":[]}`)
		} else {
			r.must("session/resume", `{"sessionId":"`+id+`","cwd":"/tmp","replayFrom":{"type":"start"}}`)
		}
		<-ended
		var got []string
		for _, u := range r.updates()[before:] {
			if strings.HasPrefix(u, "agent_message_chunk") || u == "replay_complete" {
				got = append(got, u)
			}
		}
		want := slices.Repeat([]string{"agent_message_chunk history"}, 3)
		if v == 2 {
			want = append(want, "replay_complete")
		}
		want = append(want, slices.Repeat([]string{"agent_message_chunk live"}, many)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestReplayHoldsEnd: a turn that ends while the history of its session is replayed ends behind what it said.
func TestReplayHoldsEnd(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		started, speak, spoke := make(chan struct{}), make(chan struct{}), make(chan struct{})
		r := dialVersion(t, &Agent{
			ResumeSession: func(_ context.Context, s *AgentSession, _ bool) error {
				close(speak)
				<-spoke
				for range 1000 {
					runtime.Gosched() // the end would come now
				}
				return s.Send(&AgentMessageChunk{MessageID: "old", Content: Text("history")})
			},
			Prompt: func(_ context.Context, turn *Turn) (StopReason, error) {
				defer close(spoke)
				close(started)
				<-speak
				return StopEndTurn, turn.Send(&AgentMessageChunk{MessageID: "new", Content: Text("live")})
			},
		}, v)
		id := r.session()
		ended := make(chan string, 1)
		go func() {
			_, _ = r.turn(id, "go")
			ended <- strings.Join(r.updates(), ", ")
		}()
		<-started
		if v == 1 {
			r.must("session/load", `{"sessionId":"`+id+`","cwd":"/tmp","mcpServers":[]}`)
		} else {
			r.must("session/resume", `{"sessionId":"`+id+`","cwd":"/tmp","replayFrom":{"type":"start"}}`)
		}
		got := <-ended
		if history, live := strings.Index(got, "history"), strings.Index(got, "live"); history < 0 || live < history {
			t.Errorf("the turn ended behind %s", got)
		}
	})
}
