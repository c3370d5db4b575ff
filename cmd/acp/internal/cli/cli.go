// Package cli is the command line of acp.
package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

const usage = `usage: acp [PROMPT ...]

Talks to the built-in agent, which repeats what it is told, over the Agent
Client Protocol (version 1, in memory). Without PROMPT it reads prompts from
standard input, one a line.

Exit status: 0 done, 1 failed, 2 wrong usage.
`

// maxPrompt bounds a line of standard input, in bytes.
const maxPrompt = 1 << 20

// Main runs the program and returns its exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "-h" || args[0] == "-help" || args[0] == "--help" {
			fmt.Fprint(stdout, usage)
			return 0
		}
		fmt.Fprintf(stderr, "acp: unknown flag %s\n\n%s", args[0], usage)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := converse(ctx, strings.Join(args, " "), stdin, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "acp:", err)
		return 1
	}
	return 0
}

// converse opens a session with the built-in agent and plays the prompts.
func converse(ctx context.Context, prompt string, stdin io.Reader, stdout, stderr io.Writer) error {
	ours, theirs := jsonrpc.Pipe()
	agent := serve(theirs)
	client := jsonrpc.NewConn(ours, jsonrpc.Config{Mux: show(stdout), Lane: lane})
	defer func() {
		_ = client.Close()
		_ = agent.Wait()
	}()
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	if _, err := acpv1.MethodInitialize.Call(ctx, client, &acpv1.InitializeRequest{ProtocolVersion: 1}); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	session, err := acpv1.MethodSessionNew.Call(ctx, client, &acpv1.NewSessionRequest{Cwd: cwd})
	if err != nil {
		return fmt.Errorf("session/new: %w", err)
	}
	turn := func(text string) error {
		_, err := acpv1.MethodSessionPrompt.Call(ctx, client, &acpv1.PromptRequest{
			SessionID: session.SessionID,
			Prompt:    []acpv1.ContentBlock{acpv1.Text(text)},
		})
		fmt.Fprintln(stdout)
		return err
	}
	if prompt != "" {
		return turn(prompt)
	}
	fmt.Fprintln(stderr, "This is acp, talking to its built-in agent, which repeats what it is told.")
	fmt.Fprintln(stderr, "Type a line and press Enter; end the input to leave. acp -h tells more.")
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, maxPrompt)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := turn(lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// lane puts a turn's answer behind its updates.
func lane(_ string, params any) string {
	switch p := params.(type) {
	case *acpv1.SessionNotification:
		return string(p.SessionID)
	case *acpv1.PromptRequest:
		return string(p.SessionID)
	}
	return ""
}

func show(out io.Writer) *jsonrpc.Mux {
	mux := new(jsonrpc.Mux)
	acpv1.NotificationSessionUpdate.Handle(mux, func(_ context.Context, n *acpv1.SessionNotification) error {
		if chunk, ok := n.Update.(*acpv1.AgentMessageChunk); ok {
			if text, ok := chunk.Content.(*acpv1.TextContent); ok {
				fmt.Fprint(out, text.Text)
			}
		}
		return nil
	})
	return mux
}

// serve is the built-in agent.
func serve(stream jsonrpc.Stream) *jsonrpc.Conn {
	mux := new(jsonrpc.Mux)
	acpv1.MethodInitialize.Handle(mux, func(context.Context, *acpv1.InitializeRequest) (*acpv1.InitializeResponse, error) {
		return &acpv1.InitializeResponse{ProtocolVersion: 1}, nil
	})
	acpv1.MethodSessionNew.Handle(mux, func(context.Context, *acpv1.NewSessionRequest) (*acpv1.NewSessionResponse, error) {
		return &acpv1.NewSessionResponse{SessionID: "built-in"}, nil
	})
	acpv1.MethodSessionPrompt.Handle(mux, func(ctx context.Context, req *acpv1.PromptRequest) (*acpv1.PromptResponse, error) {
		for _, b := range req.Prompt {
			text, ok := b.(*acpv1.TextContent)
			if !ok {
				continue
			}
			for _, word := range strings.SplitAfter(text.Text, " ") {
				err := acpv1.NotificationSessionUpdate.Notify(ctx, jsonrpc.RequestFrom(ctx).Conn(), &acpv1.SessionNotification{
					SessionID: req.SessionID,
					Update:    &acpv1.AgentMessageChunk{Content: acpv1.Text(word)},
				})
				if err != nil {
					return nil, err
				}
			}
		}
		return &acpv1.PromptResponse{StopReason: acpv1.StopReasonEndTurn}, nil
	})
	return jsonrpc.NewConn(stream, jsonrpc.Config{Mux: mux, Lane: lane})
}
