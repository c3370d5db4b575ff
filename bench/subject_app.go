package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// app is package acp, agent and client, in version 1. What it does beyond ours,
// which is the engine with the wire types alone, is the price of the
// application interface.
var app = &subject{name: "app", title: "package acp", dial: dialApp, serve: serveApp}

type appClient struct {
	conn *acp.ClientConn

	mu       sync.Mutex
	sessions map[int]*acp.ClientSession
}

func dialApp(l link, rec *recorder) client {
	c, err := dialAppOver(acp.Over(jsonrpc.NewLineStream(l.r, l.w)), rec)
	if err != nil {
		panic(err) // both ends are ours
	}
	return c
}

func dialAppOver(t acp.Transport, rec *recorder) (client, error) {
	config := acp.Client{
		MaxVersion: 1,
		Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			if text := u.Text(); text != "" {
				rec.text(text)
			}
		},
		Engine: jsonrpc.Settings{MaxFrame: maxMessage},
	}
	conn, err := config.Connect(context.Background(), t)
	if err != nil {
		return nil, err
	}
	return &appClient{conn: conn, sessions: map[int]*acp.ClientSession{}}, nil
}

func (c *appClient) session(ctx context.Context, i int) (*acp.ClientSession, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[i]; s != nil {
		return s, nil
	}
	s, err := c.conn.NewSession(ctx, acp.SessionConfig{Cwd: "/"})
	if err != nil {
		return nil, err
	}
	c.sessions[i] = s
	return s, nil
}

func (c *appClient) prompt(ctx context.Context, i int, text string) error {
	s, err := c.session(ctx, i)
	if err != nil {
		return err
	}
	res, err := s.Prompt(ctx, acp.Text(text)).Wait()
	if err != nil {
		return err
	}
	if res.StopReason != acp.StopEndTurn {
		return fmt.Errorf("unexpected stop reason %q", res.StopReason)
	}
	return nil
}

func (c *appClient) close() { _ = c.conn.Close() }

func serveApp(l link) error {
	transport := acp.Over(jsonrpc.NewLineStream(l.r, l.w))
	if l.stdio {
		transport = acp.Stdio()
	}
	return appAgent().Serve(context.Background(), transport)
}

func appAgent() *acp.Agent {
	var opened atomic.Int32
	return &acp.Agent{
		MaxVersion: 1,
		Engine:     jsonrpc.Settings{MaxFrame: maxMessage},
		NewSession: func(_ context.Context, s *acp.AgentSession) error {
			s.SetID(acp.SessionID(sessionID(int(opened.Add(1)) - 1))) // as long as everybody's
			return nil
		},
		Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			if cmd, ok := parseCommand(t.Text()); ok {
				return acp.StopEndTurn, appCommand(t, cmd)
			}
			return acp.StopEndTurn, nil
		},
	}
}

func appCommand(t *acp.Turn, cmd command) error {
	var text string
	switch cmd.verb {
	case "updates":
		text = chunkText(atoi(cmd.arg))
	case "stats":
		text, cmd.n = workStats().String(), 1
	case "rest":
		text, cmd.n = restStats().String(), 1
	default:
		return fmt.Errorf("unexpected command %q", cmd.verb)
	}
	for range cmd.n {
		if err := t.Say(text); err != nil {
			return err
		}
	}
	return nil
}
