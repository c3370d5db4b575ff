package acp

import (
	"context"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// terminalsV1 are a client's terminals.
type terminalsV1 struct{ c *AgentConn }

func (t terminalsV1) start(ctx context.Context, s *AgentSession, e *Exec) (TerminalID, error) {
	r := &acpv1.CreateTerminalRequest{
		SessionID: acpv1.SessionID(s.id), Command: e.Command, Args: e.Args, Cwd: e.Dir,
		OutputByteLimit: new(uint64(e.OutputLimit)),
	}
	for _, v := range e.Env {
		r.Env = append(r.Env, acpv1.EnvVariable{Name: v.Name, Value: v.Value})
	}
	res, err := callClient(ctx, acpv1.MethodTerminalCreate, t.c.conn, r, jsonrpc.AwaitAnswer())
	if err != nil {
		return "", err
	}
	if err := s.acquire(s.ctx); err != nil {
		return "", err
	}
	defer s.releaseSending()
	s.toV1.LentTerminal(e.ID, TerminalID(res.TerminalID))
	return TerminalID(res.TerminalID), nil
}

func (t terminalsV1) output(ctx context.Context, s *AgentSession, id TerminalID) (*TerminalState, error) {
	res, err := callClient(ctx, acpv1.MethodTerminalOutput, t.c.conn, &acpv1.TerminalOutputRequest{SessionID: acpv1.SessionID(s.id), TerminalID: acpv1.TerminalID(id)})
	if err != nil {
		return nil, err
	}
	state := &TerminalState{Output: res.Output, Truncated: res.Truncated}
	if e := res.ExitStatus; e != nil {
		state.Exit = exitStatus(e.ExitCode, e.Signal)
	}
	return state, nil
}

func exitStatus(code *uint32, signal string) *TerminalExitStatus {
	e := &TerminalExitStatus{Signal: signal}
	if code != nil {
		e.ExitCode = new(int64(*code))
	}
	return e
}

func (t terminalsV1) wait(ctx context.Context, s *AgentSession, id TerminalID) (*TerminalExitStatus, error) {
	res, err := callClient(ctx, acpv1.MethodTerminalWaitForExit, t.c.conn, &acpv1.WaitForTerminalExitRequest{SessionID: acpv1.SessionID(s.id), TerminalID: acpv1.TerminalID(id)})
	if err != nil {
		return nil, err
	}
	return exitStatus(res.ExitCode, res.Signal), nil
}

func (t terminalsV1) kill(ctx context.Context, s *AgentSession, id TerminalID) error {
	_, err := callClient(ctx, acpv1.MethodTerminalKill, t.c.conn, &acpv1.KillTerminalRequest{SessionID: acpv1.SessionID(s.id), TerminalID: acpv1.TerminalID(id)})
	return err
}

func (t terminalsV1) release(ctx context.Context, s *AgentSession, id TerminalID) error {
	_, err := callClient(ctx, acpv1.MethodTerminalRelease, t.c.conn, &acpv1.ReleaseTerminalRequest{SessionID: acpv1.SessionID(s.id), TerminalID: acpv1.TerminalID(id)})
	return err
}
