package gateway

import (
	"context"
	"errors"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/jsonrpc"
)

// listSessions lists the sessions of a client's user, and those that are shared with the user.
func (g *Gateway) listSessions(ctx context.Context, c *acp.AgentConn, q *acp.SessionQuery) (*acp.SessionPage, error) {
	page := new(acp.SessionPage)
	who := g.who(ctx)
	query := engine.Query{Reader: who.User, Limit: 100}
	if q.Cursor != nil {
		query.Cursor = string(*q.Cursor)
	}
	g.board.lists(ctx, c)
	found, err := g.cfg.Log.List(ctx, query)
	if errors.Is(err, engine.ErrInvalid) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown cursor")
	}
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(found.Sessions))
	for i := range found.Sessions {
		ids[i] = found.Sessions[i].ID
	}
	counts := g.counts(ctx, ids)
	for _, info := range found.Sessions {
		if q.Cwd != "" && q.Cwd != info.Cwd || !listed(q.Archived, g.aside(&info)) {
			continue
		}
		in := who
		if err := g.stand(ctx, &in, &info); err != nil {
			if isNotFound(err) {
				continue
			}
			return nil, err
		}
		g.board.listed(c, info.ID)
		page.Sessions = append(page.Sessions, g.sessionInfo(&in, &info, counts[info.ID]))
	}
	if found.Next != "" {
		page.NextCursor = (*acpv2.SessionListCursor)(&found.Next)
	}
	return page, nil
}
