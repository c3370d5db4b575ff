package acptest

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

func echoAgent() *acp.Agent {
	return &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		return acp.StopEndTurn, t.Say(t.Text())
	}}
}

func TestPair(t *testing.T) {
	for version := 1; version <= 2; version++ {
		for name, limit := range map[string]func(*acp.Agent, *acp.Client){
			"agent":  func(a *acp.Agent, _ *acp.Client) { a.MaxVersion = version },
			"client": func(_ *acp.Agent, c *acp.Client) { c.MaxVersion = version },
		} {
			talk := func(t *testing.T) {
				agent, client := echoAgent(), &acp.Client{}
				limit(agent, client)
				conn, agentConn := Pair(t, agent, client)
				if conn.Version() != version || agentConn.Version() != version {
					t.Errorf("limited by the %s: %d and %d", name, conn.Version(), agentConn.Version())
				}
				s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				if res, err := s.Prompt(t.Context(), acp.Text("hi")).Wait(); err != nil || res.StopReason != acp.StopEndTurn {
					t.Error(res, err)
				}
			}
			talk(t)
			synctest.Test(t, talk)
		}
	}
}

// Wrappers are put on in order, the first next to the client.
func TestPairWrap(t *testing.T) {
	var inner, outer *Recording
	conn, _ := Pair(t, echoAgent(), &acp.Client{},
		func(s jsonrpc.Stream) jsonrpc.Stream { s, outer = Record(s); return s },
		func(s jsonrpc.Stream) jsonrpc.Stream { return Faults{Out: Fault{Duplicate: 1, Only: isNote}}.Wrap(s) },
		func(s jsonrpc.Stream) jsonrpc.Stream { s, inner = Record(s); return s },
	)
	if err := conn.Conn().Notify(t.Context(), "_x/note", nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if o, i := strings.Count(outer.String(), "_x/note"), strings.Count(inner.String(), "_x/note"); o != 1 || i != 2 {
		t.Errorf("outside %d, inside %d", o, i)
	}
}

func isNote(f []byte) bool { return strings.Contains(string(f), "_x/note") }

func TestPairFails(t *testing.T) {
	for _, tc := range []struct {
		name   string
		agent  *acp.Agent
		client *acp.Client
		want   string
	}{
		{"agent", &acp.Agent{}, &acp.Client{}, "connect the agent: acp: an Agent needs a Prompt hook"},
		{"client", echoAgent(), &acp.Client{MinVersion: 3}, "connect the client: acp: protocol versions 3 to 2"},
		{"versions", &acp.Agent{Prompt: echoAgent().Prompt, MinVersion: 2}, &acp.Client{MaxVersion: 1}, "connect the client: "},
	} {
		if got := failing(func(tb testing.TB) { Pair(tb, tc.agent, tc.client) }); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}

// A hook that does not return is left, and the test is told so.
func TestPairFindsLeaks(t *testing.T) {
	for version := 1; version <= 2; version++ {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			agent := echoAgent()
			agent.Prompt = func(context.Context, *acp.Turn) (acp.StopReason, error) {
				<-release // whatever ctx says
				return acp.StopEndTurn, nil
			}
			got := failing(func(tb testing.TB) {
				conn, _ := Pair(tb, agent, &acp.Client{MaxVersion: version})
				s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
				if err != nil {
					t.Error(err)
					return
				}
				s.Prompt(t.Context(), acp.Text("hi"))
				synctest.Wait()
			})
			close(release)
			if !strings.Contains(got, "goroutines are left") || !strings.Contains(got, "TestPairFindsLeaks") {
				t.Errorf("version %d: %q", version, got)
			}
		})
	}
}

// What a test leaves that is none of Pair's business does not fail it, nor does
// a second pair that is still open.
func TestPairLeavesOthersAlone(t *testing.T) {
	a, b := jsonrpc.Pipe()
	other := jsonrpc.NewConn(a, jsonrpc.Config{})
	defer func() {
		_, _ = other.Close(), b.Close()
		<-other.Done()
	}()
	stop := make(chan struct{})
	defer close(stop)
	got := failing(func(tb testing.TB) {
		Pair(tb, echoAgent(), &acp.Client{})
		Pair(tb, echoAgent(), &acp.Client{})
		go func() { <-stop }()
	})
	if got != "" {
		t.Error(got)
	}
}

func TestAcceptAll(t *testing.T) {
	options := []acp.PermissionOption{
		{OptionID: "n", Kind: acp.PermissionOptionKindRejectOnce},
		{OptionID: "y", Kind: acp.PermissionOptionKindAllowOnce},
	}
	req := &acp.PermissionRequest{Options: options}
	if d, err := AcceptAll(t.Context(), req); err != nil || d.OptionID != "y" {
		t.Error(d, err)
	}
	if d, err := RejectAll(t.Context(), req); err != nil || d.OptionID != "n" {
		t.Error(d, err)
	}
}
