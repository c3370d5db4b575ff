package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// baseAgent is a good agent that can do everything and follows the words of the
// script. All fixtures of agents are made of it.
type baseAgent struct {
	mu    sync.Mutex
	made  int
	saved map[acp.SessionID]*savedSession
	in    bool
	open  int // sessions that were made and not closed
}

type savedSession struct {
	info acp.SessionInfo
	said []acp.SessionUpdate
}

// openAgent connects to a base agent with a defect, or without if it is nil. All
// connections lead to the same saved sessions.
func openAgent(d defect) func(context.Context) (*Peer, error) {
	a := &baseAgent{saved: map[acp.SessionID]*savedSession{}}
	return func(context.Context) (*Peer, error) {
		return fixture(Agent, d, a.usage, func(s jsonrpc.Stream) error {
			return a.agent().Serve(context.Background(), acp.Over(s))
		}), nil
	}
}

// usage is a process and some memory for each session.
func (a *baseAgent) usage() Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Usage{Memory: int64(a.open) << 20, Processes: 1 + a.open}
}

func (a *baseAgent) agent() *acp.Agent {
	return &acp.Agent{
		Info:   acp.Implementation{Name: "base", Version: "1.0.0"},
		Logger: slog.New(slog.DiscardHandler), // what fails here is what the rules provoke
		Initialize: func(context.Context, *acp.AgentConn) (json.RawMessage, error) {
			return json.RawMessage(`{"tspeer":{"script":1},"steering":{"supported":true}}`), nil
		},
		Accept: func(ctx context.Context, t *acp.Turn) error {
			switch word, _, _ := strings.Cut(t.Text(), " "); word {
			case "!fail":
				return errors.New("boom")
			case "!hold":
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		},
		Prompt: a.prompt,
		NewSession: func(_ context.Context, s *acp.AgentSession) error {
			for _, server := range s.MCPServers() {
				switch server := server.(type) {
				case *acp.MCPServerStdio:
					connectProbe(server.Command)
				case *acp.MCPServerHTTP:
					connectProbe(server.URL)
				}
			}
			return a.add(s, nil)
		},
		ResumeSession: func(_ context.Context, s *acp.AgentSession, replay bool) error {
			a.mu.Lock()
			old := a.saved[s.ID()]
			a.mu.Unlock()
			if old == nil {
				return acp.SessionNotFound(s.ID())
			}
			if replay {
				for _, u := range old.said {
					if err := s.Send(u); err != nil {
						return err
					}
				}
			}
			return equip(s)
		},
		ListSessions: a.list,
		CloseSession: func(context.Context, *acp.AgentSession) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.open--
			return nil
		},
		DeleteSession: func(_ context.Context, _ *acp.AgentConn, id acp.SessionID) error { return a.change(id, nil) },
		ForkSession: func(_ context.Context, s *acp.AgentSession, from acp.SessionID) error {
			a.mu.Lock()
			old := a.saved[from]
			a.mu.Unlock()
			if old == nil {
				return acp.SessionNotFound(from)
			}
			return a.add(s, old.said)
		},
		ArchiveSession: func(_ context.Context, _ *acp.AgentConn, id acp.SessionID, archived bool) error {
			return a.change(id, func(s *savedSession) { s.info.Archived = &archived })
		},
		SessionStatus: func(_ context.Context, _ *acp.AgentConn, id acp.SessionID) (acp.SessionStatus, error) {
			return acp.SessionStatusSaved, a.change(id, func(*savedSession) {})
		},
		SessionOptions: func(_ context.Context, _ *acp.AgentConn, q *acp.OptionsQuery) (*acp.OptionsPreview, error) {
			if q.SessionID != "" && a.change(q.SessionID, func(*savedSession) {}) != nil {
				return nil, acp.SessionNotFound(q.SessionID)
			}
			return &acp.OptionsPreview{ConfigOptions: baseOptions()}, nil
		},
		SetTitle: func(_ context.Context, _ *acp.AgentConn, id acp.SessionID, title string) (string, error) {
			return title, a.change(id, func(s *savedSession) { s.info.Title = title })
		},
		AuthMethods: []acp.AuthMethod{&acp.AuthMethodAgent{MethodID: "login", Name: "Log in"}},
		Login:       func(context.Context, *acp.AgentConn, acp.AuthMethodID) error { return a.login(true) },
		Logout:      func(context.Context, *acp.AgentConn) error { return a.login(false) },
		AuthStatus: func(context.Context, *acp.AgentConn) (*acp.AuthStatus, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.in {
				return &acp.AuthStatus{State: acp.AuthStateAuthenticated}, nil
			}
			return &acp.AuthStatus{State: acp.AuthStateUnauthenticated}, nil
		},
		ListProviders: func(context.Context, *acp.AgentConn) ([]acp.ProviderInfo, error) {
			return []acp.ProviderInfo{{ProviderID: "main", Supported: []acpv2.LLMProtocol{acpv2.LLMProtocolAnthropic}}}, nil
		},
		SetProvider: func(_ context.Context, _ *acp.AgentConn, p *acp.ProviderSetting) error {
			if p.ProviderID != "main" {
				return jsonrpc.ErrInvalidParams
			}
			return nil
		},
		DisableProvider:       func(context.Context, *acp.AgentConn, acp.ProviderID) error { return nil },
		Content:               acp.PromptContent{Image: true, Audio: true, EmbeddedContext: true},
		MCP:                   acp.MCPTransports{Stdio: true, HTTP: true, SSE: true, ACP: true},
		Extensions:            a.steers,
		AdditionalDirectories: true,
		SystemPrompt:          acp.SystemPromptOverride,
	}
}

