package gateway

import (
	"context"
	"encoding/hex"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/cursors"
	"github.com/goacp/acp/jsonrpc"
)

// measureAt finds the last record that is copied of a source that is forked at a cursor. Unlike with a position, a turn is copied
// in part if the cursor is inside of it.
func (f *fork) measureAt(ctx context.Context, id acpv2.CursorID, source *attributes) error {
	refuse := func(why string) error { return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "cursorId: %s", why) }
	switch {
	case f.info.Owner != f.by: // the agent may know more than the client was shown
		return refuse("only the owner of a session forks it at a cursor of its agent")
	case f.info.AgentSession == "" || source.Handover:
		return refuse("the agent does not remember the session")
	}
	c, err := f.cursor(ctx, id, source.Since)
	switch {
	case err != nil:
		return err
	case c == nil:
		return refuse("unknown cursor")
	case !cursors.Forks(c):
		return refuse("the agent does not fork the session at this cursor")
	}
	beside, position := besideCursor(c)
	if beside == nil {
		return refuse("the server does not know where this cursor is")
	}
	var before engine.Record // the one that comes before what is being read
	open, found := "", false
	cut := func(r *engine.Record) { f.at, f.hash, f.open = r.Seq, hex.EncodeToString(r.Hash[:]), open }
	err = f.g.cfg.Log.Fold(ctx, f.info.ID, 0, func(r engine.Record) error {
		is := beside(&r)
		if is && position == acpv2.CursorAnchorPositionBefore && !found {
			cut(&before)
			found = true
		}
		switch r.Kind {
		case kindPrompt:
			p, err := records.DecodePrompt(r.Data)
			if err != nil {
				return err
			}
			open = p.ID
		case kindEnd:
			open = ""
		}
		if is && position != acpv2.CursorAnchorPositionBefore {
			cut(&r)
			found = true
		}
		before = r
		return nil
	})
	if err != nil {
		return err
	}
	if !found {
		return refuse("the server does not know where this cursor is")
	}
	f.end = true
	return nil
}

// cursor returns what the agent has said of a cursor in the session that it has now, which began after a record if that is known;
// nil if it has said nothing.
func (f *fork) cursor(ctx context.Context, id acpv2.CursorID, since *uint64) (c *acpv2.CursorUpdate, err error) {
	var list cursors.List
	after := uint64(0)
	if since != nil {
		after = *since
	}
	err = f.g.cfg.Log.Fold(ctx, f.info.ID, after, func(r engine.Record) error {
		if r.Kind != kindUpdate {
			return nil
		}
		said, err := records.DecodeUpdate(r.Data)
		if u, ok := said.(*acpv2.CursorUpdate); ok && err == nil && u.CursorID == id {
			c = list.Apply(u)
		}
		return nil
	})
	return c, err
}

// besideCursor returns what tells the records of what a cursor is beside, and its position; nil if it is beside something that the
// log does not have.
func besideCursor(c *acpv2.CursorUpdate) (is func(*engine.Record) bool, position acpv2.CursorAnchorPosition) {
	updates := func(is func(acp.SessionUpdate) bool) func(*engine.Record) bool {
		return func(r *engine.Record) bool {
			if r.Kind != kindUpdate {
				return false
			}
			u, err := records.DecodeUpdate(r.Data)
			return err == nil && is(u)
		}
	}
	switch a := c.Anchor.(type) {
	case *acpv2.CursorUserMessageAnchor:
		return func(r *engine.Record) bool {
			if r.Kind != kindPrompt {
				return false
			}
			p, err := records.DecodePrompt(r.Data)
			return err == nil && p.ID == string(a.MessageID)
		}, a.Position
	case *acpv2.CursorAgentMessageAnchor:
		return updates(func(u acp.SessionUpdate) bool {
			switch u := u.(type) {
			case *acp.AgentMessage:
				return u.MessageID == a.MessageID
			case *acp.AgentMessageChunk:
				return u.MessageID == a.MessageID
			}
			return false
		}), a.Position
	case *acpv2.CursorAgentThoughtAnchor:
		return updates(func(u acp.SessionUpdate) bool {
			switch u := u.(type) {
			case *acp.AgentThought:
				return u.MessageID == a.MessageID
			case *acp.AgentThoughtChunk:
				return u.MessageID == a.MessageID
			}
			return false
		}), a.Position
	case *acpv2.CursorToolCallAnchor:
		return updates(func(u acp.SessionUpdate) bool {
			switch u := u.(type) {
			case *acp.ToolCallUpdate:
				return u.ToolCallID == a.ToolCallID
			case *acpv2.ToolCallContentChunk:
				return u.ToolCallID == a.ToolCallID
			}
			return false
		}), a.Position
	}
	return nil, ""
}
