package acp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/jsonrpc"
)

// scripted sends lines to an agent, one at a time, and closes its end; the agent's
// lines are read until the agent closes its own. "$session" stands for the id of
// the session that was opened last.
func scripted(t *testing.T, a *Agent, lines ...string) (told []string) {
	t.Helper()
	in, send := io.Pipe()
	receive, out := io.Pipe()
	conn, err := a.Connect(t.Context(), Over(jsonrpc.NewLineStream(in, out)))
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	session := make(chan string, 1)
	go func() {
		defer close(over)
		s := bufio.NewScanner(receive)
		for s.Scan() {
			told = append(told, s.Text())
			if _, rest, ok := strings.Cut(s.Text(), `"result":{"sessionId":"`); ok {
				id, _, _ := strings.Cut(rest, `"`)
				session <- id
			}
		}
	}()
	id := ""
	for _, line := range lines {
		if strings.Contains(line, "$session") && id == "" {
			id = <-session
		}
		if _, err := io.WriteString(send, strings.ReplaceAll(line, "$session", id)+"\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	}
	_ = send.Close()
	if err := conn.Wait(); err != nil {
		t.Error(err)
	}
	_ = out.Close()
	<-over
	return told
}

// TestClientClosesItsEnd: the turns of a client that sends no more have the grace of
// the engine in both versions, and what they say reaches it.
func TestClientClosesItsEnd(t *testing.T) {
	const grace = 3 * time.Second
	for _, tt := range []struct {
		name string
		hook func(ctx context.Context, t *Turn) (StopReason, error)
		want string
	}{
		{"ends in time", func(ctx context.Context, t *Turn) (StopReason, error) {
			time.Sleep(grace - time.Second)
			if err := ctx.Err(); err != nil {
				return "", fmt.Errorf("cancelled early: %w", err)
			}
			return StopEndTurn, t.Say("bye")
		}, "bye end_turn"},
		{"is cancelled", func(ctx context.Context, t *Turn) (StopReason, error) {
			began := time.Now()
			<-ctx.Done()
			if d := time.Since(began); d != grace || !errors.Is(context.Cause(ctx), jsonrpc.ErrClosed) {
				return "", fmt.Errorf("cancelled after %v: %w", d, context.Cause(ctx))
			}
			return StopMaxTokens, t.Say("bye")
		}, "bye max_tokens"},
		{"gives up", func(ctx context.Context, t *Turn) (StopReason, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, " error"},
		{"ignores its context", func(ctx context.Context, t *Turn) (StopReason, error) {
			time.Sleep(time.Minute)
			return StopEndTurn, nil
		}, " error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			versions(t, func(t *testing.T, v int) {
				synctest.Test(t, func(t *testing.T) {
					var began time.Time
					a := &Agent{
						CancelGrace: grace / 2,
						Logger:      slog.New(slog.DiscardHandler),
						Engine:      jsonrpc.Settings{Grace: grace},
						Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
							began = time.Now()
							return tt.hook(ctx, t)
						},
					}
					hello := helloV1
					if v == 2 {
						hello = helloV2
					}
					told := scripted(t, a,
						`{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+hello+`}`,
						`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`,
						`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"$session","prompt":[{"type":"text","text":"go"}]}}`,
					)
					if d := time.Since(began); d > 4*grace {
						t.Errorf("the connection ended after %v", d) // of the bubble
					}
					time.Sleep(time.Minute) // hooks that were given up return
					text, end := "", ""
					for _, l := range told {
						switch {
						case strings.Contains(l, `"agent_message_chunk"`) && strings.Contains(l, `"bye"`):
							text = "bye"
						case strings.Contains(l, `"id":3,"error"`), strings.Contains(l, `"idle"`) && strings.Contains(l, `"error"`):
							end = "error"
						default:
							for _, stop := range []StopReason{StopEndTurn, StopMaxTokens, StopCancelled} {
								if strings.Contains(l, `"stopReason":"`+string(stop)+`"`) {
									end = string(stop)
								}
							}
						}
					}
					if diff := cmp.Diff(tt.want, text+" "+end); diff != "" {
						t.Errorf("the client saw (-want +got):\n%s\n%s", diff, strings.Join(told, "\n"))
					}
				})
			})
		})
	}
}
