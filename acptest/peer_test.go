package acptest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp"
)

const turnV1 = `
	!initialize 1
	!session s1
	-> {"id":$p,"method":"session/prompt","params":{"sessionId":"s1",...}}
	<- {"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}}
	<- {"id":$p,"result":{"stopReason":"end_turn"}}
`

// text has a turn with a scripted agent and returns what it said.
func text(t *testing.T, client *acp.Client, agent acp.Transport) (said string) {
	t.Helper()
	conn, err := client.Connect(t.Context(), agent)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for u, err := range s.Prompt(t.Context(), acp.Text("hello")).Updates() {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := u.Update.(*acp.AgentMessageChunk); ok {
			said += c.Content.(*acp.TextContent).Text
		}
	}
	return said
}

func TestScriptedAgent(t *testing.T) {
	for version := range 3 { // 0: the client asks for 2 and then opens again
		if got := text(t, &acp.Client{MaxVersion: min(version, 1)}, ScriptedAgent(t, turnV1)); got != "hi" {
			t.Errorf("it said %q", got)
		}
		synctest.Test(t, func(t *testing.T) {
			if got := text(t, &acp.Client{MaxVersion: min(version, 1)}, ScriptedAgent(t, turnV1)); got != "hi" {
				t.Errorf("it said %q", got)
			}
		})
	}
	got := text(t, &acp.Client{}, ScriptedAgent(t, `
		!initialize 2 {"capabilities":{"session":{}}}
		!session s1
		-> {"id":$p,"method":"session/prompt","params":{"sessionId":$s1,...}}
		<- {"id":$p,"result":{"messageId":"m"}}
		<- {"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"user_message","messageId":"m"}}}
		<- {"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","messageId":"n","content":{"type":"text","text":"two"}}}}
		<- {"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}}}
	`))
	if got != "two" {
		t.Errorf("it said %q", got)
	}
}

// A transport may be opened as often as the script says.
func TestScriptedReopen(t *testing.T) {
	agent := ScriptedAgent(t, "-> {\"method\":\"a\"}\n!reopen\n!close\n!reopen\n<- {\"method\":\"b\"}")
	for i := range 3 {
		s, err := agent.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		switch i {
		case 0:
			under{t, s}.write(`{"jsonrpc":"2.0","method":"a"}`)
		case 1:
			if _, err := s.ReadFrame(); err == nil {
				t.Error("it is open")
			}
		case 2:
			under{t, s}.expect(`{"jsonrpc":"2.0","method":"b"}`)
		}
		_ = s.Close()
	}
	if _, err := agent.Open(t.Context()); !errors.Is(err, acp.ErrReopen) {
		t.Errorf("opened too often: %v", err)
	}
}

func TestScriptedFails(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		use          func(agent acp.Transport)
		want         string
	}{
		{"syntax", "oops", nil, "script line 1: a line begins with"},
		{"never opened", "-> {...}", func(acp.Transport) {}, "script line 1: the transport was not opened"},
		{"not played to its end", "-> {...}\n-> {...}", func(agent acp.Transport) {
			s, _ := agent.Open(context.Background())
			_ = s.WriteFrame([]byte(`{"jsonrpc":"2.0"}`))
		}, "script line 2: the peer closed the stream where a frame is expected"},
		{"something else", "-> {}", func(agent acp.Transport) {
			s, _ := agent.Open(context.Background())
			_ = s.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"x"}`))
		}, `script line 1: method is "x", expected nothing`},
		{"stall", "!stall", func(agent acp.Transport) { _, _ = agent.Open(context.Background()) }, ""},
		{"sleep", "!sleep 100h", func(agent acp.Transport) { _, _ = agent.Open(context.Background()) }, ""},
		{"not wanted", "!initialize 1\n!close", func(agent acp.Transport) {
			s, _ := agent.Open(context.Background())
			_ = s.WriteFrame([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`))
			_, _ = s.ReadFrame()
			_, _ = agent.Open(context.Background())
		}, ""},
	} {
		got := failing(func(tb testing.TB) {
			agent := ScriptedAgent(tb, tc.script)
			tc.use(agent)
		})
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}

func TestScriptedClient(t *testing.T) {
	for _, script := range []string{`
		!initialize 1
		!session s
		...
		<- {"id":1,"method":"session/prompt","params":{"sessionId":$s,"prompt":[{"type":"text","text":"hi"}]}}
		-> {"method":"session/update","params":{"sessionId":$s,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"},...}}}
		-> {"id":1,"result":{"stopReason":"end_turn"}}
		!close
	`, `
		!initialize 2
		!session s
		<- {"id":1,"method":"session/prompt","params":{"sessionId":$s,"prompt":[{"type":"text","text":"hi"}]}}
		...
		-> {"method":"session/update","params":{"sessionId":$s,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"},...}}}
		-> {"method":"session/update","params":{"sessionId":$s,"update":{"sessionUpdate":"state_update","state":"idle",...}}}
		!close
	`} {
		synctest.Test(t, func(t *testing.T) {
			if err := echoAgent().Serve(t.Context(), ScriptedClient(t, script)); err != nil {
				t.Error(err)
			}
		})
	}
}
