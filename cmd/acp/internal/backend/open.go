package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

const (
	defaultConnect = 60 * time.Second
	defaultSlow    = 3 * time.Second
)

// A Host is a connection to an agent with everything that the settings say. Its methods may be
// called from any goroutine. Close ends the agent.
type Host struct {
	cfg    Config
	policy *acphost.Policy
	keeper *keeper
	behind atomic.Pointer[acp.Implementation] // the agent of a gateway's session that was opened last; nil if it is not known

	// life ends with Close and Kill, which thereby end what is being started.
	life context.Context
	stop context.CancelFunc

	// opening is held for reading while a session is opened, and for writing while the agent is
	// restarted, so that neither happens in the middle of the other.
	opening sync.RWMutex
	// loggingIn is held during a login.
	loggingIn sync.Mutex

	mu       sync.Mutex
	link     *link
	sessions map[acp.SessionID]*Session
	closed   bool
	err      error
	done     chan struct{}     // closed when the agent has ended for good
	killed   chan struct{}     // closed when nothing is waited for any longer
	mute     atomic.Bool       // nothing more is said to a gateway
	over     bool              // Close waits for the watchers, and no more are started
	logins   int               // that were made
	env      map[string]string // that the agent was started with in addition
	watchers sync.WaitGroup

	elsewhere elsewhere
	cut       atomic.Bool                    // the network fails
	auth      atomic.Pointer[acp.AuthStatus] // as the agent has pushed it, or nil
	gateway   atomic.Bool                    // what answers is a gateway, also where it is used like any agent
}

// Open starts the agent and agrees on a version. When it fails, nothing keeps running.
func Open(ctx context.Context, cfg Config) (*Host, error) {
	cfg.Connect = cmp.Or(cfg.Connect, defaultConnect)
	cfg.Slow = cmp.Or(cfg.Slow, defaultSlow)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Host{
		cfg:      cfg,
		policy:   cfg.Policy,
		sessions: map[acp.SessionID]*Session{},
		done:     make(chan struct{}),
		killed:   make(chan struct{}),
	}
	h.life, h.stop = context.WithCancel(context.Background())
	if h.policy == nil {
		h.policy = new(acphost.Policy)
	}
	h.keeper = &keeper{store: cfg.Store, note: h.note, killed: h.killed}
	h.note(Note{Kind: NoteStarting, Text: "starting " + h.name()})
	l, err := h.connect(ctx, nil)
	if err != nil {
		h.stop()
		return nil, err
	}
	h.link = l
	h.watch(l)
	h.note(Note{Kind: NoteReady, Text: h.name() + " is ready"})
	return h, nil
}

// name returns the agent as users know it.
func (h *Host) name() string { return h.cfg.Agent.Name }

// maxNote bounds the text of a note, in cells.
const maxNote = 500

func (h *Host) note(n Note) {
	if f := h.cfg.Front.Note; f != nil {
		f(n)
	}
}

// apart runs f, which may block, unless the host is being closed.
func (h *Host) apart(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.watchers.Go(f)
	}
}

// watch waits for the end of a connection.
func (h *Host) watch(l *link) {
	h.watchers.Go(func() {
		defer close(l.settled)
		<-l.conn.Done()
		err := l.conn.Wait()
		l.release()
		h.mu.Lock()
		defer h.mu.Unlock()
		if l.replaced {
			return
		}
		if h.closed {
			h.end(ErrClosed)
			return
		}
		if err == nil {
			err = jsonrpc.ErrClosed
		}
		code := exitcode.Agent
		if remote.IsUnauthorized(err) { // the server did not let this machine return
			code = exitcode.Auth
		}
		h.end(exitcode.With(code, fmt.Errorf("%s has ended: %w", h.name(), err)))
	})
}

// end records that the agent has ended for good. The caller holds mu.
func (h *Host) end(err error) {
	select {
	case <-h.done:
		return
	default:
	}
	h.err = err
	close(h.done)
	if !h.closed {
		h.watchers.Go(func() {
			h.note(Note{Kind: NoteEnded, Text: safetext.Line(err.Error(), maxNote), Err: err})
		})
	}
}

// Conn returns the current connection, which a login may replace.
func (h *Host) Conn() *acp.ClientConn { return h.current().conn }

func (h *Host) current() *link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.link
}

// Done is closed when the agent has ended, or when Close was called.
func (h *Host) Done() <-chan struct{} { return h.done }

