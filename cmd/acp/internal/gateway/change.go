package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// A change is what a client wants to be different about a session, apart from options of its agent. What is nil stays.
type change struct {
	Title    *string `json:"title,omitempty"`
	Archived *bool   `json:"archived,omitempty"`
	// Share is written down, since whoever has the session open must learn it.
	Share *shareRecord `json:"share,omitempty"`
}

// maxTitle bounds the title of a session, in bytes.
const maxTitle = 1 << 10

// setTitle renames a session. What the client says last counts, and what the agent says after that.
func (g *Gateway) setTitle(ctx context.Context, _ *acp.AgentConn, id acp.SessionID, title string) (string, error) {
	if len(title) > maxTitle {
		return "", jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "a title of %d bytes, at most %d", len(title), maxTitle)
	}
	return title, g.change(ctx, id, "rename sessions", change{Title: &title})
}

// archiveSession puts a session aside, or takes it back. Everything of it is kept.
func (g *Gateway) archiveSession(ctx context.Context, _ *acp.AgentConn, id acp.SessionID, archived bool) error {
	return g.change(ctx, id, "archive sessions", change{Archived: &archived})
}

// sessionStatus reports whether a session has an agent that runs, as far as this node knows.
func (g *Gateway) sessionStatus(ctx context.Context, _ *acp.AgentConn, id acp.SessionID) (acp.SessionStatus, error) {
	if _, err := g.known(ctx, id); err != nil {
		return "", err
	}
	if s := g.session(string(id)); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.agent != nil {
			return acp.SessionStatusOpen, nil
		}
	}
	return acp.SessionStatusSaved, nil
}

// known returns what is kept of a session that a client may see.
func (g *Gateway) known(ctx context.Context, id acp.SessionID) (engine.Session, error) {
	_, info, err := g.lookUp(ctx, id)
	return info, err
}

// change changes a session for a client.
func (g *Gateway) change(ctx context.Context, id acp.SessionID, what string, c change) error {
	who, _, err := g.lookUp(ctx, id)
	if err != nil {
		return err
	}
	if !who.owns() {
		return who.errRole(what)
	}
	return g.apply(ctx, id, c)
}

// apply changes a session, wherever it runs.
func (g *Gateway) apply(ctx context.Context, id acp.SessionID, c change) error {
	return g.anywhere(ctx, string(id), func(p place) error { return p.change(ctx, c) })
}

// change implements place.
func (s *session) change(ctx context.Context, c change) error {
	if c.Title != nil {
		raw, err := json.Marshal(&acp.SessionInfoUpdate{Title: acp.Set(*c.Title)})
		if err != nil {
			return err
		}
		if err := s.update(ctx, func(info *engine.Session) { info.Title = *c.Title }); err != nil {
			return err
		}
		if _, err := s.log.commit(ctx, kindUpdate, (&records.Update{Update: raw}).Encode()); err != nil {
			return err
		}
	}
	if c.Share != nil {
		if _, err := s.log.commit(ctx, kindShare, encode(c.Share)); err != nil {
			return err
		}
	}
	if c.Archived != nil {
		if err := s.keep(ctx, func(a *attributes) { a.Archived = *c.Archived }); err != nil {
			return err
		}
		if *c.Archived { // its agent is not needed
			s.g.work.Go(s.rest)
		}
	}
	return nil
}

// change implements place.
func (v *visit) change(ctx context.Context, c change) error {
	res, err := rpcChange.Call(ctx, v.l.conn, &wireChange{v.wire(), c})
	if err != nil {
		return err
	}
	return res.Failure.err()
}

// change is called by another node.
func (h *host) change(ctx context.Context, p *wireChange) (*wireEnd, error) {
	v := h.guest(&p.wireSession)
	if v == nil {
		return &wireEnd{Failure: failed(errGone)}, nil
	}
	return &wireEnd{Failure: failed(v.s.change(ctx, p.Change))}, nil
}

type wireChange struct {
	wireSession
	Change change `json:"change"`
}

var rpcChange = jsonrpc.Method[wireChange, wireEnd]{Name: "change"}

// listed reports whether a session belongs in a list.
func listed(filter acp.SessionArchiveFilter, archived bool) bool {
	switch filter {
	case acp.SessionArchiveFilterInclude:
		return true
	case acp.SessionArchiveFilterOnly:
		return archived
	}
	return !archived
}

// archived reports whether a session is archived.
func archived(info *engine.Session) (bool, error) {
	var a struct {
		Archived bool `json:"archived"`
	}
	if len(info.Attributes) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(info.Attributes, &a); err != nil {
		return false, fmt.Errorf("the attributes of session %s: %w", info.ID, err)
	}
	return a.Archived, nil
}
