package backend

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/pty"
	"github.com/goacp/acp/jsonrpc"
)

// terminals are lent to agents of version 1. Their ids differ from those of other connections,
// whose terminals a conversation may contain as well.
type terminals struct {
	*acphost.Terminals
	tag string
}

// newTerminals returns terminals in the directories of a session, which ask for permission and are
// shown.
func newTerminals(l *link, cwd string, roots []string) *terminals {
	t := &terminals{acphost.Local(append([]string{cwd}, roots...)...), l.tag}
	if pty.Available {
		t.PTY = pty.Terminals{}
	}
	t.Env = l.host.cfg.Environ
	t.Permit = l.host.permitCommand
	t.Watch = func(e acphost.TerminalEvent) { l.host.watchTerminal(t, e) }
	return t
}

func (t *terminals) outer(id acpv1.TerminalID) acpv1.TerminalID { return acpv1.TerminalID(t.tag) + id }

func (t *terminals) inner(id acpv1.TerminalID) acpv1.TerminalID {
	inner, ok := strings.CutPrefix(string(id), t.tag)
	if !ok {
		return ""
	}
	return acpv1.TerminalID(inner)
}

// renamed returns an error about a terminal with the id that the agent knows it by.
func renamed[R any](id acpv1.TerminalID, res R, err error) (R, error) {
	if errors.Is(err, jsonrpc.ErrResourceNotFound) {
		err = jsonrpc.ErrResourceNotFound.WithData(map[string]string{"terminalId": string(id)})
	}
	return res, err
}

// CreateTerminal implements [acp.TerminalHost].
func (t *terminals) CreateTerminal(ctx context.Context, req *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error) {
	res, err := t.Terminals.CreateTerminal(ctx, req)
	if err != nil {
		return nil, err
	}
	res.TerminalID = t.outer(res.TerminalID)
	return res, nil
}

// TerminalOutput implements [acp.TerminalHost].
func (t *terminals) TerminalOutput(ctx context.Context, req *acpv1.TerminalOutputRequest) (*acpv1.TerminalOutputResponse, error) {
	r := *req
	r.TerminalID = t.inner(r.TerminalID)
	res, err := t.Terminals.TerminalOutput(ctx, &r)
	return renamed(req.TerminalID, res, err)
}

// WaitForTerminalExit implements [acp.TerminalHost].
func (t *terminals) WaitForTerminalExit(ctx context.Context, req *acpv1.WaitForTerminalExitRequest) (*acpv1.WaitForTerminalExitResponse, error) {
	r := *req
	r.TerminalID = t.inner(r.TerminalID)
	res, err := t.Terminals.WaitForTerminalExit(ctx, &r)
	return renamed(req.TerminalID, res, err)
}

// KillTerminal implements [acp.TerminalHost].
func (t *terminals) KillTerminal(ctx context.Context, req *acpv1.KillTerminalRequest) (*acpv1.KillTerminalResponse, error) {
	r := *req
	r.TerminalID = t.inner(r.TerminalID)
	res, err := t.Terminals.KillTerminal(ctx, &r)
	return renamed(req.TerminalID, res, err)
}

// ReleaseTerminal implements [acp.TerminalHost].
func (t *terminals) ReleaseTerminal(ctx context.Context, req *acpv1.ReleaseTerminalRequest) (*acpv1.ReleaseTerminalResponse, error) {
	r := *req
	r.TerminalID = t.inner(r.TerminalID)
	res, err := t.Terminals.ReleaseTerminal(ctx, &r)
	return renamed(req.TerminalID, res, err)
}

// watchTerminal shows what a terminal does, in the updates that an agent of version 2 would send.
func (h *Host) watchTerminal(t *terminals, e acphost.TerminalEvent) {
	s, ok := h.Session(acp.SessionID(e.SessionID))
	if !ok {
		return
	}
	id := acp.TerminalID(t.outer(e.TerminalID))
	switch {
	case e.Started != nil:
		s.lends(id, func(ctx context.Context) error {
			_, err := t.KillTerminal(ctx, &acpv1.KillTerminalRequest{SessionID: e.SessionID, TerminalID: acpv1.TerminalID(id)})
			return err
		})
		u := &acp.TerminalUpdate{
			TerminalID: id, Command: acp.Set(acphost.TerminalCommand(&acpv1.CreateTerminalRequest{Command: e.Started.Command, Args: e.Started.Args})), Cwd: acp.Set(e.Started.Cwd),
		}
		if pty.Available {
			u.Size = acp.Set(acpv2.TerminalSize{Cols: uint16(pty.DefaultSize.Cols), Rows: uint16(pty.DefaultSize.Rows)})
		}
		s.put(u)
	case e.Exited != nil:
		s.lends(id, nil)
		status := acp.TerminalExitStatus{Signal: e.Exited.Signal}
		if code := e.Exited.ExitCode; code != nil {
			status.ExitCode = new(int64(*code))
		}
		s.put(&acp.TerminalUpdate{TerminalID: id, ExitStatus: acp.Set(status)})
	case len(e.Output) > 0:
		s.put(&acpv2.TerminalOutputChunk{TerminalID: id, Data: base64.StdEncoding.EncodeToString(e.Output)})
	}
}
