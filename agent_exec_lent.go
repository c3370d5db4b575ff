package acp

import (
	"context"
	"encoding/base64"
	"errors"
	"sync"

	"github.com/goacp/acp/acpv2"
)

// A lentTerminal is a terminal of a client's. The agent and what it records call it
// by the id of its [Terminal]: the client's may come again in another connection.
type lentTerminal struct {
	host clientTerminals
	id   TerminalID // the client's

	mu       sync.Mutex
	exit     *TerminalExitStatus // once it is known
	final    *TerminalState      // what the terminal showed after the end, or nil
	released bool
}

// runLent is run in a terminal of the client's.
func (o *Output) runLent(host clientTerminals, e Exec, show func(TerminalID) error) (*Terminal, error) {
	id, err := host.start(o.ctx, o.s, &e)
	if err != nil {
		if cause := context.Cause(o.ctx); cause != nil {
			err = cause // what the client answers to that says nothing
		}
		return nil, err
	}
	t := &Terminal{o: o, id: e.ID, lent: &lentTerminal{host: host, id: id}}
	err = o.s.recordOnly(o.sends, &TerminalUpdate{TerminalID: t.id, Command: acpv2.Set(e.Line), Cwd: acpv2.Set(e.Dir)})
	if err != nil {
		err = o.fail(err)
	}
	if err == nil && show != nil {
		err = show(t.id)
	}
	if err == nil {
		err = context.Cause(o.ctx) // it was given up while the client made it
	}
	return t, err
}

func (l *lentTerminal) wait(ctx context.Context, s *AgentSession) (*TerminalExitStatus, error) {
	exit, err := l.host.wait(ctx, s, l.id)
	if err == nil {
		l.mu.Lock()
		l.exit = exit
		l.mu.Unlock()
	}
	return exit, err
}

func (l *lentTerminal) output(ctx context.Context, s *AgentSession) (*TerminalState, error) {
	l.mu.Lock()
	exit := l.exit
	l.mu.Unlock()
	state, err := l.host.output(ctx, s, l.id)
	if err != nil {
		return nil, err
	}
	if exit == nil {
		exit = state.Exit
	}
	if exit != nil {
		l.mu.Lock()
		l.exit, l.final = exit, state
		l.mu.Unlock()
	}
	return state, nil
}

func (l *lentTerminal) kill(ctx context.Context, s *AgentSession) error {
	return l.host.kill(ctx, s, l.id)
}

// release records what the terminal shows, if anybody records, and forgets it.
func (l *lentTerminal) release(ctx context.Context, s *AgentSession, id TerminalID) error {
	l.mu.Lock()
	first := !l.released
	l.released = true
	l.mu.Unlock()
	var err error
	if first && s.c.agent.Load().Record != nil {
		err = s.recordOnly(ctx, l.end(ctx, s, id))
	}
	return errors.Join(err, l.host.release(ctx, s, l.id))
}

// end returns the final state of a terminal as an update. What the client does not
// report is left out.
func (l *lentTerminal) end(ctx context.Context, s *AgentSession, id TerminalID) *TerminalUpdate {
	l.mu.Lock()
	state := l.final
	l.mu.Unlock()
	if state == nil {
		state, _ = l.output(ctx, s)
	}
	u := &TerminalUpdate{TerminalID: id, ExitStatus: acpv2.Set(TerminalExitStatus{})}
	if state != nil {
		u.Output = acpv2.Set(acpv2.TerminalOutput{Data: base64.StdEncoding.EncodeToString([]byte(state.Output))})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.exit != nil {
		u.ExitStatus = acpv2.Set(*l.exit)
	}
	return u
}
