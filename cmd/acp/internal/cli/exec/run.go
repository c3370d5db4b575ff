package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// Run starts the agent, runs one turn and writes its result. The error carries the exit status.
func Run(ctx context.Context, o *Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.Timeout > 0 {
		timer := time.AfterFunc(o.Timeout, func() {
			cancel(exitcode.Errorf(exitcode.Timeout, "the time limit of %s was reached", o.Timeout))
		})
		defer timer.Stop()
	}
	defer o.works()()
	if c := o.MaxCost; c.Set && (c.Currency == "" || strings.EqualFold(c.Currency, "USD")) { // another agent is cancelled when it says its cost
		o.App.SessionCost = c.Amount
	}
	r := newReport(o)
	r.stop = cancel
	t := &turn{o: o, report: r}
	if o.NoWait {
		return t.leave(ctx)
	}
	res, err := t.run(ctx)
	if t.session != nil && ctx.Err() != nil && t.host.Cut() {
		r.note(backend.Note{Kind: backend.NoteOutage, Text: "there is no connection, so the turn may continue; to end it: acp cancel --at " +
			roster.Quote(o.At) + " " + string(t.session.ID())})
	}
	if t.host != nil {
		// Close waits for the agent's last updates, for a bounded time.
		if e := t.host.Close(); e != nil && err == nil && context.Cause(ctx) == nil {
			o.App.Logger.Warn("closing the agent", "err", e)
		}
	}
	if err != nil || res != nil {
		err = r.ends(ctx, res, err, o.DenyOK)
	}
	return r.finish(t.session, res, err)
}

// works shows on standard error that the agent works, if that is a terminal on which nothing is asked,
// until stop is called.
func (o *Options) works() (stop func()) {
	a := o.App
	if !a.ErrTerminal || o.Quiet || o.Ask || os.Getenv("TERM") == "dumb" {
		return func() {}
	}
	out, err := a.Out, a.Err
	s := startWorking(err)
	a.Out, a.Err = s.through(out, a.OutTerminal), s.through(err, true)
	return func() {
		s.end()
		a.Out, a.Err = out, err
	}
}

// A turn holds what is opened for the turn. host and session are nil until then.
type turn struct {
	o       *Options
	report  *report
	host    *backend.Host
	session *backend.Session
	kept    chan struct{} // gets a value once the gateway has the prompt; with --no-wait
}

// limitGrace is how long an agent may take to end its turn after a limit is reached or the output
// has lost its reader. It applies to interrupts only while there is no connection, because the user can send a second one.
const limitGrace = 3 * time.Second

// killLate kills the agent if it does not end its turn within [limitGrace] after ctx has ended at a
// limit, or while there is no connection to it. stop ends the watch.
func killLate(ctx context.Context, h *backend.Host) (stop func()) {
	ended := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), context.Canceled) && !h.Cut() {
			return
		}
		timer := time.NewTimer(limitGrace)
		defer timer.Stop()
		select {
		case <-timer.C:
			h.Kill()
		case <-ended:
		}
	})
	return func() { forget(); close(ended) }
}

