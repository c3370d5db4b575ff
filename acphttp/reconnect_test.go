package acphttp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/internal/remotetest"
	"github.com/goacp/acp/jsonrpc"
)

// remembering is an agent whose sessions outlive connections. It counts its prompts.
func remembering(t *testing.T, prompts *atomic.Int64) *acp.Agent {
	var mu sync.Mutex
	kept := map[acp.SessionID][]acp.SessionUpdate{}
	agent := remotetest.Counting(t)
	run := agent.Prompt
	agent.Prompt = func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		prompts.Add(1)
		if t.Text() == "wait" {
			if err := t.Say("waiting"); err != nil {
				return "", err
			}
			<-ctx.Done()
			return "", ctx.Err()
		}
		return run(ctx, t)
	}
	agent.Record = func(_ context.Context, s *acp.AgentSession, u acp.SessionUpdate) error {
		mu.Lock()
		defer mu.Unlock()
		if !acp.IsMomentary(u) {
			kept[s.ID()] = append(kept[s.ID()], u)
		}
		return nil
	}
	agent.ResumeSession = func(_ context.Context, s *acp.AgentSession, replay bool) error {
		mu.Lock()
		history, ok := kept[s.ID()]
		mu.Unlock()
		if !ok {
			return acp.SessionNotFound(s.ID())
		}
		for _, u := range history {
			if replay {
				if err := s.Send(u); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return agent
}

// TestReconnect: after a connection broke, its sessions continue on another one, and
// what was under way is said to have an unknown outcome.
func TestReconnect(t *testing.T) {
	for version := 1; version <= 2; version++ {
		var prompts atomic.Int64
		target := serve(t, &acphttp.Server{Serve: remembering(t, &prompts).Serve})
		var cut atomic.Bool
		url := faulty(t, target, func(r *http.Request, _ int) acptest.NetFault {
			if cut.Load() && r.Method == http.MethodPost {
				return acptest.NetFault{Refuse: http.StatusNotFound}
			}
			return acptest.NetFault{}
		})
		var replayed atomic.Pointer[strings.Builder]
		replayed.Store(new(strings.Builder))
		client := &acp.Client{MinVersion: version, MaxVersion: version, Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			if u.Replayed {
				replayed.Load().WriteString(u.Text())
			}
		}}
		conn, err := client.Connect(t.Context(), acphttp.NewTransport(url))
		if err != nil {
			t.Fatal(err)
		}
		cfg := acp.SessionConfig{Cwd: "/somewhere"}
		session, err := conn.NewSession(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		unprompted, err := conn.NewSession(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if text, _, err := session.Prompt(t.Context(), acp.Text("3")).Text(); err != nil || text != remotetest.Numbers(3) {
			t.Fatal(text, err)
		}
		interrupted := session.Prompt(t.Context(), acp.Text("wait"))
		for u := range interrupted.Updates() {
			if u.Text() == "waiting" {
				break
			}
		}
		cut.Store(true)
		_ = session.Cancel(t.Context()) // finds that the connection is unknown
		<-conn.Done()
		cut.Store(false)
		if err := conn.Wait(); !errors.Is(err, jsonrpc.ErrOutcomeUnknown) {
			t.Errorf("the connection ended with %v", err)
		}
		if _, err := interrupted.Wait(); !errors.Is(err, acp.ErrOutcomeUnknown) {
			t.Errorf("the prompt ended with %v", err)
		}
		before := prompts.Load()
		again, restored, err := conn.Reconnect(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		if again.Version() != version || len(restored) != 2 {
			t.Fatal(again.Version(), restored)
		}
		for _, r := range restored {
			switch r.Old {
			case session:
				if r.Err != nil || r.How != acp.RestoredLoaded || r.Session.ID() != session.ID() || r.Session.Cwd() != "/somewhere" ||
					len(r.Interrupted) != 1 || r.Interrupted[0] != interrupted {
					t.Errorf("%+v", r)
				}
				if got := replayed.Load().String(); !strings.Contains(got, remotetest.Numbers(3)) {
					t.Errorf("version %d, replayed: %q", version, got)
				}
				if text, _, err := r.Session.Prompt(t.Context(), acp.Text("4")).Text(); err != nil || text != remotetest.Numbers(4) {
					t.Error(text, err)
				}
			case unprompted:
				if r.Session != nil || !acp.IsSessionNotFound(r.Err) || len(r.Interrupted) != 0 {
					t.Errorf("%+v", r)
				}
			default:
				t.Errorf("%+v", r)
			}
		}
		if prompts.Load() != before+1 {
			t.Errorf("%d prompts ran", prompts.Load()-before)
		}
		for _, r := range restored {
			if r.Session == nil {
				continue
			}
			interrupted = r.Session.Prompt(t.Context(), acp.Text("wait"))
			for u := range interrupted.Updates() {
				if u.Text() == "waiting" {
					break
				}
			}
		}
		third, restored, err := again.Reconnect(t.Context(), false) // that has not ended
		if err != nil || len(restored) != 1 || restored[0].How != acp.RestoredResumed || restored[0].Err != nil {
			t.Fatal(restored, err)
		}
		if cut := restored[0].Interrupted; len(cut) != 1 || cut[0] != interrupted {
			t.Errorf("interrupted: %v", cut)
		}
		_ = third.Close()
	}
}

// TestReconnectOnce: a transport that can be opened once cannot be reconnected.
func TestReconnectOnce(t *testing.T) {
	a, b := acp.Pipe()
	agent, err := remotetest.Counting(t).Connect(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := new(acp.Client).Connect(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	if _, _, err := conn.Reconnect(t.Context(), false); !errors.Is(err, acp.ErrReopen) || conn.Conn().Err() != nil {
		t.Error(err, conn.Conn().Err())
	}
	_ = conn.Close()
}
