package acp_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/jsonrpc"
)

// TestSteeredEnds: a turn that takes a prompt and ends at once ends that prompt, too: its client is sent the prompt
// before the end.
func TestSteeredEnds(t *testing.T) {
	for _, version := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			agent := &acp.Agent{Busy: acp.BusySteer, Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
				synctest.Wait() // the other prompt is there
				for {
					select {
					case <-t.Steering():
						continue
					default:
					}
					return acp.StopEndTurn, nil
				}
			}}
			conn, _ := acptest.Pair(t, agent, &acp.Client{MinVersion: version, MaxVersion: version})
			s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			for range 50 {
				first, second := s.Prompt(t.Context(), acp.Text("first")), s.Prompt(t.Context(), acp.Text("second"))
				if _, err := second.Wait(); err != nil {
					t.Fatalf("version %d: %v", version, err)
				}
				if _, err := first.Wait(); err != nil {
					t.Fatalf("version %d: %v", version, err)
				}
			}
		})
	}
}

// TestSteeredOrder: the client knows of what a turn has taken before it gets what the hook says to it, even if that is at
// once: from an update, or in version 1 from the answer to its request. What the hook says is a message of its own.
func TestSteeredOrder(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version int
		known   string // a part of the frame from which the client knows
		send    func(context.Context, *acp.ClientSession, string) error
	}{
		{"prompt", 2, `"user_message"`, func(ctx context.Context, s *acp.ClientSession, text string) error {
			s.Prompt(ctx, acp.Text(text))
			return nil
		}},
		{"steer", 2, `"user_message"`, steered},
		{"steer", 1, `"injected"`, steered},
	} {
		t.Run(fmt.Sprint(tt.name, tt.version), func(t *testing.T) {
			agent := &acp.Agent{Busy: acp.BusySteer, Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
				_ = t.Say("began")
				for {
					select {
					case blocks := <-t.Steering():
						_ = t.Say("heard " + blocks[0].(*acp.TextContent).Text)
					case <-ctx.Done():
						return acp.StopCancelled, nil
					}
				}
			}}
			frames, began, heard := make(chan string, 100), make(chan struct{}, 1), make(chan struct{}, 1)
			messages := map[string]bool{} // ids of what was heard
			conn, _ := acptest.Pair(t, agent, &acp.Client{MinVersion: tt.version, MaxVersion: tt.version}, func(s jsonrpc.Stream) jsonrpc.Stream {
				return jsonrpc.Tap(s, func(sent bool, frame []byte) {
					switch text := string(frame); {
					case sent:
					case strings.Contains(text, "began"):
						began <- struct{}{}
					case strings.Contains(text, `"heard `):
						if id := regexp.MustCompile(`"messageId":"[^"]+"`).FindString(text); messages[id] {
							frames <- "heard in the message before"
						} else {
							frames <- "heard"
							messages[id] = true
						}
						heard <- struct{}{}
					case strings.Contains(text, tt.known):
						frames <- "known"
					}
				})
			})
			s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			reply := s.Prompt(ctx, acp.Text("go"))
			<-began
			for len(frames) > 0 {
				<-frames // the first prompt
			}
			for i := range 300 {
				if err := tt.send(t.Context(), s, fmt.Sprint(i)); err != nil {
					t.Fatal(err)
				}
				<-heard
				if first, second := <-frames, <-frames; first != "known" || second != "heard" {
					t.Fatalf("message %d: %s, then %s", i, first, second)
				}
			}
			cancel()
			_, _ = reply.Wait()
		})
	}
}

// TestTakeSteering: a hook that looks for prompts between two steps finds one that waits, whatever it has sent before, once; it
// stays there until then.
func TestTakeSteering(t *testing.T) {
	for _, version := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			sent, taken := make(chan struct{}), make(chan struct{})
			agent := &acp.Agent{Busy: acp.BusySteer, Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				if _, ok := turn.TakeSteering(); ok {
					t.Error("there is a prompt at first")
				}
				<-sent
				synctest.Wait() // the other prompt is there
				for range 10 {
					_ = turn.Say("more")
				}
				if blocks, ok := turn.TakeSteering(); !ok || blocks[0].(*acp.TextContent).Text != "second" {
					t.Errorf("version %d: %v, %t", version, blocks, ok)
				}
				if _, ok := turn.TakeSteering(); ok {
					t.Error("it is there twice")
				}
				close(taken)
				if blocks := <-turn.Steering(); blocks[0].(*acp.TextContent).Text != "third" {
					t.Errorf("version %d: %v", version, blocks)
				}
				if _, ok := turn.TakeSteering(); ok {
					t.Error("what was received is there still")
				}
				return acp.StopEndTurn, turn.Say("taken")
			}}
			conn, _ := acptest.Pair(t, agent, &acp.Client{MinVersion: version, MaxVersion: version})
			s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			first := s.Prompt(t.Context(), acp.Text("go"))
			synctest.Wait()
			second := s.Prompt(t.Context(), acp.Text("second"))
			close(sent)
			<-taken
			third := s.Prompt(t.Context(), acp.Text("third"))
			for _, reply := range []*acp.Reply{first, second, third} {
				if _, err := reply.Wait(); err != nil {
					t.Errorf("version %d: %v", version, err)
				}
			}
		})
	}
}

func steered(ctx context.Context, s *acp.ClientSession, text string) error {
	outcome, err := s.Steer(ctx, acp.Text(text))
	if err == nil && outcome != acp.SteerInjected {
		err = fmt.Errorf("outcome %s", outcome)
	}
	return err
}