// run returns the result of the turn.
func (t *turn) run(ctx context.Context) (*acp.Result, error) {
	blocks, done, err := t.prepare(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	defer killLate(ctx, t.host)()
	if has, err := t.steer(ctx, blocks); has || err != nil {
		return nil, err
	}
	return t.session.Prompt(ctx, blocks...)
}

// steer gives the prompt to the turn that runs. It reports whether that has it; otherwise it is to be sent as a prompt.
func (t *turn) steer(ctx context.Context, blocks []acp.ContentBlock) (has bool, err error) {
	if !t.o.Steer {
		return false, nil
	}
	outcome, err := t.session.Steer(ctx, blocks...)
	switch {
	case acp.IsSteerRefused(err): // the prompt waits for its turn
		return false, nil
	case err != nil:
		return false, err
	case outcome == acp.SteerPromptRequired || outcome == acp.SteerQueued:
		return false, nil
	}
	t.report.steered(outcome)
	return true, nil
}

// prepare opens the session and returns the prompt. Files and standard input are read before the agent starts, so
// that a wrong name costs nothing. done must be called after the turn.
func (t *turn) prepare(ctx context.Context) (blocks []acp.ContentBlock, done func(), err error) {
	o, a := t.o, t.o.App
	cfg, err := a.Config()
	if err != nil {
		return nil, nil, err
	}
	agent, err := o.agent(ctx)
	if err != nil {
		return nil, nil, err
	}
	files, err := o.attachments()
	if err != nil {
		return nil, nil, err
	}
	text, err := o.promptText(ctx)
	if err != nil {
		return nil, nil, err
	}
	t.report.suggest = suggester(cfg.Permissions, a.Cwd)
	for _, left := range a.LeftOut() {
		fmt.Fprintln(a.Err, "acp: "+safetext.Line(left, 500))
	}
	front := backend.Frontend{Changed: t.report.changed, Decided: t.report.decided, Note: t.report.note,
		Unheld: t.report.isUnheld, Broken: t.report.isBroken, Cursors: o.JSON}
	done = func() {}
	switch {
	case o.Ask:
		tty, err := openTerminal()
		if err != nil {
			return nil, nil, exitcode.Errorf(exitcode.Usage, "--ask needs a terminal: %w", err)
		}
		defer func() {
			if err != nil {
				tty.close()
			}
		}()
		done, front.Ask = tty.close, tty.ask
	case o.NoWait:
		t.stay(&front)
	case agent.Gateway: // what others have asked for is for them to permit
		front.Aside = t.report.isBehind
	}
	id, err := o.sessionToContinue(ctx, agent)
	if err != nil {
		return nil, nil, err
	}
	a.By, a.Returns = "exec", true
	if t.host, err = a.Open(ctx, agent, front); err != nil {
		return nil, nil, err
	}
	if agent.Gateway {
		if id, err = o.sessionAt(ctx, t.host.Conn()); err != nil {
			return nil, nil, err
		}
	}
	if id != "" && t.host.Begins() {
		t.report.follows()
	}
	how := acp.RestoredNew
	if id == "" {
		t.session, err = t.host.NewSession(ctx)
	} else {
		t.session, how, err = t.restore(ctx, agent, id)
	}
	if err != nil {
		return nil, nil, err
	}
	if unset := t.session.Unset(); len(unset) > 0 {
		return nil, nil, unset[0]
	}
	conn := t.host.Conn()
	unheld, program := t.host.Unheld(), conn.Agent()
	if agent.Gateway { // which is not who works
		program = t.host.Introduced()
	}
	t.report.begin(t.session.ID(), sessionLine{
		Type: "session", Version: formVersion, Session: string(t.session.ID()),
		Agent:    agentInfo{Name: agent.Name, Program: program.Name, Version: program.Version},
		Protocol: conn.Version(), Cwd: a.Cwd, Restored: how.String(), Untrusted: a.Untrusted(), LeftOut: a.LeftServers(), Unheld: unheld, Unasked: t.session.Unasked(),
	})
	var can *acpv2.PromptCapabilities
	if s := conn.Capabilities().Session; s != nil {
		can = s.Prompt
	}
	blocks, notes := content(text, files, can)
	for _, note := range notes {
		fmt.Fprintln(a.Err, "acp: "+safetext.Line(note, 500))
	}
	return blocks, done, nil
}

// restore continues a session. With --or-new, any error that the agent answers with leads to a new
// session, except that a login is required: agents report an unknown session in many ways.
func (t *turn) restore(ctx context.Context, agent roster.Agent, id acp.SessionID) (*backend.Session, acp.Restored, error) {
	s, how, err := t.host.Restore(ctx, id)
	switch _, answered := errors.AsType[*jsonrpc.Error](err); {
	case err == nil && how == acp.RestoredNew && !t.o.OrNew:
		return nil, 0, exitcode.Errorf(exitcode.Failed, "%s cannot resume session %s; --or-new starts a new one", agent.Name, cmp.Or(t.o.Session, string(id)))
	case !answered || exitcode.Of(err) == exitcode.Auth:
		return s, how, err
	case !t.o.OrNew:
		return nil, 0, exitcode.With(exitcode.Of(err), fmt.Errorf("%w; use --or-new to start a new session instead", err))
	}
	t.report.note(backend.Note{Kind: backend.NoteStore, Text: err.Error() + "; starting a new session"})
	s, err = t.host.NewSession(ctx)
	return s, acp.RestoredNew, err
}

// sessionToContinue returns the session to continue, or "" for a new one.
func (o *Options) sessionToContinue(ctx context.Context, agent roster.Agent) (acp.SessionID, error) {
	if o.Session == "" && !o.Continue || agent.Gateway {
		return "", nil
	}
	id, err := o.App.Earlier(ctx, agent, o.Session)
	if errors.Is(err, app.ErrNoEarlier) {
		if o.OrNew {
			return "", nil
		}
		err = fmt.Errorf("%w; --or-new starts one", err)
	}
	return id, err
}
