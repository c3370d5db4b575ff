package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// dirVariable makes the test binary be the agent.
const dirVariable = "ACP_EXAMPLE_RESUME_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirVariable); dir != "" {
		if err := serve(context.Background(), dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// start starts the agent as a process of its own.
func start(t *testing.T, client acp.Client, dir string) *acp.ClientConn {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := acp.Command(self)
	command.Env = append(os.Environ(), dirVariable+"="+dir)
	conn, err := client.Connect(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// tell prompts the agent and returns what it says.
func tell(t *testing.T, s *acp.ClientSession, text string) string {
	t.Helper()
	var said strings.Builder
	for u, err := range s.Prompt(t.Context(), acp.Text(text)).Updates() {
		if err != nil {
			t.Fatal(err)
		}
		said.WriteString(agentText(u.Update))
	}
	return said.String()
}

func agentText(u acp.SessionUpdate) string {
	switch u := u.(type) {
	case *acp.AgentMessage:
		return joined(u.Content.Or(nil)...)
	case *acp.AgentMessageChunk:
		return joined(u.Content)
	}
	return ""
}

func userText(u acp.SessionUpdate) string {
	switch u := u.(type) {
	case *acp.UserMessage:
		return joined(u.Content.Or(nil)...)
	case *acp.UserMessageChunk:
		return joined(u.Content)
	}
	return ""
}

func joined(blocks ...acp.ContentBlock) (text string) {
	for _, b := range blocks {
		if t, ok := b.(*acp.TextContent); ok {
			text += t.Text
		}
	}
	return text
}

func list(t *testing.T, conn *acp.ClientConn) (titles []string) {
	t.Helper()
	for s, err := range conn.ListSessions(t.Context(), acp.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		titles = append(titles, s.Title)
	}
	return titles
}

// TestRestart takes a session up again with another process.
func TestRestart(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "sessions")
			var replayed []string
			client := acp.Client{MinVersion: version, MaxVersion: version,
				Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
					if text := userText(u.Update) + agentText(u.Update); u.Replayed && text != "" {
						replayed = append(replayed, text)
					}
				}}
			config := acp.SessionConfig{Cwd: t.TempDir()}

			first := start(t, client, dir)
			session, err := first.NewSession(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := tell(t, session, "one"), `You have told me 1 things, "one" first.`; got != want {
				t.Errorf("said %q, want %q", got, want)
			}
			if got := session.Title(); got != "one" {
				t.Errorf("title %q", got)
			}
			tell(t, session, "two")
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			// What a crash leaves behind.
			name := filepath.Join(dir, string(session.ID())+".jsonl")
			torn, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = torn.WriteString(`{"sessionUpdate":"user_mess`)
			if err := errors.Join(err, torn.Close()); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "unfinished.jsonl"), []byte(`{"sess`), 0o600); err != nil {
				t.Fatal(err)
			}

			second := start(t, client, dir)
			if diff := cmp.Diff([]string{"one"}, list(t, second)); diff != "" {
				t.Errorf("listed: %s", diff)
			}
			again, err := second.Load(t.Context(), session.ID(), config)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{
				"one", `You have told me 1 things, "one" first.`,
				"two", `You have told me 2 things, "one" first.`,
			}
			if diff := cmp.Diff(want, replayed); diff != "" {
				t.Errorf("replayed: %s", diff)
			}
			if got, want := tell(t, again, "three"), `You have told me 3 things, "one" first.`; got != want {
				t.Errorf("said %q, want %q", got, want)
			}
			if err := again.Close(t.Context()); err != nil {
				t.Error(err)
			}

			replayed = nil
			if again, err = second.Resume(t.Context(), session.ID(), config); err != nil {
				t.Fatal(err)
			}
			if got, want := tell(t, again, "four"), `You have told me 4 things, "one" first.`; got != want {
				t.Errorf("said %q, want %q", got, want)
			}
			if len(replayed) > 0 {
				t.Errorf("replayed %q", replayed)
			}
			if err := second.Delete(t.Context(), session.ID()); err != nil {
				t.Error(err)
			}
			if left := list(t, second); len(left) > 0 {
				t.Errorf("listed %q after it was deleted", left)
			}
			for _, id := range []acp.SessionID{session.ID(), "unfinished", "../" + session.ID(), "..", ""} {
				if _, err := second.Resume(t.Context(), id, config); !errors.Is(err, jsonrpc.ErrResourceNotFound) {
					t.Errorf("resumed %q: %v", id, err)
				}
			}
		})
	}
}

// TestOpenSession: a session that is open can be resumed and loaded though
// nothing has been said in it, and so nothing was saved.
func TestOpenSession(t *testing.T) {
	for v := 1; v <= 2; v++ {
		conn := start(t, acp.Client{MaxVersion: v}, t.TempDir())
		s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		cfg := acp.SessionConfig{Cwd: t.TempDir()}
		if _, err := conn.Resume(t.Context(), s.ID(), cfg); err != nil {
			t.Errorf("version %d: resume: %v", v, err)
		}
		if _, err := conn.Load(t.Context(), s.ID(), cfg); err != nil {
			t.Errorf("version %d: load: %v", v, err)
		}
		if said := tell(t, s, "first"); !strings.Contains(said, "1 things") {
			t.Errorf("version %d: it said %q", v, said)
		}
		if _, err := conn.Resume(t.Context(), "other", cfg); !errors.Is(err, jsonrpc.ErrResourceNotFound) {
			t.Errorf("version %d: unknown session: %v", v, err)
		}
	}
}
