package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// lentTerminals are terminals and files of a client that do as a test expects.
type lentTerminals struct{}

func (lentTerminals) CreateTerminal(context.Context, *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error) {
	return &acpv1.CreateTerminalResponse{TerminalID: "terminal-of-the-client"}, nil
}

func (lentTerminals) TerminalOutput(context.Context, *acpv1.TerminalOutputRequest) (*acpv1.TerminalOutputResponse, error) {
	code := uint32(1)
	return &acpv1.TerminalOutputResponse{Output: "--- FAIL\n\u001b[31mred\u001b[0m ≥ \"1\"\n", ExitStatus: &acpv1.TerminalExitStatus{ExitCode: &code}}, nil
}

func (lentTerminals) WaitForTerminalExit(context.Context, *acpv1.WaitForTerminalExitRequest) (*acpv1.WaitForTerminalExitResponse, error) {
	code := uint32(1)
	return &acpv1.WaitForTerminalExitResponse{ExitCode: &code}, nil
}

func (lentTerminals) KillTerminal(context.Context, *acpv1.KillTerminalRequest) (*acpv1.KillTerminalResponse, error) {
	return &acpv1.KillTerminalResponse{}, nil
}

func (lentTerminals) ReleaseTerminal(context.Context, *acpv1.ReleaseTerminalRequest) (*acpv1.ReleaseTerminalResponse, error) {
	return &acpv1.ReleaseTerminalResponse{}, nil
}
func (lentTerminals) ReleaseSession(acpv1.SessionID) {}
func (lentTerminals) Close() error                   { return nil }

func (lentTerminals) ReadTextFile(_ context.Context, r *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	if r.Path == "/missing" {
		return nil, jsonrpc.ErrResourceNotFound
	}
	return &acpv1.ReadTextFileResponse{Content: "package main\r\n\tx := \"\\\"\"\n"}, nil
}

func (lentTerminals) WriteTextFile(context.Context, *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	return &acpv1.WriteTextFileResponse{}, nil
}

// goldenKind is a conversation of one kind.
type goldenKind struct {
	name    string
	version int
	agent   acp.Agent
	client  acp.Client
	config  acp.SessionConfig
}

func goldenKinds() []goldenKind {
	filled := func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
		return acp.AcceptElicitation(map[string]json.RawMessage{"port": json.RawMessage("8.08e3"), "on": json.RawMessage("true")}), nil
	}
	return []goldenKind{
		{name: "terminals", version: 1, client: acp.Client{
			Files: lentTerminals{}, Terminals: func(*acp.ClientConn) acp.TerminalHost { return lentTerminals{} },
		}, agent: acp.Agent{Prompt: inTerminals}},
		{name: "elicitation", version: 2, client: acp.Client{Elicit: filled}, agent: acp.Agent{Prompt: elicits}},
		{name: "plan", version: 2, agent: acp.Agent{Prompt: plans}},
		{name: "subagents", version: 2, agent: acp.Agent{Prompt: withSubagent}},
		{name: "mcp", version: 1, client: acp.Client{MCP: answersMCP}, agent: acp.Agent{MCP: acp.MCPTransports{ACP: true, Stdio: true}, Prompt: callsMCP},
			config: acp.SessionConfig{MCPServers: []acp.MCPServer{&acp.MCPServerACP{Name: "notes", ServerID: "notes-1"}}}},
		{name: "mcp", version: 2, client: acp.Client{MCP: answersMCP}, agent: acp.Agent{MCP: acp.MCPTransports{ACP: true}, Prompt: callsMCP},
			config: acp.SessionConfig{MCPServers: []acp.MCPServer{&acp.MCPServerACP{Name: "notes", ServerID: "notes-1"}}}},
	}
}

// inTerminals reads and writes files of the client and runs a command in a terminal of it.
func inTerminals(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
	if _, err := t.ReadLines("/src/main.go", 1, 2); err != nil {
		return "", err
	}
	if _, err := t.ReadFile("/missing"); err == nil {
		return "", errors.New("a file that is missing was read")
	}
	if err := t.WriteFile("/src/main.go", "package main // \u2028\n"); err != nil {
		return "", err
	}
	call := t.ToolCall(acp.ToolCall{Title: "go test", Kind: acp.ToolKindExecute})
	term, err := call.Run(acp.Exec{Command: "go", Args: []string{"test", "./..."}, Env: []acp.EnvVariable{{Name: "CGO_ENABLED", Value: "0"}}, OutputLimit: 1000})
	if err != nil {
		return "", err
	}
	if _, err := term.Wait(); err != nil {
		return "", err
	}
	if _, err := term.State(); err != nil {
		return "", err
	}
	return acp.StopEndTurn, errors.Join(term.Release(), call.Fail(errors.New("exit status 1")))
}

