package acp

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// startedAgent is a transport that serves an agent each time it is opened.
type startedAgent struct {
	t     *testing.T
	agent *Agent

	wg     sync.WaitGroup
	mu     sync.Mutex
	starts int
}

func (s *startedAgent) Open(ctx context.Context) (jsonrpc.Stream, error) {
	ours, theirs := Pipe()
	s.mu.Lock()
	s.starts++
	s.mu.Unlock()
	s.wg.Go(func() {
		if err := s.agent.Serve(s.t.Context(), theirs); err != nil && s.t.Context().Err() == nil {
			s.t.Errorf("agent: %v", err)
		}
	})
	return ours.Open(ctx)
}

// unsaved is a client's file system with a text that is not on disk.
type unsaved struct{}

func (unsaved) ReadTextFile(context.Context, *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	return &acpv1.ReadTextFileResponse{Content: "unsaved"}, nil
}

func (unsaved) WriteTextFile(context.Context, *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	return new(acpv1.WriteTextFileResponse), nil
}

// TestBridgeVersion: a bridge asks for its client's version first, so that an
// agent which speaks it is started once and, in version 1, uses what the client
// lends.
func TestBridgeVersion(t *testing.T) {
	tests := []struct {
		client, lowest, highest int
		bounds                  [2]int // of the bridge
		version, starts         int
		read                    string
	}{
		{client: 1, lowest: 1, highest: 2, version: 1, starts: 1, read: "unsaved"},
		{client: 1, lowest: 1, highest: 1, version: 1, starts: 1, read: "unsaved"},
		{client: 1, lowest: 2, highest: 2, version: 2, starts: 2, read: "none"},
		{client: 2, lowest: 1, highest: 2, version: 2, starts: 1, read: "none"},
		{client: 2, lowest: 2, highest: 2, version: 2, starts: 1, read: "none"},
		{client: 2, lowest: 1, highest: 1, version: 1, starts: 2, read: "none"},
		{client: 1, lowest: 1, highest: 2, bounds: [2]int{2, 2}, version: 2, starts: 1, read: "none"},
		{client: 2, lowest: 1, highest: 2, bounds: [2]int{1, 1}, version: 1, starts: 1, read: "none"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("client v%d agent v%d-%d bounds %v", tt.client, tt.lowest, tt.highest, tt.bounds), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file")
			got := make(chan string, 1)
			behind := &startedAgent{t: t, agent: &Agent{
				MinVersion: tt.lowest, MaxVersion: tt.highest,
				Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
					text, err := t.ReadFile(file)
					if err != nil {
						text = "none"
					}
					got <- fmt.Sprint(t.Session().Conn().Version(), " ", text)
					return StopEndTurn, nil
				},
			}}
			up, theirs := Pipe()
			served := make(chan error, 1)
			go func() { served <- (&Bridge{Agent: behind, AgentVersions: tt.bounds}).Serve(t.Context(), up) }()
			conn, err := (&Client{MinVersion: tt.client, MaxVersion: tt.client, Files: unsaved{}}).Connect(t.Context(), theirs)
			if err != nil {
				t.Fatal(err)
			}
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Prompt(t.Context(), Text("read")).Wait(); err != nil {
				t.Fatal(err)
			}
			if got, want := <-got, fmt.Sprint(tt.version, " ", tt.read); got != want {
				t.Errorf("the agent spoke and read %q, want %q", got, want)
			}
			_ = conn.Close()
			if err := <-served; err != nil {
				t.Error(err)
			}
			behind.wg.Wait()
			if behind.starts != tt.starts {
				t.Errorf("the agent was started %d times, want %d", behind.starts, tt.starts)
			}
		})
	}
}

// TestBridgeAsks: a client of version 1 sees the command that an agent of version 2 asks for as the title, and with the
// question in the content, behind what the call showed before.
func TestBridgeAsks(t *testing.T) {
	for _, announced := range []bool{false, true} {
		agent := &Agent{Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
			ask := Permission{Title: "Run this command?", Command: "echo dangerous", Cwd: "/work"}
			if !announced {
				t.Permit(ask)
				return StopEndTurn, nil
			}
			call := t.ToolCall(ToolCall{Title: "Shell", Content: []ToolCallContent{&BlockContent{Content: Text("why")}}})
			call.Permit(ask)
			return StopEndTurn, nil
		}}
		asked := make(chan string, 1)
		client := &Client{RequestPermission: func(_ context.Context, r *PermissionRequest) (PermissionDecision, error) {
			text := r.Title
			content, _ := r.ToolCall.Content.Get()
			for _, c := range content {
				if b, ok := c.(*BlockContent); ok {
					text += " | " + b.Content.(*TextContent).Text
				}
			}
			asked <- text
			return r.Reject(), nil
		}}
		conn := bridged(t, agent, 2, client, 1)
		s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(t.Context(), Text("go")).Wait(); err != nil {
			t.Fatal(err)
		}
		want := "echo dangerous | Run this command?\n\n$ echo dangerous\nin /work"
		if announced {
			want = "echo dangerous | why | Run this command?\n\n$ echo dangerous\nin /work"
		}
		if got := <-asked; got != want {
			t.Errorf("asked %q, want %q", got, want)
		}
	}
}
