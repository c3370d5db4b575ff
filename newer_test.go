package acp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// novel is an agent that sends everything that is newer than the official schemas.
func novel() *Agent {
	a := echoAgent()
	a.Content.Skill = true
	a.NewSession = func(_ context.Context, s *AgentSession) error {
		if err := s.SetCommands(SlashCommand{Name: "plan", Description: "plans"}); err != nil {
			return err
		}
		return s.SetSkills(acpv2.Skill{Name: "review", Description: "reviews", Path: "/s/SKILL.md"})
	}
	a.Prompt = func(_ context.Context, t *Turn) (StopReason, error) {
		return StopEndTurn, errors.Join(
			t.Send(&acpv2.PromptSuggestionsUpdate{Suggestions: []acpv2.PromptSuggestion{{Prompt: []ContentBlock{Text("next")}}}}),
			t.Send(&acpv2.CursorUpdate{CursorID: "u", Capabilities: acpv2.Set(acpv2.CursorCapabilities{Fork: new(acpv2.CursorForkCapabilities)}),
				Anchor: &acpv2.CursorUserMessageAnchor{MessageID: "m", Position: acpv2.CursorAnchorPositionBefore}}),
			t.Send(&ToolCallUpdate{ToolCallID: "c", Title: Set("T"), Content: Set([]ToolCallContent{&acpv2.SessionReference{SessionID: "child"}})}),
			t.Say("said"),
		)
	}
	return a
}

// TestNewerGates: in every pairing of versions a client is sent what is newer only if it
// has said that it knows it, and everything that it knows is whole.
func TestNewerGates(t *testing.T) {
	for _, agent := range []int{1, 2} {
		for _, client := range []int{1, 2} {
			for _, through := range []bool{false, true} {
				if agent != client && !through {
					continue
				}
				for _, knows := range []bool{false, true} {
					var mu sync.Mutex
					var kinds []string
					c := &Client{Update: func(_ context.Context, _ *ClientSession, u *Update) {
						mu.Lock()
						defer mu.Unlock()
						kinds = append(kinds, u.Kind())
						if u, ok := u.Update.(*acpv2.UnknownSessionUpdate); ok {
							t.Errorf("unknown: %s", u.Raw)
						}
					}}
					if knows {
						c.Suggestions, c.Cursors, c.Skills = &PromptContent{}, true, true
					}
					conn := gated(t, novel(), agent, c, client, through)
					s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
					if err != nil {
						t.Fatal(err)
					}
					res, err := s.Prompt(t.Context(), Text("go")).Wait()
					if err != nil || res.StopReason != StopEndTurn {
						t.Fatalf("%+v %v", res, err)
					}
					name := map[bool]string{true: "knows, ", false: ""}[knows] + map[bool]string{true: "bridge ", false: ""}[through] +
						string(rune('0'+agent)) + "-" + string(rune('0'+client))
					mu.Lock()
					if got := slices.Contains(kinds, "prompt_suggestions_update"); got != knows {
						t.Errorf("%s: suggestions %t", name, got)
					}
					// In version 2 nothing stands before cursors; an agent of version 1 asks first.
					wantCursor := knows && client == 1 || agent == 2 && client == 2 || !through && knows
					if got := slices.Contains(kinds, "cursor_update"); got != wantCursor {
						t.Errorf("%s: cursor %t, want %t", name, got, wantCursor)
					}
					mu.Unlock()
					skills, names := 0, ""
					for _, command := range s.Commands() {
						switch command := command.(type) {
						case *acpv2.Skill:
							skills++
							names += command.Name + " "
						case *SlashCommand:
							names += command.Name + " "
						}
					}
					if want := map[bool]int{true: 1}[knows && agent == 2 && client == 2]; skills != want || strings.TrimSpace(names) != "plan review" {
						t.Errorf("%s: %d skills of %q", name, skills, names)
					}
				}
			}
		}
	}
}

