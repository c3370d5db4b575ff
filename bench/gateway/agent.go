package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
)

// A task is what a prompt asks the agent for; ts_agent.mjs knows it, too.
type task struct {
	N     int   `json:"n"`     // updates
	Size  int   `json:"size"`  // of each, in bytes of text
	Every int64 `json:"every"` // microseconds; 0 means as fast as possible
	Asks  int   `json:"asks"`  // questions, in place of updates
}

func (w task) text() string {
	data, _ := json.Marshal(w)
	return string(data)
}

// runAgent is the agent: over standard input and output or, with the argument http, over the network.
func runAgent(args []string) error {
	agent := &acp.Agent{
		ResumeSession: func(context.Context, *acp.AgentSession, bool) error { return nil },
		Prompt:        func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) { return work(ctx, t) },
	}
	if len(args) == 0 {
		return agent.Serve(context.Background(), acp.Stdio())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/acp\n", l.Addr())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // whoever has started it has ended
		os.Exit(0)
	}()
	return http.Serve(l, &acphttp.Server{Serve: agent.Serve, Upgrade: acpws.Upgrader{}})
}

// work does what a prompt asks for.
func work(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
	var w task
	blocks := t.Blocks()
	if err := json.Unmarshal([]byte(blocks[len(blocks)-1].(*acp.TextContent).Text), &w); err != nil {
		return "", err
	}
	if w.Asks > 0 {
		return acp.StopEndTurn, askAll(t, w.Asks)
	}
	pad := strings.Repeat("x", w.Size)
	start := time.Now()
	for i := range w.N {
		if w.Every > 0 {
			timer := time.NewTimer(time.Until(start.Add(time.Duration(i) * time.Duration(w.Every) * time.Microsecond)))
			select {
			case <-timer.C:
			case <-ctx.Done():
				return acp.StopCancelled, nil
			}
		}
		text := fmt.Sprintf("%d %d ", i, time.Now().UnixNano())
		if err := t.Say(text + pad[:max(0, w.Size-len(text))]); err != nil {
			return "", err
		}
	}
	return acp.StopEndTurn, nil
}

// answerers are the clients that answer questions; the options have their names.
const answerers = 5

func askAll(t *acp.Turn, n int) error {
	var options []acp.PermissionOption
	for i := range answerers {
		options = append(options, acp.PermissionOption{OptionID: acp.PermissionOptionID(fmt.Sprint(i)), Name: fmt.Sprint("client ", i), Kind: acp.PermissionOptionKindAllowOnce})
	}
	for i := range n {
		answer, err := t.Ask(acp.Permission{Title: fmt.Sprint(i), Options: options})
		if err != nil {
			return err
		}
		if err := t.Say(fmt.Sprintf("%d %s", i, answer.Option.OptionID)); err != nil {
			return err
		}
	}
	return nil
}