// steers answers what would steer a turn, as if none ran.
func (a *baseAgent) steers(mux *jsonrpc.Mux) {
	type params struct {
		SessionID acp.SessionID `json:"sessionId"`
		Meta      struct {
			Steering struct {
				IdleBehavior string `json:"idleBehavior"`
			} `json:"steering"`
		} `json:"_meta"`
	}
	jsonrpc.Method[params, any]{Name: steering}.Handle(mux, func(_ context.Context, p *params) (*any, error) {
		if p.Meta.Steering.IdleBehavior != "promptRequired" {
			return nil, jsonrpc.ErrInvalidParams
		}
		if err := a.change(p.SessionID, func(*savedSession) {}); err != nil {
			return nil, err
		}
		var outcome any = map[string]string{"outcome": "promptRequired", "reason": "noRunningTurn"}
		return &outcome, nil
	})
}

func (a *baseAgent) login(in bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.in = in
	return nil
}

func (a *baseAgent) add(s *acp.AgentSession, said []acp.SessionUpdate) error {
	a.mu.Lock()
	a.made++
	a.open++
	s.SetID(acp.SessionID("sess-" + strconv.Itoa(a.made)))
	a.saved[s.ID()] = &savedSession{said: said, info: acp.SessionInfo{SessionID: s.ID(), Cwd: s.Cwd(), UpdatedAt: "2026-11-01T00:00:00Z"}}
	a.mu.Unlock()
	return equip(s)
}

func equip(s *acp.AgentSession) error {
	if err := s.SetOptions(baseOptions()...); err != nil {
		return err
	}
	return s.SetCommands(acp.SlashCommand{Name: "plan", Description: "make a plan", Input: &acp.TextCommandInput{Hint: "what"}})
}

func baseOptions() []acp.SessionConfigOption {
	choice := func(id acp.SessionConfigID, category acp.SessionConfigOptionCategory, values ...acp.SessionConfigValueID) acp.SessionConfigOption {
		var list acp.SessionConfigSelectOptionList
		for _, v := range values {
			list = append(list, acp.SessionConfigSelectOption{Value: v, Name: string(v)})
		}
		return acp.SessionConfigOption{ConfigID: id, Name: string(id), Category: category,
			Kind: &acp.SessionConfigSelect{CurrentValue: values[0], Options: list}}
	}
	return []acp.SessionConfigOption{
		choice("model", acp.SessionConfigOptionCategoryModel, "fast", "smart"),
		choice("mode", acp.SessionConfigOptionCategoryMode, "ask", "code"),
		acp.SessionConfigOption{ConfigID: "web", Name: "Web search", Kind: &acp.SessionConfigBoolean{}},
	}
}

func (a *baseAgent) list(_ context.Context, _ *acp.AgentConn, q *acp.SessionQuery) (*acp.SessionPage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	start := 0
	if q.Cursor != nil {
		var err error
		if start, err = strconv.Atoi(string(*q.Cursor)); err != nil || start < 0 {
			return nil, jsonrpc.ErrInvalidParams
		}
	}
	page := new(acp.SessionPage)
	for i := start + 1; i <= a.made && len(page.Sessions) < 20; i++ {
		start = i
		s := a.saved[acp.SessionID("sess-"+strconv.Itoa(i))]
		if s != nil && (q.Cwd == "" || q.Cwd == s.info.Cwd) && inArchive(q.Archived, s.info.Archived) {
			page.Sessions = append(page.Sessions, s.info)
		}
	}
	if start < a.made && len(page.Sessions) == 20 {
		page.NextCursor = new(acpv2.SessionListCursor(strconv.Itoa(start)))
	}
	return page, nil
}

// inArchive reports whether a filter, which was checked, lets a session through.
func inArchive(filter acpv2.SessionArchiveFilter, archived *bool) bool {
	away := archived != nil && *archived
	return filter == acpv2.SessionArchiveFilterInclude || away == (filter == acpv2.SessionArchiveFilterOnly)
}

// change changes a saved session, or deletes it if f is nil.
func (a *baseAgent) change(id acp.SessionID, f func(*savedSession)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.saved[id]
	switch {
	case s == nil:
		return acp.SessionNotFound(id)
	case f == nil:
		delete(a.saved, id)
	default:
		f(s)
	}
	return nil
}

