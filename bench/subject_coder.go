package main

import (
	"context"
	"fmt"
	"strconv"

	acp "github.com/coder/acp-go-sdk"
)

var coder = &subject{name: "coder", title: "coder/acp-go-sdk", dial: dialCoder, serve: serveCoder}

// coderClient implements what the workloads use of its acp.Client; the rest of
// the embedded nil interface is never called.
type coderClient struct {
	acp.Client
	conn *acp.ClientSideConnection
	rec  *recorder
	link link
}

func dialCoder(l link, rec *recorder) client {
	c := &coderClient{rec: rec, link: l}
	c.conn = acp.NewClientSideConnection(c, l.w, l.r)
	return c
}

// SessionUpdate implements acp.Client.
func (c *coderClient) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	switch {
	case n.Update.AgentMessageChunk != nil:
		if t := n.Update.AgentMessageChunk.Content.Text; t != nil {
			c.rec.text(t.Text)
		}
	case n.Update.ToolCallUpdate != nil:
		if l := n.Update.ToolCallUpdate.Content; len(l) == 1 && l[0].Diff != nil && l[0].Diff.OldText != nil {
			c.rec.text(l[0].Diff.NewText)
		}
	}
	return nil
}

// ReadTextFile implements acp.Client.
func (c *coderClient) ReadTextFile(_ context.Context, r acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	return acp.ReadTextFileResponse{Content: c.rec.files[r.Path]}, nil
}

func (c *coderClient) prompt(ctx context.Context, i int, text string) error {
	res, err := c.conn.Prompt(ctx, acp.PromptRequest{
		SessionId: acp.SessionId(sessionID(i)),
		Prompt:    []acp.ContentBlock{acp.TextBlock(text)},
	})
	if err != nil {
		return err
	}
	if res.StopReason != acp.StopReasonEndTurn {
		return fmt.Errorf("unexpected stop reason %q", res.StopReason)
	}
	return nil
}

func (c *coderClient) close() { c.link.close() }

type coderAgent struct {
	acp.Agent
	conn  *acp.AgentSideConnection
	ready chan struct{}
}

func serveCoder(l link) error {
	a := &coderAgent{ready: make(chan struct{})}
	a.conn = acp.NewAgentSideConnection(a, l.w, l.r)
	close(a.ready)
	<-a.conn.Done()
	if !l.stdio {
		l.close()
	}
	return nil
}

// Prompt implements acp.Agent.
func (a *coderAgent) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	<-a.ready // the constructor starts to read before it returns
	if t := p.Prompt[0].Text; t != nil {
		if cmd, ok := parseCommand(t.Text); ok {
			if err := a.command(ctx, p.SessionId, cmd); err != nil {
				return acp.PromptResponse{}, err
			}
		}
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

func (a *coderAgent) command(ctx context.Context, id acp.SessionId, cmd command) error {
	n := acp.SessionNotification{SessionId: id}
	switch cmd.verb {
	case "updates":
		n.Update = acp.UpdateAgentMessageText(chunkText(atoi(cmd.arg)))
	case "diffs":
		before, after := diffTexts()
		n.Update = acp.UpdateToolCall("call-17", acp.WithUpdateContent([]acp.ToolCallContent{acp.ToolDiffContent(diffPath, after, before)}))
	case "stats":
		n.Update = acp.UpdateAgentMessageText(workStats().String())
		cmd.n = 1
	case "read":
		r, err := a.conn.ReadTextFile(ctx, acp.ReadTextFileRequest{SessionId: id, Path: cmd.path()})
		if err != nil {
			return err
		}
		return checkSize(len(r.Content), cmd.n)
	}
	for range cmd.n {
		if err := a.conn.SessionUpdate(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func checkSize(got, want int) error {
	if got != want {
		return fmt.Errorf("read %d bytes, want %d", got, want)
	}
	return nil
}
