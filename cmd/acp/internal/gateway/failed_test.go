package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// TestNotStarted: clients learn why an agent does not start, where the server has one user. Where it has several, the causes
// are the server's alone.
func TestNotStarted(t *testing.T) {
	long := "one\ntwo\nthree\nfour\nfive\nsix: no license\n"
	const failed, ended = "the agent test did not start", "the agent test did not start: it ended with status 3 before it answered"
	for _, tt := range []struct {
		name  string
		cause error
		many  bool
		want  string
	}{
		{"it ended", &process.ExitError{Code: 3, Stderr: long}, false, ended + ":\ntwo\nthree\nfour\nfive\nsix: no license"},
		{"it ended, of several users", &process.ExitError{Code: 3, Stderr: long}, true, ended},
		{"it could not be started", errors.New("no such profile"), false, failed + ": no such profile"},
		{"it could not be started, of several users", errors.New("secret"), true, failed},
		{"a long text", errors.New(strings.Repeat("x", 1000)), false, failed + ": " + strings.Repeat("x", maxClip) + "…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, talking(nil))
			r.g.cfg.Many = tt.many
			r.g.cfg.Start = func(context.Context, string, string) (acp.Transport, error) { return nil, tt.cause }
			_, err := r.connect(1).conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
			if said, ok := errors.AsType[*jsonrpc.Error](err); !ok || said.Message != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// TestOneDirectory: further directories are invalid for an agent that has none.
func TestOneDirectory(t *testing.T) {
	for version := range 2 {
		r := newRig(t, talking(nil))
		c := r.connect(version + 1)
		_, err := c.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir(), AdditionalDirectories: []string{t.TempDir()}})
		if said, ok := errors.AsType[*jsonrpc.Error](err); !ok || said.Code != jsonrpc.CodeInvalidParams || !strings.Contains(said.Message, "one directory only") {
			t.Errorf("version %d: %v", version+1, err)
		}
	}
}

// TestStaysIn: a client that loads a session in another directory is told that the session stays where it is.
func TestStaysIn(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, tt := range []struct {
		name, cwd string
		told      bool
	}{
		{"the same", dir, false},
		{"the same, spelt otherwise", dir + "/.", false},
		{"another", other, true},
		{"unknown", "/", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, talking(nil))
			s, err := r.connect(1).conn.NewSession(t.Context(), acp.SessionConfig{Cwd: dir})
			if err != nil {
				t.Fatal(err)
			}
			c := r.connect(2)
			loaded, err := c.conn.Load(t.Context(), s.ID(), acp.SessionConfig{Cwd: tt.cwd})
			if err != nil {
				t.Fatal(err)
			}
			say(t, loaded, "one")
			got := strings.Join(c.seen.until(t, "end: end_turn"), "|")
			if told := strings.Contains(got, "The session stays in its directory."); told != tt.told {
				t.Errorf("told: %v; %s", told, got)
			}
		})
	}
}
