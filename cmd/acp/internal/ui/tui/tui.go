// Package tui is the conversation with an agent on a terminal's whole screen.
//
// It is one Bubble Tea model. Whatever may take time is a command of that
// model; what the host tells comes as messages, collected so that a burst costs
// one message a frame. The transcript is drawn by package view; everything else
// on the screen is drawn here, and every text that an agent has a say in goes
// through package safetext first.
package tui

import (
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

// Options say what to talk about with whom. Agent is required, and App unless
// everything that would come from it is given.
type Options struct {
	App   *app.App
	Agent roster.Agent
	// Session is the session to go on with; "" opens a new one.
	Session acp.SessionID
	// Prompt is sent as soon as there is a session, unless it is "".
	Prompt string
	// In and Out are the terminal; nil is standard input and output.
	In, Out *os.File
	// StateDir is where what the user typed is remembered; "" is the XDG
	// directory.
	StateDir string
	// NoBell keeps the terminal from ringing when the user is wanted and looks
	// elsewhere.
	NoBell bool

	// What comes from the App, for tests.
	open   func(ctx context.Context, f *front) (link, error)
	store  func(ctx context.Context) (*store.Store, error)
	policy func() (*acphost.Policy, error)
	ui     *config.UI
	cwd    string
}

// closing bounds how long leaving waits for the agent to end; the host has
// ended it by force long before.
const closing = 15 * time.Second

// Run holds a conversation until the user leaves, ctx ends, or a signal that
// asks programs to end arrives. The terminal is restored on all of these ways,
// and when something here panics. The agent has ended when Run returns.
func Run(ctx context.Context, o Options) error {
	if err := o.fill(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	defer spread()()
	m := newModel(ctx, o)
	p := tea.NewProgram(m,
		tea.WithContext(ctx),
		tea.WithInput(o.In), tea.WithOutput(o.Out),
		// Signals end ctx, which is the same thing for everything else.
		tea.WithoutSignalHandler(),
	)
	m.front.send = p.Send
	if o.App != nil {
		// What others would write to the terminal is shown on the screen.
		was := o.App.Err
		o.App.Err = &remarks{send: p.Send}
		defer func() { o.App.Err = was }()
	}
	// The terminal keeps its title on a stack; those without one ignore this.
	fmt.Fprint(o.Out, "\x1b[22;0t")
	_, err := p.Run()
	fmt.Fprint(o.Out, "\x1b[23;0t")
	m.end()
	switch {
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("the screen failed, which is a defect of acp (see above): %w", err)
	case ctx.Err() != nil:
		return exitcode.Errorf(exitcode.Cancelled, "ended by a signal")
	case err != nil:
		return fmt.Errorf("draw on the terminal: %w", err)
	}
	m.farewell()
	return nil
}

// threads is how many threads run Go code at least while there is a screen.
const threads = 4

// spread lets more threads run than a small machine has processors, until the function it returns is
// called. In a burst of updates the agent, the store and the fold all have work, some of it in system
// calls that wait for the disk. With a thread for each processor the screen waits its turn after theirs,
// for tens of milliseconds; among more threads the system picks the one that has slept most, which is
// the screen. GOMAXPROCS in the environment is left alone.
func spread() (back func()) {
	n := runtime.GOMAXPROCS(0)
	if n >= threads || os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	runtime.GOMAXPROCS(threads)
	return func() { runtime.GOMAXPROCS(n) }
}

// remarks is a writer whose lines are shown below the transcript.
type remarks struct {
	send func(tea.Msg)
	mu   sync.Mutex
	line []byte
}

// maxRemark bounds a line, in bytes.
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

// fill puts in what the App says.
func (o *Options) fill() error {
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.open == nil {
		o.open = func(ctx context.Context, f *front) (link, error) {
			h, err := o.App.Open(ctx, o.Agent, f.frontend())
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
	}
	return nil
}

// end ends everything that the model has started.
func (m *model) end() {
	m.cancel()
	m.dismissAll()
	m.kept.close()
}

// A keeper knows every agent that was started, also those that the loop has not
// heard of when it ends.
type keeper struct {
	mu     sync.Mutex
	closed bool
	links  []link
	begun  sync.WaitGroup
}

// begin says that an agent is about to be started; add has to follow. It
// returns false when it is too late for that.
func (k *keeper) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	k.begun.Add(1)
	return true
}

// add keeps what was started; nil if that failed.
func (k *keeper) add(l link) {
	k.mu.Lock()
	if l != nil {
		k.links = append(k.links, l)
	}
	k.mu.Unlock()
	k.begun.Done()
}

// close ends all agents, in bounded time.
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

// farewell says how to go on later.
func (m *model) farewell() {
	if m.talk == nil || m.sent == 0 {
		return
	}
	if m.unsaved != "" {
		fmt.Fprintf(m.opt.Out, "When the screen was closed not all was written: %s\n", m.unsaved)
	}
	fmt.Fprintf(m.opt.Out, "To go on with this conversation: acp chat %s --session %s\n",
		one(roster.Quote(m.opt.Agent.Name)), one(roster.Quote(string(m.talk.ID()))))
}
