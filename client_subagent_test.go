package acp

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// subagentAgent tells of a subagent that says something and asks.
func subagentAgent() *Agent {
	return &Agent{
		Info:         Implementation{Name: "parent", Version: "1"},
		CloseSession: func(context.Context, *AgentSession) error { return nil },
		Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
			s := t.Session()
			if t.Text() == "stranger" {
				return StopEndTurn, s.Child("nobody").Say("unheard")
			}
			if err := t.Subagent(&SubagentUpdate{SessionID: "kid", Title: Set("Kid")}); err != nil {
				return "", err
			}
			child := s.Child("kid")
			for i := range 3 {
				if err := child.Say(fmt.Sprint("part ", i, " ")); err != nil {
					return "", err
				}
			}
			d, err := child.Ask(Permission{Title: "May I?"})
			if err != nil {
				return "", err
			}
			if err := child.Say(fmt.Sprint("allowed ", d.Allowed)); err != nil {
				return "", err
			}
			return StopEndTurn, t.Say("done")
		},
	}
}

// TestChild: what happens in a subagent's session is told from the update on
// that speaks of it, also across a bridge.
func TestChild(t *testing.T) {
	for _, versions := range [][]int{{1}, {2}, {1, 2}, {2, 1}} {
		t.Run(fmt.Sprint(versions), func(t *testing.T) {
			var mu sync.Mutex
			said := map[SessionID]string{}
			var child *ClientSession
			asked := ""
			complete := make(chan struct{})
			const want = "part 0 part 1 part 2 allowed true"
			client := &Client{
				Update: func(_ context.Context, s *ClientSession, u *Update) {
					mu.Lock()
					defer mu.Unlock()
					said[s.ID()] += u.Text()
					if p := s.Parent(); p != nil {
						child = s
						if said[s.ID()] == want {
							close(complete)
						}
					}
				},
				RequestPermission: func(_ context.Context, r *PermissionRequest) (PermissionDecision, error) {
					mu.Lock()
					defer mu.Unlock()
					asked = string(r.Session.ID()) + " " + r.Title
					return r.Allow(), nil
				},
			}
			var conn *ClientConn
			if len(versions) == 2 {
				conn = bridged(t, subagentAgent(), versions[0], client, versions[1])
			} else {
				agent := subagentAgent()
				agent.MaxVersion, client.MaxVersion = versions[0], versions[0]
				ours, theirs := Pipe()
				if _, err := agent.Connect(t.Context(), theirs); err != nil {
					t.Fatal(err)
				}
				var err error
				if conn, err = client.Connect(t.Context(), ours); err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
			}
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"stranger", "go"} {
				if _, err := s.Prompt(t.Context(), Text(text)).Wait(); err != nil {
					t.Fatal(err)
				}
			}
			// The child is another timeline: what it says may be told later.
			if _, ok := conn.Session("nobody"); ok {
				t.Error("a session nobody told of is known")
			}
			c, ok := conn.Session("kid")
			if !ok || c.Parent() != s || s.Parent() != nil {
				t.Fatalf("child %v, known %t", c, ok)
			}
			select {
			case <-complete:
			case <-time.After(time.Minute):
				t.Error("the child has not said everything")
			}
			mu.Lock()
			if diff := cmp.Diff(map[SessionID]string{"kid": want, s.ID(): "done"}, said); diff != "" {
				t.Error(diff)
			}
			if !strings.HasPrefix(asked, "kid ") {
				t.Errorf("asked %q", asked)
			}
			if child != c {
				t.Error("the hook saw another session")
			}
			mu.Unlock()
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, ok := conn.Session("kid"); ok {
				t.Error("the child outlives its parent")
			}
			if _, err := c.Prompt(t.Context(), Text("x")).Wait(); err == nil {
				t.Error("the child can be prompted after its parent was closed")
			}
		})
	}
}

