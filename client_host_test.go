package acp

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

type clientFiles1 struct{}

func (clientFiles1) ReadTextFile(_ context.Context, r *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	return &acpv1.ReadTextFileResponse{Content: "text of " + r.Path}, nil
}

func (clientFiles1) WriteTextFile(context.Context, *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	return nil, nil
}

type clientTerminals1 struct {
	mu       sync.Mutex
	released []acpv1.SessionID
	closed   int
}

func (*clientTerminals1) CreateTerminal(context.Context, *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error) {
	return &acpv1.CreateTerminalResponse{TerminalID: "t"}, nil
}

func (*clientTerminals1) TerminalOutput(context.Context, *acpv1.TerminalOutputRequest) (*acpv1.TerminalOutputResponse, error) {
	return &acpv1.TerminalOutputResponse{Output: "out"}, nil
}

func (*clientTerminals1) WaitForTerminalExit(ctx context.Context, _ *acpv1.WaitForTerminalExitRequest) (*acpv1.WaitForTerminalExitResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (*clientTerminals1) KillTerminal(context.Context, *acpv1.KillTerminalRequest) (*acpv1.KillTerminalResponse, error) {
	return nil, nil
}

func (*clientTerminals1) ReleaseTerminal(context.Context, *acpv1.ReleaseTerminalRequest) (*acpv1.ReleaseTerminalResponse, error) {
	return nil, errors.New("secret")
}

func (t *clientTerminals1) ReleaseSession(id acpv1.SessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.released = append(t.released, id)
}

func (t *clientTerminals1) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed++
	return errors.New("no matter")
}

// lend returns what lends a host to every connection.
func lend(t TerminalHost) func(*ClientConn) TerminalHost {
	return func(*ClientConn) TerminalHost { return t }
}

// TestClientHost holds what agents of version 1 get when they ask for files and
// terminals.
func TestClientHost(t *testing.T) {
	const path, terminal = `"path":"/w/f"`, `"terminalId":"t"`
	tests := []struct {
		name, method, params string
		want, bare           string // of a client that offers everything, and nothing
	}{
		{"read", "fs/read_text_file", `{"sessionId":"s",` + path + `}`, `{"content":"text of /w/f"}`, `-32601 {"method":"fs/read_text_file"}`},
		{"read elsewhere", "fs/read_text_file", `{"sessionId":"x",` + path + `}`, `-32002 {"sessionId":"x"}`, "-32601"},
		{"read relative", "fs/read_text_file", `{"sessionId":"s","path":"f"}`, `-32602 {"path":"params.path","reason":"must be absolute"}`, "-32601"},
		{"read nothing", "fs/read_text_file", `{"sessionId":"s","path":""}`, `-32602`, "-32601"},
		{"write", "fs/write_text_file", `{"sessionId":"s","content":"",` + path + `}`, `{}`, "-32601"},
		{"write relative", "fs/write_text_file", `{"sessionId":"s","content":"","path":"../f"}`, `-32602`, "-32601"},
		{"create", "terminal/create", `{"sessionId":"s","command":"ls"}`, `{"terminalId":"t"}`, "-32601"},
		{"create in", "terminal/create", `{"sessionId":"s","command":"ls","cwd":"/w"}`, `{"terminalId":"t"}`, "-32601"},
		{"create relative", "terminal/create", `{"sessionId":"s","command":"ls","cwd":"w"}`, `-32602 {"path":"params.cwd"`, "-32601"},
		{"create elsewhere", "terminal/create", `{"sessionId":"x","command":"ls"}`, `-32002`, "-32601"},
		{"output", "terminal/output", `{"sessionId":"s",` + terminal + `}`, `{"output":"out","truncated":false}`, "-32601"},
		{"output elsewhere", "terminal/output", `{"sessionId":"x",` + terminal + `}`, `-32002`, "-32601"},
		{"kill", "terminal/kill", `{"sessionId":"s",` + terminal + `}`, `{}`, "-32601"},
		{"release", "terminal/release", `{"sessionId":"s",` + terminal + `}`, `-32603 {"correlationId"`, "-32601"},
	}
	terminals := new(clientTerminals1)
	single(t, Client{Files: clientFiles1{}, Terminals: lend(terminals)}, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
		for i, tt := range tests {
			a.request(i, tt.method, tt.params)
			if got := a.response(); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
			}
		}
		// A request that is withdrawn ends.
		a.request(99, "terminal/wait_for_exit", `{"sessionId":"s","terminalId":"t"}`)
		synctest.Wait()
		a.notify("$/cancel_request", `{"requestId":99}`)
		if got := a.response(); !strings.HasPrefix(got, "-32800") {
			t.Error(got)
		}
		closed := laterErr(func() error { return s.Close(t.Context()) })
		a.answer(a.next("session/close"), "{}")
		if err := closed(); err != nil {
			t.Error(err)
		}
		if len(terminals.released) != 1 || terminals.released[0] != "s" {
			t.Errorf("released %v", terminals.released)
		}
	})
	single(t, Client{}, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
		for i, tt := range tests {
			a.request(i, tt.method, tt.params)
			if got := a.response(); !strings.HasPrefix(got, tt.bare) {
				t.Errorf("%s: %s, want %s", tt.name, got, tt.bare)
			}
		}
	})
	single(t, Client{Files: ReadOnly(clientFiles1{})}, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
		a.request(1, "fs/write_text_file", `{"sessionId":"s","content":"","path":"/w/f"}`)
		if got := a.response(); !strings.HasPrefix(got, "-32601") {
			t.Error(got)
		}
	})
	if _, err := ReadOnly(clientFiles1{}).WriteTextFile(t.Context(), nil); !errors.Is(err, jsonrpc.ErrMethodNotFound) {
		t.Error(err)
	}
}

