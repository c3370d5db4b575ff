package plain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

// isBroken waits at most this long for the end of a connection whose call has ended with it.
const closeWait = 5 * time.Second

// isBroken reports whether a turn has failed because the connection to the gateway broke. The gateway may
// still work on it.
func (c *conversation) isBroken(err error) bool {
	if !c.agent.Gateway || !errors.Is(err, jsonrpc.ErrClosed) {
		return false
	}
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-c.host.Done():
		return true
	case <-timer.C:
		return false
	}
}

// again returns to the conversation after the connection to its gateway broke with err. It is for failures
// that may pass, and for a bounded time; if it does not return to the conversation, it returns the error that
// ends it. What is typed meanwhile is read afterwards; an interrupt leaves.
func (l *loop) again(err error) (back bool, _ error) {
	c := l.c
	if err == nil || l.ctx.Err() != nil || !c.agent.Gateway {
		return false, err
	}
	select {
	case <-c.host.Done():
	default:
		return false, err // there is a connection
	}
	if !remote.Passes(err, 0) {
		return false, c.parting(err)
	}
	unproven := ""
	if l.running {
		unproven = c.last
	}
	l.stop()
	l.question, l.running = nil, false
	if !c.cut.Swap(false) { // otherwise it was said
		c.show.line("The connection broke. Trying again.")
	}
	shown, before, began := c.show.pause(), c.session.Snapshot(), time.Now()
	defer c.show.resume(shown)
	for {
		_ = c.host.Close()
		timer := time.NewTimer(remote.ReturnAfter)
		select {
		case <-timer.C:
		case <-l.interrupts:
			timer.Stop()
			return false, nil
		case <-l.ctx.Done():
			timer.Stop()
			return false, context.Cause(l.ctx)
		}
		err := l.tryAgain(shown)
		if err == nil {
			break
		}
		if l.ctx.Err() != nil {
			return false, context.Cause(l.ctx)
		}
		if errors.Is(err, context.Canceled) { // by an interrupt
			return false, nil
		}
		if !remote.Passes(err, time.Since(began)) {
			return false, c.parting(err)
		}
	}
	now := c.session.Snapshot()
	c.show.back(shown, before, now)
	l.returned, l.cancels = !now.Session().State.Idle(), 0
	if unproven != "" && !l.returned && !hasPrompt(now, unproven) {
		if !c.app.InTerminal {
			return false, exitcode.Errorf(exitcode.Agent, "the connection broke before the gateway had the prompt")
		}
		c.show.line("The gateway does not have your last prompt: send it again.")
	}
	if !l.busy() {
		c.idlePrompt()
	}
	return true, nil
}

// tryAgain opens the session once more.
func (l *loop) tryAgain(id acp.SessionID) error {
	c := l.c
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	type opened struct {
		host    *backend.Host
		session *backend.Session
	}
	var got opened
	done := make(chan error, 1)
	go func() {
		var err error
		if got.host, err = c.app.Open(ctx, c.agent, c.front); err == nil {
			got.session, _, err = got.host.Restore(ctx, id)
		}
		done <- err
	}()
	if _, err := c.serve(l.ctx, done, l.interrupts, cancel); err != nil {
		if got.host != nil {
			_ = got.host.Close()
		}
		return err
	}
	c.host, c.session = got.host, got.session
	return nil
}

// unsent says that what was given for the agent just now waits for the connection, if there is none.
func (c *conversation) unsent() {
	if c.cut.Load() {
		c.show.line("Not sent yet.")
	}
}

// parting returns the error that ends a conversation in a gateway.
func (c *conversation) parting(err error) error {
	if !c.agent.Gateway {
		return err
	}
	if refused := app.Refusal(err); errors.Is(refused, app.ErrRevoked) {
		return refused
	}
	if !remote.Passes(err, 0) {
		return err
	}
	c.parted = true
	return exitcode.Errorf(exitcode.Agent, "the gateway has ended. %s", app.Return(c.agent, c.session.ID(), false))
}

// hasPrompt reports whether the last prompt of a conversation is text.
func hasPrompt(snap *transcript.Snapshot, text string) bool {
	for e := range snap.Backward() {
		if m, ok := e.(*transcript.Message); ok && m.Role == transcript.RoleUser {
			return strings.TrimSpace(m.Text()) == strings.TrimSpace(text)
		}
	}
	return false
}

// others is called when the session has changed. A turn that went on while there was no connection ends
// like one of this connection.
func (l *loop) others() {
	if l.returned && l.c.session.Snapshot().Session().State.Idle() {
		l.returned, l.cancels = false, 0
		l.c.show.endLine()
		if len(l.c.queue) == 0 && !l.leaving {
			l.c.idlePrompt()
		}
	}
}

// busy reports whether a turn runs that this conversation has begun.
func (l *loop) busy() bool { return l.running || l.returned }

// pause has no changes written until back or resume is called. It returns the session whose changes they are.
func (s *show) pause() acp.SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.main
	s.main = ""
	return id
}

// resume ends pause.
func (s *show) resume(id acp.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.main = id
}

// back writes what has happened to a session since the connection broke, when it was before. A gateway sends
// the whole conversation again, so what was there is recognized by what it says.
func (s *show) back(id acp.SessionID, before, now *transcript.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.main = id
	s.writeLine("Back.")
	clear(s.read)
	clear(s.said)
	var messages []*transcript.Message
	lines := map[string]int{}
	for e := range before.Entries() {
		if m, ok := e.(*transcript.Message); ok {
			messages = append(messages, m)
		} else if line := entryLine(e); line != "" {
			lines[line]++
		}
	}
	for e := range now.Entries() {
		key := entryKey{id, e.Seq()}
		m, ok := e.(*transcript.Message)
		if !ok {
			if line := entryLine(e); lines[line] > 0 {
				lines[line]--
				s.said[key] = line
			} else if c, ok := e.(*transcript.ToolCall); ok {
				if old := before.ToolCall(c.ID); old != nil && !old.Ended() {
					s.said[key] = ToolLine(old)
				}
			}
			s.writeEntry(id, e)
			continue
		}
		if len(messages) > 0 && m.Role == messages[0].Role && strings.HasPrefix(m.Text(), messages[0].Text()) {
			s.read[key] = len(messages[0].Text())
			messages = messages[1:]
		} else {
			messages = nil // what follows is new
			if m.Role == transcript.RoleUser && history.Author(m) == "" {
				s.writeLine("You: " + safetext.Text(m.Text()))
			}
		}
		if rest := m.Text()[s.read[key]:]; rest != "" {
			s.writeMessage(key, m, rest)
		}
	}
}

// sessionChanged is [backend.Frontend]'s Changed.
func (c *conversation) sessionChanged(session *backend.Session, changes []transcript.Change) {
	c.show.changed(session, changes)
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

// startLine says what is being started, or connected to.
func (c *conversation) startLine() string {
	verb := "Starting "
	if c.agent.Gateway {
		verb = "Connecting to "
	}
	name := safetext.Line(c.agent.Name, 100)
	if c.agent.Gateway && name == app.Own {
		name = "your gateway"
	}
	return fmt.Sprintf("%s%s.", verb, name)
}
