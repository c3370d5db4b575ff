package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/jsonrpc"
)

func steeringParams(session, text, meta string) string {
	return fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]%s}`, session, text, meta)
}

const onlyIfRunning = `,"_meta":{"steering":{"idleBehavior":"promptRequired"}}`

// steeringAgent takes what arrives while a turn runs whose prompt is "go", until it is released.
func steeringAgent(events chan string, release chan struct{}) *Agent {
	return &Agent{Busy: BusySteer, Prompt: func(ctx context.Context, turn *Turn) (StopReason, error) {
		events <- "turn " + turn.Text()
		if turn.Text() != "go" {
			return StopEndTurn, nil
		}
		for {
			select {
			case blocks := <-turn.Steering():
				events <- "took " + blocksText(blocks)
				turn.Say("heard " + blocksText(blocks))
			case <-release:
				return StopEndTurn, nil
			case <-ctx.Done():
				return StopCancelled, nil
			}
		}
	}}
}

// TestSteeringServed: an agent under BusySteer answers the extension as the most used agents do.
func TestSteeringServed(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		events, release := make(chan string, 10), make(chan struct{})
		r := dialVersion(t, steeringAgent(events, release), v)
		if diff := cmp.Diff(map[string]any{"steering": map[string]any{"supported": true}}, r.hello["_meta"]); diff != "" {
			t.Error(diff)
		}
		s := r.session()
		steering := func(text, meta string) string {
			t.Helper()
			res, err := r.call(methodSteering, steeringParams(s, text, meta))
			if err != nil {
				t.Fatal(err)
			}
			return string(res)
		}
		want := func(what string) {
			t.Helper()
			if got := <-events; got != what {
				t.Errorf("%s, want %s", got, what)
			}
		}
		const idle = `{"outcome":"promptRequired","reason":"noRunningTurn"}`
		if got := steering("early", onlyIfRunning); got != idle {
			t.Errorf("when no turn runs: %s", got)
		}
		for _, tc := range []struct {
			params string
			code   int
		}{
			{steeringParams("nobody", "x", onlyIfRunning), jsonrpc.CodeResourceNotFound},
			{`{"prompt":[]}`, jsonrpc.CodeInvalidParams},
			{fmt.Sprintf(`{"sessionId":%q}`, s), jsonrpc.CodeInvalidParams},
			{fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"image","data":"","mimeType":"image/png"}]}`, s), jsonrpc.CodeInvalidParams},
			{steeringParams(s, "x", `,"_meta":{"steering":{"idleBehavior":"wait"}}`), jsonrpc.CodeInvalidParams},
			{steeringParams(s, "x", `,"_meta":{"steering":{"idleBehavior":7}}`), jsonrpc.CodeInvalidParams},
		} {
			if res, err := r.call(methodSteering, tc.params); code(err) != tc.code {
				t.Errorf("%s: %s, %v", tc.params, res, err)
			}
		}
		first := make(chan error, 1)
		go func() { _, err := r.call("session/prompt", promptParams(s, "go")); first <- err }()
		want("turn go")
		for _, meta := range []string{onlyIfRunning, ""} {
			if got := steering("more", meta); got != `{"outcome":"injected"}` {
				t.Error(got)
			}
			want("took more")
		}
		said := slices.DeleteFunc(r.updates(), func(u string) bool { return !strings.HasPrefix(u, "user_message") })
		if v == 1 && len(said) != 0 || v == 2 && len(said) != 3 { // the client of version 1 shows what it has sent
			t.Errorf("messages of the user: %q", said)
		}
		close(release)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if v == 2 {
			r.awaitIdle(0)
		}
		if got := steering("late", onlyIfRunning); got != idle {
			t.Errorf("after the turn: %s", got)
		}
		if got := steering("on my own", ""); got != `{"outcome":"startedNewTurn"}` {
			t.Errorf("when no turn runs, without asking for a prompt: %s", got)
		}
		want("turn on my own")
		if stop, err := r.turn(s, "next"); err != nil || v == 1 && stop != "end_turn" {
			t.Errorf("the next prompt: %q, %v", stop, err)
		}
		want("turn next")
		if len(events) > 0 {
			t.Errorf("something was taken twice: %s", <-events)
		}
	})
}

