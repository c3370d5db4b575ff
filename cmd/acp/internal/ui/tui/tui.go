// Package tui is the full-screen conversation with an agent.
//
// It is one Bubble Tea model, which owns all state of the screen. Everything that may take time is
// a command of that model. The backend's calls arrive as messages and are collected, so that a
// burst of updates costs one message per frame of 24 ms. Package view draws the transcript;
// everything else is drawn here. All text that an agent can influence passes through package
// safetext first.
//
// Layout takes at most 8 ms at a time, so that keys are never delayed by a long conversation. A
// prompt has at most 16 MiB and 64 mentioned files.
package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// Options are the parameters of a conversation. Agent is required. App is required, too, except in
// tests that set the unexported fields.
type Options struct {
	App   *app.App
	Agent roster.Agent
	// Session is the session to continue; "" means a new one.
	Session acp.SessionID
	// Prompt is sent as soon as the session is open, unless it is "".
	Prompt string
	// In and Out are the terminal; nil means standard input and output.
	In, Out *os.File
	// StateDir is the directory for the history of what the user types; "" means that of the
	// settings of App. If they say that nothing is kept, there is no history.
	StateDir string
	// NoBell disables the bell, which rings when the agent needs the user and the terminal
	// does not have the focus.
	NoBell bool

	// These come from the App; tests set them.
	open   func(ctx context.Context, agent roster.Agent, f *front) (link, error)
	store  func(ctx context.Context) (*store.Store, error)
	policy func() (*acphost.Policy, error)
	// addRule adds a permission rule, and ruleFile returns where one is written.
	addRule  func(effect acphost.Effect, rule string, scope app.RuleScope) (said string, err error)
	ruleFile func(scope app.RuleScope) (string, error)
	ui       *config.UI
	cwd      string
}

// closing bounds how long leaving waits for the agent to exit. The host kills it long before that.
const closing = 15 * time.Second

// Run holds a conversation until the user leaves, ctx is done, or a signal asks the process to end.
// In all of these cases, and after a panic in this package, the terminal is restored. The agent has
// exited when Run returns.
func Run(ctx context.Context, o Options) error {
	if err := o.setDefaults(); err != nil {
		return err
	}
	if _, err := boundActions(o.ui.Keys); err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	defer spread()()
	m := newModel(ctx, o)
	p := tea.NewProgram(m,
		tea.WithContext(ctx),
		tea.WithInput(&keyboard{File: o.In}), tea.WithOutput(&filled{File: o.Out}),
		// Signals cancel ctx, which ends the program in the same way.
		tea.WithoutSignalHandler(),
	)
	m.front.send = p.Send
	if o.App != nil {
		// What other packages write to standard error appears as remarks on the screen.
		was := o.App.Err
		o.App.Err = &remarks{send: p.Send}
		defer func() { o.App.Err = was }()
	}
	// Push and pop the window title. Terminals without a stack of titles ignore this.
	fmt.Fprint(o.Out, "\x1b[22;0t")
	_, err := p.Run()
	fmt.Fprint(o.Out, "\x1b[23;0t")
	m.end()
	switch {
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("the screen failed because of a defect in acp (see above): %w", err)
	case ctx.Err() != nil:
		return exitcode.Errorf(exitcode.Cancelled, "ended by a signal")
	case err != nil:
		return fmt.Errorf("drawing on the terminal: %w", err)
	}
	m.farewell()
	return nil
}

// threads is the minimum of GOMAXPROCS while the screen is visible.
const threads = 4

// spread raises GOMAXPROCS above the number of processors of a small machine, until back is called.
// In a burst of updates the agent, the store and the fold all have work, some of it in system calls
// that wait for the disk. With one thread per processor, the screen would wait behind them for tens
// of milliseconds. Among more threads the operating system prefers the one that has slept most,
// which is the screen's. A GOMAXPROCS in the environment is respected.
func spread() (back func()) {
	n := runtime.GOMAXPROCS(0)
	if n >= threads || os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	runtime.GOMAXPROCS(threads)
	return func() { runtime.GOMAXPROCS(n) }
}

