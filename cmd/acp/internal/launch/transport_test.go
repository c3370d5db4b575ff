package launch

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/jsonrpc"
)

func echo() *acp.Agent {
	return &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) { return "", t.Say("heard " + t.Text()) }}
}

// TestTransport: every way to an agent leads to it, twice.
func TestTransport(t *testing.T) {
	for _, network := range []string{"tcp", "unix", "builtin"} {
		t.Run(network, func(t *testing.T) {
			agent, o := roster.Agent{Name: "x"}, Options{}
			switch network {
			case "builtin":
				agent.Builtin, o.BuiltIn = true, echo()
			default:
				address := "127.0.0.1:0"
				if network == "unix" {
					address = filepath.Join(t.TempDir(), "s")
				}
				l, err := net.Listen(network, address)
				if err != nil {
					t.Skip(err)
				}
				served := make(chan error, 2)
				go func() {
					for range cap(served) {
						c, err := l.Accept()
						if err == nil {
							err = echo().Serve(context.Background(), acp.Over(jsonrpc.NewLineStream(c, c)))
						}
						served <- err
					}
				}()
				defer func() {
					for range cap(served) {
						if err := <-served; err != nil {
							t.Error(err)
						}
					}
					_ = l.Close()
				}()
				agent.URL = network + "://" + filepath.ToSlash(l.Addr().String())
			}
			for range 2 {
				transport, err := Transport(agent, o)
				if err != nil {
					t.Fatal(err)
				}
				conn, err := (&Start{Agent: "x", Limit: time.Minute}).Connect(t.Context(), &acp.Client{MinVersion: 2}, transport)
				if err != nil {
					t.Fatal(err)
				}
				s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				said := ""
				for u, err := range s.Prompt(t.Context(), acp.Text("you")).Updates() {
					if err != nil {
						t.Fatal(err)
					}
					if _, ok := u.Update.(*acp.AgentMessageChunk); ok {
						said += u.Text()
					}
				}
				if said != "heard you" {
					t.Errorf("the answer is %q", said)
				}
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestUnreachable: an agent that does not listen cannot be used, and where it should is said.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	agent := roster.Agent{Name: "x", URL: "tcp://" + l.Addr().String()}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	transport, err := Transport(agent, Options{})
	if err != nil {
		t.Fatal(err)
	}
	start := &Start{Agent: "x", Limit: time.Minute}
	_, err = start.Connect(t.Context(), new(acp.Client), transport)
	if err = start.Failed(err); exitcode.Of(err) != exitcode.Agent || !errors.As(err, new(*net.OpError)) || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("%v (status %d)", err, exitcode.Of(err))
	}
	if _, err := Process(t.Context(), agent, ""); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("as a process: %v", err)
	}
	if _, err := Transport(roster.Agent{Name: "x", URL: "ftp://host"}, Options{}); err == nil {
		t.Error("there is a way over ftp")
	}
	if _, err := Transport(roster.Agent{Name: "x", URL: "https://host", Remote: remote.Options{Token: remote.Source{File: "no such file"}}}, Options{}); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("a token that is not there: %v", err)
	}
	if _, err := Transport(roster.Agent{Name: "own", Builtin: true}, Options{}); err == nil {
		t.Error("there is a built-in agent without one")
	}
}