func (a *baseAgent) prompt(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
	_ = a.change(t.Session().ID(), func(s *savedSession) {
		s.said = append(s.said, &acp.UserMessage{MessageID: t.PromptID(), Content: acp.Set(t.Blocks())})
	})
	word, rest, _ := strings.Cut(t.Text(), " ")
	args := strings.Fields(rest)
	number := func() int { n, _ := strconv.Atoi(rest); return n }
	yesNo := acp.DefaultPermissionOptions()
	switch word {
	case "!chunks", "!burst":
		for i := range number() {
			_ = t.Say(strconv.Itoa(i) + ",")
		}
	case "!big":
		_ = t.Say(strings.Repeat("x", number()))
	case "!unicode":
		_ = t.Say("h\u00e9llo \u4e16\u754c \U0001f600 \u2028\u2029 \x00 \"quoted\" \\n")
	case "!perm":
		d, err := t.Ask(acp.Permission{Title: "Run?", Command: "ls", Cwd: "/tmp", Options: yesNo})
		if err != nil {
			return "", err
		}
		_ = t.Say(fmt.Sprintf("allowed:%t cancelled:%t", d.Allowed, d.Cancelled))
	case "!permtool":
		call := t.ToolCall(acp.ToolCall{Title: "Edit", Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusPending})
		_ = call.SetStatus(acp.ToolCallStatusInProgress)
		_ = call.Text("done")
		_ = call.Complete()
	case "!permcancel":
		asking, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err := t.WithContext(asking).Ask(acp.Permission{Title: "Withdrawn", Options: yesNo})
		_ = t.Say(fmt.Sprint("withdrawn: ", err != nil))
	case "!read":
		text, err := t.ReadLines(rest, 1, 10)
		if err != nil {
			return "", err
		}
		_ = t.Say("read:" + text)
	case "!write":
		file, text, _ := strings.Cut(rest, " ")
		if err := t.WriteFile(file, text); err != nil {
			return "", err
		}
		_ = t.Say("written")
	case "!term":
		term, err := t.Run(acp.Exec{Command: args[0], Args: args[1:], OutputLimit: 1000})
		if err != nil {
			return "", err
		}
		_, err = term.Wait()
		state, serr := term.State()
		if err = errors.Join(err, serr, term.Release()); err != nil {
			return "", err
		}
		_ = t.Say("term:" + state.Output)
	case "!elicit":
		answer, err := t.Elicit(acp.FormRequest{Message: "name?", Schema: acp.ElicitationSchema{
			Properties: []acp.ElicitationProperty{{Name: "name", Schema: &acpv2.StringPropertySchema{}}}, Required: []string{"name"}}})
		if err != nil {
			return "", err
		}
		_ = t.Say(fmt.Sprint("accepted:", answer.Accepted))
	case "!eliciturl":
		answer, done, err := t.ElicitURL(acp.LinkRequest{Message: "go", URL: "https://example.com/x"})
		if err != nil {
			return "", err
		}
		_ = done()
		_ = t.Say(fmt.Sprint("accepted:", answer.Accepted))
	case "!hang":
		_ = t.Say("hanging")
		<-ctx.Done()
		return "", context.Cause(ctx)
	case "!updates":
		_ = t.Think("thinking")
		_ = t.Plan(acp.PlanEntry{Content: "step", Priority: acp.PlanEntryPriorityHigh, Status: acp.PlanEntryStatusPending})
		_ = t.SetTitle("T")
		_ = t.Usage(53000, 200000, &acp.Cost{Amount: 0.045, Currency: "USD"})
		_ = t.Notice(acp.NoticeSeverityWarning, "Heads up", "detail")
	case "!usage":
		t.SetUsage(acp.Usage{TotalTokens: 30, InputTokens: 10, OutputTokens: 20})
		_ = t.Say("30 tokens")
	case "!stop":
		return acp.StopReason(rest), nil
	case "!tool":
		cancelled := make(chan struct{})
		call := t.ToolCall(acp.ToolCall{ID: acp.ToolCallID(rest), Title: "Long", Cancel: func() { close(cancelled) }})
		select {
		case <-cancelled:
			_ = call.SetStatus(acp.ToolCallStatusCancelled)
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	case "!unknown":
		err := t.Session().Conn().Conn().Call(ctx, "_check/unknown", struct{}{}, nil)
		_ = t.Say(fmt.Sprint("unknown:", err != nil))
	case "!blocks":
		for _, b := range t.Blocks() {
			_ = t.Say(fmt.Sprintf("%T", b))
		}
	default:
		text := "echo:" + t.Text()
		_ = a.change(t.Session().ID(), func(s *savedSession) {
			s.said = append(s.said, &acp.AgentMessage{MessageID: t.PromptID() + "-a", Content: acp.Set([]acp.ContentBlock{acp.Text(text)})})
		})
		_ = t.Say(text)
	}
	return acp.StopEndTurn, t.Err()
}