// TestChildrenAcrossBridge: a bridge lets no subagent speak before the client
// knows of it, though what it says is of another timeline.
func TestChildrenAcrossBridge(t *testing.T) {
	const children = 300
	for _, way := range bridgeWays {
		t.Run(fmt.Sprintf("agent v%d client v%d", way[0], way[1]), func(t *testing.T) {
			agent := &Agent{Prompt: func(_ context.Context, turn *Turn) (StopReason, error) {
				speaks := turn.Session()
				for i := range children {
					id := SessionID(fmt.Sprint("kid", i))
					u := &SubagentUpdate{SessionID: id}
					if i%3 != 2 {
						speaks = turn.Session()
					}
					// Each third is the child of a child.
					if err := speaks.Subagent(u); err != nil {
						return "", err
					}
					speaks = speaks.Child(id)
					if err := speaks.Say("hello"); err != nil {
						return "", err
					}
				}
				return StopEndTurn, nil
			}}
			heard := make(chan SessionID, children)
			client := &Client{Update: func(_ context.Context, s *ClientSession, u *Update) {
				if s.Parent() != nil && u.Text() == "hello" {
					heard <- s.ID()
				}
			}}
			s := bridgedSessionOf(t, agent, client, way)
			if _, err := s.Prompt(t.Context(), Text("go")).Wait(); err != nil {
				t.Fatal(err)
			}
			all := map[SessionID]bool{}
			timeout := time.After(time.Minute)
			for len(all) < children {
				select {
				case id := <-heard:
					all[id] = true
				case <-timeout:
					t.Fatalf("%d of %d were heard", len(all), children)
				}
			}
		})
	}
}

// TestManyChildren: a connection knows so many children at a time and no more, says so once, and counts those that have
// ended no longer.
func TestManyChildren(t *testing.T) {
	const extra = 3
	agent := &Agent{Prompt: func(ctx context.Context, turn *Turn) (StopReason, error) {
		for i := range clientMaxChildren + extra {
			id := SessionID(fmt.Sprint("kid", i))
			if err := turn.Subagent(&SubagentUpdate{SessionID: id}); err != nil {
				return "", err
			}
			if err := turn.Session().Child(id).Say("x"); err != nil {
				return "", err
			}
		}
		return StopEndTurn, nil
	}}
	ours, theirs := Pipe()
	if _, err := agent.Connect(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	log := new(bytes.Buffer)
	conn, err := (&Client{Logger: slog.New(slog.NewTextHandler(log, nil))}).Connect(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(t.Context(), Text("go")).Wait(); err != nil {
			t.Fatal(err)
		}
		if n := len(conn.OpenSessions()); n != clientMaxChildren+1 {
			t.Errorf("%d sessions are known", n)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.Close()
	if n := strings.Count(log.String(), "too many subagents"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
}

// TestChildUnheard: a client of version 1 that knows no subagents is told and
// asked nothing about one.
func TestChildUnheard(t *testing.T) {
	r := dialVersion(t, subagentAgent(), 1)
	s := r.session()
	if text, err := r.turn(s, "go"); err == nil {
		t.Errorf("the question was asked: %s", text)
	}
	for _, u := range r.updates() {
		if strings.Contains(u, "kid") || strings.Contains(u, "part") {
			t.Errorf("told %s", u)
		}
	}
}

// TestChildReplayed: what a subagent has done is history as long as its parent's
// is sent, however often it is loaded, and what it does afterwards is not.
func TestChildReplayed(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			tell := func(s *AgentSession, text string) error {
				for _, id := range []SessionID{"kid", "grandkid"} {
					if err := s.Subagent(&SubagentUpdate{SessionID: id}); err != nil {
						return err
					}
					s = s.Child(id)
					if err := s.Say(text); err != nil {
						return err
					}
				}
				return nil
			}
			agent := &Agent{
				Prompt: func(_ context.Context, turn *Turn) (StopReason, error) {
					return StopEndTurn, tell(turn.Session(), turn.Text())
				},
				ResumeSession: func(_ context.Context, s *AgentSession, replay bool) error {
					if !replay {
						return nil
					}
					return tell(s, "old")
				},
			}
			heard := make(chan string, 64)
			client := &Client{MaxVersion: version, Update: func(_ context.Context, s *ClientSession, u *Update) {
				if s.Parent() != nil && u.Text() != "" {
					heard <- fmt.Sprint(s.ID(), " ", u.Text(), " ", u.Replayed)
				}
			}}
			ours, theirs := Pipe()
			if _, err := agent.Connect(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			conn, err := client.Connect(t.Context(), ours)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			wants := func(want ...string) {
				t.Helper()
				var got []string
				for range want {
					select {
					case text := <-heard:
						got = append(got, text)
					case <-time.After(time.Minute):
						t.Fatal(got)
					}
				}
				slices.Sort(got) // the sessions are not in one order
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			}
			for _, word := range []string{"new", "newer"} {
				s, err := conn.Load(t.Context(), "s", SessionConfig{Cwd: "/"})
				if err != nil {
					t.Fatal(err)
				}
				reply := s.Prompt(t.Context(), Text(word))
				if _, err := reply.Wait(); err != nil {
					t.Fatal(err)
				}
				wants("grandkid "+word+" false", "grandkid old true", "kid "+word+" false", "kid old true")
			}
		})
	}
}
