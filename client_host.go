package acp

import (
	"context"
	"path/filepath"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// A FileSystem lends files to agents of version 1, which has methods for that;
// agents of version 2 use the disk. Paths are absolute when it is called, and
// the session is open. Its methods are called from several goroutines. What
// they return as a [*jsonrpc.Error] is the answer; see package acphost for one
// that keeps to given directories.
type FileSystem interface {
	ReadTextFile(ctx context.Context, req *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error)
	WriteTextFile(ctx context.Context, req *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error)
}

// A FileReader is the half of a [FileSystem] that reads.
type FileReader interface {
	ReadTextFile(ctx context.Context, req *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error)
}

// ReadOnly returns a [FileSystem] that offers reading only: agents are told so.
func ReadOnly(r FileReader) FileSystem { return readOnlyFiles{r} }

type readOnlyFiles struct{ FileReader }

// WriteTextFile refuses; agents are not told of it.
func (readOnlyFiles) WriteTextFile(context.Context, *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	return nil, jsonrpc.MethodNotFound(acpv1.MethodFSWriteTextFile.Name)
}

// A TerminalHost runs commands for agents of version 1. The session is open
// and a working directory is absolute when it is called, from several
// goroutines. A host serves one connection, since the ids of sessions are its
// agent's.
type TerminalHost interface {
	CreateTerminal(ctx context.Context, req *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error)
	TerminalOutput(ctx context.Context, req *acpv1.TerminalOutputRequest) (*acpv1.TerminalOutputResponse, error)
	WaitForTerminalExit(ctx context.Context, req *acpv1.WaitForTerminalExitRequest) (*acpv1.WaitForTerminalExitResponse, error)
	KillTerminal(ctx context.Context, req *acpv1.KillTerminalRequest) (*acpv1.KillTerminalResponse, error)
	ReleaseTerminal(ctx context.Context, req *acpv1.ReleaseTerminalRequest) (*acpv1.ReleaseTerminalResponse, error)
	// ReleaseSession kills and forgets what a session left. It is called when
	// a session is closed and when the connection ends. A terminal that
	// CreateTerminal gives after that is released by ReleaseTerminal.
	ReleaseSession(id acpv1.SessionID)
	// Close ends all terminals. The connection does not call it: who made the
	// host does.
	Close() error
}

func clientFileCapabilities(f FileSystem) acpv1.FileSystemCapabilities {
	_, readOnly := f.(readOnlyFiles)
	return acpv1.FileSystemCapabilities{ReadTextFile: f != nil, WriteTextFile: f != nil && !readOnly}
}

// registerHost adds the handlers of files and terminals. What the client does
// not have gets no handler, and so the answer that it does not exist.
func (p *clientV1) registerHost(mux *jsonrpc.Mux) {
	c := p.c
	caps := clientFileCapabilities(c.client.Files)
	if caps.ReadTextFile {
		acpv1.MethodFSReadTextFile.Handle(mux, func(ctx context.Context, r *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
			if _, err := c.checkHost(ctx, r.SessionID, "path", r.Path); err != nil {
				return nil, err
			}
			return c.client.Files.ReadTextFile(ctx, r)
		})
	}
	if caps.WriteTextFile {
		acpv1.MethodFSWriteTextFile.Handle(mux, func(ctx context.Context, r *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
			if _, err := c.checkHost(ctx, r.SessionID, "path", r.Path); err != nil {
				return nil, err
			}
			return c.client.Files.WriteTextFile(ctx, r)
		})
	}
	t := c.client.Terminals
	if t == nil {
		return
	}
	acpv1.MethodTerminalCreate.Handle(mux, func(ctx context.Context, r *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error) {
		s, err := c.checkHost(ctx, r.SessionID, "cwd", r.Cwd)
		if err != nil {
			return nil, err
		}
		res, err := t.CreateTerminal(ctx, r)
		if err == nil && res != nil && s.usable() != nil {
			// The session was released before there was this one.
			release := &acpv1.ReleaseTerminalRequest{SessionID: r.SessionID, TerminalID: res.TerminalID}
			if _, err := t.ReleaseTerminal(context.WithoutCancel(ctx), release); err != nil {
				c.client.Logger.Error("acp: release terminal", "error", err)
			}
			return nil, SessionNotFound(s.id)
		}
		return res, err
	})
	clientTerminalHandler(c, mux, acpv1.MethodTerminalOutput, t.TerminalOutput, func(r *acpv1.TerminalOutputRequest) acpv1.SessionID { return r.SessionID })
	clientTerminalHandler(c, mux, acpv1.MethodTerminalWaitForExit, t.WaitForTerminalExit, func(r *acpv1.WaitForTerminalExitRequest) acpv1.SessionID { return r.SessionID })
	clientTerminalHandler(c, mux, acpv1.MethodTerminalKill, t.KillTerminal, func(r *acpv1.KillTerminalRequest) acpv1.SessionID { return r.SessionID })
	clientTerminalHandler(c, mux, acpv1.MethodTerminalRelease, t.ReleaseTerminal, func(r *acpv1.ReleaseTerminalRequest) acpv1.SessionID { return r.SessionID })
}

func clientTerminalHandler[P, R any](c *ClientConn, mux *jsonrpc.Mux, m jsonrpc.Method[P, R], h func(context.Context, *P) (*R, error), session func(*P) acpv1.SessionID) {
	m.Handle(mux, func(ctx context.Context, r *P) (*R, error) {
		if _, err := c.requestSession(ctx, SessionID(session(r))); err != nil {
			return nil, err
		}
		return h(ctx, r)
	})
}

// checkHost refuses requests for sessions that are not open and for relative
// paths; only a working directory may be left out.
func (c *ClientConn) checkHost(ctx context.Context, id acpv1.SessionID, field, path string) (*ClientSession, error) {
	s, err := c.requestSession(ctx, SessionID(id))
	if err == nil && !filepath.IsAbs(path) && (path != "" || field != "cwd") {
		err = invalidParams(field, "must be absolute")
	}
	return s, err
}
