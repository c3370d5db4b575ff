package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// baseClient is a good client that offers everything. All fixtures of clients are
// made of it.
type baseClient struct {
	mu        sync.Mutex
	files     map[string]string
	terminals int
	alive     map[acpv1.TerminalID]bool
}

// serveClient runs a base client: it prompts the agent again and again until the
// connection ends.
func serveClient(s jsonrpc.Stream) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b := &baseClient{files: map[string]string{"/check/there.txt": "one\ntwo\nthree\n"}, alive: map[acpv1.TerminalID]bool{}}
	conn, err := b.client().Connect(ctx, acp.Over(s))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/check"})
	if methods := conn.AuthMethods(); errors.Is(err, jsonrpc.ErrAuthRequired) && len(methods) > 0 {
		if m, ok := methods[0].(*acp.AuthMethodAgent); ok && conn.Login(ctx, m.MethodID) == nil {
			session, err = conn.NewSession(ctx, acp.SessionConfig{Cwd: "/check"})
		}
	}
	if err != nil {
		return err
	}
	for {
		if _, err := session.Prompt(ctx, acp.Text("check")).Wait(); err != nil {
			if errors.Is(err, jsonrpc.ErrClosed) {
				return nil
			}
			if _, said := errors.AsType[*jsonrpc.Error](err); !said {
				return err
			}
		}
	}
}

// acceptClient starts a base client with a defect, or without if it is nil.
func acceptClient(d defect) func(context.Context) (*Peer, error) {
	return func(context.Context) (*Peer, error) { return fixture(Client, d, serveClient), nil }
}

func (b *baseClient) client() *acp.Client {
	return &acp.Client{
		Info: acp.Implementation{Name: "base", Version: "1.0.0"},
		RequestPermission: func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
			return req.Allow(), nil
		},
		Elicit: func(_ context.Context, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			return acp.AcceptElicitation(map[string]json.RawMessage{}), nil
		},
		Files:        b,
		Terminals:    b,
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

func (b *baseClient) CreateTerminal(context.Context, *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.terminals++
	id := acpv1.TerminalID("t" + strconv.Itoa(b.terminals))
	b.alive[id] = true
	return &acpv1.CreateTerminalResponse{TerminalID: id}, nil
}

// there fails for terminals that do not exist.
func (b *baseClient) there(id acpv1.TerminalID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.alive[id] {
		return jsonrpc.ErrResourceNotFound
	}
	return nil
}

func (b *baseClient) TerminalOutput(_ context.Context, req *acpv1.TerminalOutputRequest) (*acpv1.TerminalOutputResponse, error) {
	return &acpv1.TerminalOutputResponse{Output: "hello\n", ExitStatus: &acpv1.TerminalExitStatus{ExitCode: new(uint32(0))}}, b.there(req.TerminalID)
}

func (b *baseClient) WaitForTerminalExit(_ context.Context, req *acpv1.WaitForTerminalExitRequest) (*acpv1.WaitForTerminalExitResponse, error) {
	return &acpv1.WaitForTerminalExitResponse{ExitCode: new(uint32(0))}, b.there(req.TerminalID)
}

func (b *baseClient) KillTerminal(_ context.Context, req *acpv1.KillTerminalRequest) (*acpv1.KillTerminalResponse, error) {
	return &acpv1.KillTerminalResponse{}, b.there(req.TerminalID)
}

func (b *baseClient) ReleaseTerminal(_ context.Context, req *acpv1.ReleaseTerminalRequest) (*acpv1.ReleaseTerminalResponse, error) {
	err := b.there(req.TerminalID)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.alive, req.TerminalID)
	return &acpv1.ReleaseTerminalResponse{}, err
}

func (b *baseClient) ReleaseSession(acpv1.SessionID) {}
func (b *baseClient) Close() error                   { return nil }
