package backend

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/mcp"
	"github.com/goacp/acp/cmd/acp/internal/relay"
	"github.com/goacp/acp/cmd/acp/internal/remembered"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// A link is one connection: what is lent to an agent belongs to that connection alone.
type link struct {
	host     *Host
	tag      string // how the ids of its terminals begin
	conn     *acp.ClientConn
	stderr   *stderrLines
	local    *acp.InProcessTransport // to the built-in agent, or nil
	once     sync.Once
	closed   error
	replaced bool          // another one replaces it; guarded by the host's mu
	settled  chan struct{} // closed once it has ended and the host has handled that
	loops    mcp.Loops
	known    remembered.Agent // it was started as that

	mu      sync.Mutex
	mcp     []acp.MCPServer // once planned
	planned bool
	told    ignored // as far as that was reported
	unfit   uint64  // notifications that did not fit the protocol, so that they were ignored
	misfit  string  // the member that did not fit in the first of them that is not reported

	stray atomic.Bool // an answer to no request was reported
}

// dial starts the agent as it is known. env is added to its environment.
func (h *Host) dial(ctx context.Context, env map[string]string, known remembered.Agent) (*link, error) {
	l := &link{host: h, tag: strings.ToLower(rand.Text()[:6]) + "-", known: known, settled: make(chan struct{}), stderr: &stderrLines{note: h.note}}
	l.loops.Failed = func(err error) {
		h.note(Note{Kind: NoteBridged, Text: safetext.Line(err.Error(), maxNote), Err: err})
	}
	l.loops.Stderr = func(s mcp.Server) io.WriteCloser {
		return &stderrLines{note: func(n Note) {
			n.Text = safetext.Line("MCP server "+s.Name+": "+s.Hide(n.Text), maxNote)
			h.note(n)
		}}
	}
	start := &launch.Start{Agent: h.name(), Limit: h.cfg.Connect, Stderr: l.stderr.last, Ignored: func(line string) {
		h.cfg.Logger.Debug("the agent wrote a line that is not a message", "agent", h.name(), "line", safetext.Line(line, maxNote))
	}, Noticed: l.noticed}
	client := h.client(l)
	slow := time.AfterFunc(h.cfg.Slow, func() {
		h.note(Note{Kind: NoteSlow, Text: fmt.Sprintf("%s has been starting for %v and has not answered yet", h.name(), h.cfg.Slow)})
	})
	defer slow.Stop()
	transport, err := l.transport(env)
	if err == nil {
		l.conn, err = start.Connect(ctx, client, transport)
	}
	if err == nil {
		h.gateway.Store(introducedBy(l.conn.Meta()).Gateway)
	}
	if err == nil && h.cfg.Agent.Gateway && !h.gateway.Load() {
		return nil, errors.Join(exitcode.Errorf(exitcode.Usage, "%s is not a gateway: acp serve is one, unless it is started with --stateless", h.name()), l.close())
	}
	if err == nil {
		return l, nil
	}
	l.stderr.flush()
	l.release()
	if served := l.wait(); served != nil && errors.Is(err, jsonrpc.ErrClosed) {
		err = served
	}
	if ctx.Err() != nil {
		return nil, exitcode.With(exitcode.Cancelled, fmt.Errorf("starting %s: %w", h.name(), context.Cause(ctx)))
	}
	return nil, start.Failed(err)
}

// transport is the way to the agent.
func (l *link) transport(env map[string]string) (acp.Transport, error) {
	c := &l.host.cfg
	t, err := launch.Transport(c.Agent, launch.Options{
		Dir: c.Cwd, Env: env, Stderr: l.stderr, BuiltIn: c.BuiltIn, Interrupted: l.host.interrupted,
		Tool: c.Info.Name + " " + c.Info.Version, Environ: c.Environ,
	})
	l.local, _ = t.(*acp.InProcessTransport)
	if err == nil && c.Returns && c.Agent.URL != "" {
		t = &steady{t, l.host}
	}
	if err == nil && c.Agent.Gateway {
		t = acp.WrapTransport(t, l.host.leaves)
	}
	return t, err
}

