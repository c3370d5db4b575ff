package acp_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// A mark is about a session, and says so.
type mark struct {
	SessionID acp.SessionID `json:"sessionId"`
}

func (m *mark) InSession() acp.SessionID { return m.SessionID }

// TestSessionParams: a message of an extension that says which session it is about is handled before the updates that follow
// it. Another one delays none.
func TestSessionParams(t *testing.T) {
	for name, want := range map[string][]string{"_example/mark": {"mark", "update"}, "_example/other": {"update", "mark"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []string
				add := func(what string) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, what)
				}
				handled := func() {
					time.Sleep(time.Second)
					add("mark")
				}
				client := &acp.Client{
					Extensions: func(mux *jsonrpc.Mux) {
						jsonrpc.Notification[mark]{Name: "_example/mark"}.Handle(mux, func(context.Context, *mark) error { handled(); return nil })
						jsonrpc.Notification[struct{}]{Name: "_example/other"}.Handle(mux, func(context.Context, *struct{}) error { handled(); return nil })
					},
					Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
						if u.Text() == "hello" {
							add("update")
						}
					},
				}
				agent := &acp.Agent{Prompt: func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
					s := turn.Session()
					if err := s.Conn().Conn().Notify(ctx, name, mark{s.ID()}); err != nil {
						return "", err
					}
					return acp.StopEndTurn, turn.Say("hello")
				}}
				a, b := acp.Pipe()
				served := make(chan error, 1)
				go func() { served <- agent.Serve(t.Context(), a) }()
				conn, err := client.Connect(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/project"})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Prompt(t.Context(), acp.Text("go")).Wait(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				_ = conn.Close()
				<-served
			})
		})
	}
}
