package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// baseClient is a good client that offers everything. All fixtures of clients are
// made of it.
type baseClient struct {
	mu        sync.Mutex
	files     map[string]string
	terminals map[acpv1.TerminalID]*baseTerminal // nil for those that were released
}

// serve runs a base client: it prompts the agent again and again until the
// connection ends.
func (b *baseClient) serve(s jsonrpc.Stream) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	conn, err := b.client().Connect(ctx, acp.Over(s))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	session, err := open(ctx, conn)
	if methods := conn.AuthMethods(); errors.Is(err, jsonrpc.ErrAuthRequired) && len(methods) > 0 {
		if m, ok := methods[0].(*acp.AuthMethodAgent); ok && conn.Login(ctx, m.MethodID) == nil {
			session, err = open(ctx, conn)
		}
	}
	if err != nil {
		return err
	}
	// It takes turns in two sessions, the second of which it opens after a turn.
	var other *acp.ClientSession
	for {
		if _, err := session.Prompt(ctx, acp.Text("check")).Wait(); err != nil {
			if errors.Is(err, jsonrpc.ErrClosed) {
				return nil
			}
			if _, said := errors.AsType[*jsonrpc.Error](err); !said {
				return err
			}
		}
		if other == nil {
			if other, err = conn.NewSession(ctx, acp.SessionConfig{Cwd: "/check"}); err != nil {
				other = session
			}
		}
		session, other = other, session
	}
}

// open goes on with the first session that the agent lists, or opens a new one.
func open(ctx context.Context, conn *acp.ClientConn) (*acp.ClientSession, error) {
	var old acp.SessionID
	for info, err := range conn.ListSessions(ctx, acp.ListOptions{Cwd: "/check"}) {
		if err == nil && old == "" {
			old = info.SessionID
		}
	}
	cfg := acp.SessionConfig{Cwd: "/check", Replay: true}
	if old != "" {
		if s, _, err := conn.Restore(ctx, old, cfg); err == nil {
			return s, nil
		}
	}
	return conn.NewSession(ctx, cfg)
}

// acceptClient starts a base client with a defect, or without if it is nil.
func acceptClient(d defect) func(context.Context) (*Peer, error) {
	return func(context.Context) (*Peer, error) {
		b := &baseClient{files: map[string]string{"/check/there.txt": "one\ntwo\nthree\n"}, terminals: map[acpv1.TerminalID]*baseTerminal{}}
		return fixture(Client, d, b.usage, b.serve), nil
	}
}

// usage is some memory, and a process for each command that runs.
func (b *baseClient) usage() Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := Usage{Memory: 10 << 20, Processes: 1}
	for _, t := range b.terminals {
		if t != nil && t.exit == nil {
			u.Processes++
		}
	}
	return u
}

func (b *baseClient) client() *acp.Client {
	return &acp.Client{
		Info: acp.Implementation{Name: "base", Version: "1.0.0"},
		RequestPermission: func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
			return req.Allow(), nil
		},
		Elicit: func(_ context.Context, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			if req.Form == nil && !strings.HasPrefix(req.URL, "https://") {
				return acp.DeclineElicitation(), nil
			}
			return acp.AcceptElicitation(map[string]json.RawMessage{}), nil
		},
		Files:        b,
		Terminals:    func(*acp.ClientConn) acp.TerminalHost { return b },
		TerminalAuth: true,
		AuthStatus:   func(context.Context, *acp.AuthStatus) {},
	}
}

func (b *baseClient) ReadTextFile(_ context.Context, req *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text, ok := b.files[req.Path]
	if !ok {
		return nil, jsonrpc.ErrResourceNotFound
	}
	lines := strings.SplitAfter(text, "\n")
	from, count := 0, len(lines)
	if req.Line != nil {
		from = min(max(int(*req.Line)-1, 0), len(lines))
	}
	if req.Limit != nil {
		count = min(count, int(*req.Limit))
	}
	return &acpv1.ReadTextFileResponse{Content: strings.Join(lines[from:min(from+count, len(lines))], "")}, nil
}

