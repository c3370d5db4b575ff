package tui

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/transcript"
)

// A link is what the screen needs of a connection to an agent. [hostLink] is the real one; tests
// have their own.
type link interface {
	Agent() acp.Implementation
	Version() int
	Takes() acp.PromptContent
	NewSession(ctx context.Context) (talk, error)
	Restore(ctx context.Context, id acp.SessionID) (talk, acp.Restored, error)
	Sessions(ctx context.Context, cwd string) ([]acp.SessionInfo, error)
	Forks() bool
	Session(id acp.SessionID) (talk, bool)
	Done() <-chan struct{}
	Err() error
	Close() error
	Kill()
}

// A talk is what the screen needs of a session.
type talk interface {
	ID() acp.SessionID
	Snapshot() *transcript.Snapshot
	Options() []acp.SessionConfigOption
	Commands() []acp.AvailableCommand
	Suggestions() []acpv2.PromptSuggestion
	SetOption(ctx context.Context, id acp.SessionConfigID, v acp.SessionConfigOptionValue) error
	Unset() []error
	Cursors() []acpv2.CursorUpdate
	Fork(ctx context.Context, at acpv2.CursorID) (talk, error)
	Title() string
	SetTitle(ctx context.Context, title string) error
	Prompt(ctx context.Context, content ...acp.ContentBlock) (*acp.Result, error)
	Steer(ctx context.Context, content ...acp.ContentBlock) (acp.SteerOutcome, error)
	Cancel(ctx context.Context) error
	Running() []*transcript.Terminal
	StopTerminal(ctx context.Context, id acp.TerminalID) error
	Leave(ctx context.Context) error
}

// hostLink adapts a host to link.
type hostLink struct{ *backend.Host }

func (l hostLink) Agent() acp.Implementation { return l.Introduced() }

func (l hostLink) Version() int {
	if c := l.Conn(); c != nil {
		return c.Version()
	}
	return 0
}

func (l hostLink) Takes() (p acp.PromptContent) {
	c := l.Conn()
	if c == nil {
		return p
	}
	if s := c.Capabilities().Session; s != nil && s.Prompt != nil {
		p.Image = s.Prompt.Image != nil
		p.Audio = s.Prompt.Audio != nil
		p.EmbeddedContext = s.Prompt.EmbeddedContext != nil
	}
	return p
}

func (l hostLink) NewSession(ctx context.Context) (talk, error) {
	s, err := l.Host.NewSession(ctx)
	if err != nil {
		return nil, err
	}
	return hostTalk{s}, nil
}

func (l hostLink) Restore(ctx context.Context, id acp.SessionID) (talk, acp.Restored, error) {
	s, how, err := l.Host.Restore(ctx, id)
	if err != nil {
		return nil, how, err
	}
	return hostTalk{s}, how, nil
}

// maxListed bounds the sessions that are read from the store and from the agent.
const maxListed = 500

func (l hostLink) Sessions(ctx context.Context, cwd string) ([]acp.SessionInfo, error) {
	var all []acp.SessionInfo
	c := l.Conn()
	if c == nil {
		return nil, errors.ErrUnsupported
	}
	for s, err := range c.ListSessions(ctx, acp.ListOptions{Cwd: cwd}) {
		if err != nil {
			return all, fmt.Errorf("asking the agent for its sessions: %w", err)
		}
		if all = append(all, s); len(all) == maxListed {
			break
		}
	}
	return all, nil
}

func (l hostLink) Session(id acp.SessionID) (talk, bool) {
	s, ok := l.Host.Session(id)
	if !ok || s == nil {
		return nil, false
	}
	return hostTalk{s}, true
}

// hostTalk adapts a session to talk.
type hostTalk struct{ *backend.Session }

func (t hostTalk) Options() []acp.SessionConfigOption {
	if o := t.Snapshot().Session().ConfigOptions; o != nil {
		return o
	}
	if c := t.Client(); c != nil {
		return c.Options()
	}
	return nil
}

func (t hostTalk) Commands() []acp.AvailableCommand {
	if c := t.Snapshot().Session().Commands; c != nil {
		return c
	}
	if c := t.Client(); c != nil {
		return c.Commands()
	}
	return nil
}

func (t hostTalk) Fork(ctx context.Context, at acpv2.CursorID) (talk, error) {
	s, err := t.Session.Fork(ctx, at)
	if err != nil {
		return nil, err
	}
	return hostTalk{s}, nil
}

func (t hostTalk) SetOption(ctx context.Context, id acp.SessionConfigID, v acp.SessionConfigOptionValue) error {
	if t.Client() == nil {
		return errors.ErrUnsupported
	}
	return t.Session.SetOption(ctx, id, v) // the session also updates the screen: an agent may report the new value in its answer only
}

// frontend returns f as the hooks of a host.
func (f *front) frontend() backend.Frontend {
	return backend.Frontend{
		Suggests: true, Cursors: true,
		Changed: func(s *backend.Session, changes []transcript.Change) { f.changed(s.ID(), changes) },
		Ask: func(ctx context.Context, s *backend.Session, req acphost.Request) (acp.PermissionOptionID, error) {
			var shown *transcript.Snapshot
			if s != nil {
				shown = s.Snapshot()
			}
			return f.ask(ctx, shown, req)
		},
		Elicit: func(ctx context.Context, _ *backend.Session, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			return f.elicit(ctx, req)
		},
		ElicitDone:    f.elicitDone,
		ChooseLogin:   f.chooseLogin,
		RunInTerminal: func(ctx context.Context, cmd *exec.Cmd) error { return f.runInTerminal(ctx, cmd) },
		Note:          f.note,
	}
}
