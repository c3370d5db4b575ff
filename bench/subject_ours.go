package main

import (
	"context"
	"fmt"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// maxMessage is what the subjects that have a limit are told to accept: 64 MB
// of source code are 70 MB on the wire.
const maxMessage = 128 << 20

var ours = &subject{name: "ours", title: "ours", dial: dialOurs, serve: serveOurs}

type oursClient struct{ conn *jsonrpc.Conn }

func dialOurs(l link, rec *recorder) client {
	var mux jsonrpc.Mux
	acpv1.NotificationSessionUpdate.Handle(&mux, func(_ context.Context, n *acpv1.SessionNotification) error {
		switch u := n.Update.(type) {
		case *acpv1.AgentMessageChunk:
			if t, ok := u.Content.(*acpv1.TextContent); ok {
				rec.text(t.Text)
			}
		case *acpv1.ToolCallUpdate:
			if list, ok := u.Content.Get(); ok && len(list) == 1 {
				if d, ok := list[0].(*acpv1.Diff); ok && d.OldText != nil {
					rec.text(d.NewText)
				}
			}
		}
		return nil
	})
	acpv1.MethodFSReadTextFile.Handle(&mux, func(_ context.Context, r *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
		return &acpv1.ReadTextFileResponse{Content: rec.files[r.Path]}, nil
	})
	return oursClient{jsonrpc.NewConn(jsonrpc.NewLineStream(l.r, l.w), oursConfig(&mux))}
}

func (c oursClient) prompt(ctx context.Context, i int, text string) error {
	res, err := acpv1.MethodSessionPrompt.Call(ctx, c.conn, &acpv1.PromptRequest{
		SessionID: acpv1.SessionID(sessionID(i)),
		Prompt:    []acpv1.ContentBlock{acpv1.Text(text)},
	})
	if err != nil {
		return err
	}
	if res.StopReason != acpv1.StopReasonEndTurn {
		return fmt.Errorf("unexpected stop reason %q", res.StopReason)
	}
	return nil
}

func (c oursClient) close() { _ = c.conn.Close() }

// oursConfig is what an ACP endpoint sets: a lane per session.
func oursConfig(mux *jsonrpc.Mux) jsonrpc.Config {
	return jsonrpc.Config{
		Mux:      mux,
		Settings: jsonrpc.Settings{MaxFrame: maxMessage},
		Lane: func(_ string, params any) string {
			switch p := params.(type) {
			case *acpv1.SessionNotification:
				return string(p.SessionID)
			case *acpv1.PromptRequest:
				return string(p.SessionID)
			case *acpv1.ReadTextFileRequest:
				return string(p.SessionID)
			}
			return ""
		},
	}
}

func serveOurs(l link) error {
	var mux jsonrpc.Mux
	acpv1.MethodSessionPrompt.Handle(&mux, func(ctx context.Context, p *acpv1.PromptRequest) (*acpv1.PromptResponse, error) {
		if t, ok := p.Prompt[0].(*acpv1.TextContent); ok {
			if cmd, ok := parseCommand(t.Text); ok {
				if err := oursCommand(ctx, p.SessionID, cmd); err != nil {
					return nil, err
				}
			}
		}
		return &acpv1.PromptResponse{StopReason: acpv1.StopReasonEndTurn}, nil
	})
	stream := jsonrpc.NewLineStream(l.r, l.w)
	if l.stdio {
		stream = jsonrpc.Stdio()
	}
	return jsonrpc.NewConn(stream, oursConfig(&mux)).Wait()
}

func oursCommand(ctx context.Context, id acpv1.SessionID, cmd command) error {
	conn := jsonrpc.RequestFrom(ctx).Conn()
	n := &acpv1.SessionNotification{SessionID: id}
	switch cmd.verb {
	case "updates":
		n.Update = &acpv1.AgentMessageChunk{Content: acpv1.Text(chunkText(atoi(cmd.arg)))}
	case "diffs":
		before, after := diffTexts()
		n.Update = &acpv1.ToolCallUpdate{
			ToolCallID: "call-17",
			Content:    acpv1.Set([]acpv1.ToolCallContent{&acpv1.Diff{Path: diffPath, OldText: &before, NewText: after}}),
		}
	case "stats":
		n.Update = &acpv1.AgentMessageChunk{Content: acpv1.Text(workStats().String())}
		cmd.n = 1
	case "read":
		r, err := acpv1.MethodFSReadTextFile.Call(ctx, conn, &acpv1.ReadTextFileRequest{SessionID: id, Path: cmd.path()})
		if err != nil {
			return err
		}
		return checkSize(len(r.Content), cmd.n)
	}
	for range cmd.n {
		if err := acpv1.NotificationSessionUpdate.Notify(ctx, conn, n); err != nil {
			return err
		}
	}
	return nil
}