func (b *baseClient) WriteTextFile(_ context.Context, req *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !strings.HasPrefix(req.Path, "/check/") {
		return nil, jsonrpc.ErrInvalidParams
	}
	b.files[req.Path] = req.Content
	return &acpv1.WriteTextFileResponse{}, nil
}

// A baseTerminal is a command that is only played.
type baseTerminal struct {
	out   string
	limit int
	exit  *acpv1.TerminalExitStatus
	done  chan struct{}
}

func (t *baseTerminal) end(exit acpv1.TerminalExitStatus) {
	if t.exit == nil {
		t.exit = &exit
		close(t.done)
	}
}

func (b *baseClient) CreateTerminal(_ context.Context, req *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &baseTerminal{limit: 1 << 20, done: make(chan struct{})}
	if req.OutputByteLimit != nil {
		t.limit = int(*req.OutputByteLimit)
	}
	switch req.Command {
	case "echo":
		t.out = strings.Join(req.Args, " ") + "\n"
	case "printenv":
		for _, v := range req.Env {
			if v.Name == req.Args[0] {
				t.out = v.Value + "\n"
			}
		}
	case "pwd":
		t.out = req.Cwd + "\n"
	case "false":
		t.end(acpv1.TerminalExitStatus{ExitCode: new(uint32(1))})
	case "sleep":
	case "yes":
		t.out = strings.Repeat("y\n", t.limit)
	case "ln", "mkfifo", "rm": // what they make cannot be read, as far as this client goes
	default:
		return nil, jsonrpc.ErrInvalidParams
	}
	if req.Command != "sleep" && req.Command != "yes" {
		t.end(acpv1.TerminalExitStatus{ExitCode: new(uint32(0))})
	}
	id := acpv1.TerminalID("t" + strconv.Itoa(len(b.terminals)+1))
	b.terminals[id] = t
	return &acpv1.CreateTerminalResponse{TerminalID: id}, nil
}

// terminal returns a terminal that was not released.
func (b *baseClient) terminal(id acpv1.TerminalID) (*baseTerminal, error) {
	if t := b.terminals[id]; t != nil {
		return t, nil
	}
	return nil, jsonrpc.ErrResourceNotFound
}

func (b *baseClient) TerminalOutput(_ context.Context, req *acpv1.TerminalOutputRequest) (*acpv1.TerminalOutputResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, err := b.terminal(req.TerminalID)
	if err != nil {
		return nil, err
	}
	out := t.out
	for len(out) > t.limit {
		_, n := utf8.DecodeRuneInString(out)
		out = out[n:]
	}
	return &acpv1.TerminalOutputResponse{Output: out, Truncated: out != t.out, ExitStatus: t.exit}, nil
}

func (b *baseClient) WaitForTerminalExit(ctx context.Context, req *acpv1.WaitForTerminalExitRequest) (*acpv1.WaitForTerminalExitResponse, error) {
	b.mu.Lock()
	t, err := b.terminal(req.TerminalID)
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &acpv1.WaitForTerminalExitResponse{ExitCode: t.exit.ExitCode, Signal: t.exit.Signal}, nil
}

func (b *baseClient) KillTerminal(_ context.Context, req *acpv1.KillTerminalRequest) (*acpv1.KillTerminalResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, err := b.terminal(req.TerminalID)
	if err == nil {
		t.end(acpv1.TerminalExitStatus{Signal: "SIGKILL"})
	}
	return &acpv1.KillTerminalResponse{}, err
}

func (b *baseClient) ReleaseTerminal(_ context.Context, req *acpv1.ReleaseTerminalRequest) (*acpv1.ReleaseTerminalResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, err := b.terminal(req.TerminalID)
	if err == nil {
		t.end(acpv1.TerminalExitStatus{Signal: "SIGKILL"})
		b.terminals[req.TerminalID] = nil
	}
	return &acpv1.ReleaseTerminalResponse{}, err
}

func (b *baseClient) ReleaseSession(acpv1.SessionID) {}
func (b *baseClient) Close() error                   { return nil }
