package agent

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/jsonrpc"
)

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		args []string
		want Options
		err  string
	}{
		{nil, Options{}, ""},
		{[]string{"--protocol", "1"}, Options{Protocol: 1}, ""},
		{[]string{"--protocol=2", "--no-persist"}, Options{Protocol: 2, NoPersist: true}, ""},
		{[]string{"--sessions", "/x"}, Options{Sessions: "/x"}, ""},
		{[]string{"--protocol", "3"}, Options{}, "--protocol"},
		{[]string{"--sessions", ""}, Options{}, "--sessions"},
		{[]string{"--sessions", "/x", "--no-persist"}, Options{}, "sessions"},
		{[]string{"more"}, Options{}, "more"},
	} {
		var got *Options
		cmd := NewCommand(&app.App{}, func(_ context.Context, o *Options) error { got = o; return nil })
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{}, test.args...))
		err := cmd.Execute()
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) || got != nil {
				t.Errorf("%q: %v", test.args, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", test.args, err)
			continue
		}
		if diff := cmp.Diff(test.want, *got, cmpopts.IgnoreFields(Options{}, "App")); diff != "" {
			t.Errorf("%q: %s", test.args, diff)
		}
	}
}

// TestServe serves a client, which finds its session again the next time.
func TestServe(t *testing.T) {
	for _, test := range []struct {
		name  string
		o     Options
		saved bool
	}{
		{"default", Options{Protocol: 1}, true},
		{"directory", Options{Protocol: 2, Sessions: "DIR"}, true},
		{"memory", Options{NoPersist: true}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
			dir := filepath.Join(home, "data", "acp", "agent", "sessions")
			if test.o.Sessions != "" {
				test.o.Sessions = filepath.Join(home, "mine")
				dir = test.o.Sessions
			}
			var stderr bytes.Buffer
			test.o.App = &app.App{Err: &stderr, Version: "1.2.3"}
			cwd := t.TempDir()
			serve := func(f func(*acp.ClientConn)) {
				t.Helper()
				there, here := acp.Pipe()
				done := make(chan error, 1)
				go func() { done <- run(t.Context(), &test.o, there) }()
				conn, err := new(acp.Client).Connect(t.Context(), here)
				if err != nil {
					t.Fatal(err)
				}
				f(conn)
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
				if err := <-done; err != nil {
					t.Errorf("the client left: %v", err)
				}
			}
			serve(func(conn *acp.ClientConn) {
				if test.o.Protocol != 0 && conn.Version() != test.o.Protocol {
					t.Errorf("version %d", conn.Version())
				}
				if conn.Agent().Version != "1.2.3" {
					t.Errorf("agent %+v", conn.Agent())
				}
				s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: cwd})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Prompt(t.Context(), acp.Text("/help")).Wait(); err != nil {
					t.Error(err)
				}
			})
			serve(func(conn *acp.ClientConn) {
				n := 0
				for _, err := range conn.ListSessions(t.Context(), acp.ListOptions{Cwd: cwd}) {
					if err != nil {
						t.Fatal(err)
					}
					n++
				}
				if (n == 1) != test.saved {
					t.Errorf("%d sessions", n)
				}
			})
			if _, err := os.Stat(dir); (err == nil) != test.saved {
				t.Errorf("%s: %v", dir, err)
			}
			if stderr.Len() > 0 {
				t.Errorf("stderr: %s", &stderr)
			}
		})
	}
}

func TestServeEnds(t *testing.T) {
	there, here := acp.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, &Options{App: &app.App{}, NoPersist: true}, there) }()
	conn, err := new(acp.Client).Connect(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("told to end: %v", err)
	}
	if got := exitcode.Of(run(t.Context(), &Options{App: &app.App{}, NoPersist: true}, badTransport{})); got != exitcode.Protocol {
		t.Errorf("exit status %d", got)
	}
}

type badTransport struct{}

// Open fails.
func (badTransport) Open(context.Context) (jsonrpc.Stream, error) { return nil, errors.New("broken") }