// elicits asks for data, and for a visit of a page.
func elicits(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
	form, err := t.Elicit(acp.FormRequest{Message: "Where to listen?", Meta: json.RawMessage(`{"n":1.0}`)})
	if err != nil || !form.Accepted {
		return "", errors.Join(err, errors.New("declined"))
	}
	_, done, err := t.ElicitURL(acp.LinkRequest{Message: "Log in", URL: "https://example.com/login?a=1&b=<2>"})
	if err != nil {
		return "", err
	}
	return acp.StopEndTurn, errors.Join(done(), t.Say(fmt.Sprintf("Port %s.", form.Content["port"])))
}

// plans shows a plan that changes, what was used, a notice and a compaction.
func plans(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
	step := acp.PlanEntry{Content: "measure ≤ 3 allocations", Priority: acp.PlanEntryPriorityHigh, Status: acp.PlanEntryStatusPending}
	err := errors.Join(t.Plan(step), t.Usage(10, 200000, nil), t.Notice(acp.NoticeSeverityWarning, "Slow", "The network is slow."))
	step.Status = acp.PlanEntryStatusCompleted
	err = errors.Join(err, t.Plan(step), t.UpdatePlan(&acpv2.PlanMarkdown{PlanID: "notes", Content: "# Notes\n\n* `x`"}), t.RemovePlan("notes"))
	compaction := t.Compact()
	err = errors.Join(err, compaction.Say("so far: "), compaction.Complete(acp.Text("nothing")),
		t.Usage(199999, 200000, &acp.Cost{Amount: 1e-7, Currency: "EUR"}))
	t.SetUsage(acp.Usage{TotalTokens: 1 << 53, InputTokens: 1<<53 - 1, OutputTokens: 1})
	return acp.StopMaxTokens, err
}

// withSubagent has a subagent speak in a session of its own.
func withSubagent(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
	call := t.ToolCall(acp.ToolCall{Title: "Ask the reviewer"})
	err := errors.Join(
		t.Subagent(&acp.SubagentUpdate{SessionID: "child-session", Title: acpv2.Set("reviewer")}),
		call.Append(&acpv2.SessionReference{SessionID: "child-session"}),
	)
	child := t.Session().Child("child-session")
	err = errors.Join(err, child.Say("It is right."), child.Notice(acp.NoticeSeverityInfo, "Read", "3 files"))
	return acp.StopEndTurn, errors.Join(err, call.Complete(), t.Say("The reviewer agrees."))
}

func answersMCP(ctx context.Context, call *acp.MCPCall) (json.RawMessage, error) {
	if call.Method == "tools/call" {
		if err := call.Notify(ctx, "notifications/progress", json.RawMessage(`{"progress":0.50,"progressToken":1}`)); err != nil {
			return nil, err
		}
		return nil, &acp.MCPFailure{Code: -32602, Message: "no such note", Data: json.RawMessage(`{"id":1e0}`)}
	}
	return json.RawMessage(`{"tools":[{"name":"note","inputSchema":{"type":"object"},"n":1.0}]}`), nil
}

// callsMCP lists the tools of a server of the client, and calls one.
func callsMCP(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
	note := func(string, json.RawMessage) {}
	if _, err := t.Session().CallMCP(ctx, "notes-1", "tools/list", nil, note); err != nil {
		return "", err
	}
	if _, err := t.Session().CallMCP(ctx, "notes-1", "tools/call", map[string]any{"name": "note"}, note); err == nil {
		return "", errors.New("a note that is missing was found")
	}
	return acp.StopEndTurn, t.Say("There is no such note.")
}

// TestGoldenKinds records conversations of many kinds: testdata/NAME-v1.golden and testdata/NAME-v2.golden. Proxies pass them,
// too.
func TestGoldenKinds(t *testing.T) {
	for _, k := range goldenKinds() {
		t.Run(fmt.Sprintf("%s-v%d", k.name, k.version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent, client := k.agent, k.client
				agent.Info, client.Info = acp.Implementation{Name: "golden", Version: "1"}, acp.Implementation{Name: "golden-client", Version: "1"}
				agent.MinVersion, agent.MaxVersion, client.MinVersion, client.MaxVersion = k.version, k.version, k.version, k.version
				var rec *acptest.Recording
				conn, _ := acptest.Pair(t, &agent, &client, func(s jsonrpc.Stream) jsonrpc.Stream {
					s, rec = acptest.Record(s)
					return s
				})
				cfg := k.config
				cfg.Cwd = "/src"
				s, err := conn.NewSession(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				if res, err := s.Prompt(t.Context(), acp.Text("go on")).Wait(); err != nil {
					t.Fatalf("turn: %+v, %v", res, err)
				}
				synctest.Wait()
				acptest.Golden(t, fmt.Sprintf("%s-v%d", k.name, k.version), rec)
			})
		})
	}
}