// slowTerminals makes a terminal when it is let.
type slowTerminals struct {
	clientTerminals1
	let  chan struct{}
	gone []acpv1.TerminalID
}

func (h *slowTerminals) CreateTerminal(ctx context.Context, r *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error) {
	<-h.let
	return h.clientTerminals1.CreateTerminal(ctx, r)
}

func (h *slowTerminals) ReleaseTerminal(_ context.Context, r *acpv1.ReleaseTerminalRequest) (*acpv1.ReleaseTerminalResponse, error) {
	h.gone = append(h.gone, r.TerminalID)
	return nil, errors.New("no matter")
}

// TestClientTerminalTooLate holds that a terminal that is made while its session
// is closed does not outlive it.
func TestClientTerminalTooLate(t *testing.T) {
	host := new(slowTerminals)
	single(t, Client{Terminals: lend(host)}, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
		host.let = make(chan struct{})
		a.request(1, "terminal/create", `{"sessionId":"s","command":"sleep"}`)
		synctest.Wait()
		closed := laterErr(func() error { return s.Close(t.Context()) })
		a.answer(a.next("session/close"), "{}")
		if err := closed(); err != nil {
			t.Error(err)
		}
		close(host.let)
		if got := a.response(); !strings.HasPrefix(got, "-32002") || len(host.gone) != 1 || host.gone[0] != "t" {
			t.Errorf("%s, released %v", got, host.gone)
		}
	})
}

// TestClientReleasesTerminals holds that terminals do not outlive a connection, and
// that each connection has a host of its own, made when it is used and closed once.
func TestClientReleasesTerminals(t *testing.T) {
	var hosts []*clientTerminals1
	client := Client{Terminals: func(c *ClientConn) TerminalHost {
		if c.Version() != 1 {
			t.Error("the connection is not initialized")
		}
		hosts = append(hosts, new(clientTerminals1))
		return hosts[len(hosts)-1]
	}}
	for range 2 {
		single(t, client, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
			for i := range 3 {
				a.request(i, "terminal/create", `{"sessionId":"s","command":"ls"}`)
			}
			for range 3 {
				if got := a.response(); got != `{"terminalId":"t"}` {
					t.Error(got)
				}
			}
		})
	}
	single(t, client, 1, func(*testing.T, *ClientSession, *clientScript) {}) // uses none
	if len(hosts) != 2 {
		t.Fatalf("%d hosts", len(hosts))
	}
	for _, h := range hosts {
		if len(h.released) != 1 || h.closed != 1 {
			t.Errorf("released %v, closed %d times", h.released, h.closed)
		}
	}
}

// TestClientTerminalsHook holds what becomes of a hook that returns nothing or panics,
// and of one that returns when the connection has ended.
func TestClientTerminalsHook(t *testing.T) {
	create := func(a *clientScript, id int) { a.request(id, "terminal/create", `{"sessionId":"s","command":"ls"}`) }
	for name, hook := range map[string]func(*ClientConn) TerminalHost{
		"nil":    func(*ClientConn) TerminalHost { return nil },
		"panics": func(*ClientConn) TerminalHost { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			single(t, Client{Terminals: hook}, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
				for i := range 2 { // the hook is called again
					create(a, i)
					if got := a.response(); !strings.HasPrefix(got, "-32603") {
						t.Error(got)
					}
				}
			})
		})
	}
	late := new(clientTerminals1)
	var written chan struct{} // closed once the agent has written all it will, since the hook closes what it writes to
	single(t, Client{Terminals: func(c *ClientConn) TerminalHost { <-written; _ = c.Close(); return late }}, 1, func(t *testing.T, s *ClientSession, a *clientScript) {
		written = make(chan struct{})
		create(a, 1)
		create(a, 2)
		synctest.Wait() // the second request waits for the hook
		close(written)
		<-s.Conn().Done()
		if err := s.Conn().Close(); err != nil {
			t.Error(err)
		}
	})
	if late.closed != 1 {
		t.Errorf("closed %d times", late.closed)
	}
}
