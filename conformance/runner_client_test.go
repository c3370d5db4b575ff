package conformance

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// reopening is a transport on which a client may connect more than once.
type reopening chan jsonrpc.Stream

func (r reopening) Open(ctx context.Context) (jsonrpc.Stream, error) {
	ours, theirs := jsonrpc.Pipe()
	select {
	case r <- ours:
		return theirs, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestRejoin holds that a client may connect again to ask for the version it was
// offered, whatever the scenario is doing.
func TestRejoin(t *testing.T) {
	rules := "-- a --\nOne.\nlevel must\ncite S1\nbare\n\ninitialize\nexpect session/new $q\nanswer $q {\"sessionId\": \"s\"}\nturn\nstop\n" +
		"-- b --\nTwo.\nlevel must\ncite S1\n\ncall $r _x\nerror $r -32601\n" +
		"-- c --\nThree.\nlevel must\ncite S1\nfresh\n\nis $init {\"protocolVersion\": $version, ...}\n"
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		streams := make(reopening, 8) // a client may connect before it leaves
		starts := 0
		accept := func(ctx context.Context) (*Peer, error) {
			select {
			case s := <-streams: // of a client that connects again
				return &Peer{Stream: s}, nil
			case <-time.After(time.Second):
			}
			starts++
			go func() { _ = serveOn(ctx, streams) }()
			select {
			case s := <-streams:
				return &Peer{Stream: s}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		report, err := CheckClient(ctx, accept, Options{catalog: rulesOf(t, Client, rules)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int{1, 2}, report.Versions); diff != "" {
			t.Error(diff, report.Broken)
		}
		for _, r := range report.Results {
			if r.Status != Pass {
				t.Errorf("%s in version %d: %s: %s\n%s", r.Rule.ID, r.Version, r.Status, r.Why, seenText(r))
			}
		}
		if starts > 6 {
			t.Errorf("the client was started %d times", starts)
		}
	})
}

// A lasting stream does not end a write that has a text before it is closed.
type lasting struct {
	jsonrpc.Stream
	text   string
	closed chan struct{}
	once   sync.Once
}

func (l *lasting) WriteFrame(data []byte) error {
	err := l.Stream.WriteFrame(data)
	if strings.Contains(string(data), l.text) {
		<-l.closed
	}
	return err
}

func (l *lasting) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Stream.Close()
}

// TestRejoinInWrite holds that a client may connect again before the write has ended that made it do so.
func TestRejoinInWrite(t *testing.T) {
	rules := "-- a --\nOne.\nlevel must\ncite S1\nbare\n\nexpect initialize $q\nnotify _a {}\nnotify _b {}\nnotify _c {}\n" +
		"greet $q {\"protocolVersion\": 1, \"agentCapabilities\": {}, \"_meta\": {\"slow\": 1}}\nturn\nalive\n"
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		streams := make(reopening, 8)
		accept := func(ctx context.Context) (*Peer, error) {
			select {
			case s := <-streams: // of a client that connects again
				return &Peer{Stream: s}, nil
			case <-time.After(time.Second):
			}
			go func() { _ = serveOn(ctx, streams) }()
			select {
			case s := <-streams:
				return &Peer{Stream: &lasting{Stream: s, text: "slow", closed: make(chan struct{})}}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		report, err := CheckClient(ctx, accept, Options{Versions: []int{1}, catalog: rulesOf(t, Client, rules)})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Results) == 0 {
			t.Fatal("no results")
		}
		for _, r := range report.Results {
			if r.Status != Pass {
				t.Errorf("%s: %s: %s\n%s", r.Rule.ID, r.Status, r.Why, seenText(r))
			}
		}
	})
}

// serveOn is a client that prompts until its connection ends.
func serveOn(ctx context.Context, t acp.Transport) error {
	conn, err := new(acp.Client).Connect(ctx, t)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	s, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/check"})
	for err == nil {
		_, err = s.Prompt(ctx, acp.Text("check")).Wait()
	}
	return err
}

// TestNoClient holds what is said of what is no client.
func TestNoClient(t *testing.T) {
	stream := func(lines ...string) func(context.Context) (*Peer, error) {
		return func(context.Context) (*Peer, error) {
			ours, theirs := jsonrpc.Pipe()
			for _, l := range lines {
				if l == "close" {
					_ = theirs.Close()
				} else if err := theirs.WriteFrame([]byte(l)); err != nil {
					return nil, err
				}
			}
			return &Peer{Stream: ours}, nil
		}
	}
	hello := func(version string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":` + version + `}}`
	}
	for _, tc := range []struct {
		name   string
		accept func(context.Context) (*Peer, error)
		want   string
	}{
		{"never", func(context.Context) (*Peer, error) { return nil, errors.New("it was not started") }, "the client did not connect: it was not started"},
		{"silent", stream(), "initialize did not come within 10s"},
		{"gone", stream("close"), "the peer closed the connection where initialize was due"},
		{"noise", stream("GET / HTTP/1.1", "close"), `this is not an ACP client: it sent the line "GET / HTTP/1.1", which is not JSON`},
		{"too early", stream(hello("0")), "the client does not speak version 1, it asks for"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				report, err := CheckClient(t.Context(), tc.accept, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if tc.name != "too early" && report.Broken != tc.want || !report.Failed() {
					t.Errorf("broken: %q, want %q", report.Broken, tc.want)
				}
			})
		})
	}
}

// TestNoPrompt holds that a client that never prompts is given up.
func TestNoPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		accepted := 0
		accept := func(context.Context) (*Peer, error) {
			accepted++
			ours, theirs := jsonrpc.Pipe()
			return &Peer{Stream: ours}, theirs.WriteFrame([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`))
		}
		report, err := CheckClient(t.Context(), accept, Options{Versions: []int{1}})
		if err != nil {
			t.Fatal(err)
		}
		r := report.Result("client/dispatch/unknown-request", 1)
		if r.Status != Broken || r.Why != "session/prompt did not come within 10s" {
			t.Errorf("%s: %s", r.Status, r.Why)
		}
		bare := 0
		for rule, test := range builtin().tests {
			if rule.Side == Client && test.place == onBare {
				bare++
			}
		}
		if limit := bare + maxNoTurns + 1; accepted > limit {
			t.Errorf("%d connections, more than %d", accepted, limit)
		}
	})
}