// TestSteeringLeftOver: a message that no turn takes is not lost, and is not in the way of the prompt that it becomes; one
// that is cancelled is gone.
func TestSteeringLeftOver(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		running, release := make(chan struct{}), make(chan struct{})
		r := dialVersion(t, &Agent{Busy: BusySteer, Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
			if t.Text() != "go" {
				return StopEndTurn, nil
			}
			running <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done():
			}
			return StopEndTurn, nil
		}}, v)
		s := r.session()
		queued := func(n int) {
			r.await(func() bool {
				r.agent.mu.Lock()
				defer r.agent.mu.Unlock()
				return len(r.agent.prompts[SessionID(s)]) == n
			})
		}
		for _, cancels := range []bool{false, true} {
			queued(0) // those before have left
			ended := make(chan error, 1)
			go func() { _, err := r.turn(s, "go"); ended <- err }()
			<-running
			type answer struct {
				res json.RawMessage
				err error
			}
			answered := make(chan answer, 1)
			go func() {
				res, err := r.call(methodSteering, steeringParams(s, "more", onlyIfRunning))
				answered <- answer{res, err}
			}()
			queued(2)
			if cancels {
				r.notify("session/cancel", `{"sessionId":"`+s+`"}`)
			} else {
				release <- struct{}{}
			}
			a := <-answered
			if err := <-ended; err != nil {
				t.Error(err)
			}
			switch {
			case cancels && code(a.err) != jsonrpc.CodeRequestCancelled:
				t.Errorf("cancelled: %s, %v", a.res, a.err)
			case !cancels && string(a.res) != `{"outcome":"promptRequired","reason":"noRunningTurn"}`:
				t.Errorf("%s, %v", a.res, a.err)
			}
			if stop, err := r.turn(s, "more"); err != nil || v == 1 && stop != "end_turn" {
				t.Errorf("%q, %v", stop, err)
			}
		}
	})
}

// TestSteeringHook: with the hook the agent decides. Without it and BusySteer nothing is advertised.
func TestSteeringHook(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		var got *SteerMessage
		said := json.RawMessage(`{"mine":[1]}`)
		a := &Agent{
			Prompt:     func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil },
			Initialize: func(context.Context, *AgentConn) (json.RawMessage, error) { return said, nil },
			Steer: func(_ context.Context, s *AgentSession, r *SteerMessage) (SteerOutcome, error) {
				got = r
				if blocksText(r.Prompt) == "bad" {
					return "", errors.New("secret")
				}
				return SteerInjected, nil
			},
		}
		r := dialVersion(t, a, v)
		if diff := cmp.Diff(map[string]any{"steering": map[string]any{"supported": true}, "mine": []any{1.0}}, r.hello["_meta"]); diff != "" {
			t.Error(diff)
		}
		s := r.session()
		if res, err := r.call(methodSteering, steeringParams(s, "more", "")); string(res) != `{"outcome":"injected"}` || err != nil || !got.Begin {
			t.Errorf("%s, %v", res, err)
		}
		if _, err := r.call(methodSteering, steeringParams(s, "bad", onlyIfRunning)); code(err) != jsonrpc.CodeInternalError || strings.Contains(err.Error(), "secret") || got.Begin {
			t.Error(err)
		}
		if stop, err := r.turn(s, "next"); err != nil || v == 1 && stop != "end_turn" { // nothing of that is in a queue
			t.Errorf("%q, %v", stop, err)
		}
		a.Steer = nil
		r = dialVersion(t, a, v)
		if diff := cmp.Diff(map[string]any{"mine": []any{1.0}}, r.hello["_meta"]); diff != "" {
			t.Error(diff)
		}
		if _, err := r.call(methodSteering, steeringParams(r.session(), "more", "")); code(err) != jsonrpc.CodeMethodNotFound {
			t.Error(err)
		}
	})
}

// TestBridgeSteer: a message passes a bridge, whatever the versions, and its client sees it once, between what the agent has
// said before and after.
func TestBridgeSteer(t *testing.T) {
	for _, way := range bridgeWays {
		t.Run(fmt.Sprintf("agent v%d client v%d", way[0], way[1]), func(t *testing.T) {
			events, release := make(chan string, 10), make(chan struct{})
			var said []string
			heard := make(chan struct{}, 10)
			client := &Client{Update: func(_ context.Context, _ *ClientSession, u *Update) {
				switch v := u.Update.(type) {
				case *UserMessage, *UserMessageChunk:
					said = append(said, strings.TrimPrefix(strings.Replace(u.short(), "user+", "user", 1), "made-up "))
				case *AgentMessageChunk:
					said = append(said, v.Content.(*TextContent).Text)
					heard <- struct{}{}
				}
			}}
			s := bridgedSessionOf(t, steeringAgent(events, release), client, way)
			if outcome, err := s.Steer(t.Context(), Text("early")); outcome != SteerPromptRequired || err != nil {
				t.Errorf("%q, %v", outcome, err)
			}
			turn := s.Prompt(t.Context(), Text("go"))
			<-events
			for range 2 {
				if outcome, err := s.Steer(t.Context(), Text("more")); outcome != SteerInjected || err != nil {
					t.Fatalf("%q, %v", outcome, err)
				}
				<-heard
			}
			close(release)
			if _, err := turn.Wait(); err != nil {
				t.Fatal(err)
			}
			count := map[string]int{}
			for _, text := range said {
				count[text]++
			}
			if diff := cmp.Diff(map[string]int{"user go": 1, "user more": 2, "heard more": 2}, count); diff != "" {
				t.Errorf("%s\n%q", diff, said)
			}
		})
	}
}
