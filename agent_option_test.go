package acp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// heldAnswer is middleware that has changed an option for a client once, and keeps back the answer until free is closed.
type heldAnswer struct {
	calls   atomic.Int32
	changed chan struct{} // closed when the first change is made
	free    chan struct{}
}

func newHeldAnswer() *heldAnswer {
	return &heldAnswer{changed: make(chan struct{}), free: make(chan struct{})}
}

func (h *heldAnswer) stand(ctx context.Context, c *Call, next func(context.Context) error) error {
	err := next(ctx)
	if strings.HasPrefix(c.Method, "session/set_") && h.calls.Add(1) == 1 {
		close(h.changed)
		<-h.free
	}
	return err
}

// choosesModel opens sessions with an option of three values, a, b and c, and puts the latest into as.
func choosesModel(as **AgentSession) func(context.Context, *AgentSession) error {
	return func(_ context.Context, s *AgentSession) error {
		*as = s
		return s.SetOptions(ChoiceOption("model", "Model", "model", "a", "a", "b", "c"))
	}
}

func model(v SessionConfigValueID) SessionConfigOptionValue {
	return &SessionConfigOptionValueID{Value: v}
}

// endsWithC waits, in a bubble, for the answer to a change, and holds that the client and the agent have c in the end.
func endsWithC(t *testing.T, answer <-chan error, conn *ClientConn, s *ClientSession, as *AgentSession) {
	t.Helper()
	if err := <-answer; err != nil {
		t.Error(err)
	}
	synctest.Wait()
	if got := s.Option("model"); got != "c" || as.Option("model") != "c" {
		t.Errorf("the client has %s, the agent %s", got, as.Option("model"))
	}
	_ = conn.Close()
	synctest.Wait()
}

// TestOptionsOvertaken: a client whose change is answered after a later one, of its own or of the agent's, ends up with what
// the agent has.
func TestOptionsOvertaken(t *testing.T) {
	cases := map[string]func(t *testing.T, s *ClientSession, as *AgentSession){
		"by the client": func(t *testing.T, s *ClientSession, _ *AgentSession) {
			if err := s.SetOption(t.Context(), "model", model("c")); err != nil {
				t.Error(err)
			}
		},
		"by the agent": func(t *testing.T, _ *ClientSession, as *AgentSession) {
			if err := as.ChangeOption("model", model("c")); err != nil {
				t.Error(err)
			}
		},
	}
	versions(t, func(t *testing.T, v int) {
		for name, later := range cases {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					held := newHeldAnswer()
					var as *AgentSession
					conn, s := middleSession(t, v, Agent{
						Middleware: []Middleware{held.stand},
						Prompt:     func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil },
						NewSession: choosesModel(&as),
					})
					first := make(chan error)
					go func() { first <- s.SetOption(t.Context(), "model", model("b")) }()
					<-held.changed
					later(t, s, as)
					close(held.free)
					endsWithC(t, first, conn, s, as)
				})
			})
		}
	})
}

// TestModeOvertaken: so does a client of version 1 that knows modes only, for which there are no options in the answer.
func TestModeOvertaken(t *testing.T) {
	held := newHeldAnswer()
	a := optionAgent()
	a.Middleware = []Middleware{held.stand}
	r := dialVersion(t, a, 1)
	id := r.session()
	modes := func() (list []string) {
		for _, u := range r.updates() {
			if mode, ok := strings.CutPrefix(u, "current_mode_update "); ok {
				list = append(list, mode)
			}
		}
		return list
	}
	first := make(chan error)
	go func() {
		_, err := r.call("session/set_mode", `{"sessionId":"`+id+`","modeId":"code"}`)
		first <- err
	}()
	<-held.changed
	r.must("session/set_mode", `{"sessionId":"`+id+`","modeId":"ask"}`)
	close(held.free)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	r.await(func() bool { return slices.Equal(modes(), []string{"code", "ask", "ask"}) })
}

// TestBridgeOptions: a client behind a bridge has the options of the agent in the end, also if they were overtaken, and if the
// value in force is not among the values.
func TestBridgeOptions(t *testing.T) {
	for _, dir := range [][2]int{{1, 2}, {2, 1}, {1, 1}, {2, 2}} {
		t.Run(fmt.Sprintf("agent v%d client v%d", dir[0], dir[1]), func(t *testing.T) {
			held := newHeldAnswer()
			var as *AgentSession
			conn := bridged(t, &Agent{
				Middleware: []Middleware{held.stand},
				NewSession: choosesModel(&as),
				Prompt:     func(_ context.Context, turn *Turn) (StopReason, error) { return StopEndTurn, turn.Say("done") },
			}, dir[0], &Client{}, dir[1])
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			// A turn comes behind what the agent has sent before.
			until := func(want SessionConfigValueID) {
				t.Helper()
				for s.Option("model") != want {
					if _, err := s.Prompt(t.Context(), Text("hi")).Wait(); err != nil {
						t.Fatalf("%v, and the client has %s", err, s.Option("model"))
					}
				}
			}
			first := make(chan error)
			go func() { first <- s.SetOption(t.Context(), "model", model("b")) }()
			<-held.changed
			if err := s.SetOption(t.Context(), "model", model("c")); err != nil {
				t.Error(err)
			}
			close(held.free)
			if err := <-first; err != nil {
				t.Error(err)
			}
			until("c")
			if err := as.Send(&ConfigOptionUpdate{ConfigOptions: []SessionConfigOption{ChoiceOption("model", "Model", "model", "free text", "a", "b", "c")}}); err != nil {
				t.Fatal(err)
			}
			until("free text")
		})
	}
}

// TestOptionsOvertakeUpdate: an update of the options that is sent late does not leave the client with what was in force
// before its change.
func TestOptionsOvertakeUpdate(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		synctest.Test(t, func(t *testing.T) {
			var as *AgentSession
			changing, setting := make(chan struct{}), make(chan struct{})
			slow, free := make(chan struct{}), make(chan struct{})
			var once sync.Once
			conn, s := middleSession(t, v, Agent{
				Prompt:     func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil },
				NewSession: choosesModel(&as),
				SetOption: func(context.Context, *AgentSession, SessionConfigID, SessionConfigOptionValue) error {
					close(setting)
					<-changing
					return nil
				},
				Record: func(_ context.Context, _ *AgentSession, u SessionUpdate) error {
					if _, ok := u.(*ConfigOptionUpdate); ok {
						once.Do(func() { close(slow); <-free })
					}
					return nil
				},
			})
			set := make(chan error)
			go func() { set <- s.SetOption(t.Context(), "model", model("c")) }()
			<-setting
			go func() { _ = as.ChangeOption("model", model("b")) }()
			<-slow
			close(changing)
			synctest.Wait()
			close(free)
			endsWithC(t, set, conn, s, as)
		})
	})
}
