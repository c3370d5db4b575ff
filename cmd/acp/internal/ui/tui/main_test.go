package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/jsonrpc"
)

// asChat makes the test binary hold a conversation with the scripted agent.
const asChat = "ACP_TUI_TEST_CHAT"

// asAgent makes the test binary an agent that wants a login in a terminal; its value is the file
// that the login makes.
const asAgent = "ACP_TUI_TEST_AGENT"

func TestMain(m *testing.M) {
	if file := os.Getenv(asAgent); file != "" {
		os.Exit(serveLogin(file))
	}
	if os.Getenv(asChat) == "" {
		leaktest.Main(m)
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
		open: func(ctx context.Context, _ roster.Agent, f *front) (link, error) {
			cfg := backend.Config{
				Agent: roster.Agent{Name: "scripted", Builtin: true}, BuiltIn: scripted(),
				Cwd: cwd, Policy: policy, Front: f.frontend(),
			}
			if os.Getenv(asChat) == "login" {
				exe, err := os.Executable()
				if err != nil {
					return nil, err
				}
				cfg.Agent = roster.Agent{Name: "scripted", Command: exe, Env: map[string]string{asAgent: filepath.Join(cwd, "login")}}
			}
			h, err := backend.Open(ctx, cfg)
			if err != nil {
				return nil, err
			}
			return bombLink{hostLink{h}}, nil
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "acp:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ownTerminal reports whether this process leads the session of a terminal.
var ownTerminal = func() bool { return true }

// serveLogin is the scripted agent, but for a login. As its program for that it asks for a word.
func serveLogin(file string) (code int) {
	if len(os.Args) > 1 && os.Args[1] == "--setup" {
		if !ownTerminal() {
			fmt.Print("in somebody else's terminal ")
			return 4
		}
		fmt.Print("Say the word: ")
		var word string
		if _, err := fmt.Scanln(&word); err != nil || word != "please" {
			return 3
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return 1
		}
		return 0
	}
	a := scripted()
	a.AuthMethods = []acp.AuthMethod{&acp.AuthMethodTerminal{MethodID: "setup", Name: "Set up", Args: []string{"--setup"}}}
	a.Accept = func(context.Context, *acp.Turn) error {
		if _, err := os.Stat(file); err != nil {
			return jsonrpc.ErrAuthRequired
		}
		return nil
	}
	a.ResumeSession = func(context.Context, *acp.AgentSession, bool) error { return nil }
	a.Login = func(context.Context, *acp.AgentConn, acp.AuthMethodID) error { return nil }
	if err := a.Serve(context.Background(), acp.Stdio()); err != nil {
		return 1
	}
	return 0
}

// A bombLink is a link with sessions that panic when they were given a certain
// title.
type bombLink struct{ link }

func (l bombLink) NewSession(ctx context.Context) (talk, error) {
	t, err := l.link.NewSession(ctx)
	return &bomb{talk: t}, err
}

type bomb struct {
	talk
	lit atomic.Bool
}

func (b *bomb) SetTitle(_ context.Context, title string) error {
	switch title {
	case "update":
		b.lit.Store(true)
	case "command":
		panic("on purpose, in a command")
	}
	return nil
}

func (b *bomb) Options() []acp.SessionConfigOption {
	if b.lit.Load() {
		panic("on purpose, in the loop")
	}
	return b.talk.Options()
}

// scripted is an agent that does what the prompt names.
func scripted() *acp.Agent {
	return &acp.Agent{
		Info: acp.Implementation{Name: "scripted", Title: "Scripted", Version: "0.1"},
		NewSession: func(_ context.Context, s *acp.AgentSession) error {
			return errors.Join(
				s.SetOptions(acp.ChoiceOption("mode", "Mode", acp.SessionConfigOptionCategory("mode"), "ask", "ask", "code")),
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
			case "flood":
				for i := range 50_000 {
					t.Say(fmt.Sprintf("word%d ", i))
				}
				t.Say("\n\nthe flood is over")
			case "big": // the conversation keeps 8 MiB of a message
				t.Say(strings.Repeat("a long line of a big message, again and again\n", 7<<20/46))
				t.Say("\n\nthe big one is over")
			case "run":
				call := t.ToolCall(acp.ToolCall{Title: "Count", Kind: acp.ToolKindExecute})
				state, err := call.Exec(acp.Exec{Command: "sh", Args: []string{"-c", "printf 'one\\033[31m red\\033[0m\\ntwo\\n'"}})
				if err != nil || state == nil {
					call.Fail(err)
					break
				}
				call.Complete()
				t.Say("it has run")
			case "edit":
				call := t.ToolCall(acp.ToolCall{Title: "Edit a.go", Kind: acp.ToolKindEdit})
				call.Change(acp.FileChange{Path: t.Session().Cwd() + "/a.go", Before: "package a\n\nvar x = 1\n", After: "package a\n\nvar x = 2\n"})
				call.Complete()
				t.Say("it is edited")
			case "form":
				got, err := t.Elicit(acp.FormRequest{Message: "Who are you?", Schema: acp.ElicitationSchema{
					Properties: []acp.ElicitationProperty{{Name: "name", Schema: &acpv2.StringPropertySchema{Title: "Your name"}}},
				}})
				if err != nil {
					return "", err
				}
				t.Say(fmt.Sprintf("accepted %v: %s", got.Accepted, got.Content["name"]))
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
