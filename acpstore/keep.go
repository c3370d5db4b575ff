package acpstore

import (
	"context"
	"errors"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// Keep makes the sessions of an agent survive it, in a directory that is made if there is
// none. Call it once, before the agent serves; close the store afterwards.
//
//	hook           with Keep
//	Record         stores the conversation, and then calls the agent's own
//	ResumeSession  sends the stored history if it is asked for, and then calls the agent's
//	               own, which prepares Value, options and the like
//	ListSessions   lists the stored sessions, unless the agent has its own
//	DeleteSession  deletes the session, and then calls the agent's own
//	CloseSession   exists, so that clients of version 1 may close
//
// What could not be stored is not sent: see [acp.Agent.Record]. [Store.Load] returns a
// history, from which the agent can make the context of a language model.
func Keep(agent *acp.Agent, dir string) (*Store, error) {
	s, err := Open(dir)
	if err != nil {
		return nil, err
	}
	record, resume, remove := agent.Record, agent.ResumeSession, agent.DeleteSession
	agent.Record = func(ctx context.Context, session *acp.AgentSession, u acp.SessionUpdate) error {
		if err := s.record(session, u); err != nil {
			return err
		}
		if record != nil {
			return record(ctx, session, u)
		}
		return nil
	}
	agent.ResumeSession = func(ctx context.Context, session *acp.AgentSession, replay bool) error {
		if err := s.resume(session, replay); err != nil {
			return err
		}
		if resume != nil {
			return resume(ctx, session, replay)
		}
		return nil
	}
	if agent.ListSessions == nil {
		agent.ListSessions = func(_ context.Context, _ *acp.AgentConn, q *acp.SessionQuery) (*acp.SessionPage, error) {
			return s.List(q)
		}
	}
	agent.DeleteSession = func(ctx context.Context, c *acp.AgentConn, id acp.SessionID) error {
		err := s.Delete(id)
		if err == nil && remove != nil {
			err = remove(ctx, c, id)
		}
		return err
	}
	if agent.CloseSession == nil {
		agent.CloseSession = func(context.Context, *acp.AgentSession) error { return nil }
	}
	return s, nil
}

// record stores what is sent in a session.
func (s *Store) record(session *acp.AgentSession, u acp.SessionUpdate) error {
	id := session.ID()
	sync := true
	switch u := u.(type) {
	case *acp.AgentMessageChunk, *acp.AgentThoughtChunk:
		sync = false
	case *acp.IdleStateUpdate: // the end of a turn
		f, err := s.file(id, false)
		if errors.Is(err, jsonrpc.ErrResourceNotFound) {
			return nil // nothing has been said
		}
		if err != nil {
			return err
		}
		return f.sync()
	case *acp.UserMessage:
		if err := s.begin(session, u); err != nil {
			return err
		}
	}
	if acp.IsMomentary(u) {
		return nil
	}
	err := s.add(id, u, false, sync)
	if errors.Is(err, jsonrpc.ErrResourceNotFound) {
		return nil // before the first prompt
	}
	if info, ok := u.(*acp.SessionInfoUpdate); ok && err == nil {
		if title, ok := info.Title.Get(); ok {
			err = s.setTitle(id, title)
		}
	}
	return err
}

// begin makes the file of a session, unless there is one.
func (s *Store) begin(session *acp.AgentSession, first *acp.UserMessage) error {
	id := session.ID()
	_, err := s.file(id, false)
	if !errors.Is(err, jsonrpc.ErrResourceNotFound) {
		return err
	}
	info := &acp.SessionInfo{
		SessionID: id, Cwd: session.Cwd(), AdditionalDirectories: session.AdditionalDirectories(), Title: titleOf(first),
	}
	if err := s.add(id, info, true, true); err != nil {
		return err
	}
	s.use(session)
	return nil
}

// titleOf returns the first line of a prompt, shortened.
func titleOf(m *acp.UserMessage) string {
	for _, b := range m.Content.Or(nil) {
		t, ok := b.(*acp.TextContent)
		if !ok {
			continue
		}
		text, _, _ := strings.Cut(strings.TrimSpace(t.Text), "\n")
		if runes := []rune(text); len(runes) > 100 {
			text = string(runes[:99]) + "…"
		}
		if text != "" {
			return text
		}
	}
	return ""
}

// resume sends the history of a session, if it is asked for.
func (s *Store) resume(session *acp.AgentSession, replay bool) error {
	info, history, err := s.Load(session.ID())
	if err != nil {
		return err
	}
	s.use(session)
	if !replay {
		return nil
	}
	titled := false
	for _, u := range history {
		if err := session.Send(u); err != nil {
			return err
		}
		_, is := u.(*acp.SessionInfoUpdate)
		titled = titled || is
	}
	if !titled && info.Title != "" {
		return session.SetTitle(info.Title)
	}
	return nil
}
