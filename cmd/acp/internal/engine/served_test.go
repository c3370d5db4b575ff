package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/jsonrpc"
)

// served connects a client to a gateway on an engine, whose agent repeats each prompt. seen returns what the client has
// seen, and reheld which agents that outlive a gateway were asked for, and from which event on: they are gone.
func served(t *testing.T, e *engine.Engine) (conn *acp.ClientConn, seen func() []string, reheld func() []string) {
	t.Helper()
	lease, err := e.Lease(t.Context(), "node")
	if err != nil {
		t.Fatal(err)
	}
	agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		blocks := turn.Blocks() // what a transcript says comes before
		return acp.StopEndTurn, turn.Say(blocks[len(blocks)-1].(*acp.TextContent).Text)
	}}
	var mu sync.Mutex
	var all, held []string
	g := gateway.New(gateway.Config{
		Log: e, Lease: lease, Agent: "test", Agents: []string{"test"}, Logger: slog.New(slog.DiscardHandler),
		Start: func(context.Context, string, string) (acp.Transport, error) {
			theirs, ours := jsonrpc.Pipe()
			_, err := agent.Connect(context.Background(), acp.Over(theirs))
			return acp.Over(ours), err
		},
		Rehold: func(_ context.Context, socket, token string, event uint64) (gateway.Held, error) {
			mu.Lock()
			defer mu.Unlock()
			held = append(held, fmt.Sprint(socket, " ", token, " ", event))
			return nil, errors.New("it is gone")
		},
	})
	client := &acp.Client{MinVersion: 2, Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
		text := ""
		switch v := u.Update.(type) {
		case *acp.UserMessage:
			if content, ok := v.Content.Get(); ok && !u.Synthetic {
				text = "user: " + content[0].(*acp.TextContent).Text
			}
		case *acp.AgentMessageChunk:
			text = "agent: " + v.Content.(*acp.TextContent).Text
		case *acp.Notice:
			text = "notice: " + v.Title
		}
		if text != "" {
			mu.Lock()
			all = append(all, text)
			mu.Unlock()
		}
	}}
	ours, theirs := acp.Pipe()
	var work sync.WaitGroup
	work.Go(func() { _ = g.Serve(context.Background(), ours) })
	if conn, err = client.Connect(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := conn.Close()
		work.Wait()
		if err = errors.Join(err, g.Close(), lease.Release(context.Background())); err != nil {
			t.Error(err)
		}
	})
	take := func(from *[]string) func() []string {
		return func() []string {
			mu.Lock()
			defer mu.Unlock()
			some := *from
			*from = nil
			return some
		}
	}
	return conn, take(&all), take(&held)
}

// TestTakeOverServed: clients of a gateway see the sessions that an earlier version has kept as they were, and continue and fork them.
// A turn that ran then has ended.
func TestTakeOverServed(t *testing.T) {
	dir, _ := earlierDir(t)
	e, _ := open(t, dir)
	conn, seen, reheld := served(t, e)
	for id, want := range map[acp.SessionID]string{
		"s_bba6f123abbbe7b511335134": "user: before|agent: before|user: wait long|agent: waiting|notice: The gateway was restarted.",
		"s_90e6f3e3d8d7052942949ce7": "user: one two three four|agent: onetwothreefour|user: five six|agent: fivesix|user: seven|notice: The agent does not remember this session.|agent: seven",
		"s_d4dc9d5198235603b9103d29": "user: one two|agent: one|agent: two|user: tool|notice: This session was forked from s_e84ca94f1a4b729930f6d7a8.|user: three|agent: three",
	} {
		s, err := conn.Load(t.Context(), id, acp.SessionConfig{Cwd: "/project"})
		if err != nil {
			t.Fatal(err)
		}
		if got := reheld(); id == "s_bba6f123abbbe7b511335134" && !cmp.Equal(got, []string{"sim sim 5"}) {
			t.Errorf("agents that were asked for: %q", got)
		}
		got := seen()
		if diff := cmp.Diff(strings.Split(want, "|"), got); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
		if _, err := s.Prompt(t.Context(), acp.Text("more")).Wait(); err != nil {
			t.Error(id, err)
		}
		if got := seen(); len(got) == 0 || got[len(got)-1] != "agent: more" {
			t.Errorf("%s: then %q", id, got)
		}
		f, err := conn.Fork(t.Context(), id, acp.SessionConfig{Cwd: "/project"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Prompt(t.Context(), acp.Text("other")).Wait(); err != nil {
			t.Error(id, err)
		}
		if err := errors.Join(e.Verify(t.Context(), string(id)), e.Verify(t.Context(), string(f.ID()))); err != nil {
			t.Error(err)
		}
		seen()
	}
}
