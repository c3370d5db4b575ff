package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

// openStore opens a store of its own for a test. Whatever an agent has said is in it once it is shown, however slow the
// disk is: a busy machine may take longer to write than the program usually waits for.
func openStore(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Path: path, Normal: true, AppendWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// config is that of a host of an agent in memory, in the given version.
func config(t *testing.T, version int, agent *acp.Agent) Config {
	t.Helper()
	return Config{
		Agent:   roster.Agent{Name: "fake", Builtin: true, Protocol: version},
		BuiltIn: agent,
		Cwd:     t.TempDir(),
		Connect: 20 * time.Second,
	}
}

func open(t *testing.T, cfg Config) *Host {
	t.Helper()
	h, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func versions(t *testing.T, f func(t *testing.T, version int)) {
	for _, v := range []int{1, 2} {
		t.Run(map[int]string{1: "v1", 2: "v2"}[v], func(t *testing.T) { f(t, v) })
	}
}

// configKept is config with a store.
func configKept(t *testing.T, version int, agent *acp.Agent) Config {
	t.Helper()
	cfg := config(t, version, agent)
	cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
	return cfg
}

// talk opens a session and sends prompts, one after the other.
func talk(t *testing.T, h *Host, prompts ...string) *Session {
	t.Helper()
	s, err := h.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	prompt(t, s, prompts...)
	return s
}

func prompt(t *testing.T, s *Session, prompts ...string) {
	t.Helper()
	for _, text := range prompts {
		if _, err := s.Prompt(t.Context(), acp.Text(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// talkOnce is talk with a host that has been closed since, and returns the agent's id of the session
// and that of the conversation.
func talkOnce(t *testing.T, cfg Config, prompts ...string) (acp.SessionID, string) {
	t.Helper()
	h := open(t, cfg)
	s := talk(t, h, prompts...)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return s.ID(), s.journal.conversationID()
}

// restored opens another host and restores a session in it.
func restored(t *testing.T, cfg Config, id acp.SessionID) (*Host, *Session, acp.Restored) {
	t.Helper()
	h := open(t, cfg)
	s, how, err := h.Restore(t.Context(), id)
	if err != nil {
		t.Fatalf("Restore: %v", err)
	}
	return h, s, how
}

// stored is a conversation as the store has it.
func stored(t *testing.T, st *store.Store, conversation string) *transcript.Snapshot {
	t.Helper()
	snap, damage, err := st.Snapshot(t.Context(), conversation, store.Bounds())
	if err != nil || damage != nil {
		t.Fatal(damage, err)
	}
	return snap
}

// messages are the texts of a conversation, each with its role.
func messages(s *transcript.Snapshot) (list []string) {
	for e := range s.Entries() {
		if m, ok := e.(*transcript.Message); ok {
			list = append(list, string(m.Role)+": "+m.Text())
		}
	}
	return list
}

// TestCoded holds the status and the words of what goes wrong in a call.
func TestCoded(t *testing.T) {
	h := &Host{cfg: Config{Agent: roster.Agent{Name: "mine"}}}
	closed := func(err error) error { return fmt.Errorf("%w: %w", jsonrpc.ErrClosed, err) }
	for _, tt := range []struct {
		err  error
		code exitcode.Code
		want string
	}{
		{jsonrpc.ErrMethodNotFound, exitcode.Protocol, "prompt: mine answered: Method not found (-32601)"},
		{fmt.Errorf("%w to session/prompt: no reason", jsonrpc.ErrInvalidResponse), exitcode.Protocol, "prompt: jsonrpc: invalid response to session/prompt: no reason"},
		{closed(io.EOF), exitcode.Agent, "prompt: mine ended, without an error"},
		{closed(fmt.Errorf("%w: %w", io.EOF, &process.ExitError{Code: 3, Stderr: "no\x1b[31m luck\n"})), exitcode.Agent, "prompt: mine exited with status 3: no luck"},
		{closed(&process.ExitError{Code: -1, Signal: "SIGKILL"}), exitcode.Agent, "prompt: mine was ended by SIGKILL"},
		{closed(&acphttp.BrokenError{Err: io.ErrUnexpectedEOF}), exitcode.Agent, "prompt: the connection to mine broke: unexpected EOF; the agent may have done what it was asked"},
		{closed(fmt.Errorf("no way back: %w, after %w", &acphttp.StatusError{Status: 401, Text: "it was revoked"}, &acphttp.BrokenError{Err: &acphttp.StatusError{Status: 503}})), exitcode.Auth, "mine requires a token: it was revoked. Set ACP_TOKEN"},
		{closed(jsonrpc.ErrFrameTooLarge), exitcode.Agent, "prompt: " + closed(jsonrpc.ErrFrameTooLarge).Error()},
		{context.DeadlineExceeded, exitcode.Timeout, "prompt: context deadline exceeded"},
		{io.ErrShortWrite, exitcode.Failed, "prompt: short write"},
	} {
		err := h.coded("prompt", tt.err)
		if exitcode.Of(err) != tt.code || err.Error() != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%v: status %d, %v, want %d, %s", tt.err, exitcode.Of(err), err, tt.code, tt.want)
		}
	}
}

func allow(_ context.Context, _ *Session, req acphost.Request) (acp.PermissionOptionID, error) {
	return req.Allow(), nil
}
