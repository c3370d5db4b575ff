package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/host"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// asChat makes the test binary hold a conversation with the scripted agent.
const asChat = "ACP_TUI_TEST_CHAT"

func TestMain(m *testing.M) {
	if os.Getenv(asChat) == "" {
		os.Exit(m.Run())
	}
	cwd, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	policy, err := acphost.NewPolicy()
	if err != nil {
		panic(err)
	}
	err = Run(context.Background(), Options{
		Agent:    roster.Agent{Name: "scripted", Title: "Scripted", Builtin: true},
		StateDir: os.Getenv("XDG_STATE_HOME"),
		cwd:      cwd,
		ui:       &config.UI{Mouse: true},
		policy:   func() (*acphost.Policy, error) { return policy, nil },
		open: func(ctx context.Context, f *front) (link, error) {
			h, err := host.Open(ctx, host.Config{
				Agent: roster.Agent{Name: "scripted", Builtin: true}, BuiltIn: scripted(),
				Cwd: cwd, Policy: policy, Front: f.frontend(),
			})
			if err != nil {
				return nil, err
			}
			return hostLink{h}, nil
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "acp:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// scripted is an agent that does what the prompt names.
func scripted() *acp.Agent {
	return &acp.Agent{
		Info: acp.Implementation{Name: "scripted", Title: "Scripted", Version: "0.1"},
		NewSession: func(_ context.Context, s *acp.AgentSession) error {
			return errors.Join(
				s.SetOptions(acp.Choice("mode", "Mode", acp.SessionConfigOptionCategory("mode"), "ask", "ask", "code")),
				s.SetCommands(acp.SlashCommand{Name: "deploy", Description: "put it out", Input: &acpv2.TextCommandInput{Hint: "WHERE"}}),
			)
		},
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			word, rest, _ := strings.Cut(strings.TrimSpace(t.Text()), " ")
			switch word {
			case "wait":
				t.Say("waiting for you to cancel")
				<-ctx.Done()
			case "ask":
				call := t.ToolCall(acp.ToolCall{Title: "Remove everything", Kind: acp.ToolKindDelete})
				if call.Permit(acp.Permission{Title: "Remove everything?"}) {
					t.Say("it was allowed")
					call.Complete()
				} else {
					t.Say("it was not allowed")
					call.Fail(errors.New("declined"))
				}
			case "lines":
				for i := range 200 {
					t.Say(fmt.Sprintf("line %d\n\n", i+1))
				}
			case "panic":
				panic("on purpose")
			case "hostile":
				t.Say("before \x1b[2J\x1b]0;owned\x07\x1b[?1049l after")
				t.SetTitle("title \x1b]0;owned\x07 of it")
			default:
				t.Think("let me see")
				t.Plan(acp.PlanEntry{Content: "say it", Status: "in_progress"}, acp.PlanEntry{Content: "stop", Status: "pending"})
				t.Say("You said: " + word + " " + rest)
			}
			return acp.StopEndTurn, nil
		},
	}
}
