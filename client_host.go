package acp

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// A FileSystem lends files to agents of version 1, which has methods for that;
// agents of version 2 use the disk. It is called with absolute paths and for
// sessions that are open, from several goroutines. A [*jsonrpc.Error] that its
// methods return is sent as the answer. Package acphost has one that is confined
// to given directories.
type FileSystem interface {
	ReadTextFile(ctx context.Context, req *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error)
	WriteTextFile(ctx context.Context, req *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error)
}

// A FileReader is the reading half of a [FileSystem].
type FileReader interface {
	ReadTextFile(ctx context.Context, req *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error)
}

// ReadOnly returns a [FileSystem] that only reads, and is advertised as such.
func ReadOnly(r FileReader) FileSystem { return readOnlyFiles{r} }

type readOnlyFiles struct{ FileReader }

// WriteTextFile refuses. It is not advertised.
func (readOnlyFiles) WriteTextFile(context.Context, *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	return nil, jsonrpc.MethodNotFound(acpv1.MethodFSWriteTextFile.Name)
}

// A TerminalHost runs commands for agents of version 1. It is called with
// absolute working directories and for sessions that are open, from several
// goroutines. A host serves one connection, because session ids belong to the
// agent.
type TerminalHost interface {
	CreateTerminal(ctx context.Context, req *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error)
	TerminalOutput(ctx context.Context, req *acpv1.TerminalOutputRequest) (*acpv1.TerminalOutputResponse, error)
	WaitForTerminalExit(ctx context.Context, req *acpv1.WaitForTerminalExitRequest) (*acpv1.WaitForTerminalExitResponse, error)
	KillTerminal(ctx context.Context, req *acpv1.KillTerminalRequest) (*acpv1.KillTerminalResponse, error)
	ReleaseTerminal(ctx context.Context, req *acpv1.ReleaseTerminalRequest) (*acpv1.ReleaseTerminalResponse, error)
	// ReleaseSession kills and forgets what a session has left behind. It is
	// called when a session is closed and when the connection ends. A terminal
	// that CreateTerminal returns after that is released by ReleaseTerminal.
	ReleaseSession(id acpv1.SessionID)
	// Close ends all terminals. The connection calls it when it has ended.
	Close() error
}

func clientFileCapabilities(f FileSystem) acpv1.FileSystemCapabilities {
	_, readOnly := f.(readOnlyFiles)
	return acpv1.FileSystemCapabilities{ReadTextFile: f != nil, WriteTextFile: f != nil && !readOnly}
}

// registerHost adds the handlers of files and terminals. What the client does not
// have gets no handler, and is answered as an unknown method.
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
	if c.client.Terminals == nil {
		return
	}
	acpv1.MethodTerminalCreate.Handle(mux, func(ctx context.Context, r *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error) {
		s, err := c.checkHost(ctx, r.SessionID, "cwd", r.Cwd)
		if err != nil {
			return nil, err
		}
		t, err := c.lent.host(ctx, c)
		if err != nil {
			return nil, err
		}
		res, err := t.CreateTerminal(ctx, r)
		if err == nil && res != nil && s.usable() != nil {
			// The session was released before this terminal existed.
			release := &acpv1.ReleaseTerminalRequest{SessionID: r.SessionID, TerminalID: res.TerminalID}
			if _, err := t.ReleaseTerminal(context.WithoutCancel(ctx), release); err != nil {
				c.client.Logger.Error("acp: release terminal", "error", err)
			}
			return nil, SessionNotFound(s.id)
		}
		return res, err
	})
	clientTerminalHandler(c, mux, acpv1.MethodTerminalOutput, TerminalHost.TerminalOutput, func(r *acpv1.TerminalOutputRequest) acpv1.SessionID { return r.SessionID })
	clientTerminalHandler(c, mux, acpv1.MethodTerminalWaitForExit, TerminalHost.WaitForTerminalExit, func(r *acpv1.WaitForTerminalExitRequest) acpv1.SessionID { return r.SessionID })
	clientTerminalHandler(c, mux, acpv1.MethodTerminalKill, TerminalHost.KillTerminal, func(r *acpv1.KillTerminalRequest) acpv1.SessionID { return r.SessionID })
	clientTerminalHandler(c, mux, acpv1.MethodTerminalRelease, TerminalHost.ReleaseTerminal, func(r *acpv1.ReleaseTerminalRequest) acpv1.SessionID { return r.SessionID })
}

func clientTerminalHandler[P, R any](c *ClientConn, mux *jsonrpc.Mux, m jsonrpc.Method[P, R], h func(TerminalHost, context.Context, *P) (*R, error), session func(*P) acpv1.SessionID) {
	m.Handle(mux, func(ctx context.Context, r *P) (*R, error) {
		if _, err := c.requestSession(ctx, SessionID(session(r))); err != nil {
			return nil, err
		}
		t, err := c.lent.host(ctx, c)
		if err != nil {
			return nil, err
		}
		return h(t, ctx, r)
	})
}

// checkHost refuses requests for sessions that are not open, and relative paths.
// Only a working directory may be left out.
func (c *ClientConn) checkHost(ctx context.Context, id acpv1.SessionID, field, path string) (*ClientSession, error) {
	s, err := c.requestSession(ctx, SessionID(id))
	if err == nil && !filepath.IsAbs(path) && (path != "" || field != "cwd") {
		err = invalidParams(field, "must be absolute")
	}
	return s, err
}

// clientLent is the host of terminals that a connection has had made. The zero value
// has none.
type clientLent struct {
	mu        sync.Mutex
	terminals TerminalHost  // nil before there is one
	making    chan struct{} // closed when there is one or will not be; nil unless it is being made
	closed    bool
}

// host returns the host of terminals; the first call has it made.
func (l *clientLent) host(ctx context.Context, c *ClientConn) (TerminalHost, error) {
	l.mu.Lock()
	for l.making != nil {
		making := l.making
		l.mu.Unlock()
		select {
		case <-making:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		l.mu.Lock()
	}
	if l.closed || l.terminals != nil {
		defer l.mu.Unlock()
		if l.closed {
			return nil, jsonrpc.ErrClosed
		}
		return l.terminals, nil
	}
	making := make(chan struct{})
	l.making = making
	l.mu.Unlock()
	var made TerminalHost
	defer func() { // also if the hook panics
		l.mu.Lock()
		l.making, l.terminals = nil, made
		late := l.closed
		l.mu.Unlock()
		close(making)
		if late && made != nil {
			c.closeTerminals(made)
		}
	}()
	made = c.client.Terminals(c)
	if made == nil {
		return nil, errors.New("acp: Client.Terminals returned no host")
	}
	return made, nil
}

// made returns the host of terminals, if there is one.
func (l *clientLent) made() TerminalHost {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.terminals
}

// close closes the host of terminals, if there is one; none is made after that.
func (l *clientLent) close(c *ClientConn) {
	l.mu.Lock()
	l.closed = true
	made := l.terminals
	l.mu.Unlock()
	if made != nil {
		c.closeTerminals(made)
	}
}

func (c *ClientConn) closeTerminals(t TerminalHost) {
	c.hook("TerminalHost.Close", func() {
		if err := t.Close(); err != nil {
			c.client.Logger.Error("acp: close terminals", "error", err)
		}
	})
}