// steady is a way to a gateway whose connections outlive those of the network.
type steady struct {
	way acp.Transport
	h   *Host
}

// Open implements [acp.Transport].
func (s *steady) Open(context.Context) (jsonrpc.Stream, error) {
	return relay.Steady(s.way.Open, s.h.interrupted), nil
}

// wait waits for the built-in agent, if it is that one, and returns its error.
func (l *link) wait() error {
	if l.local == nil {
		return nil
	}
	err := l.local.Wait()
	if err != nil {
		l.host.cfg.Logger.Info("the built-in agent has ended", "error", err)
	}
	return err
}

// client returns the client that the agent sees.
func (h *Host) client(l *link) *acp.Client {
	front := h.cfg.Front
	roots := append([]string{h.cfg.Cwd}, h.cfg.Roots...)
	files := acphost.Dir(roots...)
	files.PermitRead, files.PermitWrite = h.permitRead, h.permitWrite
	c := &acp.Client{
		Info:              h.cfg.Info,
		Update:            h.update,
		RequestPermission: h.requestPermission,
		Terminals: func(*acp.ClientConn) acp.TerminalHost {
			return newTerminals(l, h.cfg.Cwd, h.cfg.Roots)
		},
		ShowsTerminals: true,
		Skills:         true,
		TerminalAuth:   front.RunInTerminal != nil && h.cfg.Agent.Command != "",
		Logger:         h.cfg.Logger,
	}
	c.Cursors = front.Cursors
	if front.Suggests {
		c.Suggestions = &acp.PromptContent{}
	}
	h.speakTo(c)
	h.listen(c)
	if !h.cfg.Agent.NoFiles && !l.known.NoFiles {
		c.Files = lentFiles{files}
	}
	switch v := cmp.Or(h.cfg.Agent.Protocol, l.known.Protocol); v {
	case 1, 2:
		c.MinVersion, c.MaxVersion = v, v
	}
	if front.Elicit != nil {
		c.Elicit = func(ctx context.Context, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			var s *Session
			if req.Session != nil {
				s = h.session(req.Session)
			}
			return front.Elicit(ctx, s, req)
		}
		c.ElicitationComplete = func(_ context.Context, id acp.ElicitationID) {
			if front.ElicitDone != nil {
				front.ElicitDone(id)
			}
		}
	}
	return c
}

// kill closes the link without waiting for the agent's process to end by itself.
func (l *link) kill() error {
	_ = l.conn.Kill() // always nil
	return l.close()
}

// close ends the connection and what belongs to it.
func (l *link) close() error {
	l.once.Do(func() {
		l.closed = l.conn.Close()
		<-l.conn.Done()
		l.release()
		_ = l.wait() // it is logged
	})
	return l.closed
}

// release ends what the connection does not.
func (l *link) release() {
	if err := l.loops.Close(); err != nil {
		l.host.cfg.Logger.Error("closing what was lent to an agent", "error", err)
	}
	l.stderr.flush()
}

// servers returns the MCP servers of sessions, in the form in which the agent of this connection
// gets them.
func (l *link) servers() ([]acp.MCPServer, error) {
	h := l.host
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.planned {
		return l.mcp, nil
	}
	list, bridged, err := mcp.Plan(h.cfg.MCP, mcp.OffersOf(l.conn), mcp.Options{
		Agent: h.name(), Dir: h.cfg.Cwd, Connect: h.cfg.MCPConnect, Loops: &l.loops,
	})
	if err != nil {
		return nil, exitcode.With(exitcode.Usage, err)
	}
	for _, b := range bridged {
		h.note(Note{Kind: NoteBridged, Text: safetext.Line(b.String(), maxNote)})
	}
	l.mcp, l.planned = list, true
	return list, nil
}