// Err returns why the agent has ended, or nil while it runs.
func (h *Host) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// ErrClosed is what [Host.Err] returns when the Host was closed.
var ErrClosed = errors.New("closed")

// Close ends the agent, after everything it has sent is in the store. It may be called more than
// once.
func (h *Host) Close() error {
	h.mute.Store(true)
	h.mu.Lock()
	first := !h.closed
	h.closed = true
	h.stop()
	h.mu.Unlock()
	if !first {
		<-h.done
		return nil
	}
	h.finishJournals()
	err := h.current().close() // what is being opened fails
	h.opening.Lock()           // and nothing else is opened
	l := h.current()
	h.opening.Unlock()
	if later := l.close(); err == nil { // a login may have started another one
		err = later
	}
	h.mu.Lock()
	h.end(ErrClosed)
	sessions := h.sessions
	h.sessions = map[acp.SessionID]*Session{}
	h.mu.Unlock()
	for _, s := range sessions {
		s.endPast()
		s.journal.close()
	}
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	h.watchers.Wait()
	return err
}

// finishJournals keeps hooks from waiting for a disk that does not answer, since closing the
// connection waits for hooks.
func (h *Host) finishJournals() {
	h.mu.Lock()
	sessions := slices.Collect(maps.Values(h.sessions))
	h.mu.Unlock()
	for _, s := range sessions {
		s.journal.finish()
	}
}

// Kill ends the agent at once, even while Close waits for its turn or for its process to end. Kill
// itself returns immediately; [Host.Done] is closed when the agent has ended, and Close must still
// be called.
func (h *Host) Kill() {
	h.mute.Store(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.killed:
		return
	default:
		close(h.killed)
	}
	h.stop()
	if l := h.link; !h.over {
		h.watchers.Go(func() { _ = l.kill() })
	}
}

// coded gives errors of calls the exit status of the program.
func (h *Host) coded(what string, err error) error {
	if err == nil {
		return nil
	}
	code := exitcode.Failed
	var said *jsonrpc.Error
	var auth *AuthError
	var has *exitcode.Error
	switch {
	case errors.As(err, &has):
		return err
	case errors.As(err, &auth):
		return exitcode.With(exitcode.Auth, err)
	case h.refused(err) != "":
		return &launch.PlainError{Text: what + ": " + h.refused(err), Err: exitcode.With(exitcode.Protocol, err)}
	case errors.As(err, &said):
		code = exitcode.Protocol
		if h.cfg.Agent.Gateway {
			return &launch.PlainError{Text: what + ": " + words(said), Err: exitcode.With(code, err)}
		}
		return exitcode.Errorf(code, "%s: %s answered: %w", what, h.name(), err)
	case errors.Is(err, jsonrpc.ErrInvalidResponse):
		code = exitcode.Protocol
	case errors.Is(err, jsonrpc.ErrClosed):
		if why := remote.Explain(h.name(), err); why != nil && remote.IsUnauthorized(err) {
			return why
		}
		return exitcode.With(exitcode.Agent, h.left(what, err))
	case errors.Is(err, context.DeadlineExceeded):
		code = exitcode.Timeout
	case errors.Is(err, context.Canceled):
		code = exitcode.Cancelled
	}
	return exitcode.Errorf(code, "%s: %w", what, err)
}

// left returns how the agent has ended in the middle of something, if it has. A connection can also
// end for other reasons, whose errors explain themselves.
func (h *Host) left(what string, err error) error {
	if broken, ok := errors.AsType[*acphttp.BrokenError](err); ok {
		text := fmt.Sprintf("%s: the connection to %s broke: %s; the agent may have done what it was asked", what, h.name(), safetext.Line(broken.Err.Error(), maxNote))
		return &launch.PlainError{Text: text, Err: err}
	}
	how, stderr := "", ""
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		how, stderr = launch.HowEnded(exit), exit.Stderr
	} else if running, ok := errors.AsType[*process.StillRunningError](err); ok {
		how, stderr = "closed its output, and had not ended", running.Stderr
	} else if errors.Is(err, io.EOF) {
		how = "ended, without an error"
	}
	if why := process.Reason(stderr); why != "" {
		how += ": " + safetext.Line(why, maxNote)
	}
	if how == "" {
		return fmt.Errorf("%s: %w", what, err)
	}
	return &launch.PlainError{Text: fmt.Sprintf("%s: %s %s", what, h.name(), how), Err: err}
}