// remarks is a writer whose lines become remarks below the transcript. Its methods may be called
// from any goroutine.
type remarks struct {
	send func(tea.Msg)
	mu   sync.Mutex
	line []byte
}

// maxRemark bounds a line, in bytes; the rest is dropped.
const maxRemark = 4096

// Write implements io.Writer. It never fails and never waits.
func (r *remarks) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range p {
		if c != '\n' {
			if len(r.line) < maxRemark {
				r.line = append(r.line, c)
			}
			continue
		}
		text := strings.TrimPrefix(string(r.line), "acp: ")
		r.line = r.line[:0]
		go r.send(wroteMsg{text})
	}
	return len(p), nil
}

type wroteMsg struct{ text string }

// setDefaults sets unset options from the App.
func (o *Options) setDefaults() error {
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.open == nil {
		o.open = func(ctx context.Context, agent roster.Agent, f *front) (link, error) {
			h, err := o.App.Open(ctx, agent, f.frontend())
			if err != nil {
				return nil, err
			}
			return hostLink{h}, nil
		}
	}
	if o.store == nil && o.App != nil {
		o.store = o.App.Store
	}
	if o.policy == nil && o.App != nil {
		o.policy = o.App.Policy
	}
	if o.addRule == nil && o.App != nil {
		o.addRule, o.ruleFile = o.App.AddRule, o.App.RuleFile
	}
	if o.cwd == "" && o.App != nil {
		o.cwd = o.App.Cwd
	}
	if o.ui == nil {
		if o.App == nil {
			o.ui = &config.UI{Mouse: true}
			return nil
		}
		cfg, err := o.App.Config()
		if err != nil {
			return err
		}
		o.ui = &cfg.UI
		o.NoBell = o.NoBell || !cfg.UI.Notify
		if o.StateDir = cmp.Or(o.StateDir, cfg.Dirs.State); cfg.Store.Off {
			o.StateDir = ""
		}
	}
	return nil
}

// end ends everything that the model has started.
func (m *model) end() {
	if m.opt.Agent.Gateway && m.link != nil { // before anything is dismissed: who leaves decides nothing
		m.link.Kill()
	}
	m.cancel()
	m.dismissAll()
	m.kept.close()
}

// A keeper knows every agent that was started, including those whose start the loop has not handled
// when it ends. Without it, such an agent would outlive the program. Its methods may be called from
// any goroutine.
type keeper struct {
	mu     sync.Mutex
	closed bool
	links  []link
	begun  sync.WaitGroup
}

// begin announces the start of an agent; a call of addLink must follow. It returns false after
// close.
func (k *keeper) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	k.begun.Add(1)
	return true
}

// addLink adds a started agent. l is nil if the start has failed.
func (k *keeper) addLink(l link) {
	k.mu.Lock()
	if l != nil {
		k.links = append(k.links, l)
	}
	k.mu.Unlock()
	k.begun.Done()
}

// close ends all agents. After [closing] it kills them.
func (k *keeper) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.begun.Wait()
		for _, l := range k.links {
			_ = l.Close()
		}
	}()
	select {
	case <-done:
	case <-time.After(closing):
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, l := range k.links {
			l.Kill()
		}
	}
}

// farewell prints the command that resumes the conversation.
func (m *model) farewell() {
	if m.talk == nil || m.sent == 0 {
		return
	}
	if m.unsaved != "" {
		fmt.Fprintf(m.opt.Out, "Part of the conversation was not saved: %s\n", m.unsaved)
	}
	if m.opt.Agent.Gateway {
		fmt.Fprintln(m.opt.Out, app.Return(m.opt.Agent, m.talk.ID(), m.busy()))
		return
	}
	fmt.Fprintf(m.opt.Out, "To resume this conversation: %s chat %s --session %s\n",
		one(roster.Join(app.Program(os.Environ()))), one(roster.Quote(m.opt.Agent.Name)), one(roster.Quote(string(m.talk.ID()))))
}