// gated connects a client with an agent, directly or through a bridge.
func gated(t *testing.T, a *Agent, agent int, c *Client, client int, through bool) *ClientConn {
	t.Helper()
	if through {
		return bridged(t, a, agent, c, client)
	}
	a.MinVersion, a.MaxVersion, c.MinVersion, c.MaxVersion = agent, agent, client, client
	conn, err := c.Connect(t.Context(), InProcess(logged(t, a)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestSkills: a skill is invoked where the agent takes it; elsewhere, and one that the
// session does not have, is refused before it runs.
func TestSkills(t *testing.T) {
	skill := func(name string) ContentBlock { return &acpv2.SkillReference{Name: name} }
	for _, x := range []struct {
		name   string
		inline bool
		prompt []ContentBlock
		ok     bool
	}{
		{"first", false, []ContentBlock{skill("review"), Text("this")}, true},
		{"not first", false, []ContentBlock{Text("this"), skill("review")}, false},
		{"inline", true, []ContentBlock{Text("this"), skill("review"), skill("review")}, true},
		{"unknown", true, []ContentBlock{skill("nothing")}, false},
	} {
		a := novel()
		a.Content.SkillInline = x.inline
		c := gated(t, a, 2, &Client{Skills: true}, 2, false)
		s, err := c.NewSession(t.Context(), SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(t.Context(), x.prompt...).Wait(); (err == nil) != x.ok {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	c := gated(t, novel(), 1, &Client{}, 1, false)
	s, err := c.NewSession(t.Context(), SessionConfig{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(t.Context(), skill("review")).Wait(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("version 1: %v", err)
	}
}

// TestSkillsBesideCommands: of commands and skills that are set at the same time none is lost.
func TestSkillsBesideCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := novel()
		opened := make(chan *AgentSession, 1)
		a.NewSession = func(_ context.Context, s *AgentSession) error { opened <- s; return nil }
		c := gated(t, a, 2, &Client{Skills: true}, 2, false)
		if _, err := c.NewSession(t.Context(), SessionConfig{Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
		s := <-opened
		if err := s.Output.acquire(); err != nil {
			t.Fatal(err)
		}
		var setting sync.WaitGroup
		setting.Go(func() { _ = s.SetCommands(SlashCommand{Name: "one"}) })
		setting.Go(func() { _ = s.SetSkills(acpv2.Skill{Name: "two", Path: "/two"}) })
		synctest.Wait() // both wait for the right to send
		s.releaseSending()
		setting.Wait()
		if len(s.commands) != 2 {
			t.Errorf("%d of a command and a skill", len(s.commands))
		}
		c.Close()
	})
}

// TestForkAtCursor: a client forks a session at a cursor of it, in both versions and through a bridge. An agent that does not
// fork at cursors refuses it: the whole session would be more than was asked for. It is not asked for a fork at a cursor that
// it has not reported, nor at one that offers none.
func TestForkAtCursor(t *testing.T) {
	for agent := 1; agent <= 2; agent++ {
		for client := 1; client <= 2; client++ {
			for _, through := range []bool{false, true} {
				if agent != client && !through {
					continue
				}
				for _, takes := range []bool{true, false} {
					var forks []string
					a := novel()
					a.ForkSession = func(_ context.Context, _ *AgentSession, from SessionID) error {
						forks = append(forks, string(from))
						return nil
					}
					if takes {
						a.ForkSessionAt = func(_ context.Context, _ *AgentSession, from SessionID, at acpv2.CursorID) error {
							forks = append(forks, string(from)+" at "+string(at))
							return nil
						}
					}
					begin := a.Prompt
					a.Prompt = func(ctx context.Context, t *Turn) (StopReason, error) {
						stop, err := begin(ctx, t)
						return stop, errors.Join(err, t.Send(&acpv2.CursorUpdate{CursorID: "fixed",
							Anchor: &acpv2.CursorUserMessageAnchor{MessageID: "m", Position: acpv2.CursorAnchorPositionAfter}}))
					}
					conn := gated(t, a, agent, &Client{Cursors: true}, client, through)
					s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.Prompt(t.Context(), Text("go")).Wait(); err != nil {
						t.Fatal(err)
					}
					// A bridge asks an agent of version 1 for what the client asks for.
					known := !(agent == 1 && client == 2)
					if all := s.Cursors(); known && (len(all) != 2 || all[0].CursorID != "u") {
						t.Errorf("%d-%d: cursors %+v", agent, client, all)
					}
					_, err = s.ForkAt(t.Context(), "u", SessionConfig{Cwd: "/"})
					if refused := errors.Is(err, jsonrpc.ErrInvalidParams); refused == (takes && known) || err != nil && !refused {
						t.Errorf("%d-%d: %v", agent, client, err)
					}
					for _, at := range []acpv2.CursorID{"fixed", "nowhere"} {
						if _, err := s.ForkAt(t.Context(), at, SessionConfig{Cwd: "/"}); !errors.Is(err, errors.ErrUnsupported) {
							t.Errorf("%d-%d: at %s: %v", agent, client, at, err)
						}
					}
					if _, err := s.Fork(t.Context(), SessionConfig{Cwd: "/"}); err != nil {
						t.Error(err)
					}
					want := string(s.ID())
					if takes && known {
						want = want + " at u," + want
					}
					if got := strings.Join(forks, ","); got != want {
						t.Errorf("%d-%d: forked %q, want %q", agent, client, got, want)
					}
				}
			}
		}
	}
}

// TestSkillsOfOthers: a client that does not know skills is sent messages of the user with what would have been typed.
func TestSkillsOfOthers(t *testing.T) {
	for _, knows := range []bool{true, false} {
		a := novel()
		a.Prompt = func(_ context.Context, t *Turn) (StopReason, error) {
			return StopEndTurn, t.Send(&UserMessage{MessageID: "other", Content: Set([]ContentBlock{&acpv2.SkillReference{Name: "review"}, Text("this")})})
		}
		var mu sync.Mutex
		got := ""
		c := gated(t, a, 2, &Client{Skills: knows, Update: func(_ context.Context, _ *ClientSession, u *Update) {
			if m, ok := u.Update.(*UserMessage); ok && m.MessageID == "other" {
				mu.Lock()
				defer mu.Unlock()
				data, _ := m.AppendJSON(nil)
				got = string(data)
			}
		}}, 2, false)
		s, err := c.NewSession(t.Context(), SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(t.Context(), Text("go")).Wait(); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		if strings.Contains(got, `"skill"`) != knows || !knows && !strings.Contains(got, "/review this") {
			t.Errorf("knows skills %t: %s", knows, got)
		}
		mu.Unlock()
	}
}
