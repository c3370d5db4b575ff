package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

func lanes(_ string, params any) string {
	switch p := params.(type) {
	case *acpv1.SessionNotification:
		return string(p.SessionID)
	case *acpv1.PromptRequest:
		return string(p.SessionID)
	}
	return ""
}

// connect starts the agent in memory and returns a client's connection to it.
func connect(t *testing.T, protocol int, mux *jsonrpc.Mux) *jsonrpc.Conn {
	t.Helper()
	ours, theirs := jsonrpc.Pipe()
	agent := serve(theirs, protocol, nil)
	client := jsonrpc.NewConn(ours, jsonrpc.Config{Mux: mux, Lane: lanes})
	t.Cleanup(func() {
		_ = client.Close()
		if err := agent.Wait(); err != nil {
			t.Errorf("agent: %v", err)
		}
	})
	return client
}

func TestTurnV1(t *testing.T) {
	mux := new(jsonrpc.Mux)
	var text strings.Builder
	acpv1.NotificationSessionUpdate.Handle(mux, func(_ context.Context, n *acpv1.SessionNotification) error {
		text.WriteString(n.Update.(*acpv1.AgentMessageChunk).Content.(*acpv1.TextContent).Text)
		return nil
	})
	conn := connect(t, 1, mux)
	hello, err := acpv1.MethodInitialize.Call(t.Context(), conn, &acpv1.InitializeRequest{ProtocolVersion: 999})
	if err != nil || hello.ProtocolVersion != 1 {
		t.Fatalf("initialize: %+v, %v", hello, err) // S51
	}
	session, err := acpv1.MethodSessionNew.Call(t.Context(), conn, &acpv1.NewSessionRequest{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := acpv1.MethodSessionPrompt.Call(t.Context(), conn, &acpv1.PromptRequest{
		SessionID: session.SessionID,
		Prompt:    []acpv1.ContentBlock{acpv1.Text("one two "), &acpv1.ResourceLink{Name: "f", URI: "file:///f"}},
	})
	if err != nil || answer.StopReason != acpv1.StopReasonEndTurn {
		t.Errorf("answer %+v, %v", answer, err)
	}
	if got := text.String(); got != "one two file:///f" {
		t.Errorf("text %q", got)
	}

	var we *jsonrpc.Error
	_, err = acpv1.MethodSessionPrompt.Call(t.Context(), conn, &acpv1.PromptRequest{SessionID: "nobody's"})
	if !errors.As(err, &we) || we.Code != jsonrpc.CodeResourceNotFound {
		t.Errorf("prompt to an unknown session: %v", err)
	}
	_, err = acpv1.MethodSessionPrompt.Call(t.Context(), conn, &acpv1.PromptRequest{
		SessionID: session.SessionID, Prompt: []acpv1.ContentBlock{&acpv1.AudioContent{}},
	})
	if !errors.As(err, &we) || we.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("prompt with audio: %v", err)
	}
}

// TestCancelBehindPrompt: a cancel in the same write as its prompt is not lost
// (S40), and does not reach the next turn.
func TestCancelBehindPrompt(t *testing.T) {
	in, feed := pipe(t)
	out, answers := pipe(t)
	agent := serve(jsonrpc.NewLineStream(in, answers), 1, nil)
	t.Cleanup(func() { _ = agent.Close() })
	lines := bufio.NewScanner(out)
	next := func() (m struct {
		ID     int
		Result struct{ SessionID, StopReason string }
	}) {
		t.Helper()
		for lines.Scan() {
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Fatal(err)
			}
			if m.ID != 0 {
				return m
			}
		}
		t.Fatalf("no answer: %v", lines.Err())
		return m
	}
	write := func(s ...string) {
		if _, err := io.WriteString(feed, strings.Join(s, "\n")+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":1}}`)
	next()
	write(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
	if got := next().Result.SessionID; got != "session-1" {
		t.Fatalf("session %q", got)
	}
	write(
		`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"session-1","prompt":[{"type":"text","text":"wait"}]}}`,
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"session-1"}}`)
	if m := next(); m.ID != 2 || m.Result.StopReason != "cancelled" {
		t.Errorf("answer %+v", m)
	}
	write(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"session-1","prompt":[{"type":"text","text":"go on"}]}}`)
	if m := next(); m.ID != 3 || m.Result.StopReason != "end_turn" {
		t.Errorf("answer %+v", m)
	}
}

func pipe(t *testing.T) (*os.File, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

func TestTurnV2(t *testing.T) {
	mux := new(jsonrpc.Mux)
	updates := make(chan acpv2.SessionUpdate, 16)
	acpv2.NotificationSessionUpdate.Handle(mux, func(_ context.Context, n *acpv2.UpdateSessionNotification) error {
		updates <- n.Update
		return nil
	})
	conn := connect(t, 2, mux)
	var we *jsonrpc.Error
	_, err := acpv2.MethodInitialize.Call(t.Context(), conn, &acpv2.InitializeRequest{ProtocolVersion: 1})
	if !errors.As(err, &we) || we.Code != jsonrpc.CodeUnsupportedVersion || string(we.Data) != `{"requested":1,"supported":[2]}` {
		t.Errorf("initialize with version 1: %v", err) // S56
	}
	if _, err := acpv2.MethodSessionNew.Call(t.Context(), conn, &acpv2.NewSessionRequest{Cwd: "/"}); !errors.As(err, &we) || we.Code != jsonrpc.CodeInvalidRequest {
		t.Errorf("session/new behind a failed initialize: %v", err) // S54
	}
	if _, err := acpv2.MethodInitialize.Call(t.Context(), conn, &acpv2.InitializeRequest{ProtocolVersion: 2}); err != nil {
		t.Fatal(err)
	}
	for kind, server := range map[string]acpv2.MCPServer{
		"stdio":   &acpv2.MCPServerStdio{Name: "s", Command: "c"},
		"unknown": &acpv2.UnknownMCPServer{Type: "_pigeon", Raw: []byte(`{"type":"_pigeon","name":"s"}`)},
	} {
		_, err := acpv2.MethodSessionNew.Call(t.Context(), conn, &acpv2.NewSessionRequest{Cwd: "/", MCPServers: []acpv2.MCPServer{server}})
		if !errors.As(err, &we) || we.Code != jsonrpc.CodeInvalidParams || !strings.Contains(string(we.Data), "params.mcpServers[0]") {
			t.Errorf("session/new with an MCP server (%s): %v", kind, err) // S85, S86
		}
	}
	session, err := acpv2.MethodSessionNew.Call(t.Context(), conn, &acpv2.NewSessionRequest{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := acpv2.MethodSessionPrompt.Call(t.Context(), conn, &acpv2.PromptRequest{
		SessionID: session.SessionID, Prompt: []acpv2.ContentBlock{acpv2.Text("hi")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := (<-updates).(*acpv2.UserMessage); !ok || u.MessageID != receipt.MessageID {
		t.Errorf("first update %+v, want the user's message %s", u, receipt.MessageID)
	}
	if u, ok := (<-updates).(*acpv2.RunningStateUpdate); !ok {
		t.Errorf("second update %+v", u)
	}
	if u, ok := (<-updates).(*acpv2.AgentMessageChunk); !ok || u.Content.(*acpv2.TextContent).Text != "hi" {
		t.Errorf("third update %+v", u)
	}
	if u, ok := (<-updates).(*acpv2.IdleStateUpdate); !ok || u.StopReason != acpv2.StopReasonEndTurn {
		t.Errorf("last update %+v", u)
	}
}

// TestDefect17Rules: initialize comes first, what is pipelined behind it waits
// for it, versions are negotiated, what was not offered is refused, and paths
// are absolute.
func TestDefect17Rules(t *testing.T) {
	conn := connect(t, 1, new(jsonrpc.Mux))
	code := func(err error) int {
		var we *jsonrpc.Error
		errors.As(err, &we)
		if we == nil {
			return 0
		}
		return we.Code
	}
	_, err := acpv1.MethodSessionNew.Call(t.Context(), conn, &acpv1.NewSessionRequest{Cwd: "/"})
	if code(err) != jsonrpc.CodeInvalidRequest {
		t.Errorf("session/new before initialize: %v", err)
	}
	hello, err := acpv1.MethodInitialize.Call(t.Context(), conn, &acpv1.InitializeRequest{ProtocolVersion: 7})
	if err != nil || hello.ProtocolVersion != 1 {
		t.Errorf("initialize with version 7: %+v, %v", hello, err)
	}
	_, err = acpv1.MethodSessionNew.Call(t.Context(), conn, &acpv1.NewSessionRequest{Cwd: "somewhere"})
	if code(err) != jsonrpc.CodeInvalidParams || !strings.Contains(string(data(err)), "params.cwd") {
		t.Errorf("session/new with a relative path: %v", err)
	}
	stdio := &acpv1.MCPServerStdio{Name: "s", Command: "c"}
	for kind, server := range map[string]acpv1.MCPServer{
		"http":    &acpv1.MCPServerHTTP{Name: "h", URL: "http://127.0.0.1:9/"},
		"unknown": &acpv1.UnknownMCPServer{Type: "_pigeon", Raw: []byte(`{"type":"_pigeon","name":"p"}`)},
	} {
		_, err = acpv1.MethodSessionNew.Call(t.Context(), conn, &acpv1.NewSessionRequest{Cwd: "/", MCPServers: []acpv1.MCPServer{stdio, server}})
		if code(err) != jsonrpc.CodeInvalidParams || !strings.Contains(string(data(err)), "params.mcpServers[1]") {
			t.Errorf("session/new with an MCP server (%s): %v", kind, err) // S85
		}
	}
	session, err := acpv1.MethodSessionNew.Call(t.Context(), conn, &acpv1.NewSessionRequest{Cwd: "/", MCPServers: []acpv1.MCPServer{stdio}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = acpv1.MethodSessionPrompt.Call(t.Context(), conn, &acpv1.PromptRequest{
		SessionID: session.SessionID, Prompt: []acpv1.ContentBlock{&acpv1.ImageContent{}},
	})
	if code(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("prompt with an image nobody offered to take: %v", err)
	}
	_, err = acpv1.MethodSessionLoad.Call(t.Context(), conn, &acpv1.LoadSessionRequest{SessionID: session.SessionID, Cwd: "/"})
	if code(err) != jsonrpc.CodeMethodNotFound {
		t.Errorf("session/load nobody offered: %v", err)
	}
}

func data(err error) json.RawMessage {
	var we *jsonrpc.Error
	errors.As(err, &we)
	if we == nil {
		return nil
	}
	return we.Data
}
